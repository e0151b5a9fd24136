/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The iterators over all tasks: they give existing tasks their state, and list living tasks and calls in flight.
 */
#pragma once

#include "calls.h"
#include "list_stacks.h"

SEC("iter/task")
int seed(struct bpf_iter__task *ctx)
{
	struct task_struct *found = ctx->task;

	if (!found)
		return 0;
	u64 task_key = (u32)number_of_task(found), process_key = SEED_PROCESS | (u32)number_of_process(found);
	u32 *mode = bpf_map_lookup_elem(&seeds, &task_key);
	if (!mode)
		mode = bpf_map_lookup_elem(&seeds, &process_key);
	if (settings.hooks == HOOKS_OWN && (mode || settings.scope != SCOPE_TASKS) && is_compat(found))
		COUNT(compat);
	if (!mode || settings.scope != SCOPE_TASKS)
		return 0;
	struct task *task = bpf_task_storage_get(&tasks, found, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	/*
	 * The reader iterates again if anything is listed: tasks without memory for their state (negative numbers), or
	 * tasks that other tasks may have created before these had their state.
	 */
	s32 listed_tid = number_of_task(found);
	if (!task)
		listed_tid = -listed_tid;
	else if (task->mode != MODE_UNKNOWN)
		return 0;
	else
		task->mode = *mode;
	bpf_seq_write(ctx->meta->seq, &listed_tid, sizeof(listed_tid));
	return 0;
}

/* Lists the traced tasks that are alive. */
SEC("iter/task")
int living(struct bpf_iter__task *ctx)
{
	struct task_struct *found = ctx->task;

	if (!found || found->exit_state)
		return 0;
	struct task *task = bpf_task_storage_get(&tasks, found, 0, 0);
	if (!task || task->mode != MODE_TRACED)
		return 0;
	s32 tid = number_of_task(found);
	bpf_seq_write(ctx->meta->seq, &tid, sizeof(tid));
	return 0;
}

/*
 * Writes a task's open call to the list. The call may end meanwhile: the last word says whether it did not. With `last`
 * the call is taken from the task, so that it is written either here or at the task's end.
 */
static __always_inline int list_call(struct seq_file *seq, struct listed *head, struct task *task, struct call *call, u64 payload, int last)
{
	u32 open = task->open;
	u64 start = call->start;

	if (bpf_seq_write(seq, head, sizeof(*head)) || bpf_seq_write(seq, call, sizeof(*call) + payload))
		return -1;
	barrier();
	u64 unchanged = open && call->start == start;
	if (unchanged && last)
		unchanged = __sync_val_compare_and_swap(&task->open, open, OPEN_NONE) == open;
	else if (task->open != open)
		unchanged = 0;
	if (!bpf_seq_write(seq, &unchanged, sizeof(unchanged)))
		return 0;
	if (last && unchanged)
		task->open = open;
	return -1;
}

/*
 * Lists a task's open call if it has been in flight for at least `min_age` ns and was not listed before. With `last`,
 * it lists the call in any case and takes it from the task.
 */
static __always_inline int list(struct bpf_iter__task *ctx, u64 min_age, int last)
{
	struct task_struct *found = ctx->task;

	if (!found)
		return 0;
	struct task *task = bpf_task_storage_get(&tasks, found, 0, 0);
	if (!task || !task->open || task->open == OPEN_EXCLUDED)
		return 0;
	struct scratch *scratch = 0;
	if (!settings.sums && task->open == OPEN_IN_SCRATCH) {
		scratch = bpf_task_storage_get(&scratches, found, 0, 0);
		if (!scratch)
			return 0;
	}
	struct listed head = { .time = bpf_ktime_get_ns(), .pid = number_of_process(found), .tid = number_of_task(found) };
	struct call *call = scratch ? &scratch->call : &task->call;
	u64 start = call->start;
	int shown = task->listed == start;
	/* Each snapshot has all calls in flight. */
	if (!last && !settings.epoch_bytes && (start + min_age > head.time || shown))
		return 0;
	if (last && shown)
		call->bits |= CALL_SHOWN;
	struct seq_file *seq = ctx->meta->seq;
	int failed = scratch ? list_call(seq, &head, task, &scratch->call, payload_of(scratch), last) : list_call(seq, &head, task, &task->call, 0, last);
	/* If there is no room, the kernel calls the program again for the same task with more room. */
	if (!failed && !settings.epoch_bytes)
		task->listed = start;
	return 0;
}

/*
 * Lists the exit call that a task was in when tracing began. Whether the task has already passed sched_process_exit
 * cannot be determined, and it may stay after that for long: the first process of a pid namespace waits there for all
 * others of the namespace. Therefore the call is not opened; this entry of the list is its only record.
 */
static __always_inline void list_ending(struct seq_file *seq, struct task_struct *found, struct which *which, struct pt_regs *regs)
{
	struct call call = {};
	u64 unchanged = 1;

	begin(&call, found, which, regs);
	call.how = HOW_NEVER;
	call.bits |= CALL_NO_ENTRY;
	struct listed head = { .time = call.start, .pid = call.pid, .tid = call.tid };
	/* If there is no room, the kernel calls the program again for the same task with more room. */
	if (!bpf_seq_write(seq, &head, sizeof(head)) && !bpf_seq_write(seq, &call, sizeof(call)) &&
	    !bpf_seq_write(seq, &unchanged, sizeof(unchanged)))
		COUNT(calls);
}

/*
 * Lists the calls that were in flight when tracing began, if their tasks sleep: a running task may be about to return.
 * These calls have no entry. At this time their returns are traced already, but the next entries of their tasks are not
 * yet.
 */
SEC("iter/task")
int list_begun(struct bpf_iter__task *ctx)
{
	struct task_struct *found = ctx->task;

	if (!found)
		return 0;
	u64 switches = found->nvcsw;
	barrier();
	if (!is_asleep(found))
		return 0;
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(found);
	if (!is_in_call(regs))
		return 0;
	struct which which = which_call(found, number_at_exit(regs));
	if (!(plan_at(which.place)->flags & PLAN_WANTED))
		return 0;
	struct task *task = sleeper(found);
	if (!task || task->open || task->mode != MODE_TRACED || !may_be_shown(found))
		return 0;
	if (is_ending(found)) {
		list_ending(ctx->meta->seq, found, &which, regs);
		return 0;
	}
	begin(&task->call, found, &which, regs);
	task->call.bits |= CALL_NO_ENTRY;
	task->place = which.place;
	struct listed head = { .time = task->call.start, .pid = number_of_process(found), .tid = number_of_task(found) };
	__sync_lock_test_and_set(&task->open, OPEN_BEGUN);
	/* If the task was woken meanwhile, the record of its return may have been written already. */
	u32 next = found->nvcsw == switches && is_asleep(found) && !is_ending(found) ? OPEN_IN_TASK : OPEN_NONE;
	u32 was = __sync_val_compare_and_swap(&task->open, OPEN_BEGUN, next);
	if (was == OPEN_BEGUN && next == OPEN_NONE)
		return 0;
	COUNT(calls);
	/* The call returned just now, and its record was written. */
	if (was != OPEN_BEGUN)
		return 0;
	/* If there is no room, the next iteration lists it. */
	if (!list_call(ctx->meta->seq, &head, task, &task->call, 0, 0) && !settings.epoch_bytes)
		task->listed = head.time;
	return 0;
}

/* Lists the calls that have been in flight for long, each once. */
SEC("iter/task")
int list_pending(struct bpf_iter__task *ctx)
{
	return list(ctx, settings.pending_after, 0);
}

/* Lists all calls in flight after tracing has stopped. */
SEC("iter/task")
int list_last(struct bpf_iter__task *ctx)
{
	return list(ctx, 0, 1);
}
