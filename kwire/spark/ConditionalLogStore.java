package kwire.spark;

import io.delta.storage.S3SingleDriverLogStore;
import java.io.ByteArrayOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.util.Arrays;
import java.util.Iterator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * The log of a Delta table on S3, of which no commit takes the place of another: the store itself
 * refuses the second one (If-None-Match: *). Delta's own log store looks whether there is one and
 * writes then, so that it keeps apart only the writers of one JVM.
 *
 * Compiled by Spark's own compiler (s3.py), which knows no type parameters of calls.
 */
public class ConditionalLogStore extends S3SingleDriverLogStore {

    public ConditionalLogStore(Configuration conf) {
        super(conf);
    }

    public void write(Path path, Iterator actions, Boolean overwrite, Configuration conf)
            throws IOException {
        if (overwrite.booleanValue()) {
            super.write(path, actions, overwrite, conf);
            return;
        }
        byte[] commit = lines(actions);
        FileSystem system = path.getFileSystem(conf);
        try {
            FSDataOutputStreamBuilder builder = system.createFile(path);
            builder.must("fs.option.create.conditional.overwrite", true);
            FSDataOutputStream out = (FSDataOutputStream) builder.build();
            out.write(commit);
            out.close();
        } catch (IOException error) {
            byte[] found = content(system, path);
            if (found == null) {
                throw error;
            }
            // This very commit where the answer was lost and the request sent again: each has an
            // id of its own inside.
            if (!Arrays.equals(found, commit)) {
                throw new FileAlreadyExistsException(path.toString());
            }
        }
    }

    private static byte[] lines(Iterator actions) throws IOException {
        ByteArrayOutputStream found = new ByteArrayOutputStream();
        while (actions.hasNext()) {
            found.write(((String) actions.next()).getBytes(StandardCharsets.UTF_8));
            found.write('\n');
        }
        return found.toByteArray();
    }

    private static byte[] content(FileSystem system, Path path) throws IOException {
        try {
            FSDataInputStream in = system.open(path);
            try {
                return in.readAllBytes();
            } finally {
                in.close();
            }
        } catch (FileNotFoundException none) {
            return null;
        }
    }
}
