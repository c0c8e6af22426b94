package kwire;

import static kwire.Cases.props;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.streams.KafkaStreams;

/** The word count as a process of its own, to be killed: BOOTSTRAP IN OUT APPLICATION STATE-DIRECTORY. */
public final class StreamsApp {
    /** Starts a JVM that counts; every update of a count is written, none is held back by a cache. */
    static Process start(String bootstrap, String in, String out, String app, Path state) throws Exception {
        List<String> command = new ArrayList<>(List.of(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-Xmx256m", "-XX:TieredStopAtLevel=1",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=" + System.getProperty("org.slf4j.simpleLogger.defaultLogLevel", "off"),
            "-cp", System.getProperty("java.class.path"), "kwire.StreamsApp", bootstrap, in, out, app, state.toString()));
        return new ProcessBuilder(command).inheritIO().start();
    }

    public static void main(String[] args) {
        Properties config = props("bootstrap.servers", args[0], "application.id", args[3], "state.dir", args[4],
            "processing.guarantee", "exactly_once_v2", "commit.interval.ms", 200, "replication.factor", -1, "num.stream.threads", 1,
            "statestore.cache.max.bytes", 0, "session.timeout.ms", 6000, "heartbeat.interval.ms", 500, "auto.offset.reset", "earliest");
        KafkaStreams streams = new KafkaStreams(Streams.wordCount(args[1], args[2]), config);
        streams.setUncaughtExceptionHandler(error -> {
            System.err.println("streams: " + error);
            for (Throwable why = error.getCause(); why != null; why = why.getCause()) System.err.println("  because of " + why);
            return org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        streams.start();
    }
}
