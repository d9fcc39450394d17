/* What both programs of the bench share: the clock, sockets on loopback, and a number parser. */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H

#include <arpa/inet.h>
#include <linux/tcp.h> /* not netinet/tcp.h: that one lacks the count of segments */
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>

#define NS_PER_S 1000000000ull
#define NS_PER_US 1000ull

/* The monotonic clock is one for all processes of a machine: a time stamp written by the upstream
 * and read by the load generator gives the one-way transit. */
static inline uint64_t now_ns(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * NS_PER_S + (uint64_t)at.tv_nsec;
}

static inline void die(const char *what)
{
    perror(what);
    exit(1);
}

static inline void *grown(void *block, size_t bytes)
{
    void *bigger = realloc(block, bytes);
    if (bigger == NULL)
        die("realloc");
    return bigger;
}

static inline struct sockaddr_in loopback(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

static inline void no_delay(int fd)
{
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static inline void watch(int poller, int operation, int fd, uint32_t events, void *owner)
{
    struct epoll_event event = {.events = events, .data.ptr = owner};
    if (epoll_ctl(poller, operation, fd, &event) != 0)
        die("epoll_ctl");
}

/* Sleeps with nanosecond limits: epoll_wait's milliseconds are too coarse for paced streams. */
static inline int wait_until(int poller, struct epoll_event *events, int most, uint64_t due_ns)
{
    uint64_t now = now_ns();
    uint64_t rest = due_ns > now ? due_ns - now : 0;
    struct timespec limit = {(time_t)(rest / NS_PER_S), (long)(rest % NS_PER_S)};
    return epoll_pwait2(poller, events, most, &limit, NULL);
}

#endif
