/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shows the calls of openat for files below /etc: rtrace -e etc.bpf.c CMD
 *
 * The event is shown if the program returns a value other than 0. It has the fields that the section names. (At the
 * entry of the call, a name cannot be read if its page is not in memory yet. openat.bpf.c reads it at the exit.)
 */
#include <rtrace.bpf.h>

SEC("tp/syscalls/sys_enter_openat filename:ustring flags")
int below_etc(struct rtrace_enter *call)
{
	char begins[5];

	if (bpf_probe_read_user(begins, sizeof(begins), (const void *)call->args[1]))
		return 0;
	return rtrace_begins(begins, "/etc/");
}

RTRACE_LICENSE("Dual BSD/GPL");
