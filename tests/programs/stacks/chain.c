/*
 * Makes one call, lseek(-1, TAG, 9), from known functions, and prints these functions, innermost first, as a trace
 * should name them.
 *
 *   chain plain TAG          through three functions
 *   chain signal TAG         from a signal's handler
 *   chain thread TAG         from a thread
 *   chain deep TAG FRAMES    through FRAMES frames of one function, of half a KiB each
 *   chain library TAG FILE   from a library that the program loads (library.c)
 *   chain made TAG FILE...   from code that the program generates, and names in a perf-PID.map file. It removes that
 *                            file when each FILE contains the name, which is then known to the tracer.
 *   chain dumped TAG FILE... the same, with the name in a jit-PID.dump file
 *   chain alloca TAG         from functions whose frames have no fixed size, or lie at a rounded address
 */
#define _GNU_SOURCE
#include <alloca.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))

static long tag;
static volatile long returned;

/* The statement after each call keeps it from becoming a tail call. */
APART void innermost(void)
{
	returned += lseek(-1, tag, 9);
}

APART void middle(void)
{
	innermost();
	returned++;
}

APART void outer(void)
{
	middle();
	returned++;
}

static void handler(int signal)
{
	innermost();
	returned += signal;
}

APART void interrupted(void)
{
	raise(SIGUSR1);
	returned++;
}

static void *begin(void *unused)
{
	outer();
	return unused;
}

APART int descend(int left)
{
	volatile char frame[512];

	frame[left % 512] = 1;
	if (left > 1)
		returned += descend(left - 1);
	else
		innermost();
	return frame[left % 512];
}

APART void of_any_size(int size)
{
	char *buffer = alloca(size);

	memset(buffer, size, size);
	innermost();
	returned += buffer[size / 2];
}

APART void rounded(void)
{
	_Alignas(256) char frame[64];

	memset(frame, returned, sizeof(frame));
	of_any_size(1000 + frame[3] % 2);
	returned += frame[7];
}

#if defined(__x86_64__)
/* push rbp; mov rbp, rsp; call rdi; pop rbp; ret: it calls its argument. */
static const unsigned char code[] = { 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3 };
#else
/* stp x29, x30, [sp, #-16]!; mov x29, sp; blr x0; ldp x29, x30, [sp], #16; ret */
static const unsigned int code[] = { 0xa9bf7bfd, 0x910003fd, 0xd63f0000, 0xa8c17bfd, 0xd65f03c0 };
#endif

/* The files that the names are waited for in, up to a null pointer. */
static char **made_files;

/* The format is that of tools/perf/Documentation/jitdump-specification.txt. perf and rtrace learn of the file by its
   executable mapping. */
static void write_dump(const char *path, void *made)
{
	static const char name[] = "made_function";
	unsigned machine = sizeof(code[0]) == 1 ? 62 : 183;
	unsigned size = 56 + sizeof(name) + sizeof(code), pid = getpid();
	struct { unsigned magic, version, size, machine, pad, pid; unsigned long time, flags; } header =
		{ 0x4a695444, 1, 40, machine, 0, pid, 0, 0 };
	struct { unsigned kind, size; unsigned long time; unsigned pid, tid; unsigned long vma, at, bytes, index; } load =
		{ 0, size, 0, pid, pid, (unsigned long)made, (unsigned long)made, sizeof(code), 1 };
	FILE *dump = fopen(path, "w");

	fwrite(&header, sizeof(header), 1, dump);
	fwrite(&load, sizeof(load), 1, dump);
	fwrite(name, sizeof(name), 1, dump);
	fwrite(code, sizeof(code), 1, dump);
	fclose(dump);
	mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, open(path, O_RDONLY), 0);
}

static void write_map(const char *path, void *made)
{
	FILE *map = fopen(path, "w");

	fprintf(map, "%lx %lx made_function\n", (unsigned long)made, sizeof(code));
	fclose(map);
}

static int contains_name(const char *path)
{
	static char bytes[1 << 20];
	FILE *file = fopen(path, "r");
	size_t size = file ? fread(bytes, 1, sizeof(bytes), file) : 0;

	if (file)
		fclose(file);
	return memmem(bytes, size, "made_function", strlen("made_function")) != 0;
}

/* Waits until all files contain the name, for five minutes at most. */
static void wait_for_names(void)
{
	int tries = 5 * 60 * 20;

	for (char **file = made_files; *file; file++)
		while (!contains_name(*file) && tries-- > 0)
			usleep(50 * 1000);
}

APART void run_made_code(const char *form, void (*write_name)(const char *, void *))
{
	char name[64];
	void *made = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(made, code, sizeof(code));
	__builtin___clear_cache(made, (char *)made + sizeof(code));
	snprintf(name, sizeof(name), form, getpid());
	write_name(name, made);
	((void (*)(void (*)(void)))made)(innermost);
	wait_for_names();
	unlink(name);
}

int main(int argc, char **argv)
{
	const char *scene = argc > 2 ? argv[1] : "";

	made_files = argv + (argc > 3 ? 3 : argc);
	tag = argc > 2 ? atol(argv[2]) : 0;
	if (!strcmp(scene, "plain")) {
		puts("innermost middle outer main");
		outer();
	} else if (!strcmp(scene, "signal")) {
		puts("innermost handler * interrupted main");
		signal(SIGUSR1, handler);
		interrupted();
	} else if (!strcmp(scene, "thread")) {
		pthread_t thread;
		puts("innermost middle outer begin");
		pthread_create(&thread, 0, begin, 0);
		pthread_join(thread, 0);
	} else if (!strcmp(scene, "deep") && argc > 3) {
		printf("innermost");
		for (int i = 0; i < atoi(argv[3]); i++)
			printf(" descend");
		puts(" main");
		descend(atoi(argv[3]));
	} else if (!strcmp(scene, "library") && argc > 3) {
		void *library = dlopen(argv[3], RTLD_NOW);
		void (*enter)(void (*)(void)) = library ? dlsym(library, "library_entry") : 0;
		if (!enter)
			return 1;
		puts("innermost library_helper library_entry main");
		enter(innermost);
	} else if (!strcmp(scene, "made")) {
		puts("innermost made_function run_made_code main");
		run_made_code("/tmp/perf-%d.map", write_map);
	} else if (!strcmp(scene, "dumped")) {
		puts("innermost made_function run_made_code main");
		run_made_code("/tmp/jit-%d.dump", write_dump);
	} else if (!strcmp(scene, "alloca")) {
		puts("innermost of_any_size rounded main");
		rounded();
	} else {
		fputs("chain SCENE TAG ...\n", stderr);
		return 2;
	}
	return returned == 42;
}
