/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Translates the numbers of tasks in a call whose caller is in a pid namespace below rtrace's own: a task has another
 * number in each namespace, and user space cannot ask for the translation later, when the task may be gone.
 */
#pragma once

#include "pieces.h"
#include "numbers.h"

/*
 * A namespace keeps its numbers in an IDR (include/linux/idr.h), a tree of nodes with 64 slots, or 16 on small systems.
 * Numbers have at most 22 bits (PID_MAX_LIMIT in include/linux/threads.h), so six levels are enough for either.
 */
#define IDR_LEVELS_MAX 6
#define IDR_SLOTS (bpf_core_field_size(struct xa_node, slots) / sizeof(void *))
/* The lowest two bits of an entry tell what it is: 10 is a node, 00 a pointer to what is kept (lib/radix-tree.c). */
#define IDR_ENTRY 3
#define IDR_NODE 2

/* Finds the struct pid that is called `number` in the namespace of the task with the struct pid `own`, as find_pid_ns() in kernel/pid.c does. Returns 0 if there is none. */
__noinline u64 pid_called(u64 own, u32 number)
{
	u64 level = level_of(own), namespace, entry;

	if (bpf_probe_read_kernel(&namespace, sizeof(namespace), (void *)(upid_at(own, level) + UPID_NAMESPACE)))
		return 0;
	if (bpf_probe_read_kernel(&entry, sizeof(entry), (void *)(namespace + bpf_core_field_offset(struct pid_namespace, idr.idr_rt.xa_head))))
		return 0;
	for (u32 i = 0; i < IDR_LEVELS_MAX && (entry & IDR_ENTRY) == IDR_NODE; i++) {
		u64 node = entry - IDR_NODE;
		u8 shift;
		if (bpf_probe_read_kernel(&shift, sizeof(shift), (void *)(node + bpf_core_field_offset(struct xa_node, shift))))
			return 0;
		u64 slot = number >> (shift & 31);
		/* The tree is only as deep as its largest number needs. */
		if (i == 0 && slot >= IDR_SLOTS)
			return 0;
		u64 place = node + bpf_core_field_offset(struct xa_node, slots) + (slot & (IDR_SLOTS - 1)) * sizeof(entry);
		if (bpf_probe_read_kernel(&entry, sizeof(entry), (void *)place))
			return 0;
	}
	if (!entry || entry & IDR_ENTRY)
		return 0;
	/* The memory may have become something else on the way. */
	s32 found;
	if (bpf_probe_read_kernel(&found, sizeof(found), (void *)upid_at(entry, level)) || (u32)found != number)
		return 0;
	return entry;
}

/* Adds what a number of the caller's namespace is in rtrace's own, unless nobody has it. */
__noinline int add_number(struct scratch *scratch, s32 number, u32 arg)
{
	u64 own;

	if (!scratch || number <= 0)
		return 0;
	struct task_struct *current = bpf_get_current_task_btf();
	if (bpf_probe_read_kernel(&own, sizeof(own), &current->thread_pid))
		return 0;
	u64 pid = pid_called(own, number);
	s32 here = pid ? number_here(pid) : 0;
	return here ? describe_empty(scratch, number, here, TAG(ARG_NUMBER | arg, WHEN_ENTRY), PIECE_WHOLE) : 0;
}
