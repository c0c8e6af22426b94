/* Members of a share group that fetch, accept and do nothing else; one JSON line.
 *
 *   blast_share fetch|acknowledge PORT GROUP TOPIC TOPIC_ID PARTITIONS MEMBERS COUNT RECORDS_MAX REPLY_BYTES
 *
 * Every member has a connection of its own, joins by ShareGroupHeartbeat (version 1) and waits until everyone has partitions.
 * Then it fetches (ShareFetch version 2) until COUNT records are accepted: by the next fetch, or by a ShareAcknowledge (version 2)
 * between two fetches. TOPIC_ID is 32 hexadecimal digits. s is the time from the first fetch to the last acknowledgement, join_s
 * that of the joins before; least and most are records of a member, p99us the time of a fetch that gave records, err counts
 * answers of a partition with an error code.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    PARTITIONS_MAX = 64,
    RANGES_MAX = 512,
    REQUEST_BYTES = 65536,
    EVENTS = 256,
    LIMIT_S = 40,
    JOIN_LIMIT_S = 60,
    WAIT_MS = 500,
    ACCEPT = 1,
    HEARTBEAT = 76,
    FETCH = 78,
    ACKNOWLEDGE = 79
};

typedef struct {
    int partition;
    int64_t first, last;
} Range;

typedef struct {
    int fd, epoch, member_epoch, count, owned[PARTITIONS_MAX];
    char id[40];
    int asked; /* the request on its way; 0 for none */
    double asked_at;
    Range ranges[RANGES_MAX]; /* acquired, not accepted yet */
    int range_count;
    long accepting, accepted; /* records */
    size_t filled;
    unsigned char *reply;
} Member;

static const char *group, *topic;
static unsigned char topic_id[16];
static int records_max, reply_bytes, by_fetch;
static long count, acquired = 0, accepted = 0, fetches = 0, errors = 0, latency_count = 0, latency_max = 1 << 20;
static double bytes_received = 0, *latencies_s;

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

static void die(const char *why, int code) {
    fprintf(stderr, "blast_share: %s (%d)\n", why, code);
    exit(1);
}

