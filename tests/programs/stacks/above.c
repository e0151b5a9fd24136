/*
 * A call from a function without unwind table, with a value in the frame pointer register that points above the stack.
 * It is to be compiled with -fno-asynchronous-unwind-tables. (x86-64)
 */
#include <sys/auxv.h>
#include <sys/syscall.h>

int main(void)
{
	/* The program's name is the last thing on the stack. */
	unsigned long above = (getauxval(AT_EXECFN) + 0x4000) & ~15UL;
	long number = SYS_lseek;

	__asm__ volatile("push %%rbp\n\tmov %1, %%rbp\n\tsyscall\n\tpop %%rbp"
			 : "+a"(number)
			 : "r"(above), "D"(-1L), "S"(4711L), "d"(9L)
			 : "rcx", "r11", "memory");
	return 0;
}
