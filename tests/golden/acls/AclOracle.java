import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/**
 * Asks Kafka's StandardAuthorizer. Lines of the input, their fields apart by tabs, numbers as in
 * the protocol:
 *
 *   S super.users allow.everyone.if.no.acl.found     begins a set of ACLs
 *   A type name pattern principal host operation permission     one of its ACLs
 *   Q principal address operation type name          may the principal do this?
 *   R principal address operation type               or to any resource of the type?
 *
 * For each Q a line: 1 or 0 and the ACL that decides, as A has it, or "-"; for each R 1 or 0; an
 * exception is "E" and its class.
 */
public class AclOracle {
    record Client(KafkaPrincipal principal, InetAddress clientAddress) implements AuthorizableRequestContext {
        public String listenerName() { return "PLAINTEXT"; }
        public SecurityProtocol securityProtocol() { return SecurityProtocol.PLAINTEXT; }
        public int requestType() { return 0; }
        public int requestVersion() { return 0; }
        public String clientId() { return ""; }
        public int correlationId() { return 0; }
    }

    private static StandardAuthorizer authorizer;
    private static final Map<Uuid, StandardAcl> acls = new HashMap<>();
    private static boolean loaded;

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] part = line.split("\t", -1);
            if (part[0].equals("S")) {
                begin(part);
            } else if (part[0].equals("A")) {
                acls.put(new Uuid(7, acls.size()), acl(part));
            } else {
                out.println(answer(part));
            }
        }
        out.flush();
    }

    private static void begin(String[] part) {
        authorizer = new StandardAuthorizer();
        authorizer.configure(Map.of(
            "node.id", "1", "super.users", part[1], "allow.everyone.if.no.acl.found", part[2]));
        authorizer.withPluginMetrics(new PluginMetricsImpl(new Metrics(), Map.of()));
        acls.clear();
        loaded = false;
    }

    private static StandardAcl acl(String[] part) {
        return new StandardAcl(
            ResourceType.fromCode(Byte.parseByte(part[1])), part[2],
            PatternType.fromCode(Byte.parseByte(part[3])), part[4], part[5],
            AclOperation.fromCode(Byte.parseByte(part[6])),
            AclPermissionType.fromCode(Byte.parseByte(part[7])));
    }

    private static String answer(String[] part) throws Exception {
        if (!loaded) {
            authorizer.loadSnapshot(acls);
            authorizer.completeInitialLoad();
            loaded = true;
        }
        String[] principal = part[1].split(":", 2);
        Client client = new Client(
            new KafkaPrincipal(principal[0], principal[1]), InetAddress.getByName(part[2]));
        AclOperation operation = AclOperation.fromCode(Byte.parseByte(part[3]));
        ResourceType type = ResourceType.fromCode(Byte.parseByte(part[4]));
        try {
            if (part[0].equals("R")) {
                return bit(authorizer.authorizeByResourceType(client, operation, type));
            }
            Action action = new Action(
                operation, new ResourcePattern(type, part[5], PatternType.LITERAL), 1, true, true);
            return bit(authorizer.authorize(client, List.of(action)).get(0)) + "\t" + rule(client, action);
        } catch (Exception error) {
            return "E " + error.getClass().getSimpleName();
        }
    }

    private static String bit(AuthorizationResult result) {
        return result == AuthorizationResult.ALLOWED ? "1" : "0";
    }

    /** The ACL that decides, which Kafka tells its log only. */
    private static String rule(Client client, Action action) throws Exception {
        Field field = StandardAuthorizer.class.getDeclaredField("data");
        field.setAccessible(true);
        Object data = field.get(authorizer);
        Method find = null;
        for (Method each : data.getClass().getDeclaredMethods()) {
            if (each.getName().equals("findAclRule")) {
                find = each;
            }
        }
        find.setAccessible(true);
        Object rule = find.invoke(
            data, Set.of(client.principal(), new KafkaPrincipal("User", "*")),
            client.clientAddress().getHostAddress(), action);
        Method of;
        try {
            of = rule.getClass().getDeclaredMethod("acl");
        } catch (NoSuchMethodException none) {
            return "-";
        }
        of.setAccessible(true);
        StandardAcl acl = (StandardAcl) of.invoke(rule);
        return String.join("\t", code(acl.resourceType().code()), acl.resourceName(),
            code(acl.patternType().code()), acl.principal(), acl.host(),
            code(acl.operation().code()), code(acl.permissionType().code()));
    }

    private static String code(byte number) {
        return Byte.toString(number);
    }
}
