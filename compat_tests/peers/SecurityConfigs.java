import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import com.fasterxml.jackson.databind.*;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.Endpoint;
import org.apache.kafka.common.network.ChannelBuilders;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.JaasContext;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.security.token.delegation.internals.DelegationTokenCache;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.security.CredentialProvider;

/**
 * What Kafka's own start says to settings of security: its KafkaConfig, then what a node makes before it
 * serves (a channel builder for each of its listeners, and for the listeners of others that it connects to).
 * Input: one JSON object a line, all settings of a node. Output: for each a line, `answer null` where a node
 * starts, else with the texts of the refusal and of its causes; other lines are Kafka's log.
 */
public class SecurityConfigs {
  public static void main(String[] arguments) throws Exception {
    ObjectMapper json = new ObjectMapper();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    StringBuilder out = new StringBuilder();
    for (String line; (line = in.readLine()) != null; ) {
      Properties properties = new Properties();
      properties.putAll(json.readValue(line, Map.class));
      List<String> refusal = null;
      try {
        start(properties);
      } catch (Throwable error) {
        refusal = new ArrayList<>();
        for (Throwable each = error; each != null; each = each.getCause()) refusal.add(String.valueOf(each.getMessage()));
      }
      out.append("answer ").append(json.writeValueAsString(refusal)).append('\n');
    }
    PrintStream stdout = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8");
    stdout.print(out);
    stdout.flush();
    Runtime.getRuntime().halt(0);
  }

  static void start(Properties properties) throws Exception {
    KafkaConfig config = KafkaConfig.fromProps(properties, false);
    List<String> scram = List.of("SCRAM-SHA-256", "SCRAM-SHA-512");
    DelegationTokenCache tokens = new DelegationTokenCache(scram);
    CredentialProvider credentials = new CredentialProvider(scram, tokens);
    for (Endpoint endpoint : scala.jdk.javaapi.CollectionConverters.asJava(config.listeners())) {
      ListenerName name = ListenerName.normalised(endpoint.listener());
      boolean betweenBrokers = name.equals(config.interBrokerListenerName());
      ChannelBuilders.serverChannelBuilder(name, betweenBrokers, endpoint.securityProtocol(), config,
          credentials.credentialCache, tokens, Time.SYSTEM, new LogContext(), version -> null).close();
    }
    ListenerName controller = new ListenerName(config.controllerListenerNames().get(0));
    dial(config, controller, config.effectiveListenerSecurityProtocolMap().get(controller), config.saslMechanismControllerProtocol());
    dial(config, config.interBrokerListenerName(), config.interBrokerSecurityProtocol(), config.saslMechanismInterBrokerProtocol());
  }

  static void dial(KafkaConfig config, ListenerName name, SecurityProtocol protocol, String mechanism) {
    ChannelBuilders.clientChannelBuilder(protocol, JaasContext.Type.SERVER, config, name, mechanism, Time.SYSTEM, new LogContext()).close();
  }
}
