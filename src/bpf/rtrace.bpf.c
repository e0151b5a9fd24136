// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * One record a call: entry and exit are paired here, in the task's own memory.
 *
 * The programs are on raw tracepoints, where what they return concerns nobody else, or on tracepoints' events, where it must be 1. They change nothing of the traced task. Every call that
 * was wanted when it was entered is given once, or counted as lost once:
 *
 *   entered, returned                            at its return
 *   exit, exit_group                             at entry, as never returning
 *   the task ends inside it                      at the task's end
 *   the task's next call comes first             then, its return not seen (a program was skipped)
 *   certain not to be shown                       only counted, at entry or return
 *   in flight when tracing ends                  by the last look at all tasks
 *   its task is ending when tracing begins       by the first look, as never returning
 *   returned without entry                       at its return (seccomp or a tracer answered, or tracing began inside it; in the latter case it is known from a look)
 */
#include "kernel.h"
#include "plan.h"
#include "record.h"
#include "state.h"
#include "select.h"
#include "capture.h"
#include "filter.h"
#include "tally.h"
#include "stacks.h"
#include "list_stacks.h"
#include "signals.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Whether the call's stack is to go with its record. */
enum stacked { UNSTACKED, STACKED };

/* Writes a call's record, with as many bytes of pieces; 0 if it found room. */
static __always_inline int write_call(void *ctx, struct task_struct *current, struct task *task, struct call *call, u64 payload, enum stacked stacked)
{
	u64 event = settings.cpus && stacked ? event_for(current, task) : BPF_F_CURRENT_CPU;

	call->lost = task->lost;
	if (call->tid != number_of_task(current))
		call->bits |= CALL_LEADS << 4;
	if (bpf_perf_event_output(ctx, &output, event, call, sizeof(*call) + payload)) {
		task->lost++;
		COUNT(calls_lost);
		return -1;
	}
	task->lost = 0;
	return 0;
}

/* How many bytes of pieces there are, in terms that the verifier can follow. */
static __always_inline u64 payload_of(struct scratch *scratch)
{
	u64 size = scratch->call.payload;

	barrier_var(size);
	return size < sizeof(scratch->payload) ? size : sizeof(scratch->payload);
}

static __always_inline void write_scratch(void *ctx, struct task_struct *current, struct task *task, struct scratch *scratch, enum stacked stacked)
{
	if (!write_call(ctx, current, task, &scratch->call, payload_of(scratch), stacked))
		return;
	forget_files(scratch);
}

