/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Programs on functions of the kernel, which not every kernel allows to be probed. */
#include <rtrace.bpf.h>

SEC("kprobe/do_sys_openat2 dfd=arg1:s32 filename=arg2:ustring")
int opens(void *registers)
{
	return 1;
}

SEC("kretprobe/do_sys_openat2 ret:s32")
int opened(void *registers)
{
	return 1;
}

SEC("fexit/do_sys_openat2 filename:ustring ret")
int open_with_result(unsigned long *args)
{
	return 1;
}

RTRACE_LICENSE("GPL");
