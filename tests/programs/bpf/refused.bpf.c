/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The program does not check whether its lookup found anything, so the verifier refuses it. */
#include <rtrace.bpf.h>

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} numbers SEC(".maps");

SEC("tp/syscalls/sys_enter_getppid")
int careless(struct rtrace_enter *call)
{
	__u32 key = 0;

	return *(__u64 *)bpf_map_lookup_elem(&numbers, &key);
}

RTRACE_LICENSE("GPL");
