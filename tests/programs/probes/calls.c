/* Functions that probes are set on, called a number of times that is printed: by the program, a child, a thread and a child that executes the program again. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) int handle(const char *text, int number)
{
	asm volatile("" ::"r"(text) : "memory");
	return number * 2;
}

/* A probe here is seen at the return of handle() too. */
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

int main(int argc, char **argv)
{
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
