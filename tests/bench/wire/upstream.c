/* A model server that answers at once: OpenAI-shaped, with the pages that make a gateway trust it.
 *
 * usage: upstream PORT...   (one process listens on all of them, as so many engines)
 *
 * Every SSE chunk is a write of its own and carries the monotonic time at which it was written.
 * GET /_set?chunks=64&delay_us=20000&first_us=0&latency_us=0&pad=0 changes what is served, the
 * pause between chunks also in streams that are open;
 * GET /_stat tells what was: the upstream's own journal, to compare with what clients saw.
 * /v1/completions honours `max_tokens` at an engine's pace: gateways measure that.
 */
#define _GNU_SOURCE
#include "common.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <strings.h>
#include <unistd.h>

#define PORTS_MOST 64
#define PAD_MOST 60000
#define PROBE_STEP_US 2000
#define PROBE_FIRST_US 4000
#define PROBE_TOKEN_US 2
#define BYTES_PER_TOKEN 4
#define PROMPT_TOKENS 123
#define ANSWER_TOKENS 80
#define NOT_QUEUED (-1)

enum job { IDLE, STREAM, WHOLE };

struct connection {
    int fd;
    bool dead, writing, running_usage;
    enum job job;
    char *in, *out;
    size_t in_bytes, in_room, out_bytes, out_sent, out_room;
    long chunks, chunks_sent, prompt_tokens, pace_us; /* pace 0: as the mode says */
    uint64_t due_ns;
    int place; /* in the queue of what is due, or NOT_QUEUED */
    struct connection *next_dead;
};

static struct { long chunks, delay_us, first_us, latency_us, pad; } mode = {.chunks = 64};
static struct {
    unsigned long long requests, streams, chunk_writes, early, stalls, open, active, done;
    unsigned long long last_early_ns;
} seen;
static int poller;
static int listeners[PORTS_MOST];
static struct connection **queue; /* a binary heap by due_ns */
static int queued, queue_room;
static struct connection *graveyard;
static char padding[PAD_MOST + 1];

/* ---- what is due next ---- */

static void put(int place, struct connection *one)
{
    queue[place] = one;
    one->place = place;
}

static void sift_up(int place)
{
    struct connection *one = queue[place];
    for (; place > 0 && queue[(place - 1) / 2]->due_ns > one->due_ns; place = (place - 1) / 2)
        put(place, queue[(place - 1) / 2]);
    put(place, one);
}

static void sift_down(int place)
{
    struct connection *one = queue[place];
    for (;;) {
        int child = 2 * place + 1;
        if (child + 1 < queued && queue[child + 1]->due_ns < queue[child]->due_ns)
            child++;
        if (child >= queued || queue[child]->due_ns >= one->due_ns)
            break;
        put(place, queue[child]);
        place = child;
    }
    put(place, one);
}

static void enqueue(struct connection *one, uint64_t due_ns)
{
    one->due_ns = due_ns;
    if (queued == queue_room) {
        queue_room = queue_room ? 2 * queue_room : 1024;
        queue = grown(queue, (size_t)queue_room * sizeof *queue);
    }
    put(queued++, one);
    sift_up(one->place);
}

static void dequeue(struct connection *one)
{
    int place = one->place;
    if (place == NOT_QUEUED)
        return;
    struct connection *last = queue[--queued];
    one->place = NOT_QUEUED;
    if (last == one)
        return;
    put(place, last);
    sift_up(place);
    sift_down(last->place);
}

/* ---- connections ---- */

/* Freed after the batch of events that may still name it. */
static void bury(struct connection *one)
{
    if (one->dead)
        return;
    one->dead = true;
    dequeue(one);
    close(one->fd);
    seen.open--;
    if (one->job != IDLE) {
        seen.early++;
        seen.active--;
        seen.last_early_ns = now_ns();
    }
    one->next_dead = graveyard;
    graveyard = one;
}

static void clear_graveyard(void)
{
    while (graveyard != NULL) {
        struct connection *one = graveyard;
        graveyard = one->next_dead;
        free(one->in);
        free(one->out);
        free(one);
    }
}

static void keep_for_later(struct connection *one, const char *data, size_t bytes)
{
    if (one->out_sent == one->out_bytes)
        one->out_sent = one->out_bytes = 0;
    if (one->out_bytes + bytes > one->out_room) {
        one->out_room = 2 * (one->out_bytes + bytes);
        one->out = grown(one->out, one->out_room);
    }
    memcpy(one->out + one->out_bytes, data, bytes);
    one->out_bytes += bytes;
    if (!one->writing)
        watch(poller, EPOLL_CTL_MOD, one->fd, EPOLLIN | EPOLLRDHUP | EPOLLOUT, one);
    one->writing = true;
}

