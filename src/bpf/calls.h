/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The programs at the entry and exit of calls: they pair both in the task's memory and write one record.
 */
#pragma once

#include "aggregate.h"
#include "capture.h"
#include "due_signals.h"
#include "filter.h"
#include "inject.h"
#include "stacks.h"

/* Whether the call's stack goes with its record. */
enum stacked { UNSTACKED, STACKED };

/* Writes a call's record with `payload` bytes of pieces; 0 if there was room for it. */
static __always_inline int write_call(void *ctx, struct task_struct *current, struct task *task, struct call *call, u64 payload, enum stacked stacked)
{
	u64 event = settings.cpus && stacked ? event_for(current, task) : BPF_F_CURRENT_CPU;

	call->lost = task->lost;
	if (call->tid != number_of_task(current))
		call->bits |= CALL_LEADS;
	if (put_record(ctx, event, call, sizeof(*call) + payload)) {
		task->lost++;
		COUNT(calls_lost);
		return -1;
	}
	task->lost = 0;
	if (settings.matches)
		report_match(ctx, task, call);
	return 0;
}

/* Returns the number of bytes of pieces, in a form that the verifier can follow. */
static __always_inline u64 payload_of(struct scratch *scratch)
{
	u64 size = scratch->call.payload;

	barrier_var(size);
	return size < sizeof(scratch->payload) ? size : sizeof(scratch->payload);
}

/*
 * Writes the call in struct scratch with its pieces. If the record is lost, the names of its files must be written
 * again.
 */
static __always_inline void write_scratch(void *ctx, struct task_struct *current, struct task *task, struct scratch *scratch, enum stacked stacked)
{
	if (!write_call(ctx, current, task, &scratch->call, payload_of(scratch), stacked))
		return;
	forget_files(scratch);
}

/* Writes the record of the task's open call, from struct task or struct scratch. */
static __always_inline void emit_open(void *ctx, struct task_struct *current, struct task *task, u32 open, u32 how, enum stacked stacked)
{
	if (open == OPEN_EXCLUDED)
		return;
	if (settings.sums || open == OPEN_IN_TASK) {
		task->call.how = how;
		task->call.time = bpf_ktime_get_ns();
		write_call(ctx, current, task, &task->call, 0, stacked);
		return;
	}
	struct scratch *scratch = bpf_task_storage_get(&scratches, current, 0, 0);
	if (!scratch) {
		COUNT(calls_lost);
		return;
	}
	scratch->call.how = how;
	scratch->call.time = bpf_ktime_get_ns();
	write_scratch(ctx, current, task, scratch, stacked);
}

/* Fills in everything about a call that is known at its entry. */
static __always_inline void begin(struct call *call, struct task_struct *current, struct which *which, struct pt_regs *regs)
{
	call->ret = 0;
	if (!settings.sums)
		arguments(call->args, regs, which->abi);
	/* sigreturn(2) has no arguments. What it restores is on the stack of the caller. */
	if (plan_at(which->place)->flags & PLAN_SIGRETURN)
		call->args[0] = regs->sp;
	call->nr = which->nr;
	call->tid = number_of_task(current);
	call->pid = number_of_process(current);
	call->late = 0;
	call->payload = 0;
	call->how = HOW_PENDING;
	call->bits = which->abi;
	if (!settings.sums && is_nested(current))
		call->bits |= CALL_NESTED;
	call->start = bpf_ktime_get_ns();
}

/* Prepares the decision about a call at its entry: stores what conditions refer to. */
static __always_inline void prepare_decision(struct task *task, struct which *which, struct pt_regs *regs)
{
	arguments(task->call.args, regs, which->abi);
	task->call.nr = which->nr;
	task->call.bits = which->abi;
}

/* Returns whether a filter certainly excludes a call, as far as its entry shows. */
static __always_inline int is_excluded_at_entry(struct task *task)
{
	if (!is_excluded(&task->call, 0))
		return 0;
	COUNT(left_out);
	return 1;
}

