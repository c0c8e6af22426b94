import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.requests.ProduceRequest;
import org.apache.kafka.common.requests.ProduceResponse;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Timer;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.FetchDataInfo;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.RecordValidationException;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Asks Apache Kafka's own code about record batches, a question a line on standard input, an answer a line.
 *
 * append ID PRODUCE_VERSION ORIGIN WALL_MS CONFIG HEX -> ID CODE MESSAGE RECORD_ERRORS STORED_HEX READABLE
 * filter ID NOW_MS DELETE_RETENTION_MS RETENTION EMPTY_MARKER OFFSETS HEX -> ID HEX
 *
 * Fields are separated by tabs. CONFIG is name=value;..., OFFSETS (the records to retain) a,b,...; RETENTION
 * is DELETE_EMPTY or RETAIN_EMPTY. A log starts at offset 1000 for every append, its leader epoch is 7.
 */
public class Records {
    static final HexFormat HEX = HexFormat.of();
    static long now;

    static class FixedTime implements Time {
        public long milliseconds() { return now; }
        public long nanoseconds() { return now * 1_000_000; }
        public long hiResClockMs() { return now; }
        public void sleep(long ms) { }
        public void waitObject(Object object, Supplier<Boolean> condition, long deadline) { }
        public Timer timer(long ms) { return Time.SYSTEM.timer(ms); }
        public <T> T waitForFuture(CompletableFuture<T> future, long deadline) {
            return future.join();
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        PrintStream out = new PrintStream(System.out, false);
        String line;
        while ((line = in.readLine()) != null) {
            String[] fields = line.split("\t", -1);
            String answer = fields[0].equals("append") ? append(fields) : filter(fields);
            out.println(fields[1] + "\t" + answer);
        }
        out.flush();
    }

    static final Map<String, UnifiedLog> LOGS = new HashMap<>();

    static UnifiedLog log(String config) throws Exception {
        UnifiedLog log = LOGS.get(config);
        if (log != null) return log;
        Map<String, Object> props = new HashMap<>();
        for (String entry : config.split(";"))
            if (!entry.isEmpty())
                props.put(entry.substring(0, entry.indexOf('=')), entry.substring(entry.indexOf('=') + 1));
        props.put("segment.index.bytes", "1000000");
        Scheduler idle = (Scheduler) java.lang.reflect.Proxy.newProxyInstance(
            Records.class.getClassLoader(), new Class<?>[] {Scheduler.class}, (proxy, method, arguments) -> null);
        Path root = Files.createTempDirectory("records");
        File directory = root.resolve("t" + LOGS.size() + "-0").toFile();
        directory.mkdirs();
        log = UnifiedLog.create(directory, new LogConfig(props), 0, 0, idle, new BrokerTopicStats(), new FixedTime(),
            300000, new ProducerStateManagerConfig(86400000, false), 600000, new LogDirFailureChannel(10), true,
            Optional.empty());
        LOGS.put(config, log);
        return log;
    }

    static String append(String[] f) throws Exception {
        now = Long.parseLong(f[4]);
        AppendOrigin origin = AppendOrigin.valueOf(f[3]);
        UnifiedLog log = log(f[5]);
        String code = "NONE", message = "", stored = "", readable = "";
        StringBuilder errors = new StringBuilder();
        try {
            MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(HEX.parseHex(f[6])));
            if (origin == AppendOrigin.CLIENT) ProduceRequest.validateRecords(Short.parseShort(f[2]), records);
            log.truncateFullyAndStartAt(1000, Optional.empty());
            LogAppendInfo info = log.appendAsLeader(
                records, 7, origin, RequestLocal.noCaching(), VerificationGuard.SENTINEL, (short) 0);
            FetchDataInfo data = log.read(1000, 1 << 26, FetchIsolation.LOG_END, true);
            FileRecords file = (FileRecords) data.records;
            ByteBuffer buffer = ByteBuffer.allocate(file.sizeInBytes());
            file.readInto(buffer, 0);
            byte[] bytes = new byte[buffer.remaining()];
            buffer.get(bytes);
            stored = HEX.formatHex(bytes);
            readable = readable(bytes) ? "yes" : "no";
            message = "first=" + info.firstOffset() + " last=" + info.lastOffset() + " appendtime="
                + info.logAppendTime() + " maxts=" + info.maxTimestamp();
        } catch (RecordValidationException e) {
            code = Errors.forException(e.invalidException()).name();
            message = String.valueOf(e.invalidException().getMessage());
            for (ProduceResponse.RecordError error : e.recordErrors())
                errors.append(error.batchIndex).append(':').append(error.message).append('|');
        } catch (Throwable e) {
            code = Errors.forException(e).name();
            message = e.getClass().getSimpleName() + ": " + e.getMessage();
        }
        String clean = message.replaceAll("[\\t\\n]", " ");
        return String.join("\t", code, clean, errors.toString().replaceAll("[\\t\\n]", " "), stored, readable);
    }

    static boolean readable(byte[] bytes) {
        try {
            for (Record record : MemoryRecords.readableRecords(ByteBuffer.wrap(bytes)).records()) {
                record.key();
                record.value();
                for (Header header : record.headers()) {
                    header.key();
                    header.value();
                }
            }
            return true;
        } catch (RuntimeException e) {
            return false;
        }
    }

    static String filter(String[] f) {
        Set<Long> retained = new HashSet<>();
        Arrays.stream(f[6].split(",")).filter(text -> !text.isEmpty()).forEach(text -> retained.add(Long.parseLong(text)));
        var retention = MemoryRecords.RecordFilter.BatchRetention.valueOf(f[4]);
        boolean emptyMarker = Boolean.parseBoolean(f[5]);
        MemoryRecords.RecordFilter chosen =
            new MemoryRecords.RecordFilter(Long.parseLong(f[2]), Long.parseLong(f[3])) {
                protected BatchRetentionResult checkBatchRetention(RecordBatch batch) {
                    return new BatchRetentionResult(retention, emptyMarker);
                }
                protected boolean shouldRetainRecord(RecordBatch batch, Record record) {
                    return retained.contains(record.offset());
                }
            };
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(HEX.parseHex(f[7])));
        ByteBuffer target = ByteBuffer.allocate(1 << 20);
        ByteBuffer output = records.filterTo(chosen, target, BufferSupplier.NO_CACHING, Integer.MAX_VALUE).outputBuffer();
        output.flip();
        byte[] bytes = new byte[output.remaining()];
        output.get(bytes);
        return HEX.formatHex(bytes);
    }
}
