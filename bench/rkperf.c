/* librdkafka as a load generator; one JSON line.
 *
 *   rkperf produce BROKERS TOPIC PARTITIONS SIZE COUNT ACKS CODEC BATCH_BYTES LINGER_MS [NAME=VALUE...]
 *   rkperf consume BROKERS TOPIC PARTITIONS SIZE COUNT [NAME=VALUE...]
 *
 * NAME=VALUE are further settings of librdkafka, of TLS for example.
 * MBps and kmsgps count values only; clientcpu is this process' own CPU time in seconds. The clock
 * starts when the client has done its first round trip with the partitions' leader: a tenth of a
 * second that it waits for metadata says nothing of a broker, and would weigh on the fast ones.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "librdkafka.h"

enum { BATCH = 1000, DISTINCT = 64, CONSUME_BATCH = 10000, CONSUME_LIMIT_S = 60 };

static long delivered = 0, failed = 0;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static double cpu(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_utime.tv_sec + u.ru_stime.tv_sec + 1e-6 * (u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
    if (!message->err) {
        delivered++;
    } else if (failed++ < 2) {
        fprintf(stderr, "not delivered: %s\n", rd_kafka_err2str(message->err));
    }
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value) {
    char error[512];
    if (rd_kafka_conf_set(conf, name, value, error, sizeof error)) {
        fprintf(stderr, "%s\n", error);
        exit(1);
    }
}

static void set_all(rd_kafka_conf_t *conf, char **settings) {
    for (; *settings; settings++) {
        char *name = strdup(*settings), *value = strchr(name, '=');
        if (!value) {
            fprintf(stderr, "%s is not NAME=VALUE\n", *settings);
            exit(2);
        }
        *value = 0;
        set(conf, name, value + 1);
        free(name);
    }
}

static rd_kafka_t *client_of(rd_kafka_type_t type, rd_kafka_conf_t *conf) {
    char error[512];
    rd_kafka_t *client = rd_kafka_new(type, conf, error, sizeof error);
    if (!client) {
        fprintf(stderr, "%s\n", error);
        exit(1);
    }
    return client;
}

/* The topic, once its metadata has come (which creates it where the broker does that). */
static rd_kafka_topic_t *topic_of(rd_kafka_t *client, const char *name) {
    const struct rd_kafka_metadata *metadata;
    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, name, NULL);
    rd_kafka_metadata(client, 0, topic, &metadata, 10000);
    return topic;
}

/* DISTINCT values of `size` bytes in a row, of words and digits, so that they compress as text. */
static char *values_of(long size) {
    static const char *words[] = {"order", "\"id\":", "customer", "2024-05-01T", "amount", "{",
                                  "},", "true", "price", "9.99", "sku-", "warehouse"};
    char *buffer = malloc(size * DISTINCT + 64);
    unsigned state = 1;
    for (long filled = 0, end = size * DISTINCT; filled < end;) {
        state = state * 1103515245 + 12345;
        const char *word = words[(state >> 16) % 12];
        long length = strlen(word);
        if (length > end - filled) length = end - filled;
        memcpy(buffer + filled, word, length);
        filled += length;
        if (filled < end && (state >> 28) & 1) buffer[filled++] = '0' + (state >> 20) % 10;
    }
    return buffer;
}