/* Gives the task's open call, wherever it stands. */
static __always_inline void give_open(void *ctx, struct task_struct *current, struct task *task, u32 open, u32 how, enum stacked stacked)
{
	if (open == OPEN_LEFT_OUT)
		return;
	if (settings.sums || open == OPEN_HERE) {
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

static __always_inline void begin(struct call *call, struct task_struct *current, struct which *which, struct pt_regs *regs)
{
	call->ret = 0;
	if (!settings.sums)
		arguments(call->args, regs, which->abi);
	call->nr = which->nr;
	call->tid = number_of_task(current);
	call->pid = number_of_process(current);
	call->late = 0;
	call->payload = 0;
	call->how = HOW_PENDING;
	call->bits = which->abi;
	if (!settings.sums && is_nested(current))
		call->bits |= CALL_NESTED << 4;
	call->start = bpf_ktime_get_ns();
}

/* Whether it is certain at its entry that a call is not to be shown. */
static __always_inline int leaves_out(struct task *task, struct which *which, struct pt_regs *regs)
{
	arguments(task->call.args, regs, which->abi);
	task->call.nr = which->nr;
	task->call.bits = which->abi;
	if (!is_hopeless(&task->call, 0))
		return 0;
	COUNT(left_out);
	return 1;
}

/* Gives the stack of a call that will have another one when it is over: its record comes then. */
static __always_inline void give_stack(void *ctx, struct task_struct *current, struct task *task, struct call *call)
{
	if (!plan_at(task->place)->stack)
		return;
	u16 payload = call->payload;
	call->payload = 0;
	call->how = HOW_STACK;
	call->time = call->start;
	if (bpf_perf_event_output(ctx, &output, event_for(current, task), call, sizeof(*call)))
		COUNT(parts_lost);
	call->payload = payload;
	call->how = HOW_PENDING;
}

static __always_inline void entered(void *ctx, struct pt_regs *regs, s32 nr)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct which which = which_call(current, nr);
	u32 flags = plan_at(which.place)->flags;

	if (!(flags & PLAN_WANTED) || !is_seen_here(which.abi))
		return;
	struct task *task = caller(current, 1);
	if (!task || (task->mode == MODE_SET_UP && !(flags & PLAN_EXECUTES)))
		return;
	u32 left_open = take_open(task);
	if (left_open)
		give_open(ctx, current, task, left_open, HOW_UNSEEN, UNSTACKED);
	/* What the command is executed by is rtrace itself, and of rtrace's memory there is only what the caller said. */
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
	if (settings.filters && leaves_out(task, &which, regs)) {
		task->open = flags & PLAN_NEVER_RETURNS ? OPEN_NONE : OPEN_LEFT_OUT;
		return;
	}

	u32 place = settings.sums ? which.place : chosen_place(&which, regs);
	const volatile struct plan *plan = plan_at(place);
	task->place = place;
	struct scratch *scratch = 0;
	int translates = (plan->pids && is_nested(current)) || ((plan->uids | plan->gids) && has_own_users(current));
	if (!settings.sums && (plan->ops_count || plan->fds || plan->elsewhere || plan->flags & PLAN_OPENS || translates)) {
		scratch = bpf_task_storage_get(&scratches, current, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
		if (!scratch)
			COUNT(scratch_lost);
	}
	u32 open;
	if (scratch) {
		begin(&scratch->call, current, &which, regs);
		capture_at_entry(scratch, place);
		give_parts(ctx, scratch, WHEN_ENTRY);
		open = OPEN_IN_SCRATCH;
	} else {
		begin(&task->call, current, &which, regs);
		open = OPEN_HERE;
	}
	if (flags & PLAN_NEVER_RETURNS) {
		if (!settings.sums || !sum_up_unreturned(ctx, current, task))
			give_open(ctx, current, task, open, HOW_NEVER, STACKED);
		return;
	}
	if (settings.cpus && flags & (PLAN_EXECUTES | PLAN_SIGRETURN))
		give_stack(ctx, current, task, scratch ? &scratch->call : &task->call);
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
 * The same on the events of single syscalls, and on that of all, for kernels that may take the CPU away from programs on the raw one. As long as a task stands inside a program, the kernel passes over that program
 * for all other tasks of the CPU, and nobody would know of their calls. This way costs some tens of nanoseconds more, but here nobody is interrupted.
 */
SEC("?tp/raw_syscalls/sys_enter")
int enter_event(struct syscall_event *ctx)
{
	if (!is_over)
		entered(ctx, (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf()), ctx->nr);
	/* 0 would keep the event from everyone else. */
	return 1;
}

/* Completes the open call; 0 if this exit is not its own. */
static __always_inline int complete(struct task *task, struct call *call, s32 nr, s64 ret)
{
	u32 flags = plan_at(task->place)->flags;

	if (!closes(call, flags, nr))
		return 0;
	call->ret = ret;
	call->time = bpf_ktime_get_ns();
	call->how = HOW_RETURNED;
	if (task->listed == call->start)
		call->bits |= CALL_SHOWN << 4;
	return 1;
}

/* Whether nobody wants to see how this call returned: it did not fail, or was too short. What is known of it from a look is always completed. */
static __always_inline int is_left_out(struct task *task, struct call *call)
{
	if (!settings.failures && !settings.least && !settings.filters)
		return 0;
	if (plan_at(task->place)->flags & PLAN_EXECUTES || task->listed == call->start)
		return 0;
	int failed = call->ret < 0 && call->ret >= -MAX_ERRNO;
	if (settings.failures && !failed)
		return 1;
	/* How long a call took that has no entry is not known. */
	int is_short = call->bits & CALL_NO_ENTRY << 4 || call->time - call->start < settings.least;
	if (settings.least && is_short)
		return 1;
	return settings.filters && is_hopeless(call, 1);
}

/* Gives the open call as returned; 0 if this exit is not its own. `shown`: the task is still one of whose memory and
 * files something may be told. */
static __always_inline int give_returned(void *ctx, struct task_struct *current, struct task *task, u32 open, s32 nr, s64 ret, int shown)
{
	u32 flags = plan_at(task->place)->flags;
	/* Otherwise it was given at its entry. */
	enum stacked stacked = flags & (PLAN_EXECUTES | PLAN_SIGRETURN) || !shown ? UNSTACKED : STACKED;

	if (open == OPEN_LEFT_OUT)
		return closes(&task->call, flags, nr);
	if (settings.sums || open == OPEN_HERE) {
		if (!complete(task, &task->call, nr, ret))
			return 0;
		if (is_left_out(task, &task->call))
			COUNT(left_out);
		else
			write_call(ctx, current, task, &task->call, 0, stacked);
		return 1;
	}
	struct scratch *scratch = bpf_task_storage_get(&scratches, current, 0, 0);
	if (!scratch || !complete(task, &scratch->call, nr, ret))
		return 0;
	/* Where parts of it were given, the rest belongs to them. */
	if (!scratch->parts && is_left_out(task, &scratch->call)) {
		forget_files(scratch);
		COUNT(left_out);
		return 1;
	}
	const volatile struct plan *plan = plan_at(task->place);
	if (!shown) {
		give_up_retries(scratch, task->place);
	} else if (plan->flags & PLAN_WORKS_AT_EXIT || scratch->retry || scratch->debts || returns_number(scratch, plan) || returns_id(plan)) {
		capture_at_exit(scratch, task->place);
		u64 end = scratch->call.time;
		give_parts(ctx, scratch, WHEN_EXIT);
		scratch->call.how = HOW_RETURNED;
		/* Its parts come before it. What else was done takes no longer than an interrupt might. */
		if (scratch->parts) {
			scratch->call.time = bpf_ktime_get_ns();
			scratch->call.late = scratch->call.time - end;
		}
	}
	write_scratch(ctx, current, task, scratch, stacked);
	return 1;
}

static __always_inline void left(void *ctx, struct pt_regs *regs, s64 ret)
{
	struct task_struct *current = bpf_get_current_task_btf();
	s32 raw_nr = number_at_exit(regs);
	struct which which = which_call(current, raw_nr);
	u32 flags = plan_at(which.place)->flags;

	if (!(flags & (PLAN_WANTED | PLAN_EXIT_MATTERS)) && !(raw_nr == -1 && settings.sigreturn))
		return;
	if (!is_seen_here(which.abi))
		return;
	struct task *task = caller(current, 0);
	if (!task)
		return;
	u32 open = take_open(task);
	int shown = task->mode == MODE_SET_UP || may_be_shown(current);
	if (open) {
		barrier();
		if (settings.sums && sum_up(ctx, current, task, which.nr, ret))
			return;
		if (give_returned(ctx, current, task, open, which.nr, ret, shown))
			return;
		give_open(ctx, current, task, open, HOW_UNSEEN, UNSTACKED);
	}
	int second_return = flags & PLAN_CLONES && ret == 0;
	/* It was given when the program was executed. */
	int was_given = flags & PLAN_EXECUTES && ret == 0 && task->executed;
	task->executed = 0;
	if (task->mode == MODE_SET_UP || second_return || was_given || !(flags & PLAN_WANTED) || raw_nr == -1 || !shown)
		return;
	COUNT(calls);
	begin(&task->call, current, &which, regs);
	task->call.time = task->call.start;
	task->call.ret = ret;
	task->call.how = HOW_RETURNED;
	task->call.bits |= CALL_NO_ENTRY << 4;
	task->place = which.place;
	if (is_left_out(task, &task->call) || (settings.filters && is_hopeless(&task->call, 0)))
		COUNT(left_out);
	else
		write_call(ctx, current, task, &task->call, 0, flags & PLAN_EXECUTES ? UNSTACKED : STACKED);
}

SEC("tp_btf/sys_exit")
int leave(u64 *ctx)
{
	left(ctx, (struct pt_regs *)ctx[0], ctx[1]);
	return 0;
}

SEC("?tp/raw_syscalls/sys_exit")
int leave_event(struct syscall_event *ctx)
{
	if (!is_over)
		left(ctx, (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf()), ctx->ret);
	return 1;
}

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
	if (settings.cpus && child->tgid == parent->tgid)
		task->stack_top = stack_pointer(child);
}

SEC("tp_btf/sched_process_fork")
int forked(u64 *ctx)
{
	inherit((struct task_struct *)ctx[0], (struct task_struct *)ctx[1]);
	return 0;
}

/* For kernels that may take the CPU away from programs on raw tracepoints: here interrupts are off, and the parent is about to let its child run. */
SEC("?tp_btf/sched_wakeup_new")
int awoken(u64 *ctx)
{
	inherit(bpf_get_current_task_btf(), (struct task_struct *)ctx[0]);
	return 0;
}

/* Arguments that could not be read at entry (a child of fork has not touched its program's constants) are those that the new program begins with. */
static __always_inline void take_arguments(struct scratch *scratch, u64 mm)
{
	u64 now = MEMBER(mm_struct, mm, arg_start);

	for (u32 i = 0; i < ELEMENTS_MAX; i++) {
		u64 bytes = copy_moved(scratch, now, i, settings.string_limit);
		if (!bytes)
			break;
		now += bytes;
	}
}

/* A path that could not be read at entry is gone by now, but the kernel has it. (execveat's it has in another form.) */
static __always_inline void take_path(struct task_struct *current, struct task *task, struct linux_binprm *binary)
{
	struct scratch *scratch = bpf_task_storage_get(&scratches, current, 0, 0);

	if (!scratch)
		return;
	u64 path = number_of(&scratch->walk, MEMBER(linux_binprm, binary, filename));
	if (scratch->retry & 1 && plan_at(task->place)->ops[0].arg == 0 &&
	    !add_kernel_string(scratch, scratch->call.args[0], path, TAG(0, WHEN_RETRY)))
		scratch->retry &= ~1;
	/* A script's interpreter is given other arguments. */
	if (scratch->unread && path == number_of(&scratch->walk, MEMBER(linux_binprm, binary, interp)))
		take_arguments(scratch, number_of(&scratch->walk, MEMBER(task_struct, current, mm)));
}

/*
 * Gives the open call if it executed the program. For events of single syscalls: its return may have the number of another call, or another ABI, whose events are
 * not looked at.
 */
static __always_inline void give_executed(void *ctx, struct task_struct *current, struct task *task, u32 open)
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
	/* Another thread than the leader executes, and is the leader from now on. */
	if (settings.sums && (s32)ctx[1] != current->pid)
		give_tally_of(ctx, current);
	if (!settings.sums && open == OPEN_IN_SCRATCH && may_be_shown(current))
		take_path(current, task, binary);
	if (settings.hooks == HOOKS_OWN)
		give_executed(ctx, current, task, open);
	return 0;
}

static __always_inline void end(void *ctx)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct task *task = bpf_task_storage_get(&tasks, current, 0, 0);

	if (!task)
		return;
	/* The last look at all tasks may take it at the same moment. */
	u32 open = __sync_lock_test_and_set(&task->open, OPEN_NONE);
	if (open == OPEN_BEGUN)
		give_open(ctx, current, task, OPEN_HERE, HOW_NEVER, UNSTACKED);
	else if (open && (!settings.sums || !sum_up_unreturned(ctx, current, task)))
		give_open(ctx, current, task, open, HOW_NEVER, UNSTACKED);
	if (settings.sums) {
		count_begun(task);
		give_tally_of(ctx, current);
	}
	if (task->mode != MODE_TRACED || !settings.ends)
		return;
	task->call.how = HOW_TASK_END;
	task->call.payload = 0;
	task->call.bits = 0;
	task->call.tid = number_of_task(current);
	task->call.pid = number_of_process(current);
	task->call.time = bpf_ktime_get_ns();
	task->call.ret = current->exit_code;
	if (bpf_perf_event_output(ctx, &output, BPF_F_CURRENT_CPU, &task->call, sizeof(task->call)))
		COUNT(ends_lost);
}

