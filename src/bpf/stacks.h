/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How much of the caller's stack goes with a call's record.
 *
 * The kernel copies registers and stack by itself, as much as the event asks for that the record is written to. So there are several events on each CPU, which share its ring, and the program takes the
 * smallest one that holds the stack: from where it is now up to where it began.
 */
#pragma once

#include "members.h"

/* Who seems to be deeper in his stack is on another one. */
#define DEPTH_ODD (8 << 20)

static __always_inline u64 stack_pointer(struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

	return regs->sp;
}

/* How many bytes the caller's stack has; 0 if that is not known. */
static __always_inline u64 depth(struct task_struct *current, struct task *task)
{
	u64 top = task->stack_top;

	/* That of a process's first thread begins where the kernel put it when the program was executed. */
	if (!top && current->pid == current->tgid)
		top = BPF_CORE_READ(current, mm, start_stack);
	u64 depth = top - stack_pointer(current);
	return depth < DEPTH_ODD ? depth : 0;
}

/* The place in `output` of the event that a call's record goes to, on this CPU. */
static __always_inline u64 event_for(struct task_struct *current, struct task *task)
{
	const volatile struct plan *plan = plan_at(task->place);
	u32 kind = plan->stack;

	if (!kind)
		return BPF_F_CURRENT_CPU;
	if (kind < plan->stack_last) {
		u64 bytes = depth(current, task);
		if (!bytes)
			kind = plan->stack_usual;
		for (u32 i = 0; i < STACKS_FITTED; i++) {
			if (kind >= plan->stack_last || stack_bytes[kind & (STACKS_MAX - 1)] >= bytes)
				break;
			kind++;
		}
	}
	return kind * settings.cpus + bpf_get_smp_processor_id();
}
