import com.google.re2j.Pattern;
import com.google.re2j.PatternSyntaxException;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/**
 * Asks RE2/J. A line of the input is a pattern and texts, each as UTF-16 in hexadecimal, apart by
 * tabs. A line of the output is a 0 or 1 for each text (whether all of it matches), or "E " and
 * what is wrong with the pattern.
 */
public class PatternOracle {
    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(answer(line.split("\t", -1)));
        }
        out.flush();
    }

    private static String answer(String[] parts) {
        try {
            Pattern pattern = Pattern.compile(text(parts[0]));
            StringBuilder found = new StringBuilder();
            for (int i = 1; i < parts.length; i++) {
                found.append(pattern.matcher(text(parts[i])).matches() ? '1' : '0');
            }
            return found.toString();
        } catch (PatternSyntaxException error) {
            return "E " + error.getDescription();
        }
    }

    private static String text(String units) {
        StringBuilder found = new StringBuilder();
        for (int i = 0; i < units.length(); i += 4) {
            found.append((char) Integer.parseInt(units.substring(i, i + 4), 16));
        }
        return found.toString();
    }
}
