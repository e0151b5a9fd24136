/*
 * Two deadlocked threads: each holds the mutex that the other one locks. Prints "stuck" when both are about to wait.
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;

__attribute__((noinline)) static void take_second(void)
{
	pthread_mutex_lock(&second);
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void take_first(void)
{
	pthread_mutex_lock(&first);
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void *first_then_second(void *unused)
{
	take_first();
	pthread_barrier_wait(&both);
	take_second();
	return unused;
}

__attribute__((noinline)) static void *second_then_first(void *unused)
{
	take_second();
	pthread_barrier_wait(&both);
	take_first();
	return unused;
}

int main(void)
{
	pthread_t one, other;

	pthread_barrier_init(&both, 0, 3);
	pthread_create(&one, 0, first_then_second, 0);
	pthread_create(&other, 0, second_then_first, 0);
	pthread_barrier_wait(&both);
	puts("stuck");
	fflush(stdout);
	pthread_join(one, 0);
	return 0;
}
