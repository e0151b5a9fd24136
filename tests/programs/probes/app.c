// Functions whose variables probes fetch. The program prints their values, with which the fetched ones are compared.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum mood { CALM = 3, ANGRY = 7 };

struct point {
    short x, y;
};

struct opaque;

struct req {
    char *path;
    int len;
    unsigned urgent : 1, level : 5, : 2, wide : 12;
    char name[16];
    struct point corner;
    union {
        long number;
        unsigned char bytes[8];
    };
    long list[4];
    struct point points[3];
    struct req *next;
    double ratio;
    enum mood mood;
    struct opaque *hidden;
    _Bool is_last;
};

long served_total = 1000;
static volatile struct point origin = {11, -12};
__thread int own_number = 5;

#define NOINLINE __attribute__((noinline, noclone))

NOINLINE int handle(struct req *req, int len, unsigned char tag) {
    int sum = len + tag;
    for (const char *c = req->path; *c; c++) {
        sum += *c;
    }
    served_total += 1; // the line "served"
    own_number += sum;
    return sum;
}

// The arguments do not fit into registers.
NOINLINE long many(long a, long b, long c, long d, long e, long f, long g, short h) {
    served_total += 1;
    return a + b + c + d + e + f + g + h;
}

static inline __attribute__((always_inline)) long scaled(long value, long factor) {
    long product = value * factor;
    asm volatile("nop" : "+r"(product)); // the line "scaled"
    return product;
}

NOINLINE long first_user(long value) { return scaled(value, 3) + origin.x; }

NOINLINE long second_user(long value) { return scaled(value + 1, 4) - origin.y; }

NOINLINE char *named(struct req *req) { return req->name; }

NOINLINE struct req *following(struct req *req) { return req->next; }

NOINLINE double ratio(struct req *req, double by) { return req->ratio * by; }

NOINLINE int wander(int start) {
    int steps = 0;
    while (start != 1) {
        int half = start / 2;
        start = start % 2 ? 3 * start + 1 : half;
        steps++; // the line "steps"
        asm volatile("nop" : "+r"(start), "+r"(steps) : "r"(half));
    }
    return steps;
}

int main(int count, char **words) {
    int times = count > 1 ? atoi(words[1]) : 1;
    struct req last = {.path = "/last/one", .len = 9, .name = "the last", .is_last = 1};
    struct req req = {
        .path = "/a/path",
        .len = 7,
        .urgent = 1,
        .level = 21,
        .wide = 3001,
        .name = "a name",
        .corner = {-3, 4},
        .number = 0x1122334455667788,
        .list = {10, -20, 30, -40},
        .points = {{1, 2}, {3, 4}, {5, 6}},
        .next = &last,
        .ratio = 0.5,
        .mood = ANGRY,
    };
    for (int i = 0; i < times; i++) {
        printf("handle %d\n", handle(&req, 100 + i, 200));
        printf("many %ld\n", many(1, -2, 3, -4, 5, -6, 7, -8));
        printf("users %ld %ld\n", first_user(5), second_user(6));
        printf("named %s\n", named(&req));
        printf("following %s\n", following(&req)->path);
        printf("ratio %f\n", ratio(&req, 2));
        printf("wander %d\n", wander(6));
    }
    return 0;
}