static void produce(char **args, int partitions, long size, long count) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", args[2]);
    set(conf, "acks", args[7]);
    set(conf, "compression.codec", args[8]);
    set(conf, "batch.size", args[9]);
    set(conf, "linger.ms", args[10]);
    set(conf, "batch.num.messages", "100000");
    set(conf, "queue.buffering.max.messages", "500000");
    set(conf, "queue.buffering.max.kbytes", "1000000");
    set_all(conf, args + 11);
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    rd_kafka_t *client = client_of(RD_KAFKA_PRODUCER, conf);
    rd_kafka_topic_t *topic = topic_of(client, args[3]);
    char *values = values_of(size);
    rd_kafka_message_t *batch = calloc(BATCH, sizeof *batch);
    for (int partition = 0; partition < partitions; partition++) {
        rd_kafka_produce(topic, partition, RD_KAFKA_MSG_F_COPY, values, size, NULL, 0, NULL);
    }
    rd_kafka_flush(client, 60000);
    delivered = 0;
    double started = now(), cpu_before = cpu();
    for (long sent = 0; sent < count;) {
        int n = count - sent < BATCH ? count - sent : BATCH;
        int partition = sent / BATCH % partitions;
        for (int i = 0; i < n; i++) {
            batch[i].payload = values + (sent + i) % DISTINCT * size;
            batch[i].len = size;
            batch[i].partition = partition;
            batch[i].err = 0;
        }
        if (rd_kafka_produce_batch(topic, partition, RD_KAFKA_MSG_F_COPY, batch, n) < n) {
            for (int i = 0; i < n; i++) {
                while (batch[i].err && rd_kafka_produce(topic, partition, RD_KAFKA_MSG_F_COPY,
                                                        batch[i].payload, size, NULL, 0, NULL)) {
                    rd_kafka_poll(client, 10);
                }
            }
        }
        sent += n;
        rd_kafka_poll(client, 0);
    }
    rd_kafka_flush(client, 60000);
    double seconds = now() - started;
    printf("{\"s\":%.4f,\"MBps\":%.1f,\"kmsgps\":%.1f,\"clientcpu\":%.3f,\"ok\":%ld,\"err\":%ld}\n",
           seconds, count * (double)size / seconds / 1e6, count / seconds / 1e3,
           cpu() - cpu_before, delivered, count - delivered);
}

static void consume(char **args, int partitions, long count) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", args[2]);
    set(conf, "group.id", "g");
    set(conf, "enable.auto.commit", "false");
    set(conf, "fetch.message.max.bytes", "1048576");
    set(conf, "fetch.wait.max.ms", "100");
    set(conf, "queued.max.messages.kbytes", "65536");
    set(conf, "queued.min.messages", "100000");
    set(conf, "check.crcs", "false");
    set(conf, "fetch.queue.backoff.ms", "1");
    set_all(conf, args + 7);
    rd_kafka_t *client = client_of(RD_KAFKA_CONSUMER, conf);
    rd_kafka_topic_t *topic = topic_of(client, args[3]);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    rd_kafka_message_t **messages = malloc(CONSUME_BATCH * sizeof *messages);
    double asked = now(), started = asked, cpu_before = 0;
    for (int partition = 0; partition < partitions; partition++) {
        rd_kafka_consume_start_queue(topic, partition, 0, queue);
    }
    long received, bytes = 0, left = count;
    while (left > 0 && now() < asked + CONSUME_LIMIT_S) {
        /* Never more than are left: the client would wait for them until the time is over. */
        long wanted = left == count ? 1 : left < CONSUME_BATCH ? left : CONSUME_BATCH;
        ssize_t n = rd_kafka_consume_batch_queue(queue, 100, messages, wanted);
        if (left == count) {
            started = now();
            cpu_before = cpu();
        }
        for (ssize_t i = 0; i < n; i++) {
            if (!messages[i]->err) {
                left--;
                if (left < count - 1) bytes += messages[i]->len;
            }
            rd_kafka_message_destroy(messages[i]);
        }
    }
    received = count - left;
    double seconds = now() - started;
    printf("{\"s\":%.4f,\"MBps\":%.1f,\"kmsgps\":%.1f,\"clientcpu\":%.3f,\"ok\":%ld,\"first\":%.4f}\n",
           seconds, bytes / seconds / 1e6, (received - 1) / seconds / 1e3, cpu() - cpu_before, received,
           started - asked);
}

int main(int count, char **args) {
    int producing = count >= 11 && !strcmp(args[1], "produce");
    if (!producing && !(count >= 7 && !strcmp(args[1], "consume"))) {
        fprintf(stderr, "rkperf produce|consume ...: see the head of the source\n");
        return 2;
    }
    int partitions = atoi(args[4]);
    if (producing) {
        produce(args, partitions, atol(args[5]), atol(args[6]));
    } else {
        consume(args, partitions, atol(args[6]));
    }
    fflush(stdout);
    _exit(0); /* the client's threads need not be waited for */
}
