// A Java producer for bench/failover.py: FailoverProducer.java BOOTSTRAP TOPIC
// Reads a partition a line from stdin; writes to it every 20 ms with acks=all until the next line, and prints for each
// record that is acknowledged when it was handed over and when its answer came, in ms of the wall clock.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

public class FailoverProducer {
  static volatile int partition = -1;
  static volatile boolean ended = false;

  public static void main(String[] arguments) throws Exception {
    Properties properties = new Properties();
    properties.put("bootstrap.servers", arguments[0]);
    properties.put("acks", "all");
    String serializer = "org.apache.kafka.common.serialization.ByteArraySerializer";
    properties.put("key.serializer", serializer);
    properties.put("value.serializer", serializer);
    Thread reader = new Thread(() -> {
      try (BufferedReader lines = new BufferedReader(new InputStreamReader(System.in))) {
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
          partition = Integer.parseInt(line.trim());
        }
      } catch (Exception error) {
        System.err.println(error);
      }
      ended = true;
    });
    reader.setDaemon(true);
    reader.start();
    try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(properties)) {
      while (!ended) {
        int to = partition;
        long sent = System.currentTimeMillis();
        if (to >= 0) {
          producer.send(new ProducerRecord<>(arguments[1], to, null, new byte[] {1}), (metadata, error) -> {
            if (error == null) {
              System.out.println(sent + " " + System.currentTimeMillis());
            }
          });
        }
        Thread.sleep(20);
      }
    }
  }
}
