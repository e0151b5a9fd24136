/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Selects how much of the caller's stack goes with a call's record.
 *
 * The kernel copies registers and stack itself, as much as the event requests that the record is written to. Therefore
 * each CPU has several events that share its ring, and the program selects the smallest one that holds the stack from
 * its current pointer to its beginning.
 */
#pragma once

#include "members.h"

/* If the depth seems larger than this, the thread is on another stack. */
#define DEPTH_ODD (8 << 20)

static __always_inline u64 stack_pointer(struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

	return regs->sp;
}

/* Returns the depth of the caller's stack in bytes; 0 if it is not known. */
static __always_inline u64 depth(struct task_struct *current, struct task *task)
{
	u64 top = task->stack_top;

	/* The stack of a process's first thread begins where the kernel put it when the program was executed. */
	if (!top && current->pid == current->tgid)
		top = BPF_CORE_READ(current, mm, start_stack);
	u64 depth = top - stack_pointer(current);
	return depth < DEPTH_ODD ? depth : 0;
}

/* Returns the index in `output` of the event that a record with the stack of a plan is written to on this CPU. */
static __always_inline u64 event_of(const volatile struct plan *plan, struct task_struct *current, struct task *task)
{
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

/* The same for the record of the task's call. */
static __always_inline u64 event_for(struct task_struct *current, struct task *task)
{
	return event_of(plan_at(task->place), current, task);
}
