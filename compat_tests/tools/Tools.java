import java.io.*;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.*;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.common.utils.internals.Exit;

/**
 * Runs Kafka's own command-line tools one after the other in one JVM, so that a hundred of them take a minute.
 *
 * Input, a step: `$ CLASS` and an `a ARGUMENT` line each, `i TEXT` lines of standard input, `w` (wait a moment afterwards), then `.`.
 * The argument `@hmac` stands for the HMAC of the delegation token that was made last.
 * Output, a step: `o TEXT` lines of what the tool wrote, `= STATUS`, then `.`. Status `timeout` ends the program.
 */
public class Tools {
    private static final String[] PACKAGES = {
        "org.apache.kafka.tools.", "org.apache.kafka.tools.consumer.", "org.apache.kafka.tools.consumer.group.",
        "org.apache.kafka.tools.reassign.", "org.apache.kafka.tools.streams.", "kafka.admin.", "kafka.tools.",
    };

    private static final long SETTLE_MS = Long.getLong("settleMs", 200);
    private static final Pattern HMAC = Pattern.compile("Created delegation token(?s:.*)(?<![\\w+/])([\\w+/]{86}==)");
    private static String hmac = "";

    /** How a tool ends: thrown where it would end the JVM. */
    private static final class Ended extends Error {
        final int status;

        Ended(int status) {
            super("ended", null, false, false);
            this.status = status;
        }
    }

    private static volatile Integer status;

    private static void end(int code, String message) {
        if (message != null && !message.isEmpty()) System.err.println(message);
        if (status == null) status = code;
        throw new Ended(code);
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader steps = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream report = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
        Exit.setExitProcedure(Tools::end);
        Exit.setHaltProcedure(Tools::end);
        Exit.setShutdownHookAdder((name, runnable) -> { });
        long limitMs = Long.getLong("limitMs", 30_000);
        String name = null;
        List<String> words = new ArrayList<>();
        StringBuilder input = new StringBuilder();
        boolean settles = false;
        for (String line; (line = steps.readLine()) != null; ) {
            if (line.startsWith("$ ")) name = line.substring(2);
            else if (line.startsWith("a ")) words.add(line.equals("a @hmac") ? hmac : line.substring(2));
            else if (line.startsWith("i ")) input.append(line.substring(2)).append('\n');
            else if (line.equals("w")) settles = true;
            else if (line.equals(".")) {
                boolean ended = step(report, name, words.toArray(new String[0]), input.toString(), limitMs);
                if (!ended) Runtime.getRuntime().halt(3);
                if (settles) Thread.sleep(SETTLE_MS);
                settles = false;
                words.clear();
                input.setLength(0);
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private static boolean step(PrintStream report, String name, String[] words, String input, long limitMs) throws Exception {
        ByteArrayOutputStream written = new ByteArrayOutputStream();
        PrintStream to = new PrintStream(written, true, StandardCharsets.UTF_8);
        System.setIn(new ByteArrayInputStream(input.getBytes(StandardCharsets.UTF_8)));
        System.setOut(to);
        System.setErr(to);
        status = null;
        FutureTask<Object> task = new FutureTask<>(() -> { run(name, words); return null; });
        Thread thread = new Thread(task, "tool");
        thread.setDaemon(true);
        thread.start();
        String how;
        try {
            task.get(limitMs, TimeUnit.MILLISECONDS);
            how = status == null ? "0" : status.toString();
        } catch (ExecutionException error) {
            Throwable cause = error.getCause();
            if (!(cause instanceof Ended)) to.println(cause);
            how = status == null ? "1" : status.toString();
        } catch (TimeoutException error) {
            how = "timeout";
        }
        to.flush();
        for (Matcher found = HMAC.matcher(written.toString(StandardCharsets.UTF_8)); found.find(); ) hmac = found.group(1);
        for (String line : written.toString(StandardCharsets.UTF_8).split("\n", -1)) report.println("o " + line);
        report.println("= " + how);
        report.println(".");
        return !how.equals("timeout");
    }

    private static void run(String name, String[] words) throws Exception {
        Class<?> tool = null;
        for (String where : PACKAGES) {
            try {
                tool = Class.forName(where + name);
                break;
            } catch (ClassNotFoundException next) {
                // in another package
            }
        }
        if (tool == null) throw new IllegalArgumentException("no tool " + name);
        Method main = tool.getMethod("main", String[].class);
        try {
            main.invoke(null, (Object) words);
        } catch (InvocationTargetException error) {
            Throwable cause = error.getCause();
            if (cause instanceof Exception exception) throw exception;
            throw (Error) cause;
        }
    }
}
