/* A chat-completions endpoint that answers every request with the same words after a fixed time. If the words have a #,
 * it stands for a digit that depends on the request.
 *
 * One thread, one epoll, HTTP/1.1 with keep-alive, bodies with Content-Length only, one request a connection at a time.
 * It takes a free port and prints it. Linux only.
 *
 *   POST anything            the reply, after the latency
 *   GET  /begin/MS           sets the latency and zeroes the counts
 *   GET  /counts             {"requests": …, "bytes": …, "waiting": …, "most_waiting": …}, bytes being those of the bodies
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS = 512, ROOM = 8192 };

struct client {
    int fd;
    int waiting; /* for its reply: it stands in the queue */
    int gone;    /* closed while it stood there */
    char digit;  /* of its reply */
    long long due;
    struct client *next;
    char *text;
    size_t used, size;
};

static char reply[] =
    "{\"id\":\"chatcmpl-0\",\"object\":\"chat.completion\",\"created\":1,\"model\":\"fixed\",\"choices\":[{\"index\":0,"
    "\"finish_reason\":\"stop\",\"logprobs\":null,\"message\":{\"role\":\"assistant\",\"content\":\"" SAID "\"}}],"
    "\"usage\":{\"prompt_tokens\":120,\"completion_tokens\":48,\"total_tokens\":168}}";

static char *digit_of_reply; /* the place of # */
static int poll_fd;
static long long latency, requests, bytes, waiting, most_waiting; /* latency in microseconds */
static struct client *queue_head, *queue_tail;                    /* all wait equally long, so first in is first out */

static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

static void hang_up(struct client *client) {
    close(client->fd);
    if (client->waiting) {
        client->gone = 1;
        return;
    }
    free(client->text);
    free(client);
}

/* Replies are small against a socket's buffer, so a send that would block is a fault of the other side. */
static void answer(struct client *client, const char *body, size_t length) {
    char text[4096];
    int size = snprintf(text, sizeof text,
                        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", length, body);
    if (send(client->fd, text, size, MSG_NOSIGNAL) != size) shutdown(client->fd, SHUT_RDWR);
}

static void answer_request(struct client *client) {
    if (digit_of_reply) *digit_of_reply = client->digit;
    answer(client, reply, sizeof reply - 1);
}

/* The last digit of a hash (FNV-1a). */
static char digit_of(const char *text, size_t length) {
    unsigned long long hash = 14695981039346656037ULL;
    for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)text[i]) * 1099511628211ULL;
    return '0' + (hash >> 20) % 10;
}

static void command(struct client *client, const char *path) {
    char body[160] = "{}";
    if (!strncmp(path, "/begin/", 7)) {
        latency = atoll(path + 7) * 1000;
        requests = bytes = most_waiting = 0;
    } else {
        snprintf(body, sizeof body, "{\"requests\":%lld,\"bytes\":%lld,\"waiting\":%lld,\"most_waiting\":%lld}", requests, bytes, waiting,
                 most_waiting);
    }
    answer(client, body, strlen(body));
}

static void take(struct client *client, const char *body, size_t length) {
    requests++;
    bytes += length;
    if (digit_of_reply) client->digit = digit_of(body, length);
    if (!latency) {
        answer_request(client);
        return;
    }
    client->waiting = 1;
    client->due = now() + latency;
    client->next = NULL;
    if (queue_tail) queue_tail->next = client;
    else queue_head = client;
    queue_tail = client;
    if (++waiting > most_waiting) most_waiting = waiting;
}

/* Handle the requests that have come in whole. */
static void read_requests(struct client *client) {
    for (;;) {
        client->text[client->used] = 0;
        char *end = strstr(client->text, "\r\n\r\n");
        if (!end) return;
        *end = 0;
        char *header = strcasestr(client->text, "\r\nContent-Length:");
        size_t length = header ? strtoul(header + 17, NULL, 10) : 0;
        size_t whole = end + 4 - client->text + length;
        *end = '\r';
        if (client->used < whole) return;
        if (!strncmp(client->text, "POST", 4)) take(client, end + 4, length);
        else command(client, client->text + 4);
        memmove(client->text, client->text + whole, client->used - whole);
        client->used -= whole;
    }
}

static void receive(struct client *client) {
    if (client->size - client->used < ROOM) {
        client->size = client->size * 2 + ROOM;
        client->text = realloc(client->text, client->size + 1);
    }
    ssize_t got = recv(client->fd, client->text + client->used, client->size - client->used, 0);
    if (got > 0) {
        client->used += got;
        read_requests(client);
    } else if (got == 0 || errno != EAGAIN) {
        hang_up(client);
    }
}

static void welcome(int listener) {
    for (int fd, on = 1; (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0;) {
        struct client *client = calloc(1, sizeof *client);
        client->fd = fd;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        struct epoll_event wanted = {.events = EPOLLIN, .data.ptr = client};
        epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &wanted);
    }
}

/* Answer those whose time has come; the milliseconds until the next, or -1. */
static int serve_due(void) {
    while (queue_head) {
        struct client *client = queue_head;
        long long left = client->due - now();
        if (left > 0) return (left + 999) / 1000;
        queue_head = client->next;
        if (!queue_head) queue_tail = NULL;
        waiting--;
        client->waiting = 0;
        if (client->gone) {
            free(client->text);
            free(client);
        } else {
            answer_request(client);
        }
    }
    return -1;
}

int main(void) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    digit_of_reply = strchr(reply, '#');
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 4096) ||
        getsockname(listener, (struct sockaddr *)&address, &size)) {
        perror("server");
        return 1;
    }
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);

    poll_fd = epoll_create1(0);
    struct epoll_event events[EVENTS], wanted = {.events = EPOLLIN, .data.ptr = NULL};
    epoll_ctl(poll_fd, EPOLL_CTL_ADD, listener, &wanted);
    for (;;) {
        int count = epoll_wait(poll_fd, events, EVENTS, serve_due());
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr) receive(events[i].data.ptr);
            else welcome(listener);
        }
    }
}
