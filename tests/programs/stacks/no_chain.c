/*
 * A call with another value in the frame pointer register, as in programs that are compiled without frame pointers: it
 * points to text where a return address would be. (x86-64)
 */
#include <sys/syscall.h>

struct link {
	struct link *next;
	unsigned long return_address;
};

int main(void)
{
	struct link last = { 0, 0x656d616e74 }, first = { &last, 0x656d616e74 };
	long number = SYS_lseek;

	__asm__ volatile("push %%rbp\n\tmov %1, %%rbp\n\tsyscall\n\tpop %%rbp"
			 : "+a"(number)
			 : "r"(&first), "D"(-1L), "S"(4711L), "d"(9L)
			 : "rcx", "r11", "memory");
	return 0;
}
