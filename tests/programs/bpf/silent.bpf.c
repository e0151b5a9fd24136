/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The program always returns 0, so its own event has no record. */
#include <rtrace.bpf.h>

SEC("tp/syscalls/sys_enter_getppid")
int never(struct rtrace_enter *call)
{
	return 0;
}

RTRACE_LICENSE("GPL");
