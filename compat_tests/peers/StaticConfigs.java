import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import com.fasterxml.jackson.databind.*;

/**
 * What Kafka's own KafkaConfig says to settings a node is started with. Input: one JSON object a
 * line, the first what every node has, each further one what is set on top. Output: for each
 * further one a line, `answer null` where it is accepted, else with the text of the refusal; other lines are Kafka's log.
 */
public class StaticConfigs {
  public static void main(String[] arguments) throws Exception {
    ObjectMapper json = new ObjectMapper();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    Map<?, ?> base = json.readValue(in.readLine(), Map.class);
    StringBuilder out = new StringBuilder();
    for (String line; (line = in.readLine()) != null; ) {
      Properties properties = new Properties();
      properties.putAll(base);
      properties.putAll(json.readValue(line, Map.class));
      String refusal = null;
      try {
        kafka.server.KafkaConfig.fromProps(properties, false);
      } catch (Throwable error) {
        refusal = String.valueOf(error.getMessage());
      }
      out.append("answer ").append(json.writeValueAsString(refusal)).append('\n');
    }
    PrintStream stdout = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8");
    stdout.print(out);
    stdout.flush();
  }
}