static void send_now(struct connection *one, const char *data, size_t bytes)
{
    if (one->dead)
        return;
    ssize_t sent = 0;
    if (one->out_sent == one->out_bytes) {
        sent = send(one->fd, data, bytes, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN) {
            bury(one);
            return;
        }
        sent = sent < 0 ? 0 : sent;
    }
    if ((size_t)sent < bytes) {
        seen.stalls++;
        keep_for_later(one, data + sent, bytes - (size_t)sent);
    }
}

static void send_rest(struct connection *one)
{
    while (one->out_sent < one->out_bytes) {
        size_t bytes = one->out_bytes - one->out_sent;
        ssize_t sent = send(one->fd, one->out + one->out_sent, bytes, MSG_NOSIGNAL);
        if (sent < 0) {
            if (errno != EAGAIN)
                bury(one);
            return;
        }
        one->out_sent += (size_t)sent;
    }
    watch(poller, EPOLL_CTL_MOD, one->fd, EPOLLIN | EPOLLRDHUP, one);
    one->writing = false;
}

/* ---- answers ---- */

static void send_page(struct connection *one, const char *type, const char *page)
{
    char answer[8192];
    int bytes = snprintf(answer, sizeof answer,
                         "HTTP/1.1 200 OK\r\nserver: uvicorn\r\ncontent-type: %s\r\n"
                         "content-length: %zu\r\n\r\n%s",
                         type, strlen(page), page);
    send_now(one, answer, (size_t)bytes);
}

static void send_whole_answer(struct connection *one)
{
    char text[481], page[2048];
    for (int at = 0; at < 480; at++)
        text[at] = at % 6 == 5 ? ' ' : 'a';
    text[480] = 0;
    snprintf(page, sizeof page,
             "{\"id\":\"chatcmpl-8f3b2c1d9e0a4b6c\",\"object\":\"chat.completion\","
             "\"created\":1763660000,\"model\":\"mock\",\"choices\":[{\"index\":0,\"message\":"
             "{\"role\":\"assistant\",\"content\":\"%s\",\"refusal\":null,\"annotations\":null,"
             "\"audio\":null,\"function_call\":null,\"tool_calls\":[],\"reasoning_content\":null},"
             "\"logprobs\":null,\"finish_reason\":\"stop\",\"stop_reason\":null}],"
             "\"service_tier\":null,\"system_fingerprint\":null,\"usage\":{\"prompt_tokens\":%d,"
             "\"completion_tokens\":%d,\"total_tokens\":%d,\"prompt_tokens_details\":"
             "{\"cached_tokens\":64}},\"prompt_logprobs\":null,\"kv_transfer_params\":null}",
             text, PROMPT_TOKENS, ANSWER_TOKENS, PROMPT_TOKENS + ANSWER_TOKENS);
    send_page(one, "application/json", page);
}

/* One HTTP chunk and one write per event, as uvicorn does it under vLLM. */
static void send_event(struct connection *one, const char *event, int bytes, const char *after)
{
    char framed[PAD_MOST + 2048];
    int size = snprintf(framed, sizeof framed, "%x\r\n%s\r\n%s", (unsigned)bytes, event, after);
    send_now(one, framed, (size_t)size);
}

static const char *running_usage(const struct connection *one, char *room, size_t bytes)
{
    if (!one->running_usage)
        return "";
    long sent = one->chunks_sent + 1;
    snprintf(room, bytes,
             ",\"usage\":{\"prompt_tokens\":%ld,\"total_tokens\":%ld,\"completion_tokens\":%ld}",
             one->prompt_tokens, one->prompt_tokens + sent, sent);
    return room;
}

static void send_chunk(struct connection *one, uint64_t now)
{
    char event[PAD_MOST + 1024], usage[128];
    bool last = one->chunks_sent + 1 == one->chunks;
    int bytes = snprintf(event, sizeof event,
                         "data: {\"id\":\"chatcmpl-8f3b2c1d\",\"object\":\"chat.completion.chunk\","
                         "\"created\":1763660000,\"model\":\"mock\",\"choices\":[{\"index\":0,"
                         "\"delta\":{\"content\":\" @T%018llu@%s\"},\"logprobs\":null,"
                         "\"finish_reason\":%s}]%s}\n\n",
                         (unsigned long long)now, padding, last ? "\"stop\"" : "null",
                         running_usage(one, usage, sizeof usage));
    one->chunks_sent++;
    seen.chunk_writes++;
    send_event(one, event, bytes, "");
}

