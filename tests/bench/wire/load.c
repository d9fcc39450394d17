/* Many OpenAI clients in one thread: closed loop (each asks again when answered) or open (--rate).
 *
 * Prints one JSON object: counts, and percentiles of time to first token, gap between chunks,
 * transit of a chunk (from the upstream's write to our read) and total time. With --every it also
 * prints `progress <monotonic ns> <chunks> <reads>` while it runs, so that CPU time can be read
 * over a window in which every stream is open. SIGTERM hangs up and prints. Latency in the open loop counts from the moment a
 * request was due, not from when a free connection took it.
 */
#define _GNU_SOURCE
#include "common.h"
#include "histogram.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <strings.h>
#include <sys/resource.h>
#include <unistd.h>

#define HEAD_MOST 16384
#define BLOCK_BYTES 262144
#define WAITING_MOST (1 << 18)
#define GRACE_S 20 /* for answers that are open when the time is up */
#define STAMP_DIGITS 18

enum state { CLOSED, CONNECTING, BUSY, FREE };
enum framing { SIZE, EXTENSION, DATA, AFTER_DATA, TRAILER_START, TRAILER };

struct client {
    int fd, status;
    enum state state;
    bool in_body, chunked, closes, done, stalled, wants_write;
    enum framing framing;
    char head[HEAD_MOST];
    size_t head_bytes, sent_bytes;
    long body_left, chunk_left; /* body_left < 0: until the end of the connection */
    int stamp_at, done_at;      /* how much of a time stamp, of `[DONE]`, has been seen */
    uint64_t stamp, due_ns, last_ns, slowest_first_ns;
    long chunks;
};

static struct {
    int port, clients, abort_after;
    const char *path, *body_file;
    char headers[4096];
    long requests;
    double seconds, rate, ramp_s, hang_up_s, every_s;
    bool stream, get, stall;
} asked = {.port = 9000, .clients = 1, .path = "/v1/chat/completions", .requests = -1,
           .seconds = 5};

static struct {
    unsigned long long sent, ok, failed, refused, bad_status, broken, aborted, chunks, reads,
        segments, bytes, connects;
    int first_bad_status;
} counted;

static struct histogram total, first, gap, transit;
static int poller;
static struct sockaddr_in address;
static char *request;
static size_t request_bytes;
static struct client *clients;
static int *free_clients, free_count, started;
static uint64_t waiting[WAITING_MOST];
static unsigned waiting_from, waiting_to;
static uint64_t began_ns, end_ns;
static bool draining;
static volatile sig_atomic_t told_to_stop;

/* ---- sending ---- */