SEC("tp_btf/sched_process_exit")
int ended(u64 *ctx)
{
	end(ctx);
	return 0;
}

/* The same where nobody is interrupted, as with those on calls. */
SEC("?tp/sched/sched_process_exit")
int ended_event(void *ctx)
{
	if (is_over < ALL_IS_OVER)
		end(ctx);
	return 1;
}

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
	/* Whoever reads this looks again: for those that could not be marked (below 0), and for those that others made before these were. */
	s32 told = number_of_task(found);
	if (!task)
		told = -told;
	else if (task->mode != MODE_UNKNOWN)
		return 0;
	else
		task->mode = *mode;
	bpf_seq_write(ctx->meta->seq, &told, sizeof(told));
	return 0;
}

/* Tasks that are followed and alive. */
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
 * Writes a task's open call to whoever reads the list. It may end meanwhile: the last word says whether it stood still. With `last` it is taken from the task, so that it is given either here or by the task's end.
 */
static __always_inline int list_call(struct seq_file *seq, struct listed *head, struct task *task, struct call *call, u64 payload, int last)
{
	u32 open = task->open;
	u64 start = call->start;

	if (bpf_seq_write(seq, head, sizeof(*head)) || bpf_seq_write(seq, call, sizeof(*call) + payload))
		return -1;
	barrier();
	u64 stood_still = open && call->start == start;
	if (stood_still && last)
		stood_still = __sync_val_compare_and_swap(&task->open, open, OPEN_NONE) == open;
	else if (task->open != open)
		stood_still = 0;
	if (!bpf_seq_write(seq, &stood_still, sizeof(stood_still)))
		return 0;
	if (last && stood_still)
		task->open = open;
	return -1;
}

