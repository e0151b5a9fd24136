/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The programs that follow tasks: new tasks, executed programs, and ends of tasks.
 */
#pragma once

#include "calls.h"
#include "requests.h"

/* Makes a new task traced if its parent is. */
static __always_inline void inherit(struct task_struct *parent, struct task_struct *child)
{
	struct task *task = bpf_task_storage_get(&tasks, parent, 0, 0);

	if (!settings.inherit || !task || task->mode != MODE_TRACED)
		return;
	task = bpf_task_storage_get(&tasks, child, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!task) {
		COUNT(tasks_lost);
		return;
	}
	task->mode = MODE_TRACED;
	task->fresh = 1;
	if (settings.cpus && child->tgid == parent->tgid)
		task->stack_top = stack_pointer(child);
}

SEC("tp_btf/sched_process_fork")
int forked(u64 *ctx)
{
	inherit((struct task_struct *)ctx[0], (struct task_struct *)ctx[1]);
	return 0;
}

/*
 * For kernels that may preempt programs on raw tracepoints: at this tracepoint interrupts are off, and the parent has
 * not yet let its child run.
 */
SEC("?tp_btf/sched_wakeup_new")
int awoken(u64 *ctx)
{
	inherit(bpf_get_current_task_btf(), (struct task_struct *)ctx[0]);
	return 0;
}

/*
 * Copies the arguments that could not be read at entry (a child of fork has not touched its program's constants) from
 * the new program, which has the same ones.
 */
static __always_inline void copy_new_arguments(struct scratch *scratch, u64 mm)
{
	u64 now = MEMBER(mm_struct, mm, arg_start);

	for (u32 i = 0; i < STRINGS_MAX; i++) {
		u64 bytes = copy_moved(scratch, now, i, settings.string_limit);
		if (!bytes)
			break;
		now += bytes;
	}
}

/*
 * Copies a path that could not be read at entry: its memory is gone, but the kernel has a copy. (Its copy of execveat's
 * path has another form.)
 */
static __always_inline void copy_kernel_path(struct task_struct *current, struct task *task, struct linux_binprm *binary)
{
	struct scratch *scratch = bpf_task_storage_get(&scratches, current, 0, 0);

	if (!scratch)
		return;
	u64 path = number_of(&scratch->walk, MEMBER(linux_binprm, binary, filename));
	if (scratch->retry & 1 && plan_at(task->place)->ops[0].arg == 0 &&
	    !add_kernel_string(scratch, scratch->call.args[0], path, TAG(0, WHEN_RETRY)))
		scratch->retry &= ~1;
	/* The interpreter of a script gets other arguments. */
	if (scratch->unread && path == number_of(&scratch->walk, MEMBER(linux_binprm, binary, interp)))
		copy_new_arguments(scratch, number_of(&scratch->walk, MEMBER(task_struct, current, mm)));
}

/*
 * Writes the record of the open call if it executed the program. This is for events of single syscalls: the return may
 * have the number of another call or belong to another ABI, whose events are not traced.
 */
static __always_inline void emit_executed(void *ctx, struct task_struct *current, struct task *task, u32 open)
{
	struct scratch *scratch = open == OPEN_IN_SCRATCH ? bpf_task_storage_get(&scratches, current, 0, 0) : 0;
	struct call *call = scratch ? &scratch->call : &task->call;

	if (!open || !(plan_at(task->place)->flags & PLAN_EXECUTES))
		return;
	task->open = OPEN_NONE;
	task->executed = 1;
	barrier();
	complete(task, call, call->nr, 0);
	if (!scratch) {
		write_call(ctx, current, task, &task->call, 0, UNSTACKED);
		return;
	}
	give_up_retries(scratch, task->place);
	write_scratch(ctx, current, task, scratch, UNSTACKED);
}

SEC("tp_btf/sched_process_exec")
int executed(u64 *ctx)
{
	struct task_struct *current = (struct task_struct *)ctx[0];
	struct linux_binprm *binary = (struct linux_binprm *)ctx[2];
	struct task *task = bpf_task_storage_get(&tasks, current, 0, 0);

	if (settings.hooks == HOOKS_OWN && (task || settings.scope != SCOPE_TASKS) && is_compat(current))
		COUNT(compat);
	if (!task)
		return 0;
	if (task->mode == MODE_SET_UP)
		task->mode = MODE_TRACED;
	u32 open = task->open;
	/* A thread other than the leader executes a program and becomes the leader. */
	if (settings.sums && (s32)ctx[1] != current->pid)
		emit_aggregate_of(ctx, current);
	if (!settings.sums && open == OPEN_IN_SCRATCH && may_be_shown(current))
		copy_kernel_path(current, task, binary);
	if (settings.hooks == HOOKS_OWN)
		emit_executed(ctx, current, task, open);
	return 0;
}

/* Writes how a task ended. */
static __always_inline void emit_end(void *ctx, struct task_struct *current, struct call *call)
{
	call->how = HOW_TASK_END;
	call->payload = 0;
	call->bits = 0;
	call->tid = number_of_task(current);
	call->pid = number_of_process(current);
	call->time = bpf_ktime_get_ns();
	call->ret = current->exit_code;
	if (put_record(ctx, BPF_F_CURRENT_CPU, call, sizeof(*call)))
		COUNT(ends_lost);
}

/* Writes the end of a thread that the kernel has created in a traced process. Such threads make no calls. */
static __always_inline void end_of_worker(void *ctx, struct task_struct *current)
{
	struct call call = {};

	if (!(current->flags & (PF_IO_WORKER | PF_USER_WORKER)) || !settings.ends)
		return;
	struct task *process = bpf_task_storage_get(&tasks, current->group_leader, 0, 0);
	if (process && process->mode == MODE_TRACED)
		emit_end(ctx, current, &call);
}

/* Handles the end of a task: writes its open call, its aggregate, and how it ended. */
static __always_inline void end(void *ctx)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct task *task = bpf_task_storage_get(&tasks, current, 0, 0);

	if (!task) {
		end_of_worker(ctx, current);
		return;
	}
	/* The last iteration over all tasks may take the call at the same time. */
	u32 open = __sync_lock_test_and_set(&task->open, OPEN_NONE);
	if (open == OPEN_BEGUN)
		emit_open(ctx, current, task, OPEN_IN_TASK, HOW_NEVER, UNSTACKED);
	else if (open && (!settings.sums || !sum_up_unreturned(ctx, current, task)))
		emit_open(ctx, current, task, open, HOW_NEVER, UNSTACKED);
	if (settings.sums) {
		count_begun(task);
		emit_aggregate_of(ctx, current);
	}
	if (task->mode == MODE_TRACED && settings.ends)
		emit_end(ctx, current, &task->call);
}

SEC("tp_btf/sched_process_exit")
int ended(u64 *ctx)
{
	end(ctx);
	return 0;
}

/* The same at an event whose programs are not preempted, like those on calls. */
SEC("?tp/sched/sched_process_exit")
int ended_event(void *ctx)
{
	if (is_over < ALL_IS_OVER)
		end(ctx);
	return 1;
}
