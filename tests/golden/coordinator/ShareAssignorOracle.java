import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.*;
import java.util.stream.Collectors;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.*;
import org.apache.kafka.coordinator.group.assignor.SimpleAssignor;
import org.apache.kafka.coordinator.group.modern.*;

/**
 * What Apache Kafka's simple assignor assigns. Input, a group a line, separated by tabs: "same" or "different" (the
 * subscriptions), the topics "topic=partitions of it/partitions that may be assigned" and the members
 * "id=topics/topic:partitions/..." with their target; numbers and topics are separated by commas, topics by a space, members by a
 * space. Output: "id=topic:partitions/..." sorted, members separated by a space.
 */
public class ShareAssignorOracle {
    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] parts = line.split("\t", -1);
            Map<Uuid, Integer> counts = new HashMap<>();
            Map<Uuid, Set<Integer>> assignable = new HashMap<>();
            for (String topic : words(parts[1])) {
                String[] halves = topic.split("=", -1);
                String[] numbers = halves[1].split("/", -1);
                counts.put(Uuid.fromString(halves[0]), Integer.parseInt(numbers[0]));
                assignable.put(Uuid.fromString(halves[0]), numbers(numbers[1]));
            }
            Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
            for (String member : words(parts[2])) {
                String[] halves = member.split("=", -1);
                String[] fields = halves[1].split("/", -1);
                Set<Uuid> topics = new LinkedHashSet<>();
                for (String topic : fields[0].split(","))
                    if (!topic.isEmpty()) topics.add(Uuid.fromString(topic));
                Map<Uuid, Set<Integer>> target = new HashMap<>();
                for (String owned : Arrays.copyOfRange(fields, 1, fields.length)) {
                    String[] pair = owned.split(":", -1);
                    target.put(Uuid.fromString(pair[0]), numbers(pair[1]));
                }
                members.put(halves[0], new MemberSubscriptionAndAssignmentImpl(
                    Optional.empty(), Optional.empty(), topics, new Assignment(target)));
            }
            SubscriptionType type = parts[0].equals("same") ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
            GroupSpec group = new GroupSpecImpl(members, type, Map.of(), Optional.of(assignable));
            SubscribedTopicDescriber describer = new SubscribedTopicDescriber() {
                @Override
                public int numPartitions(Uuid topic) {
                    return counts.getOrDefault(topic, -1);
                }

                @Override
                public Set<String> racksForPartition(Uuid topic, int partition) {
                    return Set.of();
                }
            };
            Map<String, MemberAssignment> found = new SimpleAssignor().assign(group, describer).members();
            System.out.println(new TreeMap<>(members).keySet().stream()
                .map(id -> id + "=" + text(found.get(id))).collect(Collectors.joining(" ")));
        }
    }

    private static String[] words(String text) {
        return text.isEmpty() ? new String[0] : text.split(" ");
    }

    private static Set<Integer> numbers(String text) {
        Set<Integer> found = new HashSet<>();
        for (String number : text.split(","))
            if (!number.isEmpty()) found.add(Integer.parseInt(number));
        return found;
    }

    private static String text(MemberAssignment assignment) {
        if (assignment == null) return "";
        return assignment.partitions().entrySet().stream()
            .map(x -> x.getKey() + ":" + x.getValue().stream().sorted().map(String::valueOf).collect(Collectors.joining(",")))
            .sorted().collect(Collectors.joining("/"));
    }
}
