import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import javax.security.auth.callback.Callback;
import javax.security.auth.login.AppConfigurationEntry;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.common.security.auth.SaslExtensionsCallback;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerTokenCallback;

/** Gets tokens as Apache Kafka does. One JSON object a line on standard input:
 * {"settings": {name: text}, "options": {name: text}}, the second of the login module; one line out:
 * {"token", "lifetime_ms", "start_ms", "extensions"}, {"refused": error and description} or {"error": [message, ...]}. */
public class TokenOracle {
    public static void main(String[] args) throws Exception {
        ObjectMapper json = new ObjectMapper();
        java.util.Scanner input = new java.util.Scanner(System.in);
        while (input.hasNextLine()) {
            JsonNode asked = json.readTree(input.nextLine());
            Map<String, Object> answer = new HashMap<>();
            OAuthBearerLoginCallbackHandler handler = new OAuthBearerLoginCallbackHandler();
            try {
                Map<String, Object> settings = new HashMap<>(json.convertValue(asked.get("settings"), Map.class));
                settings.put("bootstrap.servers", "127.0.0.1:9");
                Map<String, Object> options = json.convertValue(asked.get("options"), Map.class);
                AppConfigurationEntry entry = new AppConfigurationEntry(OAuthBearerLoginModule.class.getName(),
                    AppConfigurationEntry.LoginModuleControlFlag.REQUIRED, options);
                handler.configure(new AdminClientConfig(settings).values(), "OAUTHBEARER", List.of(entry));
                OAuthBearerTokenCallback token = new OAuthBearerTokenCallback();
                SaslExtensionsCallback extensions = new SaslExtensionsCallback();
                handler.handle(new Callback[] {token, extensions});
                if (token.token() == null) {
                    answer.put("refused", token.errorCode() + ": " + token.errorDescription());
                } else {
                    answer.put("token", token.token().value());
                    answer.put("lifetime_ms", token.token().lifetimeMs());
                    answer.put("start_ms", token.token().startTimeMs());
                    answer.put("principal", token.token().principalName());
                    answer.put("extensions", extensions.extensions().map());
                }
            } catch (Throwable error) {
                List<String> messages = new ArrayList<>();
                for (Throwable each = error; each != null; each = each.getCause()) {
                    messages.add(each.getClass().getSimpleName() + ": " + each.getMessage());
                }
                answer.put("error", messages);
            } finally {
                try { handler.close(); } catch (Throwable ignored) { }
            }
            System.out.println(json.writeValueAsString(answer));
        }
    }
}
