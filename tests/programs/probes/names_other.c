// See names.c.

__attribute__((noinline)) static int twin(int number) { return number * 5; }

__attribute__((noinline)) static int widely_seen(int number) { return number * 7; }

int others(int number) { return twin(number) + widely_seen(number); }
