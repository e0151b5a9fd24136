// USDT tracepoints. The program writes their notes itself, so that it needs no header.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STRING_(x) #x
#define STRING(x) STRING_(x)

// A note as <sys/sdt.h> writes it; `semaphore` is a symbol or 0.
#define NOTE(provider, name, semaphore, arguments)                                                              \
    "990: nop\n"                                                                                                \
    ".pushsection .note.stapsdt,\"\",\"note\"\n"                                                                \
    ".balign 4\n.4byte 992f-991f, 994f-993f, 3\n"                                                               \
    "991: .asciz \"stapsdt\"\n992: .balign 4\n"                                                                 \
    "993: .8byte 990b, _.stapsdt.base, " semaphore "\n"                                                         \
    ".asciz \"" provider "\"\n.asciz \"" name "\"\n.asciz \"" arguments "\"\n"                                  \
    "994: .balign 4\n.popsection\n"                                                                             \
    ".ifndef _.stapsdt.base\n.pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"             \
    ".weak _.stapsdt.base\n.hidden _.stapsdt.base\n_.stapsdt.base: .space 1\n.size _.stapsdt.base,1\n.popsection\n.endif\n"

// The number of tracers, as the kernel counts them.
__attribute__((section(".probes"), used)) volatile unsigned short app_begin_semaphore;

long last_number = 7;

__attribute__((noinline)) void begin(int number, const char *text) {
    asm volatile(NOTE("app", "begin", "app_begin_semaphore", "-4@%0 8@%1 -4@$5 -8@last_number(%%rip)") : : "r"(number), "r"(text));
}

// One tracepoint with two sites, and an argument that no fetch argument can express.
__attribute__((noinline)) void step(long number, long *list) {
    asm volatile(NOTE("app", "step", "0", "-8@%0 8@(%1,%0,8)") : : "r"(number), "r"(list));
    number++;
    asm volatile(NOTE("app", "step", "0", "-8@%0 8@(%1,%0,8)") : : "r"(number), "r"(list));
}

int main(int count, char **words) {
    long list[64] = {0};
    int times = count > 1 ? atoi(words[1]) : 1;
    int listened = 0;
    for (int i = 0; i < times; i++) {
        last_number = 40 + i;
        listened += app_begin_semaphore != 0;
        begin(i, "a text");
        step(i, list);
    }
    printf("listened %d\n", listened);
    return 0;
}
