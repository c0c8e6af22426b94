import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaEntity.ConfigEntity;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.ClientRequestQuotaManager;
import org.apache.kafka.server.quota.ControllerMutationQuotaManager;
import org.apache.kafka.server.quota.QuotaType;

/**
 * Asks Kafka's quota managers, at the times that the input says. A line of the input, apart by tabs:
 *   new KIND SAMPLES SECONDS           another manager: produce, request or mutation
 *   set USER CLIENT BOUND              "-" no part of the entity, "*" its default; BOUND "-" removes
 *   use USER CLIENT VALUE MS           prints for how many ms the client has to wait
 *   back USER CLIENT VALUE MS          takes back what was used
 *   limit USER CLIENT                  prints who shares the rate, and what a window may hold at most
 * A CLIENT of "~" has no client id. A line of the output is an answer, or empty.
 */
public class QuotaOracle {
    private static long nowMs = 0;
    private static ClientQuotaManager manager;

    private static final Time TIME = new Time() {
        public long milliseconds() { return nowMs; }
        public long nanoseconds() { return nowMs * 1000000L; }
        public void sleep(long ms) { throw new UnsupportedOperationException(); }
    };

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(answer(line.split("\t", -1)));
        }
        out.flush();
        System.exit(0);
    }

    private static String answer(String[] parts) throws Exception {
        if (parts[0].equals("new")) {
            manager = created(parts[1], Integer.parseInt(parts[2]), Integer.parseInt(parts[3]));
            return "";
        }
        if (parts[0].equals("set")) {
            Optional<ConfigEntity> user = entity(parts[1], true), client = entity(parts[2], false);
            Optional<Quota> bound = parts[3].equals("-") ? Optional.empty()
                : Optional.of(Quota.upperBound(Double.parseDouble(parts[3])));
            manager.updateQuota(user, client, bound);
            return "";
        }
        Session session = new Session(new KafkaPrincipal("User", parts[1]), InetAddress.getLoopbackAddress());
        String client = parts[2].equals("~") ? null : parts[2];
        if (parts[0].equals("limit")) {
            Map<String, String> tags = manager.getOrCreateQuotaSensors(session, client).metricTags();
            return tags.get("user") + "\t" + tags.get("client-id") + "\t" + manager.maxValueInQuotaWindow(session, client);
        }
        double value = Double.parseDouble(parts[3]);
        nowMs = Long.parseLong(parts[4]);
        if (parts[0].equals("use")) {
            return Integer.toString(manager.recordAndGetThrottleTimeMs(session, client, value, nowMs));
        }
        manager.unrecordQuotaSensor(session, client, value, nowMs);
        return "";
    }

    private static ClientQuotaManager created(String kind, int samples, int seconds) {
        ClientQuotaManagerConfig config = new ClientQuotaManagerConfig(samples, seconds);
        Metrics metrics = new Metrics(TIME);
        if (kind.equals("request")) {
            return new ClientRequestQuotaManager(config, metrics, TIME, "", Optional.empty());
        }
        if (kind.equals("mutation")) {
            return new ControllerMutationQuotaManager(config, metrics, TIME, "", Optional.empty());
        }
        return new ClientQuotaManager(config, metrics, QuotaType.PRODUCE, TIME, "");
    }

    private static Optional<ConfigEntity> entity(String name, boolean isUser) {
        if (name.equals("-")) {
            return Optional.empty();
        }
        if (name.equals("*")) {
            return Optional.of(isUser ? ClientQuotaManager.DEFAULT_USER_ENTITY : ClientQuotaManager.DEFAULT_USER_CLIENT_ID);
        }
        return Optional.of(isUser ? new ClientQuotaManager.UserEntity(name) : new ClientQuotaManager.ClientIdEntity(name));
    }
}