static void send_stream_end(struct connection *one)
{
    char event[512];
    int bytes = snprintf(event, sizeof event,
                         "data: {\"id\":\"chatcmpl-8f3b2c1d\",\"object\":\"chat.completion.chunk\","
                         "\"created\":1763660000,\"model\":\"mock\",\"choices\":[],\"usage\":"
                         "{\"prompt_tokens\":%ld,\"completion_tokens\":%ld,\"total_tokens\":%ld}}"
                         "\n\n",
                         one->prompt_tokens, one->chunks, one->prompt_tokens + one->chunks);
    send_event(one, event, bytes, "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n");
    if (one->dead)
        return;
    one->job = IDLE;
    seen.active--;
    seen.done++;
}

static void begin(struct connection *one, enum job job, uint64_t first_us)
{
    one->job = job;
    seen.active++;
    enqueue(one, now_ns() + first_us * NS_PER_US);
}

static void begin_stream(struct connection *one, const char *body, size_t bytes, bool probe)
{
    static const char head[] =
        "HTTP/1.1 200 OK\r\nserver: uvicorn\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
        "cache-control: no-cache\r\nx-request-id: mock-1\r\ntransfer-encoding: chunked\r\n\r\n";
    seen.streams++;
    one->running_usage = memmem(body, bytes, "continuous_usage_stats", 22) != NULL;
    one->chunks = mode.chunks;
    one->chunks_sent = 0;
    one->prompt_tokens = PROMPT_TOKENS;
    one->pace_us = 0;
    uint64_t first_us = (uint64_t)mode.first_us;
    if (probe) {
        const char *limit = memmem(body, bytes, "\"max_tokens\":", 13);
        one->chunks = limit == NULL ? 16 : strtol(limit + 13, NULL, 10);
        one->prompt_tokens = (long)bytes / BYTES_PER_TOKEN;
        one->pace_us = PROBE_STEP_US;
        first_us = PROBE_FIRST_US + PROBE_TOKEN_US * (uint64_t)one->prompt_tokens;
    }
    send_now(one, head, sizeof head - 1);
    if (!one->dead)
        begin(one, STREAM, first_us);
}

static bool asks_for_stream(const char *body, size_t bytes)
{
    const char *at = body, *end = body + bytes;
    while ((at = memmem(at, (size_t)(end - at), "\"stream\"", 8)) != NULL) {
        at += 8;
        while (at < end && (*at == ' ' || *at == ':'))
            at++;
        if (end - at >= 4 && memcmp(at, "true", 4) == 0)
            return true;
    }
    return false;
}

/* `body` is followed by a zero byte. */
static void serve_post(struct connection *one, const char *path, const char *body, size_t bytes)
{
    bool probe = strstr(path, "/completions") && !strstr(path, "/chat/");
    if (asks_for_stream(body, bytes))
        begin_stream(one, body, bytes, probe);
    else if (mode.latency_us)
        begin(one, WHOLE, (uint64_t)mode.latency_us);
    else
        send_whole_answer(one);
}

static void set_number(const char *query, const char *name, long *value)
{
    const char *at = strstr(query, name);
    if (at != NULL)
        *value = atol(at + strlen(name));
}

static void set_mode(const char *path)
{
    set_number(path, "chunks=", &mode.chunks);
    set_number(path, "delay_us=", &mode.delay_us);
    set_number(path, "first_us=", &mode.first_us);
    set_number(path, "latency_us=", &mode.latency_us);
    set_number(path, "pad=", &mode.pad);
    mode.pad = mode.pad > PAD_MOST ? PAD_MOST : mode.pad;
    memset(padding, 'x', (size_t)mode.pad);
    padding[mode.pad] = 0;
}

static void send_stat(struct connection *one)
{
    char page[512];
    snprintf(page, sizeof page,
             "{\"requests\":%llu,\"streams\":%llu,\"chunk_writes\":%llu,\"early\":%llu,"
             "\"stalls\":%llu,\"open\":%llu,\"active\":%llu,\"done\":%llu,\"last_early_ns\":%llu}",
             seen.requests, seen.streams, seen.chunk_writes, seen.early, seen.stalls, seen.open,
             seen.active, seen.done, seen.last_early_ns);
    send_page(one, "application/json", page);
}