/* Writes the stack of a call that will have another stack at its exit, when its record is written. */
static __always_inline void emit_stack(void *ctx, struct task_struct *current, struct task *task, struct call *call)
{
	if (!plan_at(task->place)->stack)
		return;
	u16 payload = call->payload;
	call->payload = 0;
	call->how = HOW_STACK;
	call->time = call->start;
	if (put_record(ctx, event_for(current, task), call, sizeof(*call)))
		COUNT(parts_lost);
	call->payload = payload;
	call->how = HOW_PENDING;
}

/*
 * Writes what is known of a call at its entry. `unread` is not 0 if some memory could not be read, and will be read
 * when the call returns. If the record is lost, only the event at the entry lacks data.
 */
static __always_inline void emit_entry(void *ctx, struct call *call, u64 payload, u64 unread)
{
	call->how = HOW_ENTRY;
	call->ret = unread;
	call->lost = 0;
	/* Records of deferred copies precede this one. */
	call->time = bpf_ktime_get_ns();
	if (put_record(ctx, BPF_F_CURRENT_CPU, call, sizeof(*call) + payload))
		COUNT(parts_lost);
	call->ret = 0;
	call->how = HOW_PENDING;
}

/* Handles the entry of a call. */
static __always_inline void entered(void *ctx, struct pt_regs *regs, s32 nr)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct which which = which_call(current, nr);
	u32 flags = plan_at(which.place)->flags;

	if (!(flags & PLAN_WANTED) || !is_traced_here(which.abi))
		return;
	struct task *task = caller(current, 1);
	if (!task || (task->mode == MODE_SET_UP && !(flags & PLAN_EXECUTES)))
		return;
	if (settings.sends_signals)
		send_due_signal();
	u32 left_open = take_open(task);
	if (left_open)
		emit_open(ctx, current, task, left_open, HOW_UNSEEN, UNSTACKED);
	/*
	 * The command's execve is made by rtrace's own child; of rtrace's memory it shows only what the caller
	 * specified.
	 */
	if (task->mode != MODE_SET_UP && !may_be_shown(current)) {
		COUNT(withheld);
		return;
	}
	if (settings.sums)
		task->begun++;
	else
		COUNT_BEGUN();
	task->executed = 0;
	task->place = which.place;
	/* A call that is answered returns, even if it is an exit. */
	if (settings.injects && choose_effect(task, &which))
		flags &= ~PLAN_NEVER_RETURNS;
	if (settings.filters || settings.matches)
		prepare_decision(task, &which, regs);
	if (settings.matches)
		task->matches = satisfies(&task->call, 0);
	if (settings.filters && is_excluded_at_entry(task)) {
		task->open = flags & PLAN_NEVER_RETURNS ? OPEN_NONE : OPEN_EXCLUDED;
		return;
	}

	u32 place = settings.sums ? which.place : chosen_place(&which, regs);
	const volatile struct plan *plan = plan_at(place);
	task->place = place;
	struct scratch *scratch = 0;
	int translates = (plan->pids && is_nested(current)) || ((plan->uids | plan->gids) && has_own_users(current));
	if (!settings.sums && (plan->ops_count || plan->fds || plan->indirect_fds || plan->flags & PLAN_OPENS || translates)) {
		scratch = bpf_task_storage_get(&scratches, current, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
		if (!scratch)
			COUNT(scratch_lost);
	}
	u32 open;
	if (scratch) {
		begin(&scratch->call, current, &which, regs);
		capture_at_entry(scratch, place);
		emit_parts(ctx, scratch, WHEN_ENTRY);
		open = OPEN_IN_SCRATCH;
	} else {
		begin(&task->call, current, &which, regs);
		open = OPEN_IN_TASK;
	}
	if (flags & PLAN_NEVER_RETURNS) {
		if (!settings.sums || !sum_up_unreturned(ctx, current, task))
			emit_open(ctx, current, task, open, HOW_NEVER, STACKED);
		return;
	}
	if (settings.entries && flags & PLAN_RECORDS_ENTRY) {
		if (scratch)
			emit_entry(ctx, &scratch->call, payload_of(scratch), scratch->retry | scratch->unread);
		else
			emit_entry(ctx, &task->call, 0, 0);
	}
	if (settings.cpus && flags & (PLAN_EXECUTES | PLAN_SIGRETURN))
		emit_stack(ctx, current, task, scratch ? &scratch->call : &task->call);
	barrier();
	task->open = open;
}

