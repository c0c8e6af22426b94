/* End-to-end latency with librdkafka: a producer and a consumer in one process; one JSON line, ms.
 *
 *   rklat BROKERS TOPIC RATE SECONDS [ACKS]
 *
 * RATE records of 100 bytes a second are sent one by one at their due times; each carries the time
 * it was sent at.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "librdkafka.h"

enum { RECORD_BYTES = 100, SETTLE_US = 700000 };

static double *latencies_s;
static long capacity;
static volatile long received = 0;
static rd_kafka_topic_t *consumed;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static int by_size(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static rd_kafka_t *client_of(rd_kafka_type_t type, const char *settings[]) {
    char error[512];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    for (int i = 0; settings[i]; i += 2) {
        if (rd_kafka_conf_set(conf, settings[i], settings[i + 1], error, sizeof error)) {
            fprintf(stderr, "%s\n", error);
            exit(1);
        }
    }
    return rd_kafka_new(type, conf, error, sizeof error);
}

static void *consume(void *unused) {
    for (;;) {
        rd_kafka_message_t *message = rd_kafka_consume(consumed, 0, 1000);
        if (!message) continue;
        if (!message->err && message->len >= sizeof(double) && received < capacity) {
            double sent_at;
            memcpy(&sent_at, message->payload, sizeof sent_at);
            latencies_s[received++] = now() - sent_at;
        }
        rd_kafka_message_destroy(message);
    }
    return NULL;
}

static void send_at_rate(rd_kafka_t *producer, rd_kafka_topic_t *topic, long rate, long count) {
    char record[RECORD_BYTES] = {0};
    double started = now();
    for (long i = 0; i < count; i++) {
        double early_s = started + (double)i / rate - now();
        if (early_s > 0) {
            struct timespec pause = {(time_t)early_s, (long)((early_s - (time_t)early_s) * 1e9)};
            nanosleep(&pause, NULL);
        }
        double sent_at = now();
        memcpy(record, &sent_at, sizeof sent_at);
        rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_COPY, record, sizeof record, NULL, 0, NULL);
        rd_kafka_poll(producer, 0);
    }
    rd_kafka_flush(producer, 5000);
}

static double percentile_ms(long count, double share) {
    return latencies_s[(long)((count - 1) * share)] * 1e3;
}

int main(int count, char **args) {
    if (count < 5) {
        fprintf(stderr, "rklat BROKERS TOPIC RATE SECONDS [ACKS]\n");
        return 2;
    }
    long rate = atol(args[3]), records = rate * atol(args[4]);
    capacity = records + 1000;
    latencies_s = malloc(sizeof(double) * capacity);
    const char *producing[] = {"bootstrap.servers", args[1], "acks", count > 5 ? args[5] : "1",
                               "linger.ms", "0", NULL};
    const char *consuming[] = {"bootstrap.servers", args[1], "group.id", "g", "fetch.wait.max.ms",
                               "500", "enable.auto.commit", "false", NULL};
    rd_kafka_t *producer = client_of(RD_KAFKA_PRODUCER, producing);
    rd_kafka_t *consumer = client_of(RD_KAFKA_CONSUMER, consuming);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(producer, args[2], NULL);
    consumed = rd_kafka_topic_new(consumer, args[2], NULL);
    const struct rd_kafka_metadata *metadata;
    rd_kafka_metadata(producer, 0, topic, &metadata, 5000);
    rd_kafka_consume_start(consumed, 0, RD_KAFKA_OFFSET_BEGINNING);
    pthread_t thread;
    pthread_create(&thread, NULL, consume, NULL);
    sleep(1);
    send_at_rate(producer, topic, rate, records);
    usleep(SETTLE_US);
    long n = received;
    if (!n) {
        fprintf(stderr, "nothing came back\n");
        return 1;
    }
    qsort(latencies_s, n, sizeof(double), by_size);
    printf("{\"n\":%ld,\"p50\":%.3f,\"p90\":%.3f,\"p99\":%.3f,\"p999\":%.3f,\"max\":%.3f}\n", n,
           percentile_ms(n, 0.5), percentile_ms(n, 0.9), percentile_ms(n, 0.99),
           percentile_ms(n, 0.999), percentile_ms(n, 1.0));
    fflush(stdout);
    _exit(0);
}