static void open_connection(struct client *one)
{
    one->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    no_delay(one->fd);
    int small = 4096;
    if (asked.stall)
        setsockopt(one->fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    connect(one->fd, (struct sockaddr *)&address, sizeof address);
    counted.connects++;
    one->state = CONNECTING;
    one->wants_write = true;
    watch(poller, EPOLL_CTL_ADD, one->fd, EPOLLIN | EPOLLOUT, one);
}

/* The kernel counts the segments that came: one for each write of the other side. */
static void count_segments(struct client *one)
{
    struct tcp_info info;
    socklen_t bytes = sizeof info;
    if (getsockopt(one->fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0)
        counted.segments += info.tcpi_data_segs_in;
}

static void close_connection(struct client *one)
{
    count_segments(one);
    close(one->fd);
    one->fd = -1;
    one->state = CLOSED;
}

static void send_request(struct client *one)
{
    while (one->sent_bytes < request_bytes) {
        ssize_t sent =
            send(one->fd, request + one->sent_bytes, request_bytes - one->sent_bytes, MSG_NOSIGNAL);
        if (sent < 0) {
            if (errno == EAGAIN && !one->wants_write) {
                one->wants_write = true;
                watch(poller, EPOLL_CTL_MOD, one->fd, EPOLLIN | EPOLLOUT, one);
            }
            return;
        }
        one->sent_bytes += (size_t)sent;
    }
    if (one->wants_write)
        watch(poller, EPOLL_CTL_MOD, one->fd, EPOLLIN, one);
    one->wants_write = false;
}

static void forget_answer(struct client *one)
{
    one->status = 0;
    one->in_body = one->chunked = one->closes = one->done = one->stalled = false;
    one->framing = SIZE;
    one->head_bytes = one->sent_bytes = 0;
    one->body_left = -1;
    one->chunk_left = 0;
    one->stamp_at = one->done_at = 0;
    one->chunks = 0;
}

static void ask(struct client *one, uint64_t due_ns)
{
    forget_answer(one);
    one->due_ns = due_ns;
    counted.sent++;
    if (one->state == CLOSED) {
        open_connection(one);
    } else {
        one->state = BUSY;
        send_request(one);
    }
}

static bool may_ask(void)
{
    return !draining && (asked.requests < 0 || (long)counted.sent < asked.requests);
}

static void ask_next(struct client *one)
{
    if (asked.rate > 0 && waiting_from != waiting_to) {
        ask(one, waiting[waiting_from++ % WAITING_MOST]);
    } else if (asked.rate <= 0 && may_ask()) {
        ask(one, now_ns());
    } else {
        if (one->state != CLOSED)
            one->state = FREE;
        free_clients[free_count++] = (int)(one - clients);
    }
}

static void fail(struct client *one, unsigned long long *cause)
{
    counted.failed++;
    (*cause)++;
    close_connection(one);
    ask_next(one);
}

/* ---- receiving ---- */

static void finish(struct client *one, uint64_t now)
{
    if (one->status == 200 && (!asked.stream || one->done)) {
        counted.ok++;
        histogram_add(&total, now - one->due_ns);
    } else {
        counted.failed++;
        counted.bad_status++;
        if (counted.first_bad_status == 0)
            counted.first_bad_status = one->status;
    }
    if (one->closes)
        close_connection(one);
    ask_next(one);
}

static void saw_stamp(struct client *one, uint64_t now)
{
    histogram_add(&transit, now > one->stamp ? now - one->stamp : 0);
    if (one->chunks == 0) {
        uint64_t took = now - one->due_ns;
        histogram_add(&first, took);
        one->slowest_first_ns = took > one->slowest_first_ns ? took : one->slowest_first_ns;
    } else {
        histogram_add(&gap, now - one->last_ns);
    }
    one->last_ns = now;
    one->chunks++;
    counted.chunks++;
}

/* One byte of `@T<18 digits>@`; a stamp may be cut anywhere by reads and by chunk framing. */
static void follow_stamp(struct client *one, char byte, uint64_t now)
{
    int at = one->stamp_at;
    if (at == 0 || (at == 1 && byte != 'T')) {
        one->stamp_at = byte == '@';
    } else if (at == 1) {
        one->stamp_at = 2;
        one->stamp = 0;
    } else if (at < 2 + STAMP_DIGITS && byte >= '0' && byte <= '9') {
        one->stamp = 10 * one->stamp + (uint64_t)(byte - '0');
        one->stamp_at++;
    } else {
        if (at == 2 + STAMP_DIGITS && byte == '@')
            saw_stamp(one, now);
        one->stamp_at = 0;
    }
}

static void follow_done(struct client *one, char byte)
{
    static const char done[] = "[DONE]";
    one->done_at = byte == done[one->done_at] ? one->done_at + 1 : byte == '[';
    if (done[one->done_at] == 0) {
        one->done = true;
        one->done_at = 0;
    }
}

static const char *earlier(const char *left, const char *right)
{
    if (left == NULL || (right != NULL && right < left))
        return right;
    return left;
}

static void read_body(struct client *one, const char *data, size_t bytes, uint64_t now)
{
    const char *end = data + bytes;
    while (asked.stream && data < end) {
        if (one->stamp_at == 0 && one->done_at == 0) { /* skip to what may begin a mark */
            size_t rest = (size_t)(end - data);
            data = earlier(memchr(data, '@', rest), memchr(data, '[', rest));
            if (data == NULL)
                return;
        }
        follow_stamp(one, *data, now);
        follow_done(one, *data++);
    }
}

static int hex_digit(char byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    byte = (char)(byte | 32);
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* Takes the framing off; true when the last chunk's trailer has ended. */
static bool read_chunked(struct client *one, const char *data, size_t bytes, uint64_t now)
{
    for (const char *end = data + bytes; data < end; data++) {
        bool line_ends = *data == '\n';
        if (one->framing == DATA) {
            size_t there = (size_t)(end - data), part = (size_t)one->chunk_left;
            part = part < there ? part : there;
            read_body(one, data, part, now);
            one->chunk_left -= (long)part;
            data += part - 1;
            if (one->chunk_left == 0)
                one->framing = AFTER_DATA;
        } else if (one->framing == SIZE && hex_digit(*data) >= 0) {
            one->chunk_left = 16 * one->chunk_left + hex_digit(*data);
        } else if (one->framing == SIZE && *data == ';') {
            one->framing = EXTENSION;
        } else if (one->framing == TRAILER_START && line_ends) {
            return true;
        } else if (line_ends) {
            bool size_ended = one->framing == SIZE || one->framing == EXTENSION;
            bool last = size_ended ? one->chunk_left == 0 : one->framing == TRAILER;
            one->framing = last ? TRAILER_START : size_ended ? DATA : SIZE;
        } else if (one->framing == TRAILER_START && *data != '\r') {
            one->framing = TRAILER;
        }
    }
    return false;
}

static void read_headers(struct client *one, const char *end)
{
    one->status = atoi(one->head + 9);
    for (const char *line = one->head; line < end;) {
        const char *stop = strstr(line, "\r\n");
        if (strncasecmp(line, "content-length:", 15) == 0)
            one->body_left = atol(line + 15);
        else if (strncasecmp(line, "transfer-encoding:", 18) == 0)
            one->chunked = true;
        else if (strncasecmp(line, "connection: close", 17) == 0)
            one->closes = true;
        line = stop + 2;
    }
    one->in_body = true;
}

/* Bytes of the block that belong to the head. */
static size_t read_head(struct client *one, const char *data, size_t bytes)
{
    size_t before = one->head_bytes, room = HEAD_MOST - 1 - before;
    size_t part = bytes < room ? bytes : room;
    memcpy(one->head + before, data, part);
    one->head_bytes += part;
    one->head[one->head_bytes] = 0;
    char *end = memmem(one->head, one->head_bytes, "\r\n\r\n", 4);
    if (end == NULL)
        return bytes;
    read_headers(one, end);
    return (size_t)(end + 4 - one->head) - before;
}

static void read_block(struct client *one, const char *data, size_t bytes, uint64_t now)
{
    if (!one->in_body) {
        size_t used = read_head(one, data, bytes);
        data += used;
        bytes -= used;
        if (!one->in_body)
            return;
        if (asked.stall) {
            one->stalled = true;
            watch(poller, EPOLL_CTL_MOD, one->fd, 0, one);
            return;
        }
    }
    if (one->chunked) {
        if (read_chunked(one, data, bytes, now)) {
            finish(one, now);
            return;
        }
    } else {
        read_body(one, data, bytes, now);
        one->body_left -= one->body_left < 0 ? 0 : (long)bytes;
        if (one->body_left == 0) {
            finish(one, now);
            return;
        }
    }
    if (asked.abort_after && one->chunks >= asked.abort_after) {
        counted.aborted++;
        close_connection(one);
        ask_next(one);
    }
}

static void connection_ended(struct client *one, uint64_t now)
{
    if (one->state != BUSY) {
        close_connection(one);
    } else if (one->in_body && !one->chunked && one->body_left < 0) {
        one->closes = true;
        finish(one, now);
    } else if (one->head_bytes == 0) { /* a kept connection that the server closed: once more */
        counted.broken++;
        close_connection(one);
        one->sent_bytes = 0;
        open_connection(one);
    } else {
        fail(one, &counted.broken);
    }
}

static void receive(struct client *one)
{
    static char block[BLOCK_BYTES];
    ssize_t got = recv(one->fd, block, sizeof block, 0);
    uint64_t now = now_ns();
    if (got > 0) {
        unsigned long long before = counted.chunks;
        counted.bytes += (unsigned long long)got;
        if (one->state == BUSY)
            read_block(one, block, (size_t)got, now);
        counted.reads += counted.chunks > before;
    } else if (got == 0) {
        connection_ended(one, now);
    } else if (errno != EAGAIN && one->state == BUSY) {
        fail(one, &counted.broken);
    } else if (errno != EAGAIN) {
        close_connection(one);
    }
}

static void connected(struct client *one, uint32_t events)
{
    int error = 0;
    socklen_t bytes = sizeof error;
    getsockopt(one->fd, SOL_SOCKET, SO_ERROR, &error, &bytes);
    if (error) {
        fail(one, &counted.refused);
    } else if (events & EPOLLOUT) {
        one->state = BUSY;
        send_request(one);
    }
}

static void handle(struct client *one, uint32_t events)
{
    if (one->fd < 0)
        return;
    if (one->state == CONNECTING) {
        connected(one, events);
        return;
    }
    if (one->stalled) {
        if (events & (EPOLLHUP | EPOLLERR))
            fail(one, &counted.broken);
        return;
    }
    if (events & EPOLLOUT && one->state == BUSY)
        send_request(one);
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        receive(one);
}

/* ---- the loop ---- */

static int open_answers(void)
{
    int open = 0;
    for (int at = 0; at < asked.clients; at++)
        open += clients[at].state == CONNECTING || clients[at].state == BUSY;
    return open;
}

/* The pauses between requests vary by half around their mean, as one seed says. */
static uint64_t ask_at_rate(uint64_t due_ns, uint64_t now)
{
    static long due;
    for (; !draining && due_ns <= now && (asked.requests < 0 || due < asked.requests); due++) {
        if (free_count)
            ask(&clients[free_clients[--free_count]], due_ns);
        else if (waiting_to - waiting_from < WAITING_MOST)
            waiting[waiting_to++ % WAITING_MOST] = due_ns;
        due_ns += (uint64_t)(1e9 / asked.rate * (0.5 + drand48()));
    }
    return due_ns;
}

static uint64_t start_clients(uint64_t now)
{
    double pause_ns = asked.ramp_s * 1e9 / asked.clients;
    while (started < asked.clients && now >= began_ns + (uint64_t)(pause_ns * started) && may_ask())
        ask(&clients[started++], now_ns());
    return started < asked.clients ? began_ns + (uint64_t)(pause_ns * started) : now + NS_PER_S;
}

static bool over(uint64_t now)
{
    if (told_to_stop)
        return true;
    if (asked.hang_up_s > 0 && now >= began_ns + (uint64_t)(asked.hang_up_s * 1e9))
        return true;
    if (now > end_ns + (uint64_t)GRACE_S * NS_PER_S)
        return true;
    if (draining && (asked.abort_after || asked.stall))
        return true;
    bool all_sent = asked.requests >= 0 && (long)counted.sent >= asked.requests;
    return (draining || all_sent) && waiting_from == waiting_to && open_answers() == 0;
}

static uint64_t print_progress(uint64_t next_ns, uint64_t now)
{
    if (asked.every_s <= 0 || now < next_ns)
        return next_ns;
    printf("progress %llu %llu %llu\n", (unsigned long long)now, counted.chunks, counted.reads);
    fflush(stdout);
    return now + (uint64_t)(asked.every_s * 1e9);
}

static void run(void)
{
    struct epoll_event events[512];
    uint64_t next_ns = began_ns, progress_ns = began_ns;
    for (uint64_t now = began_ns; !over(now); now = now_ns()) {
        draining = now >= end_ns;
        progress_ns = print_progress(progress_ns, now);
        next_ns = asked.rate > 0 ? ask_at_rate(next_ns, now) : start_clients(now);
        uint64_t look_again = now + 50000 * NS_PER_US;
        uint64_t due_ns = !draining && next_ns < look_again ? next_ns : look_again;
        int ready = wait_until(poller, events, 512, due_ns);
        for (int at = 0; at < ready; at++)
            handle(events[at].data.ptr, events[at].events);
    }
}

/* ---- what to send, what to say ---- */

static char *read_file(const char *name, size_t *bytes)
{
    FILE *file = fopen(name, "rb");
    if (file == NULL)
        die(name);
    fseek(file, 0, SEEK_END);
    *bytes = (size_t)ftell(file);
    rewind(file);
    char *text = grown(NULL, *bytes + 1);
    if (fread(text, 1, *bytes, file) != *bytes)
        die(name);
    fclose(file);
    return text;
}

static void write_request(void)
{
    size_t bytes = 0;
    char *body = asked.body_file ? read_file(asked.body_file, &bytes) : NULL;
    request = grown(NULL, bytes + 8192);
    request_bytes = (size_t)sprintf(
        request,
        "%s %s HTTP/1.1\r\nhost: 127.0.0.1:%d\r\nuser-agent: OpenAI/Python 2.8.0\r\n"
        "accept: application/json\r\ncontent-type: application/json\r\nx-stainless-lang: python\r\n"
        "%scontent-length: %zu\r\n\r\n",
        asked.get ? "GET" : "POST", asked.path, asked.port, asked.headers, bytes);
    if (body != NULL)
        memcpy(request + request_bytes, body, bytes);
    request_bytes += bytes;
    free(body);
}

static int by_size(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* How the client that waited longest fared beside the one in the middle. */
static void print_slowest_firsts(void)
{
    uint64_t *slowest = grown(NULL, (size_t)asked.clients * sizeof *slowest);
    int count = 0;
    for (int at = 0; at < asked.clients; at++)
        if (clients[at].slowest_first_ns)
            slowest[count++] = clients[at].slowest_first_ns;
    qsort(slowest, (size_t)count, sizeof *slowest, by_size);
    printf("\"slowest_first_us\":{\"clients\":%d,\"median\":%.1f,\"max\":%.1f},", count,
           count ? (double)slowest[count / 2] / 1e3 : 0.0,
           count ? (double)slowest[count - 1] / 1e3 : 0.0);
    free(slowest);
}

static void print_results(void)
{
    double seconds = (double)(now_ns() - began_ns) / 1e9;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    int unfinished = open_answers();
    for (int at = 0; at < asked.clients; at++)
        if (clients[at].fd >= 0)
            count_segments(&clients[at]);
    printf("{\"seconds\":%.3f,\"sent\":%llu,\"ok\":%llu,\"failed\":%llu,\"refused\":%llu,"
           "\"bad_status\":%llu,\"first_bad_status\":%d,\"broken\":%llu,\"aborted\":%llu,"
           "\"unfinished\":%d,\"chunks\":%llu,\"reads\":%llu,\"segments\":%llu,\"bytes\":%llu,"
           "\"connects\":%llu,",
           seconds, counted.sent, counted.ok, counted.failed, counted.refused, counted.bad_status,
           counted.first_bad_status, counted.broken, counted.aborted, unfinished, counted.chunks,
           counted.reads, counted.segments, counted.bytes, counted.connects);
    histogram_print("total", &total);
    histogram_print("first", &first);
    histogram_print("gap", &gap);
    histogram_print("transit", &transit);
    print_slowest_firsts();
    printf("\"own_cpu_s\":%.3f}\n",
           (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
               (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
}

static void add_header(const char *line)
{
    size_t bytes = strlen(asked.headers);
    snprintf(asked.headers + bytes, sizeof asked.headers - bytes, "%s\r\n", line);
}

static void read_options(int count, char **words)
{
    static const struct option options[] = {
        {"port", 1, 0, 'p'},   {"path", 1, 0, 'u'},        {"clients", 1, 0, 'c'},
        {"requests", 1, 0, 'n'}, {"seconds", 1, 0, 'd'},   {"rate", 1, 0, 'r'},
        {"body", 1, 0, 'b'},   {"header", 1, 0, 'H'},      {"ramp", 1, 0, 'R'},
        {"every", 1, 0, 'e'},  {"abort-after", 1, 0, 'A'}, {"hang-up", 1, 0, 'U'},
        {"stream", 0, 0, 's'}, {"stall", 0, 0, 'Z'},       {"get", 0, 0, 'g'},
        {0, 0, 0, 0}};
    int letter;
    while ((letter = getopt_long(count, words, "", options, NULL)) != -1) {
        switch (letter) {
        case 'p': asked.port = atoi(optarg); break;
        case 'u': asked.path = optarg; break;
        case 'c': asked.clients = atoi(optarg); break;
        case 'n': asked.requests = atol(optarg); break;
        case 'd': asked.seconds = atof(optarg); break;
        case 'r': asked.rate = atof(optarg); break;
        case 'b': asked.body_file = optarg; break;
        case 'H': add_header(optarg); break;
        case 'R': asked.ramp_s = atof(optarg); break;
        case 'e': asked.every_s = atof(optarg); break;
        case 'A': asked.abort_after = atoi(optarg); break;
        case 'U': asked.hang_up_s = atof(optarg); break;
        case 's': asked.stream = true; break;
        case 'Z': asked.stall = true; break;
        case 'g': asked.get = true; break;
        default: exit(2);
        }
    }
}

static void stop(int number)
{
    told_to_stop = number;
}

int main(int count, char **words)
{
    signal(SIGPIPE, SIG_IGN);
    signal(SIGTERM, stop);
    srand48(42);
    read_options(count, words);
    address = loopback(asked.port);
    poller = epoll_create1(0);
    write_request();
    clients = calloc((size_t)asked.clients, sizeof *clients);
    free_clients = calloc((size_t)asked.clients + 1, sizeof *free_clients);
    if (clients == NULL || free_clients == NULL)
        die("calloc");
    for (int at = 0; at < asked.clients; at++)
        clients[at].fd = -1;
    for (int at = asked.clients; at > 0 && asked.rate > 0; at--)
        free_clients[free_count++] = at - 1;
    began_ns = now_ns();
    end_ns = began_ns + (uint64_t)(asked.seconds * 1e9);
    run();
    print_results();
    return 0;
}