SEC("tp_btf/sys_enter")
int enter(u64 *ctx)
{
	entered(ctx, (struct pt_regs *)ctx[0], (s32)ctx[1]);
	return 0;
}

/*
 * The same program for the events of single syscalls and of all syscalls, on kernels that may preempt programs on raw
 * tracepoints. While a task is inside such a program, those kernels skip the program for all other tasks of the CPU,
 * without a count of their calls. Events cost a few tens of nanoseconds more, but programs on them are not preempted.
 */
SEC("?tp/raw_syscalls/sys_enter")
int enter_event(struct syscall_event *ctx)
{
	if (!is_over)
		entered(ctx, (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf()), ctx->nr);
	/* 0 would suppress the record for all other readers. */
	return 1;
}

/*
 * Returns whether a task is being killed, so that it will not return to its program (__fatal_signal_pending()), and a
 * tracer that stops the task would see no result of its call. Such a tracer sees the results of the task that handles
 * another signal than SIGKILL, which is usually the leader (complete_signal() in kernel/signal.c).
 */
static __always_inline int is_killed(struct task_struct *task)
{
	struct signal_struct *signal = task->signal;
	int number = signal->flags & SIGNAL_GROUP_EXIT ? signal->group_exit_code & 0x7f : 0;
	int handles = number && number != SIGKILL && task->pid == task->tgid;

	return task->pending.signal.sig[0] >> (SIGKILL - 1) & 1 && !handles;
}

/* Completes the open call; 0 if this exit does not belong to it. */
static __always_inline int complete(struct task *task, struct call *call, s32 nr, s64 ret)
{
	u32 flags = plan_at(task->place)->flags;

	if (!closes(call, flags, nr))
		return 0;
	call->ret = ret;
	call->time = bpf_ktime_get_ns();
	call->how = HOW_RETURNED;
	if (task->listed == call->start)
		call->bits |= CALL_SHOWN;
	if (settings.injects && task->answered)
		call->bits |= CALL_INJECTED;
	if (is_killed(bpf_get_current_task_btf()))
		call->bits |= CALL_KILLED;
	if (settings.matches)
		decide_match(task, call);
	return 1;
}

/*
 * Returns whether a completed call is excluded: it did not fail, was too short, or fails a filter. A call that was
 * listed is always completed.
 */
static __always_inline int is_excluded_at_exit(struct task *task, struct call *call)
{
	if (!settings.failures && !settings.min_duration && !settings.filters)
		return 0;
	if (plan_at(task->place)->flags & PLAN_EXECUTES || task->listed == call->start)
		return 0;
	int failed = call->ret < 0 && call->ret >= -MAX_ERRNO;
	if (settings.failures && !failed)
		return 1;
	/* The duration of a call without entry is not known. */
	int is_short = call->bits & CALL_NO_ENTRY || call->time - call->start < settings.min_duration;
	if (settings.min_duration && is_short)
		return 1;
	return settings.filters && is_excluded(call, 1);
}

/*
 * Writes the record of the open call as returned; 0 if this exit does not belong to it. `shown` says that memory and
 * files of the task may still be shown.
 */