static __always_inline int list(struct bpf_iter__task *ctx, u64 least, int last)
{
	struct task_struct *found = ctx->task;

	if (!found)
		return 0;
	struct task *task = bpf_task_storage_get(&tasks, found, 0, 0);
	if (!task || !task->open || task->open == OPEN_LEFT_OUT)
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
	if (!last && (start + least > head.time || shown))
		return 0;
	if (last && shown)
		call->bits |= CALL_SHOWN << 4;
	struct seq_file *seq = ctx->meta->seq;
	int failed = scratch ? list_call(seq, &head, task, &scratch->call, payload_of(scratch), last) : list_call(seq, &head, task, &task->call, 0, last);
	/* Without room the kernel asks again for the same task, with more of it. */
	if (!failed)
		task->listed = start;
	return 0;
}

/*
 * Tells of the exit that a task was in when tracing began. Whether the task has passed by where its end is seen (sched_process_exit) cannot be told, and it may stay for long behind that: the first process of a pid
 * namespace waits for all others there. So its call is not open, but given here, and this is all that is told of it.
 */
static __always_inline void list_ending(struct seq_file *seq, struct task_struct *found, struct which *which, struct pt_regs *regs)
{
	struct call call = {};
	u64 stood_still = 1;

	begin(&call, found, which, regs);
	call.how = HOW_NEVER;
	call.bits |= CALL_NO_ENTRY << 4;
	struct listed head = { .time = call.start, .pid = call.pid, .tid = call.tid };
	/* Without room the kernel asks again for the same task, with more of it. */
	if (!bpf_seq_write(seq, &head, sizeof(head)) && !bpf_seq_write(seq, &call, sizeof(call)) &&
	    !bpf_seq_write(seq, &stood_still, sizeof(stood_still)))
		COUNT(calls);
}

