// What Java and Kafka make of a certificate's name: lines of standard input to lines of output.
// N <hex of a DER Name>: what X500Principal.getName() says of it.
// R <hex of a name, UTF-16> <hex of rules, UTF-16>: what SslPrincipalMapper makes of it.
// Every answer is hex of UTF-16; "E " goes before the words of a refusal.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import javax.security.auth.x500.X500Principal;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

public class NameOracle {
    static final HexFormat HEX = HexFormat.of();

    static String text(String hex) {
        return new String(HEX.parseHex(hex), StandardCharsets.UTF_16BE);
    }

    static String answer(String line) {
        String[] parts = line.split(" ", -1);
        try {
            if (parts[0].equals("N")) {
                return new X500Principal(HEX.parseHex(parts[1])).getName();
            }
            return SslPrincipalMapper.fromRules(text(parts[2])).getName(text(parts[1]));
        } catch (Exception refused) {
            return "E " + refused.getMessage();
        }
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(HEX.formatHex(answer(line).getBytes(StandardCharsets.UTF_16BE)));
        }
    }
}
