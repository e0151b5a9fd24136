/* The library that chain.c loads. */
static volatile int returned;

static __attribute__((noinline, noclone)) void library_helper(void (*what)(void))
{
	what();
	returned++;
}

void library_entry(void (*what)(void))
{
	library_helper(what);
	returned++;
}
