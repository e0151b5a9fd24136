/* Functions to be probed. The program, a child, a thread, and a child that executes the program again call them, and
 * print how often. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) int handle(const char *text, int number)
{
	asm volatile("" ::"r"(text) : "memory");
	return number * 2;
}

/* A probe here is also hit by the return of handle(). */
__attribute__((noinline)) int middle(const char *text, int number)
{
	int twice = handle(text, number);
	asm volatile("" : "+r"(twice));
	return twice;
}

static void *thread(void *unused)
{
	handle("thread", 3);
	return unused;
}

static int rounds[2], done[2];

static void *waiting(void *unused)
{
	int round;
	printf("ready %d\n", gettid());
	fflush(stdout);
	while (read(rounds[0], &round, sizeof(round)) > 0) {
		handle("thread", round);
		if (write(done[1], "", 1) != 1)
			break;
	}
	return unused;
}

/* Makes a round of calls for each byte of stdin: in the first thread, in an older thread, which first prints its
 * tid, and in a new child. */
static int serve(void)
{
	pthread_t made;
	char byte;
	if (pipe(rounds) != 0 || pipe(done) != 0 || pthread_create(&made, NULL, waiting, NULL) != 0)
		return 1;
	for (int round = 1; read(0, &byte, 1) == 1; round++) {
		handle("main", round);
		if (write(rounds[1], &round, sizeof(round)) < 0 || read(done[0], &byte, 1) != 1)
			return 1;
		if (fork() == 0) {
			handle("child", round);
			_exit(0);
		}
		wait(NULL);
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "serve") == 0)
		return serve();
	int times = argc > 1 ? atoi(argv[1]) : 0;
	if (times > 0) {
		for (int i = 1; i <= times; i++)
			handle("again", i);
		printf("issued handle %d\n", times);
		fflush(stdout);
		if (argc > 2)
			sleep(atoi(argv[2]));
		return 0;
	}
	middle("first", 1);
	if (fork() == 0) {
		handle("child", 2);
		_exit(0);
	}
	wait(NULL);
	pthread_t made;
	pthread_create(&made, NULL, thread, NULL);
	pthread_join(made, NULL);
	if (fork() == 0) {
		execl(argv[0], argv[0], "1", NULL);
		_exit(1);
	}
	wait(NULL);
	handle(NULL, 5);
	return 0;
}
