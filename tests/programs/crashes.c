/* Handles a signal, and crashes. */
#include <signal.h>
#include <unistd.h>

static void handler(int signal)
{
	(void)signal;
	write(1, "", 1);
}

__attribute__((noinline)) static void handles(void)
{
	raise(SIGUSR1);
	__asm__ volatile("");
}

__attribute__((noinline)) static void crashes(volatile int *at)
{
	*at = 1;
	__asm__ volatile("");
}

int main(void)
{
	signal(SIGUSR1, handler);
	handles();
	crashes((volatile int *)8);
	return 0;
}
