import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * Says what Kafka's own readers make of bytes. In, a line each: request|response KEY VERSION HEX.
 * Out: "refused", or "accepted REST" with the number of bytes left over and, unless Kafka's writer
 * refuses what was read, those that it writes from it.
 */
public class WireOracle {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        PrintStream out = new PrintStream(System.out, false);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ", -1);
            ApiMessageType type = ApiMessageType.fromApiKey(Short.parseShort(words[1]));
            ApiMessage message = words[0].equals("request") ? type.newRequest() : type.newResponse();
            out.println(answer(message, Short.parseShort(words[2]), HexFormat.of().parseHex(words[3])));
        }
        out.flush();
    }

    static String answer(ApiMessage message, short version, byte[] bytes) {
        ByteBufferAccessor readable = new ByteBufferAccessor(ByteBuffer.wrap(bytes));
        try {
            message.read(readable, version);
        } catch (RuntimeException | OutOfMemoryError e) {
            return "refused";
        }
        String accepted = "accepted " + readable.remaining();
        try {
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer written = ByteBuffer.allocate(message.size(cache, version));
            message.write(new ByteBufferAccessor(written), cache, version);
            return accepted + " " + HexFormat.of().formatHex(written.array(), 0, written.position());
        } catch (RuntimeException e) {
            return accepted;
        }
    }
}