static __always_inline int emit_returned(void *ctx, struct task_struct *current, struct task *task, u32 open, s32 nr, s64 ret, int shown)
{
	u32 flags = plan_at(task->place)->flags;
	/* The stack of the other calls was written at their entry. */
	enum stacked stacked = flags & (PLAN_EXECUTES | PLAN_SIGRETURN) || !shown ? UNSTACKED : STACKED;

	if (open == OPEN_EXCLUDED)
		return closes(&task->call, flags, nr);
	if (settings.sums || open == OPEN_IN_TASK) {
		if (!complete(task, &task->call, nr, ret))
			return 0;
		if (is_excluded_at_exit(task, &task->call))
			COUNT(left_out);
		else
			write_call(ctx, current, task, &task->call, 0, stacked);
		return 1;
	}
	struct scratch *scratch = bpf_task_storage_get(&scratches, current, 0, 0);
	if (!scratch || !complete(task, &scratch->call, nr, ret))
		return 0;
	/* If partial records were written, the call's own record must follow. */
	if (!scratch->parts && is_excluded_at_exit(task, &scratch->call)) {
		forget_files(scratch);
		COUNT(left_out);
		return 1;
	}
	const volatile struct plan *plan = plan_at(task->place);
	if (!shown) {
		give_up_retries(scratch, task->place);
	} else if (plan->flags & PLAN_WORKS_AT_EXIT || scratch->retry || scratch->deferred_count || returns_number(scratch, plan) || returns_id(plan)) {
		capture_at_exit(scratch, task->place);
		u64 end = scratch->call.time;
		emit_parts(ctx, scratch, WHEN_EXIT);
		scratch->call.how = HOW_RETURNED;
		/*
		 * The partial records precede the call's record, so that its time must be later. Without them, the work
		 * since the end of the call takes no longer than an interrupt might.
		 */
		if (scratch->parts) {
			scratch->call.time = bpf_ktime_get_ns();
			scratch->call.late = scratch->call.time - end;
		}
	}
	write_scratch(ctx, current, task, scratch, stacked);
	return 1;
}

/* Handles the exit of a call. */
static __always_inline void exited(void *ctx, struct pt_regs *regs, s64 ret)
{
	struct task_struct *current = bpf_get_current_task_btf();
	s32 raw_nr = number_at_exit(regs);
	struct which which = which_call(current, raw_nr);
	u32 flags = plan_at(which.place)->flags;

	if (!(flags & (PLAN_WANTED | PLAN_EXIT_MATTERS)) && !(raw_nr == -1 && settings.sigreturn))
		return;
	if (!is_traced_here(which.abi))
		return;
	if (flags & PLAN_RETURNS_INT)
		ret = (s32)ret;
	struct task *task = caller(current, 0);
	if (!task)
		return;
	u32 open = take_open(task);
	int shown = task->mode == MODE_SET_UP || may_be_shown(current);
	if (open) {
		barrier();
		if (settings.sums && sum_up(ctx, current, task, which.nr, ret))
			return;
		if (emit_returned(ctx, current, task, open, which.nr, ret, shown)) {
			/* That of an answered call; the record of the call precedes that of the signal. */
			if (settings.sends_signals)
				send_due_signal();
			if (settings.injects)
				end_effect(task);
			return;
		}
		emit_open(ctx, current, task, open, HOW_UNSEEN, UNSTACKED);
	}
	int second_return = flags & PLAN_CLONES && ret == 0;
	/* The record was written when the program was executed. */
	int was_emitted = flags & PLAN_EXECUTES && ret == 0 && task->executed;
	task->executed = 0;
	if (task->mode == MODE_SET_UP || second_return || was_emitted || !(flags & PLAN_WANTED) || raw_nr == -1 || !shown)
		return;
	COUNT(calls);
	begin(&task->call, current, &which, regs);
	task->call.time = task->call.start;
	task->call.ret = ret;
	task->call.how = HOW_RETURNED;
	task->call.bits |= CALL_NO_ENTRY;
	/*
	 * A tracer that stops tasks before the entry sees the task killed there. The kernel skips the call then, and -ENOSYS
	 * is what it puts in the place of a result before each call.
	 */
	if (is_killed(current)) {
		task->call.bits |= CALL_KILLED;
		if (ret == -ENOSYS)
			task->call.how = HOW_NEVER;
	}
	task->place = which.place;
	if (settings.matches)
		decide_match(task, &task->call);
	if (is_excluded_at_exit(task, &task->call) || (settings.filters && is_excluded(&task->call, 0)))
		COUNT(left_out);
	else
		write_call(ctx, current, task, &task->call, 0, flags & PLAN_EXECUTES ? UNSTACKED : STACKED);
}

SEC("tp_btf/sys_exit")
int leave(u64 *ctx)
{
	exited(ctx, (struct pt_regs *)ctx[0], ctx[1]);
	return 0;
}

SEC("?tp/raw_syscalls/sys_exit")
int leave_event(struct syscall_event *ctx)
{
	if (!is_over)
		exited(ctx, (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf()), ctx->ret);
	return 1;
}
