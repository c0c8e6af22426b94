import java.util.*;
import org.apache.kafka.common.*;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The order in which a share fetch's answer goes through its partitions: random topics, put into the maps that Kafka's
 * request handler puts them into. Output: a line for each set, `topic=id ...`, a tab, `topic:partition ...` in order.
 */
public class ShareOrder {
  static final int[] SIZES = {2, 3, 4, 5, 6, 11, 12, 13, 20, 40};

  public static void main(String[] arguments) {
    Random random = new Random(5);
    for (int size : SIZES) for (int repeat = 0; repeat < 6; repeat++) System.out.println(line(size, random));
  }

  @SuppressWarnings("unchecked")
  static String line(int size, Random random) {
    Map<String, Uuid> topics = new TreeMap<>();
    for (int left = 1 + random.nextInt(2); left > 0; left--)
      topics.put("topic-" + random.nextInt(1000), new Uuid(random.nextLong(), random.nextLong()));
    List<String> names = new ArrayList<>(topics.keySet());
    scala.collection.mutable.Map<TopicIdPartition, Integer> answers =
        (scala.collection.mutable.Map<TopicIdPartition, Integer>) (Object) scala.collection.mutable.Map$.MODULE$.empty();
    for (int at = 0; at < size; at++) {
      String name = names.get(at % names.size());
      answers.put(new TopicIdPartition(topics.get(name), new TopicPartition(name, at / names.size())), at);
    }
    scala.collection.immutable.Map<TopicIdPartition, Integer> sent =
        (scala.collection.immutable.Map<TopicIdPartition, Integer>) (Object)
            answers.toMap((scala.$less$colon$less) (Object) scala.$less$colon$less$.MODULE$.refl());
    StringJoiner asked = new StringJoiner(" "), order = new StringJoiner(" ");
    topics.forEach((name, id) -> asked.add(
        name + "=" + String.format("%016x%016x", id.getMostSignificantBits(), id.getLeastSignificantBits())));
    for (TopicIdPartition each : new LinkedHashMap<>(CollectionConverters.asJava(sent)).keySet())
      order.add(each.topic() + ":" + each.partition());
    return asked + "\t" + order;
  }
}
