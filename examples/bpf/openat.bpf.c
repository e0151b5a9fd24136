/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shows the file name and the result of every openat: rtrace -e openat.bpf.c CMD
 *
 * The name is read at the exit of the call. At its entry, the page of the name may not be in memory yet, and a BPF
 * program cannot read it then.
 */
#include <rtrace.bpf.h>

struct opened {
	char filename[256];
	long ret;
};
RTRACE_EVENT(opened);

/* The addresses of the names in calls that have not returned yet, by thread ID. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 10240);
	__type(key, __u32);
	__type(value, const char *);
} names SEC(".maps");

SEC("tp/syscalls/sys_enter_openat")
int enter(struct rtrace_enter *call)
{
	__u32 thread = bpf_get_current_pid_tgid();
	const char *name = (const char *)call->args[1];

	bpf_map_update_elem(&names, &thread, &name, BPF_ANY);
	return 0;
}

SEC("tp/syscalls/sys_exit_openat")
int leave(struct rtrace_exit *call)
{
	__u32 thread = bpf_get_current_pid_tgid();
	const char **name = bpf_map_lookup_elem(&names, &thread);
	struct opened record = { .ret = call->ret };

	if (!name)
		return 0;
	bpf_probe_read_user_str(record.filename, sizeof(record.filename), *name);
	bpf_map_delete_elem(&names, &thread);
	rtrace_give(call, opened, &record);
	return 0;
}

RTRACE_LICENSE("Dual BSD/GPL");
