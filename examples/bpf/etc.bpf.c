/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Only what is opened below /etc: rtrace -e etc.bpf.c CMD
 *
 * What the program returns decides whether its event is shown. The event has the fields that the section names. (A name whose memory is not there yet when the call begins is not seen:
 * openat.bpf.c shows how to look when it ends.)
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