static int by_size(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

/* Writing a request. */

typedef struct {
    unsigned char data[REQUEST_BYTES];
    size_t size;
} Out;

static void raw(Out *o, const void *from, size_t n) {
    if (o->size + n > REQUEST_BYTES) die("a request is too long", 0);
    memcpy(o->data + o->size, from, n);
    o->size += n;
}
static void i8(Out *o, int v) { unsigned char b = v; raw(o, &b, 1); }
static void i16(Out *o, int v) { uint16_t b = htobe16(v); raw(o, &b, 2); }
static void i32(Out *o, int v) { uint32_t b = htobe32(v); raw(o, &b, 4); }
static void i64(Out *o, int64_t v) { uint64_t b = htobe64(v); raw(o, &b, 8); }
static void uvarint(Out *o, unsigned v) {
    for (; v >= 128; v >>= 7) i8(o, v | 128);
    i8(o, v);
}
static void text(Out *o, const char *s) {
    uvarint(o, strlen(s) + 1);
    raw(o, s, strlen(s));
}
static void begin(Out *o, int key, int version) {
    o->size = 4;
    i16(o, key);
    i16(o, version);
    i32(o, 1);
    i16(o, -1); /* no client id */
    i8(o, 0);
}

static void send_out(Member *m, Out *o) {
    uint32_t size = htobe32(o->size - 4);
    memcpy(o->data, &size, 4);
    for (size_t at = 0; at < o->size;) {
        ssize_t n = write(m->fd, o->data + at, o->size - at);
        if (n > 0) {
            at += n;
            continue;
        }
        struct pollfd waits = {.fd = m->fd, .events = POLLOUT};
        poll(&waits, 1, 100);
    }
}

/* Reading a reply. */

typedef struct {
    const unsigned char *at;
} In;

static int64_t number(In *i, int bytes) {
    uint64_t v = 0;
    for (int k = 0; k < bytes; k++) v = v << 8 | *i->at++;
    return bytes == 8 ? (int64_t)v : bytes == 4 ? (int32_t)v : bytes == 2 ? (int16_t)v : (int8_t)v;
}
static unsigned length(In *i) {
    unsigned v = 0;
    for (int shift = 0;; shift += 7) {
        unsigned char b = *i->at++;
        v |= (b & 127u) << shift;
        if (b < 128) return v;
    }
}
static void skip(In *i) { /* a nullable compact string */
    unsigned n = length(i);
    i->at += n ? n - 1 : 0;
}
static void tags(In *i) {
    for (unsigned n = length(i); n; n--) {
        length(i);
        unsigned size = length(i);
        i->at += size;
    }
}

/* Joining. */

static void heartbeat(Member *m) {
    Out o;
    begin(&o, HEARTBEAT, 1);
    text(&o, group);
    text(&o, m->id);
    i32(&o, m->member_epoch);
    uvarint(&o, 0); /* no rack */
    if (m->member_epoch) {
        uvarint(&o, 0);
    } else {
        uvarint(&o, 2);
        text(&o, topic);
    }
    i8(&o, 0);
    send_out(m, &o);
}

static void read_whole(Member *m) {
    m->filled = 0;
    while (m->filled < 4 || m->filled < 4 + be32toh(*(uint32_t *)m->reply)) {
        ssize_t n = read(m->fd, m->reply + m->filled, reply_bytes - m->filled);
        if (n <= 0) die("the broker closed a connection", 0);
        m->filled += n;
    }
    m->filled = 0;
}

static void joined(Member *m) {
    In i = {m->reply + 8};
    tags(&i);
    number(&i, 4);
    int error = number(&i, 2);
    skip(&i);
    skip(&i);
    int epoch = number(&i, 4);
    number(&i, 4);
    if (error == 14 || error == 15 || error == 16) return;
    if (error) die("a heartbeat was refused", error);
    m->member_epoch = epoch;
    if (number(&i, 1) < 0) return; /* the assignment is the same */
    m->count = 0;
    for (unsigned topics = length(&i); topics > 1; topics--) {
        i.at += 16;
        for (unsigned n = length(&i); n > 1; n--) m->owned[m->count++] = number(&i, 4);
        tags(&i);
    }
}

/* Fetching. */

static void acknowledgements(Out *o, Member *m, int partition) {
    int n = 0;
    for (int k = 0; k < m->range_count; k++) n += m->ranges[k].partition == partition;
    uvarint(o, n + 1);
    for (int k = 0; k < m->range_count; k++) {
        if (m->ranges[k].partition != partition) continue;
        i64(o, m->ranges[k].first);
        i64(o, m->ranges[k].last);
        uvarint(o, 2);
        i8(o, ACCEPT);
        i8(o, 0);
    }
}

/* The partitions of a request: all that are owned at first, then those with acknowledgements. */
static void partitions(Out *o, Member *m, int all) {
    int n = 0, named[PARTITIONS_MAX];
    for (int p = 0; p < m->count; p++) {
        int is_named = all;
        for (int k = 0; k < m->range_count; k++) is_named |= m->ranges[k].partition == m->owned[p];
        if (is_named) named[n++] = m->owned[p];
    }
    uvarint(o, n ? 2 : 1);
    if (!n) return;
    raw(o, topic_id, 16);
    uvarint(o, n + 1);
    for (int p = 0; p < n; p++) {
        i32(o, named[p]);
        acknowledgements(o, m, named[p]);
        i8(o, 0);
    }
    i8(o, 0);
}

static void ask(Member *m) {
    Out o;
    int is_fetch = by_fetch || !m->range_count;
    begin(&o, is_fetch ? FETCH : ACKNOWLEDGE, 2);
    text(&o, group);
    text(&o, m->id);
    i32(&o, m->epoch);
    if (is_fetch) {
        i32(&o, acquired < count ? WAIT_MS : 0); /* there is nothing left to wait for */
        i32(&o, 1);
        i32(&o, reply_bytes / 2);
        i32(&o, records_max);
        i32(&o, records_max);
        i8(&o, 0);
    }
    i8(&o, 0); /* no renewal */
    partitions(&o, m, m->epoch == 0);
    if (is_fetch) uvarint(&o, 1); /* nothing forgotten */
    i8(&o, 0);
    m->accepting = 0;
    for (int k = 0; k < m->range_count; k++) m->accepting += m->ranges[k].last - m->ranges[k].first + 1;
    m->range_count = 0;
    m->epoch++;
    m->asked = is_fetch ? FETCH : ACKNOWLEDGE;
    m->asked_at = now();
    send_out(m, &o);
}

static void take(Member *m) {
    In i = {m->reply + 8};
    int is_fetch = m->asked == FETCH;
    tags(&i);
    number(&i, 4);
    int error = number(&i, 2);
    if (error) die("a request was refused", error);
    skip(&i);
    number(&i, 4);
    for (unsigned topics = length(&i); topics > 1; topics--) {
        i.at += 16;
        for (unsigned n = length(&i); n > 1; n--) {
            int partition = number(&i, 4);
            errors += number(&i, 2) != 0;
            skip(&i);
            if (is_fetch) {
                errors += number(&i, 2) != 0;
                skip(&i);
            }
            number(&i, 8);
            tags(&i); /* leader */
            if (is_fetch) {
                unsigned size = length(&i);
                i.at += size ? size - 1 : 0;
                for (unsigned ranges = length(&i); ranges > 1; ranges--) {
                    if (m->range_count == RANGES_MAX) die("too many ranges", partition);
                    Range *range = &m->ranges[m->range_count++];
                    range->partition = partition;
                    range->first = number(&i, 8);
                    range->last = number(&i, 8);
                    acquired += range->last - range->first + 1;
                    number(&i, 2);
                    tags(&i);
                }
            }
            tags(&i);
        }
        tags(&i);
    }
    accepted += m->accepting;
    m->accepted += m->accepting;
    if (is_fetch) fetches++;
    if (m->range_count && latency_count < latency_max) latencies_s[latency_count++] = now() - m->asked_at;
    m->asked = 0;
}

static void receive(Member *m) {
    for (;;) {
        ssize_t n = read(m->fd, m->reply + m->filled, reply_bytes - m->filled);
        if (n == 0) die("the broker closed a connection, or an answer is too long", 0);
        if (n < 0) return;
        m->filled += n;
        bytes_received += n;
        if (m->filled >= 4 && m->filled >= 4 + be32toh(*(uint32_t *)m->reply)) {
            m->filled = 0;
            take(m);
            return;
        }
    }
}

int main(int n, char **args) {
    if (n != 11) {
        fprintf(stderr, "blast_share fetch|acknowledge PORT GROUP TOPIC TOPIC_ID PARTITIONS MEMBERS COUNT "
                        "RECORDS_MAX REPLY_BYTES\n");
        return 2;
    }
    by_fetch = args[1][0] == 'f';
    group = args[3];
    topic = args[4];
    for (int k = 0; k < 16; k++) sscanf(args[5] + 2 * k, "%2hhx", &topic_id[k]);
    int wanted = atoi(args[6]), members = atoi(args[7]), events_of = epoll_create1(0), one = 1;
    count = atol(args[8]);
    records_max = atoi(args[9]);
    reply_bytes = atoi(args[10]);
    latencies_s = malloc(sizeof(double) * latency_max);
    Member *all = calloc(members, sizeof *all);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(atoi(args[2])),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (int k = 0; k < members; k++) {
        Member *m = &all[k];
        m->fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(m->fd, (struct sockaddr *)&address, sizeof address)) die("cannot connect", k);
        setsockopt(m->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        snprintf(m->id, sizeof m->id, "member-%d", k);
        m->reply = malloc(reply_bytes);
    }
    double started = now();
    long beats = 0;
    for (int is_ready = 0; !is_ready;) {
        if (now() > started + JOIN_LIMIT_S) die("not everyone has partitions", 0);
        int owned = 0, least = PARTITIONS_MAX;
        for (int k = 0; k < members; k++) heartbeat(&all[k]);
        for (int k = 0; k < members; k++) {
            read_whole(&all[k]);
            joined(&all[k]);
            owned += all[k].count;
            if (all[k].count < least) least = all[k].count;
        }
        beats += members;
        is_ready = owned >= wanted && least > 0;
        if (!is_ready) usleep(50000);
    }
    double join_s = now() - started;
    for (int k = 0; k < members; k++) {
        fcntl(all[k].fd, F_SETFL, O_NONBLOCK);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &all[k]};
        epoll_ctl(events_of, EPOLL_CTL_ADD, all[k].fd, &event);
    }
    double cpu_before = cpu();
    started = now();
    for (int k = 0; k < members; k++) ask(&all[k]);
    struct epoll_event events[EVENTS];
    while (accepted < count && now() < started + LIMIT_S) {
        int found = epoll_wait(events_of, events, EVENTS, 100);
        for (int e = 0; e < found; e++) {
            Member *m = events[e].data.ptr;
            receive(m);
            if (!m->asked) ask(m);
        }
    }
    double seconds = now() - started;
    long least = count, most = 0;
    for (int k = 0; k < members; k++) {
        if (all[k].accepted < least) least = all[k].accepted;
        if (all[k].accepted > most) most = all[k].accepted;
    }
    qsort(latencies_s, latency_count, sizeof(double), by_size);
    printf("{\"s\":%.4f,\"join_s\":%.3f,\"heartbeats\":%ld,\"ok\":%ld,\"recps\":%.0f,\"MBps\":%.1f,\"fetches\":%ld,"
           "\"p99us\":%.0f,\"clientcpu\":%.3f,\"least\":%ld,\"most\":%ld,\"err\":%ld}\n",
           seconds, join_s, beats, accepted, accepted / seconds, bytes_received / seconds / 1e6, fetches,
           latency_count ? latencies_s[(long)((latency_count - 1) * 0.99)] * 1e6 : 0, cpu() - cpu_before, least, most,
           errors);
    return 0;
}