/*
 * Calls that were in flight when tracing began, as far as their tasks sleep: one that runs may be about to return. They have no entry; their returns are seen by now, their
 * tasks' next entries not yet.
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
	task->call.bits |= CALL_NO_ENTRY << 4;
	task->place = which.place;
	struct listed head = { .time = task->call.start, .pid = number_of_process(found), .tid = number_of_task(found) };
	__sync_lock_test_and_set(&task->open, OPEN_BEGUN);
	/* If it woke meanwhile, its return may have been given already. */
	u32 next = found->nvcsw == switches && is_asleep(found) && !is_ending(found) ? OPEN_HERE : OPEN_NONE;
	u32 was = __sync_val_compare_and_swap(&task->open, OPEN_BEGUN, next);
	if (was == OPEN_BEGUN && next == OPEN_NONE)
		return 0;
	COUNT(calls);
	/* It returned a moment ago, and was given then. */
	if (was != OPEN_BEGUN)
		return 0;
	/* Without room it is listed by the next look. */
	if (!list_call(ctx->meta->seq, &head, task, &task->call, 0, 0))
		task->listed = head.time;
	return 0;
}

/* Calls that are in flight for long, each once. */
SEC("iter/task")
int list_pending(struct bpf_iter__task *ctx)
{
	return list(ctx, settings.pending_after, 0);
}

/* All that are in flight, when nothing is entered or returns any more. */
SEC("iter/task")
int list_last(struct bpf_iter__task *ctx)
{
	return list(ctx, 0, 1);
}

/* So that type information of what no map holds is in the object, for the test that holds both sides together; the loader passes over a section of this name. */
struct mirrored {
	struct piece piece;
	struct listed listed;
	struct listed_stack listed_stack;
	struct file_note file_note;
	struct socket_note socket_note;
	struct socket_names socket_names;
	enum how how;
	enum piece_when when;
	enum piece_state state;
	enum file_kind file_kind;
	enum elsewhere elsewhere;
	enum scope scope;
	enum hooks hooks;
	enum mode mode;
	enum abi abi;
	enum op_kind kind;
	enum op_test test;
	struct sum sum;
	enum filter_op filter_op;
	enum filter_width filter_width;
	enum kernel_function kernel_function;
} mirrored SEC(".mirrored");
