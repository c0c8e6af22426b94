import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.config.ReplicationQuotaManagerConfig;
import org.apache.kafka.server.quota.QuotaType;
import org.apache.kafka.server.quota.ReplicationQuotaManager;

/**
 * Asks Kafka's replication quota, at the times that the input says. A line of the input, apart by tabs:
 *   new RATE SAMPLES SECONDS    another quota
 *   rate RATE                   a changed rate
 *   record BYTES MS             counts
 *   exceeded MS                 prints 1 or 0
 * A line of the output is an answer, or empty.
 */
public class ReplicationOracle {
    private static long nowMs = 0;
    private static ReplicationQuotaManager manager;

    private static final Time TIME = new Time() {
        public long milliseconds() { return nowMs; }
        public long nanoseconds() { return nowMs * 1000000L; }
        public void sleep(long ms) { throw new UnsupportedOperationException(); }
    };

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        StringBuilder out = new StringBuilder();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.append(answer(line.split("\t"))).append('\n');
        }
        System.out.print(out);
        System.out.flush();
        System.exit(0);
    }

    private static String answer(String[] parts) {
        if (parts[0].equals("new")) {
            ReplicationQuotaManagerConfig config =
                new ReplicationQuotaManagerConfig(Integer.parseInt(parts[2]), Integer.parseInt(parts[3]));
            manager = new ReplicationQuotaManager(config, new Metrics(TIME), QuotaType.FOLLOWER_REPLICATION, TIME);
            manager.updateQuota(Quota.upperBound(Double.parseDouble(parts[1])));
            return "";
        }
        if (parts[0].equals("rate")) {
            manager.updateQuota(Quota.upperBound(Double.parseDouble(parts[1])));
            return "";
        }
        if (parts[0].equals("record")) {
            nowMs = Long.parseLong(parts[2]);
            manager.record(Long.parseLong(parts[1]));
            return "";
        }
        nowMs = Long.parseLong(parts[1]);
        return manager.isQuotaExceeded() ? "1" : "0";
    }
}
