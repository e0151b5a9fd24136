/* Prints its own stack: registers by DWARF number, the words from the stack pointer on, its mappings, and the frames
 * that its own unwinder (libgcc's) finds. The first argument chooses the path of calls. */
#define _GNU_SOURCE
#include <alloca.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { REGISTERS = 33, WORDS_MAX = 8192, FRAMES_MAX = 100 };

static uint64_t registers[REGISTERS];
static uint64_t words[WORDS_MAX];

#if defined(__x86_64__)
enum { STACK_POINTER = 7 };
static const int known[] = {3, 6, 7, 12, 13, 14, 15, 16};
#define READ_REGISTERS() \
  asm volatile( \
      "mov %%rbx, 24(%0)\n mov %%rbp, 48(%0)\n mov %%rsp, 56(%0)\n mov %%r12, 96(%0)\n mov %%r13, 104(%0)\n" \
      "mov %%r14, 112(%0)\n mov %%r15, 120(%0)\n lea 1f(%%rip), %%rax\n mov %%rax, 128(%0)\n 1:\n" \
      : : "r"(registers) : "rax", "memory")
/* What a handler returns to, without a table for unwinders: musl's is like that. */
asm(".text\n bare_restorer: mov $15, %rax\n syscall\n");
extern void bare_restorer(void);
#elif defined(__aarch64__)
enum { STACK_POINTER = 31 };
static const int known[] = {19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32};
#define READ_REGISTERS() \
  asm volatile( \
      "stp x19, x20, [%0, #152]\n stp x21, x22, [%0, #168]\n stp x23, x24, [%0, #184]\n stp x25, x26, [%0, #200]\n" \
      "stp x27, x28, [%0, #216]\n stp x29, x30, [%0, #232]\n mov x1, sp\n str x1, [%0, #248]\n adr x1, 1f\n str x1, [%0, #256]\n 1:\n" \
      : : "r"(registers) : "x1", "memory")
#endif

static uint64_t end_of_stack(uint64_t stack_pointer) {
  FILE *maps = fopen("/proc/self/maps", "r");
  unsigned long start, end, found = 0;
  char line[4096];
  while (maps && fgets(line, sizeof line, maps)) {
    fprintf(stdout, "map %s", line);
    if (sscanf(line, "%lx-%lx", &start, &end) == 2 && start <= stack_pointer && stack_pointer < end) found = end;
  }
  if (maps) fclose(maps);
  return found;
}

__attribute__((noinline)) static void say(void) {
  READ_REGISTERS();
  void *frames[FRAMES_MAX];
  int count = backtrace(frames, FRAMES_MAX);
  uint64_t start = registers[STACK_POINTER], bytes = end_of_stack(start) - start;
  if (bytes > sizeof words) bytes = sizeof words;
  memcpy(words, (void *)start, bytes);
  for (unsigned i = 0; i < sizeof known / sizeof *known; i++) printf("register %d %lx\n", known[i], (unsigned long)registers[known[i]]);
  for (uint64_t i = 0; i < bytes / 8; i++) printf("word %lx\n", (unsigned long)words[i]);
  for (int i = 0; i < count; i++) printf("frame %lx\n", (unsigned long)frames[i]);
}

static volatile int calls;

__attribute__((noinline)) static void deep(int depth) {
  if (depth > 0) deep(depth - 1);
  else say();
  calls++;
}

__attribute__((noinline)) static void aligned(int bytes) {
  volatile char beside[64] __attribute__((aligned(64)));
  volatile char *more = alloca(bytes);
  beside[1] = more[0] = 1;
  deep(2);
  calls += beside[1] + more[0];
}

static int compare(const void *left, const void *right) {
  if (calls++ == 0) say();
  return *(const char *)left - *(const char *)right;
}

static void handler(int number) {
  deep(number > 0);
  calls++;
}

#if defined(__x86_64__)
static void raise_bare(void) {
  struct { void (*handler)(int); unsigned long flags; void (*restorer)(void); unsigned long mask; } action = {handler, 0x04000000 /* SA_RESTORER */, bare_restorer, 0};
  syscall(SYS_rt_sigaction, SIGUSR1, &action, NULL, 8);
  raise(SIGUSR1);
}
#else
static void raise_bare(void) {}
#endif

static void *in_thread(void *argument) {
  deep(3);
  calls++;
  return argument;
}

int main(int count, char **arguments) {
  const char *way = count > 1 ? arguments[1] : "deep";
  pthread_t thread;
  char letters[] = "cab";
  if (!strcmp(way, "deep")) deep(20);
  if (!strcmp(way, "aligned")) aligned(count * 50);
  if (!strcmp(way, "callback")) qsort(letters, 3, 1, compare);
  if (!strcmp(way, "signal")) signal(SIGUSR1, handler), raise(SIGUSR1);
  if (!strcmp(way, "bare-signal")) raise_bare();
  if (!strcmp(way, "thread")) pthread_create(&thread, NULL, in_thread, NULL), pthread_join(thread, NULL);
  return 0;
}
