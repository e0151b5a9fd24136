/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Checks whether a task is the caller's own, where rtrace was lent its privileges (src/sys/file_capabilities.rs).
 *
 * The answer is that of __ptrace_may_access() in kernel/ptrace.c for a tracer without capabilities, but slightly
 * stricter: all user and group ids of the task are the caller's, the task is in the first user namespace and has no
 * permitted capability, and its memory may be read by its owner (it is dumpable). The check is made at each call,
 * because a program that the task executes may have more rights than the one before.
 */
#pragma once

#include "kernel.h"
#include "plan.h"

/*
 * include/linux/mm_types.h (linux/sched/coredump.h before 6.17): the lowest bits of a memory's flags, and their value
 * if the owner may read the memory.
 */
#define DUMPABLE_MASK 3
#define DUMPABLE_BY_OWNER 1

/*
 * Returns whether a task's memory may be read by its owner. `memory` is the address of a struct mm_struct, or of a
 * struct task_exec_state where that exists.
 */
static __always_inline int is_readable_by_owner(u64 memory)
{
	u64 flags = 0;
	u64 at;

	if (bpf_core_field_exists(struct task_struct, exec_state))
		return BPF_CORE_READ((struct task_exec_state *)memory, dumpable) == TASK_DUMPABLE_OWNER;
	if (bpf_core_field_exists(struct mm_struct, flags))
		at = memory + bpf_core_field_offset(struct mm_struct, flags);
	else if (bpf_core_field_exists(struct mm_struct___words, flags))
		at = memory + bpf_core_field_offset(struct mm_struct___words, flags);
	else
		return 0;
	return !bpf_probe_read_kernel(&flags, sizeof(flags), (void *)at) && (flags & DUMPABLE_MASK) == DUMPABLE_BY_OWNER;
}

/* A global function, because stacks are small. A task whose credentials cannot be read is not the caller's. */
__noinline int is_callers_own(u64 address, u64 memory)
{
	struct cred *cred = (struct cred *)address;
	u64 capabilities = 1;

	if (!address || !memory)
		return 0;
	if (BPF_CORE_READ(cred, uid.val) != settings.user || BPF_CORE_READ(cred, euid.val) != settings.user ||
	    BPF_CORE_READ(cred, suid.val) != settings.user)
		return 0;
	if (BPF_CORE_READ(cred, gid.val) != settings.group || BPF_CORE_READ(cred, egid.val) != settings.group ||
	    BPF_CORE_READ(cred, sgid.val) != settings.group)
		return 0;
	void *permitted = (void *)(address + bpf_core_field_offset(struct cred, cap_permitted));
	if (bpf_probe_read_kernel(&capabilities, sizeof(capabilities), permitted) || capabilities)
		return 0;
	if (BPF_CORE_READ(cred, user_ns, level))
		return 0;
	return is_readable_by_owner(memory);
}

/* Returns whether the calls of this task may be shown. */
static __always_inline int may_be_shown(struct task_struct *task)
{
	if (!settings.own_only)
		return 1;
	u64 cred = (u64)BPF_CORE_READ(task, real_cred);
	u64 memory = bpf_core_field_exists(struct task_struct, exec_state) ? (u64)BPF_CORE_READ(task, exec_state) : (u64)BPF_CORE_READ(task, mm);
	return is_callers_own(cred, memory);
}
