package kwire.spark;

import io.delta.storage.S3SingleDriverLogStore;
import java.io.ByteArrayOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InterruptedIOException;
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
    /** Of a commit while the store says that another is under way: some three seconds. */
    private static final int ATTEMPTS = 5;

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
        for (int attempt = 1;; attempt++) {
            try {
                create(system, path, commit);
                return;
            } catch (IOException error) {
                byte[] found = content(system, path);
                if (found == null) {
                    if (attempt < ATTEMPTS && isConflict(error)) {
                        pause(attempt);
                        continue;
                    }
                    throw error;
                }
                if (!isOwn(found, commit)) {
                    throw new FileAlreadyExistsException(path.toString());
                }
                return;
            }
        }
    }

    private static void create(FileSystem system, Path path, byte[] commit) throws IOException {
        FSDataOutputStreamBuilder builder = system.createFile(path);
        builder.must("fs.option.create.conditional.overwrite", true);
        FSDataOutputStream out = (FSDataOutputStream) builder.build();
        out.write(commit);
        out.close();
    }

    /**
     * Whether what is there is this very commit: its answer was lost and the request sent again.
     * A commit has an id of its own inside (txnId) unless spark.databricks.delta.commitInfo.enabled
     * is false: then the same bytes may be another writer's, and count as that. Delta looks at
     * what they changed and tries the next version.
     */
    private static boolean isOwn(byte[] found, byte[] commit) {
        return Arrays.equals(found, commit)
            && new String(commit, StandardCharsets.UTF_8).contains("\"txnId\":\"");
    }

    /**
     * Whether the store says that another request for this name is under way (409,
     * ConditionalRequestConflict): it may fail, so that the name is free still.
     */
    private static boolean isConflict(Throwable error) {
        for (int depth = 0; error != null && depth < 10; depth++) {
            String told = String.valueOf(error.getMessage());
            if (told.contains("ConditionalRequestConflict") || told.contains("Status Code: 409")) {
                return true;
            }
            error = error.getCause();
        }
        return false;
    }

    private static void pause(int attempt) throws IOException {
        try {
            Thread.sleep(100L << attempt);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new InterruptedIOException("interrupted while another commit was under way");
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