/* The gauges that routers read; a cache so large that it refuses nobody. */
static void send_metrics(struct connection *one)
{
    char page[4096];
    snprintf(page, sizeof page,
             "vllm:num_requests_running{engine=\"0\",model_name=\"mock\"} 0.0\n"
             "vllm:num_requests_waiting{engine=\"0\",model_name=\"mock\"} 0.0\n"
             "vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"mock\"} 0.01\n"
             "vllm:cache_config_info{engine=\"0\",block_size=\"16\",num_gpu_blocks=\"4000001\"} 1.0\n"
             "vllm:num_preemptions_total{engine=\"0\",model_name=\"mock\"} 0.0\n"
             "vllm:prompt_tokens_total{engine=\"0\",model_name=\"mock\"} %llu\n"
             "vllm:generation_tokens_total{engine=\"0\",model_name=\"mock\"} %llu\n"
             "vllm:request_success_total{engine=\"0\",model_name=\"mock\"} %llu\n"
             "process_start_time_seconds 1.0\n",
             seen.requests * PROMPT_TOKENS, seen.chunk_writes, seen.requests);
    send_page(one, "text/plain; version=0.0.4", page);
}

static void serve_get(struct connection *one, const char *path)
{
    static const char models[] =
        "{\"object\":\"list\",\"data\":[{\"id\":\"mock\",\"object\":\"model\","
        "\"created\":1763660000,\"owned_by\":\"vllm\",\"root\":\"mock\",\"parent\":null,"
        "\"max_model_len\":131072}]}";
    static const char server_info[] =
        "{\"model_path\":\"mock\",\"served_model_name\":\"mock\",\"is_generation\":true,"
        "\"tp_size\":1,\"dp_size\":1,\"version\":\"0\",\"status\":\"ok\"}";
    if (strncmp(path, "/_stat", 6) == 0) {
        send_stat(one);
    } else if (strncmp(path, "/metrics", 8) == 0) {
        send_metrics(one);
    } else if (strncmp(path, "/v1/models", 10) == 0) {
        send_page(one, "application/json", models);
    } else {
        if (strncmp(path, "/_set", 5) == 0)
            set_mode(path);
        send_page(one, "application/json", server_info);
    }
}

/* ---- requests ---- */

struct head { size_t bytes, body_bytes; bool chunked; };

static bool read_head(const char *data, size_t bytes, struct head *head)
{
    const char *end = memmem(data, bytes, "\r\n\r\n", 4);
    if (end == NULL)
        return false;
    *head = (struct head){.bytes = (size_t)(end + 4 - data)};
    for (const char *line = data; line < end;) {
        const char *stop = memmem(line, (size_t)(end + 2 - line), "\r\n", 2);
        if (strncasecmp(line, "content-length:", 15) == 0)
            head->body_bytes = strtoul(line + 15, NULL, 10);
        else if (strncasecmp(line, "transfer-encoding:", 18) == 0)
            head->chunked = true;
        line = stop + 2;
    }
    return true;
}

/* Joins a chunked body in place; returns the bytes it took on the wire, 0 while incomplete. */
static size_t join_chunks(char *body, size_t bytes, size_t *joined)
{
    char *at = body, *end = body + bytes;
    *joined = 0;
    for (;;) {
        char *line = memmem(at, (size_t)(end - at), "\r\n", 2);
        if (line == NULL)
            return 0;
        size_t size = strtoul(at, NULL, 16);
        at = line + 2;
        if ((size_t)(end - at) < size + 2)
            return 0;
        if (size == 0)
            return (size_t)(at + 2 - body);
        memmove(body + *joined, at, size);
        *joined += size;
        at += size + 2;
    }
}

static void serve(struct connection *one, char *head, char *body, size_t bytes)
{
    char path[256] = "", method[8] = "";
    sscanf(head, "%7s %255s", method, path);
    char after = body[bytes];
    body[bytes] = 0;
    seen.requests++;
    if (strcmp(method, "POST") == 0)
        serve_post(one, path, body, bytes);
    else
        serve_get(one, path);
    body[bytes] = after;
}

