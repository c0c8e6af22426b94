/* The few functions and types of librdkafka's interface that the load generators use, so that the
 * library inside the confluent-kafka wheel can be linked without its header. Stable since 0.11. */
#ifndef BENCH_LIBRDKAFKA_H
#define BENCH_LIBRDKAFKA_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct rd_kafka_s rd_kafka_t;
typedef struct rd_kafka_topic_s rd_kafka_topic_t;
typedef struct rd_kafka_conf_s rd_kafka_conf_t;
typedef struct rd_kafka_topic_conf_s rd_kafka_topic_conf_t;
typedef struct rd_kafka_queue_s rd_kafka_queue_t;
struct rd_kafka_metadata;

typedef enum { RD_KAFKA_PRODUCER, RD_KAFKA_CONSUMER } rd_kafka_type_t;
typedef int rd_kafka_resp_err_t;
typedef int rd_kafka_conf_res_t;

typedef struct rd_kafka_message_s {
    rd_kafka_resp_err_t err;
    rd_kafka_topic_t *rkt;
    int32_t partition;
    void *payload;
    size_t len;
    void *key;
    size_t key_len;
    int64_t offset;
    void *_private;
} rd_kafka_message_t;

enum { RD_KAFKA_MSG_F_COPY = 0x2, RD_KAFKA_OFFSET_BEGINNING = -2 };

rd_kafka_conf_t *rd_kafka_conf_new(void);
rd_kafka_conf_res_t rd_kafka_conf_set(rd_kafka_conf_t *, const char *, const char *, char *, size_t);
void rd_kafka_conf_set_dr_msg_cb(
    rd_kafka_conf_t *, void (*)(rd_kafka_t *, const rd_kafka_message_t *, void *));
rd_kafka_t *rd_kafka_new(rd_kafka_type_t, rd_kafka_conf_t *, char *, size_t);
rd_kafka_topic_t *rd_kafka_topic_new(rd_kafka_t *, const char *, rd_kafka_topic_conf_t *);
rd_kafka_resp_err_t rd_kafka_metadata(
    rd_kafka_t *, int, rd_kafka_topic_t *, const struct rd_kafka_metadata **, int);
const char *rd_kafka_err2str(rd_kafka_resp_err_t);
int rd_kafka_poll(rd_kafka_t *, int);
rd_kafka_resp_err_t rd_kafka_flush(rd_kafka_t *, int);
int rd_kafka_produce(
    rd_kafka_topic_t *, int32_t, int, void *, size_t, const void *, size_t, void *);
int rd_kafka_produce_batch(rd_kafka_topic_t *, int32_t, int, rd_kafka_message_t *, int);
rd_kafka_queue_t *rd_kafka_queue_new(rd_kafka_t *);
int rd_kafka_consume_start(rd_kafka_topic_t *, int32_t, int64_t);
int rd_kafka_consume_start_queue(rd_kafka_topic_t *, int32_t, int64_t, rd_kafka_queue_t *);
rd_kafka_message_t *rd_kafka_consume(rd_kafka_topic_t *, int32_t, int);
ssize_t rd_kafka_consume_batch_queue(rd_kafka_queue_t *, int, rd_kafka_message_t **, size_t);
void rd_kafka_message_destroy(rd_kafka_message_t *);

#endif
