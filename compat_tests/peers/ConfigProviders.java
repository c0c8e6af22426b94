import java.util.*;
import com.fasterxml.jackson.databind.*;

/**
 * Settings with config providers, as Apache Kafka's KafkaConfig takes them: on standard input a JSON list of
 * [[name, value], ...], on the last line of standard output for each {"values": {name: value}} or {"error": message}.
 */
public class ConfigProviders {
  static final String[] NEEDED = {
    "process.roles", "broker,controller", "node.id", "1", "controller.listener.names", "CONTROLLER",
    "listeners", "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    "controller.quorum.bootstrap.servers", "localhost:9093"};

  public static void main(String[] arguments) throws Exception {
    ObjectMapper json = new ObjectMapper();
    List<Object> answers = new ArrayList<>();
    for (JsonNode settings : json.readTree(System.in)) {
      Properties properties = new Properties();
      for (int i = 0; i < NEEDED.length; i += 2) properties.put(NEEDED[i], NEEDED[i + 1]);
      for (JsonNode pair : settings) properties.put(pair.get(0).asText(), pair.get(1).asText());
      try {
        Map<String, Object> originals = new kafka.server.KafkaConfig(properties, false).originals();
        Map<String, Object> values = new LinkedHashMap<>();
        for (JsonNode pair : settings) values.put(pair.get(0).asText(), originals.get(pair.get(0).asText()));
        answers.add(Map.of("values", values));
      } catch (Exception error) {
        answers.add(Map.of("error", String.valueOf(error.getMessage())));
      }
    }
    System.out.write(("\n" + json.writeValueAsString(answers) + "\n").getBytes("UTF-8"));
    System.out.flush();
  }
}
