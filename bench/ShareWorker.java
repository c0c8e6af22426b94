// A Java share consumer for bench/share.py: ShareWorker.java BOOTSTRAP GROUP TOPIC COUNT
// Polls until it has COUNT records, each accepted by the next poll, and prints one JSON line: s and MBps from the first records on,
// ok the records, clientcpu the CPU seconds of this process meanwhile.
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;

public class ShareWorker {
  static double cpuSeconds() {
    return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime() / 1e9;
  }

  public static void main(String[] arguments) {
    Properties properties = new Properties();
    properties.put("bootstrap.servers", arguments[0]);
    properties.put("group.id", arguments[1]);
    String deserializer = "org.apache.kafka.common.serialization.ByteArrayDeserializer";
    properties.put("key.deserializer", deserializer);
    properties.put("value.deserializer", deserializer);
    long wanted = Long.parseLong(arguments[3]);
    long givenUp = System.nanoTime() + 120_000_000_000L;
    long records = 0, first = 0, began = 0, bytes = 0, last = 0;
    double cpuBefore = 0;
    try (KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(properties)) {
      consumer.subscribe(List.of(arguments[2]));
      while (records < wanted && System.nanoTime() < givenUp) {
        ConsumerRecords<byte[], byte[]> found = consumer.poll(Duration.ofSeconds(1));
        if (!found.isEmpty() && began == 0) {
          began = System.nanoTime();
          first = found.count();
          cpuBefore = cpuSeconds();
          records += first;
          continue;
        }
        for (ConsumerRecord<byte[], byte[]> record : found) {
          bytes += record.value().length;
        }
        records += found.count();
        last = System.nanoTime();
      }
      double seconds = (last - began) / 1e9;
      System.out.printf("{\"s\":%.4f,\"ok\":%d,\"MBps\":%.1f,\"recps\":%.0f,\"clientcpu\":%.3f}%n", seconds, records,
          bytes / seconds / 1e6, (records - first) / seconds, cpuSeconds() - cpuBefore);
    }
  }
}
