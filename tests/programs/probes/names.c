// Functions with the same names as those of names_other.c: a probe's symbol may mean either.
#include <stdio.h>

int shared_counter;

int others(int number);

__attribute__((noinline)) int handle_request(int number) { return number * 3; }

__attribute__((noinline)) static int twin(int number) { return number + 1; }

__attribute__((noinline)) int widely_seen(int number) { return number + 2; }

static int chosen(int number) { return number; }
static int (*choose(void))(int) { return chosen; }
int chooser(int) __attribute__((ifunc("choose")));

int main(int count, char **words) {
    (void)words;
    shared_counter = handle_request(count) + twin(count) + widely_seen(count) + chooser(count) + others(count);
    printf("%d\n", shared_counter);
    return 0;
}
