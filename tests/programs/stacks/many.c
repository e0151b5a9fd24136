/*
 * many THREADS ROUNDS: THREADS threads open and close a file ROUNDS times at full speed; with 0 rounds slowly, until
 * the program is killed.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static volatile int returned;
static int rounds;

static __attribute__((noinline, noclone)) int open_and_close(void)
{
	int fd = open("/dev/null", O_RDONLY);

	/* The statement after it keeps close from becoming a tail call. */
	returned |= close(fd);
	return fd < 0;
}

static void *work(void *unused)
{
	for (int i = 0; i < rounds || !rounds; i++) {
		returned |= open_and_close();
		if (!rounds)
			usleep(2000);
	}
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t threads[16];
	int count = argc > 2 ? atoi(argv[1]) : 0;

	if (count < 1 || count > 16)
		return 2;
	rounds = atoi(argv[2]);
	for (int i = 0; i < count; i++)
		pthread_create(&threads[i], 0, work, 0);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], 0);
	return returned != 0;
}
