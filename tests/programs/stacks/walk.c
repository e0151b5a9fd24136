/*
 * walk COUNT [LIBRARY]: makes the calls lseek(-1, 1, 9) to lseek(-1, COUNT, 9), each through its own path of functions
 * with different kinds of frames. The paths are pseudorandom and the same in every run; some pass through LIBRARY
 * (library.c).
 */
#define _GNU_SOURCE
#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <search.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))

static volatile long returned;
static volatile long tag;
static unsigned long seed;
static const char *library_file;
/* The number of functions that remain on the path. */
static int left;

static unsigned long next(unsigned long below)
{
	seed = seed * 6364136223846793005UL + 1442695040888963407UL;
	return (seed >> 33) % below;
}

static void walk(void);

APART static void plain(void)
{
	walk();
	returned++;
}

APART static void of_any_size(void)
{
	int size = 16 + next(600);
	char *buffer = alloca(size);

	memset(buffer, size, size);
	walk();
	returned += buffer[size / 2];
}

APART static void rounded(void)
{
	_Alignas(128) char frame[64];

	memset(frame, returned, sizeof(frame));
	walk();
	returned += frame[7];
}

APART static long with_many_arguments(long a, long b, long c, long d, long e, long f, long g, long h, long i)
{
	walk();
	return a + b + c + d + e + f + g + h + i + returned;
}

APART static void caller_of_many_arguments(void)
{
	long a = next(9), b = next(9);

	returned += with_many_arguments(a, b, a, b, a, b, a, b, a) + with_many_arguments(b, a, b, a, b, a, b, a, b);
}

APART static void of_many_kinds(int count, ...)
{
	va_list words;

	va_start(words, count);
	walk();
	while (count--)
		returned += va_arg(words, int) + (long)va_arg(words, double);
	va_end(words);
}

APART static void caller_of_many_kinds(void)
{
	of_many_kinds(3, 1, 2.0, 3, 4.0, 5, 6.0);
	returned++;
}

/* The first comparison continues the path; the others only compare. */
static int on_the_way;

static int compare(const void *a, const void *b)
{
	if (on_the_way) {
		on_the_way = 0;
		walk();
	}
	return *(const int *)a - *(const int *)b;
}

APART static void sorting(void)
{
	int numbers[] = { 5, 3, 8, 1 };

	on_the_way = 1;
	qsort(numbers, 4, sizeof(int), compare);
	returned += numbers[0];
}

APART static void searching(void)
{
	static const int numbers[] = { 1, 3, 5, 8 };
	int wanted = next(9);

	on_the_way = 1;
	returned += bsearch(&wanted, numbers, 4, sizeof(int), compare) != 0;
}

static void visit(const void *node, VISIT visit, int depth)
{
	if (visit == leaf || visit == endorder)
		walk();
	returned += depth + (node != 0);
}

APART static void in_a_tree(void)
{
	static int key;
	void *root = 0;

	tsearch(&key, &root, compare);
	twalk(root, visit);
	tdelete(&key, &root, compare);
	returned++;
}

static void handler(int signal)
{
	walk();
	returned += signal;
}

APART static void interrupted(void)
{
	raise(SIGUSR1);
	returned++;
}

static void handler_of_fault(int signal, siginfo_t *info, void *context)
{
	mcontext_t *interrupted = &((ucontext_t *)context)->uc_mcontext;

	(void)info;
	walk();
	/* Continues after the instruction. */
#if defined(__x86_64__)
	interrupted->gregs[REG_RIP] += 2;
#else
	interrupted->pc += 4;
#endif
	returned += signal;
}

/* The signal interrupts an instruction that does not follow a call. */
APART static void faulting(void)
{
#if defined(__x86_64__)
	__asm__ volatile("ud2" ::: "memory");
#else
	__asm__ volatile("udf #0" ::: "memory");
#endif
	returned++;
}

static jmp_buf back;

/* Its call is its last instruction. */
APART __attribute__((noreturn)) static void never_returning(void)
{
	walk();
	longjmp(back, 1);
}

APART __attribute__((noreturn)) static void leaving(long unused)
{
	returned += unused;
	never_returning();
}

APART static void coming_back(void)
{
	jmp_buf outer;

	memcpy(&outer, &back, sizeof(back));
	if (!setjmp(back))
		leaving(1);
	memcpy(&back, &outer, sizeof(back));
	returned++;
}

APART __attribute__((cold)) static void unlikely(void)
{
	walk();
	returned += next(3);
}

APART static void through_an_unlikely_part(void)
{
	if (__builtin_expect(next(1) == 0, 0)) {
		returned -= left;
		unlikely();
	}
	returned++;
}

APART static void through_a_library(void)
{
	void *library = library_file ? dlopen(library_file, RTLD_NOW) : 0;
	void (*enter)(void (*)(void)) = library ? dlsym(library, "library_entry") : 0;

	if (enter)
		enter(walk);
	else
		walk();
	if (library)
		dlclose(library);
	returned++;
}

static pthread_once_t once;

APART static void only_once(void)
{
	once = (pthread_once_t)PTHREAD_ONCE_INIT;
	pthread_once(&once, walk);
	returned++;
}

static void *begin(void *unused)
{
	walk();
	return unused;
}

APART static void in_a_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, 0, begin, 0);
	pthread_join(thread, 0);
	returned++;
}

static void (*const ways[])(void) = {
	plain, of_any_size, rounded, caller_of_many_arguments, caller_of_many_kinds, sorting, searching, in_a_tree, interrupted, faulting, coming_back,
	through_an_unlikely_part, through_a_library, only_once, in_a_thread,
};

/* Calls another function of the path, or makes the call. */
APART static void walk(void)
{
	if (left-- > 0)
		ways[next(sizeof(ways) / sizeof(ways[0]))]();
	else
		returned += lseek(-1, ++tag, 9);
	returned++;
}

int main(int argc, char **argv)
{
	struct sigaction fault = { .sa_sigaction = handler_of_fault, .sa_flags = SA_SIGINFO | SA_NODEFER };
	struct sigaction ordinary = { .sa_handler = handler, .sa_flags = SA_NODEFER };
	long count = argc > 1 ? atol(argv[1]) : 0;

	library_file = argc > 2 ? argv[2] : 0;
	sigaction(SIGILL, &fault, 0);
	sigaction(SIGUSR1, &ordinary, 0);
	while (tag < count) {
		left = next(12);
		walk();
	}
	return returned == 42;
}
