/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shows calls that sleep for more than 1000 ns: rtrace -e nanosleep.bpf.c CMD
 *
 * The fields are read from the traced program's memory, to which the argument of the call points.
 */
#include <rtrace.bpf.h>

struct time {
	__s64 seconds;
	__s64 nanoseconds;
};

static __always_inline int is_long(const void *from)
{
	struct time time;

	if (bpf_probe_read_user(&time, sizeof(time), from))
		return 0;
	return time.seconds > 0 || time.nanoseconds > 1000;
}

SEC("tp/syscalls/sys_enter_nanosleep seconds=+u0(rqtp):s64 nanoseconds=+u8(rqtp):s64")
int nanosleep(struct rtrace_enter *call)
{
	return is_long((const void *)call->args[0]);
}

SEC("tp/syscalls/sys_enter_clock_nanosleep which_clock flags seconds=+u0(rqtp):s64 nanoseconds=+u8(rqtp):s64")
int clock_nanosleep(struct rtrace_enter *call)
{
	return is_long((const void *)call->args[2]);
}

RTRACE_LICENSE("Dual BSD/GPL");
