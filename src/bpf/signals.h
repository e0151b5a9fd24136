/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Signals that are sent to a traced task, and those that are delivered to it.
 *
 * The kernel calls both tracepoints with the lock of the receiver's signals held and interrupts off (kernel/signal.c),
 * so that programs there are not preempted on any kernel.
 *
 * A record has the form of struct call: `args` is the siginfo_t, `nr` the signal, `pid` and `tid` the receiver, `lost`
 * the SIGNAL_* flags. The record of a sent signal is followed by the sender's comm.
 */
#pragma once

#include "select.h"
#include "stacks.h"

/* include/linux/signal_types.h: in place of a pointer to a siginfo_t. */
#define SEND_SIG_NOINFO 0
#define SEND_SIG_PRIV 1
/* include/linux/sched.h */
#define PF_EXITING 4
/* include/uapi/asm-generic/siginfo.h */
#define SI_USER 0
#define SI_KERNEL 0x80
#define SI_QUEUE -1
#define SI_TKILL -6
/* The bits of a task's exit code that are the signal. */
#define EXIT_SIGNAL 0x7f

/* include/trace/events/signal.h */
enum sent_result { SENT, SENT_IGNORED, SENT_ALREADY, SENT_WITHOUT_MEMORY, SENT_WITHOUT_INFO };

/*
 * Makes the siginfo_t of a signal that the kernel sends without one. The sender's pid and uid are set only if they are
 * the same in the receiver's namespaces.
 */
static __always_inline u32 make_info(struct call *call, s32 signal, u64 info, struct task_struct *current, struct task_struct *receiver)
{
	__builtin_memset(call->args, 0, sizeof(call->args));
	call->args[0] = (u32)signal;
	if (info == SEND_SIG_PRIV) {
		call->args[1] = SI_KERNEL;
		return 0;
	}
	if (is_nested(receiver) || BPF_CORE_READ(receiver, cred, user_ns, level) > 0)
		return SIGNAL_NUMBERLESS;
	call->args[2] = (u32)number_of_process(current) | bpf_get_current_uid_gid() << 32;
	return 0;
}

/* Returns whether a task's signals are traced. Memory must not be allocated here. */
static __always_inline int takes_signals(struct task_struct *receiver, int is_current)
{
	struct task *task = bpf_task_storage_get(&tasks, receiver, 0, 0);
	u32 mode = task ? task->mode : MODE_UNKNOWN;

	if (!may_be_shown(receiver))
		return 0;
	if (settings.scope == SCOPE_TASKS)
		return mode == MODE_TRACED;
	/*
	 * Older kernels have no test of whether another task is in a cgroup; tasks that made a call there have a state.
	 */
	if (settings.scope == SCOPE_CGROUP && (!is_current || bpf_current_task_under_cgroup(&cgroup, 0) != 1) && (is_current || mode != MODE_TRACED))
		return 0;
	if ((settings.scope == SCOPE_USER && !is_of_user(receiver)) || !is_visible(receiver))
		return 0;
	return (mode == MODE_UNKNOWN ? mode_of(receiver) : mode) == MODE_TRACED;
}

static __always_inline void begin_signal(struct call *call, struct task_struct *receiver, s32 signal, u32 how)
{
	call->time = bpf_ktime_get_ns();
	call->start = 0;
	call->ret = 0;
	call->nr = signal;
	call->tid = number_of_task(receiver);
	call->pid = number_of_process(receiver);
	call->lost = 0;
	call->late = 0;
	call->payload = 0;
	call->how = how;
	call->bits = is_nested(receiver) ? CALL_NESTED : 0;
}

struct sent_signal {
	struct call call;
	char sender[TASK_COMM_LEN];
};

SEC("?tp_btf/signal_generate")
int sent(u64 *ctx)
{
	struct task_struct *current = bpf_get_current_task_btf(), *receiver = (struct task_struct *)ctx[2];
	s32 signal = ctx[0], result = ctx[4];
	u64 info = ctx[1];

	if (result == SENT_ALREADY || result == SENT_WITHOUT_MEMORY || !takes_signals(receiver, 0))
		return 0;
	u32 is_ending = FOLLOW(signal_struct, FOLLOW(task_struct, receiver, signal), flags) & SIGNAL_GROUP_EXIT;
	/* A task that is about to end would not get the signal even if it were not ignored. */
	if (result == SENT_IGNORED && (is_ending || receiver->flags & PF_EXITING))
		return 0;
	struct sent_signal sent;
	struct call *call = &sent.call;
	begin_signal(call, receiver, signal, HOW_SIGNAL_SENT);
	u32 bits = (s32)ctx[3] ? SIGNAL_TO_PROCESS : 0;
	if (result == SENT_IGNORED)
		bits |= SIGNAL_IGNORED;
	if (info <= SEND_SIG_PRIV)
		bits |= make_info(call, signal, info, current, receiver);
	else if (bpf_probe_read_kernel(call->args, sizeof(call->args), (void *)info))
		return 0;
	s32 code = call->args[1];
	__builtin_memset(sent.sender, 0, sizeof(sent.sender));
	if (code == SI_USER || code == SI_TKILL || code == SI_QUEUE) {
		bits |= SIGNAL_HAS_SENDER;
		call->start = (u32)number_of_process(current) | (u64)(u32)number_of_task(current) << 32;
		bpf_get_current_comm(sent.sender, sizeof(sent.sender));
	}
	call->lost = bits;
	call->payload = sizeof(sent.sender);
	if (put_record(ctx, BPF_F_CURRENT_CPU, &sent, sizeof(sent)))
		COUNT(ends_lost);
	return 0;
}

SEC("?tp_btf/signal_deliver")
int delivered(u64 *ctx)
{
	struct task_struct *current = bpf_get_current_task_btf();
	s32 signal = ctx[0];
	u64 info = ctx[1];

	if (!takes_signals(current, 1))
		return 0;
	struct call call;
	u64 event = BPF_F_CURRENT_CPU;
	begin_signal(&call, current, signal, HOW_SIGNAL);
	if (signal == SIGKILL) {
		/*
		 * SIGKILL is delivered for anything that ends the process: a signal, exit_group (whose exit code has no
		 * signal), or another thread that executes a program.
		 */
		u32 is_ending = FOLLOW(signal_struct, FOLLOW(task_struct, current, signal), flags) & SIGNAL_GROUP_EXIT;
		call.ret = FOLLOW(signal_struct, FOLLOW(task_struct, current, signal), group_exit_code) & EXIT_SIGNAL;
		if (!is_ending || !call.ret)
			return 0;
		__builtin_memset(call.args, 0, sizeof(call.args));
	} else {
		call.ret = (u64)((struct k_sigaction *)ctx[2])->sa.sa_handler;
		if (info <= SEND_SIG_PRIV || bpf_probe_read_kernel(call.args, sizeof(call.args), (void *)info))
			return 0;
		struct task *task = settings.cpus ? bpf_task_storage_get(&tasks, current, 0, 0) : 0;
		if (task)
			event = event_of(plan_at(places[NR_SIGNAL]), current, task);
	}
	if (put_record(ctx, event, &call, sizeof(call)))
		COUNT(ends_lost);
	return 0;
}