/* Serves what has arrived whole, one after the other: the next waits until a stream has ended. */
static void serve_arrived(struct connection *one)
{
    struct head head;
    while (!one->dead && one->job == IDLE && read_head(one->in, one->in_bytes, &head)) {
        char *body = one->in + head.bytes;
        size_t there = one->in_bytes - head.bytes, used = head.body_bytes;
        size_t bytes = head.body_bytes;
        char *copy = NULL;
        if (head.chunked) {
            copy = memcpy(grown(NULL, there + 1), body, there);
            body = copy;
            used = join_chunks(copy, there, &bytes);
        }
        bool whole = head.chunked ? used > 0 : there >= used;
        if (whole)
            serve(one, one->in, body, bytes);
        free(copy);
        if (!whole)
            return;
        used += head.bytes;
        one->in_bytes -= used;
        memmove(one->in, one->in + used, one->in_bytes);
    }
}

static void receive(struct connection *one)
{
    for (;;) {
        if (one->in_room - one->in_bytes < 8192) {
            one->in_room = one->in_room ? 2 * one->in_room : 16384;
            one->in = grown(one->in, one->in_room);
        }
        size_t room = one->in_room - one->in_bytes - 1; /* serve() puts a zero behind a body */
        ssize_t got = recv(one->fd, one->in + one->in_bytes, room, 0);
        if (got == 0 || (got < 0 && errno != EAGAIN)) {
            bury(one);
            return;
        }
        if (got < 0)
            break;
        one->in_bytes += (size_t)got;
        if ((size_t)got < room)
            break;
    }
    serve_arrived(one);
}

static void accept_all(int listener)
{
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
        if (fd < 0)
            return;
        no_delay(fd);
        struct connection *one = calloc(1, sizeof *one);
        if (one == NULL)
            die("calloc");
        one->fd = fd;
        one->place = NOT_QUEUED;
        seen.open++;
        watch(poller, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLRDHUP, one);
    }
}

/* ---- the loop ---- */

static void step(struct connection *one, uint64_t now)
{
    if (one->job == WHOLE) {
        one->job = IDLE;
        seen.active--;
        send_whole_answer(one);
    } else if (one->out_sent < one->out_bytes) {
        enqueue(one, now + 1000 * NS_PER_US); /* its reader is slow: nothing is made meanwhile */
        return;
    } else {
        send_chunk(one, now);
        if (one->dead)
            return;
        if (one->chunks_sent < one->chunks) {
            long pause_us = one->pace_us ? one->pace_us : mode.delay_us;
            enqueue(one, one->due_ns + (uint64_t)pause_us * NS_PER_US);
            return;
        }
        send_stream_end(one); /* at once, as engines do: gateways may hold a finish until then */
    }
    serve_arrived(one);
}

/* Bounded by one round, so that streams without delay leave time for reading. */
static void do_what_is_due(void)
{
    uint64_t now = now_ns();
    for (int turns = queued; turns > 0 && queued > 0 && queue[0]->due_ns <= now; turns--) {
        struct connection *one = queue[0];
        dequeue(one);
        step(one, now_ns());
    }
}

static void handle(struct connection *one, uint32_t events)
{
    if (one->dead)
        return;
    if (events & (EPOLLERR | EPOLLHUP)) {
        bury(one);
        return;
    }
    if (events & EPOLLOUT)
        send_rest(one);
    if (!one->dead && events & (EPOLLIN | EPOLLRDHUP))
        receive(one);
}

static int listen_on(int port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
    struct sockaddr_in address = loopback(port);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 4096) != 0)
        die("cannot listen");
    return fd;
}

int main(int count, char **words)
{
    if (count < 2 || count - 1 > PORTS_MOST) {
        fprintf(stderr, "usage: upstream PORT...\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    poller = epoll_create1(0);
    for (int at = 0; at < count - 1; at++) {
        listeners[at] = listen_on(atoi(words[at + 1]));
        watch(poller, EPOLL_CTL_ADD, listeners[at], EPOLLIN, &listeners[at]);
    }
    for (;;) {
        struct epoll_event events[512];
        do_what_is_due();
        uint64_t due_ns = queued > 0 ? queue[0]->due_ns : now_ns() + NS_PER_S;
        int ready = wait_until(poller, events, 512, due_ns);
        for (int at = 0; at < ready; at++) {
            int *listener = events[at].data.ptr;
            if (listener >= listeners && listener < listeners + PORTS_MOST)
                accept_all(*listener);
            else
                handle(events[at].data.ptr, events[at].events);
        }
        clear_graveyard();
    }
}
