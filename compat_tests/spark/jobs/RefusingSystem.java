package kwire.tests;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URI;
import java.util.LinkedList;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;

/**
 * A folder as a store that creates files under a condition. `answers` are those to the next
 * uploads: CONFLICT, LOST (the file is made, and the answer that comes is the one to a second
 * request), a text to be put there by somebody else first; without any it answers by itself.
 */
public class RefusingSystem extends RawLocalFileSystem {
    public static final LinkedList answers = new LinkedList();
    public static int uploads = 0;

    public URI getUri() {
        return URI.create("refusing:///");
    }

    public FSDataOutputStreamBuilder createFile(Path path) {
        return new Upload(this, path);
    }

    static void finish(File file, byte[] data) throws IOException {
        uploads++;
        String answer = answers.isEmpty() ? "" : (String) answers.removeFirst();
        if (answer.equals("CONFLICT")) {
            throw new IOException("Conflict (Service: S3, Status Code: 409, Request ID: 1)");
        }
        if (answer.equals("LOST")) {
            put(file, data);
        } else if (answer.length() > 0) {
            put(file, answer.getBytes("UTF-8"));
        }
        if (file.exists()) {
            throw new IOException("Precondition Failed (Service: S3, Status Code: 412)");
        }
        put(file, data);
    }

    private static void put(File file, byte[] data) throws IOException {
        file.getParentFile().mkdirs();
        FileOutputStream out = new FileOutputStream(file);
        out.write(data);
        out.close();
    }

    static class Upload extends FSDataOutputStreamBuilder {
        private final File file;

        Upload(RefusingSystem system, Path path) {
            super((FileSystem) system, path);
            this.file = new File(path.toUri().getPath());
        }

        public FSDataOutputStreamBuilder getThisBuilder() {
            return this;
        }

        public FSDataOutputStream build() {
            if (!getMandatoryKeys().contains("fs.option.create.conditional.overwrite")) {
                throw new IllegalStateException("an upload without the condition");
            }
            return new FSDataOutputStream((OutputStream) new Body(this.file), null);
        }
    }

    static class Body extends ByteArrayOutputStream {
        private final File file;

        Body(File file) {
            this.file = file;
        }

        public void close() throws IOException {
            finish(this.file, toByteArray());
        }
    }
}
