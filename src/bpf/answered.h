/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Calls that rtrace's supervisor answered (--inject), which have an exit and no entry.
 */
#pragma once

#include "calls.h"

/*
 * Begins a call that has no entry at its exit, so that the program after this one completes it as any other call. It is
 * a call that rtrace's supervisor has answered. Its memory is as it was at its entry, since the kernel did not execute
 * it. (The combined stack of the programs does not suffice to do both in one.)
 */
static __always_inline void answered(void *ctx, struct pt_regs *regs, s64 ret)
{
	struct task_struct *current = bpf_get_current_task_btf();
	s32 raw_nr = number_at_exit(regs);
	struct which which = which_call(current, raw_nr);
	u32 flags = plan_at(which.place)->flags;

	if (!(flags & PLAN_WANTED) || flags & PLAN_NEVER_RETURNS || raw_nr == -1 || !is_traced_here(which.abi))
		return;
	struct task *task = caller(current, 0);
	if (!task || task->open || task->mode == MODE_SET_UP || !may_be_shown(current))
		return;
	/* The exit of a clone in the new task, and that of an execve, have no entry either. */
	int second_return = task->fresh && flags & PLAN_CLONES && ret == 0;
	task->fresh = 0;
	if (second_return || (flags & PLAN_EXECUTES && ret >= 0))
		return;
	COUNT(calls);
	task->executed = 0;
	u32 place = chosen_place(&which, regs);
	task->place = place;
	struct scratch *scratch = bpf_task_storage_get(&scratches, current, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	u32 open = OPEN_IN_TASK;
	if (scratch) {
		begin(&scratch->call, current, &which, regs);
		scratch->call.bits |= CALL_NO_ENTRY;
		capture_at_entry(scratch, place);
		emit_parts(ctx, scratch, WHEN_ENTRY);
		open = OPEN_IN_SCRATCH;
	} else {
		COUNT(scratch_lost);
		begin(&task->call, current, &which, regs);
		task->call.bits |= CALL_NO_ENTRY;
	}
	barrier();
	task->open = open;
}

SEC("tp_btf/sys_exit")
int answer(u64 *ctx)
{
	answered(ctx, (struct pt_regs *)ctx[0], ctx[1]);
	return 0;
}

SEC("?tp/raw_syscalls/sys_exit")
int answer_event(struct syscall_event *ctx)
{
	if (!is_over)
		answered(ctx, (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf()), ctx->ret);
	return 1;
}
