/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which calls are wanted, and of whom.
 */
#pragma once

#include "state.h"

/* A call's number and ABI, and its plan's place. */
struct which {
	s32 nr;
	u32 abi;
	u32 place;
};

#if defined(__TARGET_ARCH_x86)

/* arch/x86/include/asm/thread_info.h: the task is in a 32-bit call, whatever the program is. */
#define TS_COMPAT 2
/* arch/x86/include/uapi/asm/unistd.h */
#define X32_BIT 0x40000000

static __always_inline u32 abi_of(struct task_struct *current, s32 *nr)
{
	if (current->thread_info.status & TS_COMPAT)
		return ABI_I386;
	if (*nr > 0 && *nr & X32_BIT) {
		*nr &= ~X32_BIT;
		return ABI_X32;
	}
	return ABI_X86_64;
}

static __always_inline s32 number_at_exit(struct pt_regs *regs)
{
	return (s32)regs->orig_ax;
}

static __always_inline void arguments(u64 *args, struct pt_regs *regs, u32 abi)
{
	if (abi == ABI_I386) {
		args[0] = (u32)regs->bx;
		args[1] = (u32)regs->cx;
		args[2] = (u32)regs->dx;
		args[3] = (u32)regs->si;
		args[4] = (u32)regs->di;
		args[5] = (u32)regs->bp;
	} else {
		args[0] = regs->di;
		args[1] = regs->si;
		args[2] = regs->dx;
		args[3] = regs->r10;
		args[4] = regs->r8;
		args[5] = regs->r9;
	}
}

#elif defined(__TARGET_ARCH_arm64)

static __always_inline u32 abi_of(struct task_struct *current, s32 *nr)
{
	return ABI_AARCH64;
}

static __always_inline s32 number_at_exit(struct pt_regs *regs)
{
	return regs->syscallno;
}

static __always_inline void arguments(u64 *args, struct pt_regs *regs, u32 abi)
{
	args[0] = regs->orig_x0;
	args[1] = regs->regs[1];
	args[2] = regs->regs[2];
	args[3] = regs->regs[3];
	args[4] = regs->regs[4];
	args[5] = regs->regs[5];
}

#endif

static __always_inline struct which which_call(struct task_struct *current, s32 nr)
{
	struct which which = { .nr = nr };

	which.abi = abi_of(current, &which.nr);
	u64 number = (u32)which.nr < NR_COUNT ? which.abi * NR_COUNT + which.nr : NR_OTHER;
	barrier_var(number);
	which.place = number <= NR_OTHER ? places[number] : 0;
	return which;
}

/* The place of the plan that the arguments choose. */
static __always_inline u32 chosen_place(struct which *which, struct pt_regs *regs)
{
	const volatile struct plan *plan = plan_at(which->place);

	if (!plan->chooser)
		return which->place;
	u64 args[6];
	arguments(args, regs, which->abi);
	u64 arg = plan->chooser_arg;
	barrier_var(arg);
	return arg < 6 ? chosen(which->place, args[arg]) : which->place;
}

/* What a task is that was not met before. */
static __always_inline u32 mode_of(s32 tgid)
{
	u64 key = SEED_PROCESS | (u32)tgid;
	u32 *mode = bpf_map_lookup_elem(&seeds, &key);

	return mode ? *mode : MODE_TRACED;
}

/* The state of the task that makes a call, if its calls are wanted. A call that begins without one is lost. */
static __always_inline struct task *caller(struct task_struct *current, int begins)
{
	struct task *task;

	if (settings.scope == SCOPE_TASKS) {
		task = bpf_task_storage_get(&tasks, current, 0, 0);
		return task;
	}
	if (settings.scope == SCOPE_CGROUP && bpf_current_task_under_cgroup(&cgroup, 0) != 1)
		return 0;
	task = bpf_task_storage_get(&tasks, current, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!task) {
		if (begins && mode_of(current->tgid) == MODE_TRACED) {
			COUNT(calls);
			COUNT(calls_lost);
		}
		return 0;
	}
	if (task->mode == MODE_UNKNOWN)
		task->mode = mode_of(current->tgid);
	return task->mode == MODE_EXCLUDED ? 0 : task;
}

/* Whether an exit with this number is the open call's. */
static __always_inline int closes(struct call *call, u32 flags, s32 nr)
{
	/* An execve may return in another ABI than it was entered in, under the number of execve there. */
	return call->nr == nr || flags & (PLAN_SIGRETURN | PLAN_EXECUTES);
}
