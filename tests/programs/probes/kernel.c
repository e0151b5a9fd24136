// Takes the place of the kernel's own file: it has the kernel's addresses, similar symbols, and code that is never
// executed.

struct filename {
    const char *name;
    int refcnt;
};

struct filename shared_name;

#define NOINLINE __attribute__((noinline, noclone))

asm(".text\n.globl _text\n_text: nop\n");

NOINLINE int length(const char *text) {
    int count = 0;
    while (text[count]) {
        count++; // the line "count"
        asm volatile("" ::: "memory");
    }
    return count;
}

NOINLINE struct filename *getname_flags(const char *filename, int flags) {
    struct filename *result = &shared_name;
    int count = length(filename);
    asm volatile("nop" : "+r"(result), "+r"(count));
    result->refcnt = count + flags; // the line "result"
    return result;
}

// names_other.c has another function of this name.
static NOINLINE int twin(int number) {
    asm volatile("nop" : "+r"(number)); // the line "twin"
    return number + 1;
}

void _start(void) { twin(getname_flags("", 0)->refcnt); }
