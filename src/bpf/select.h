/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which calls are wanted, and of whom.
 */
#pragma once

#include "numbers.h"
#include "own.h"

/* A call's number and ABI, and its plan's place. */
struct which {
	s32 nr;
	u32 abi;
	u32 place;
};

#if defined(__TARGET_ARCH_x86)

#define ABI_NATIVE ABI_X86_64
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

/* Whether the sleeping task that these registers are of sleeps in a call: until the call has an answer, this is in its place. */
static __always_inline int is_in_call(struct pt_regs *regs)
{
	return (s32)regs->orig_ax >= 0 && (s64)regs->ax == -ENOSYS;
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

#define ABI_NATIVE ABI_AARCH64

static __always_inline u32 abi_of(struct task_struct *current, s32 *nr)
{
	return ABI_AARCH64;
}

static __always_inline s32 number_at_exit(struct pt_regs *regs)
{
	return regs->syscallno;
}

static __always_inline int is_in_call(struct pt_regs *regs)
{
	return regs->syscallno >= 0;
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

/* Where a number of an ABI stands among all. */
static __always_inline u64 among_all(u32 abi, s32 nr)
{
	return (u32)nr < NR_COUNT && abi < ABI_COUNT ? abi * NR_COUNT + nr : NR_OTHER;
}

static __always_inline struct which which_call(struct task_struct *current, s32 nr)
{
	struct which which = { .nr = nr };

	which.abi = abi_of(current, &which.nr);
	u64 number = among_all(which.abi, which.nr);
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

/* Beside events of single syscalls, only calls that have none are looked at. */
static __always_inline int is_seen_here(u32 abi)
{
	return settings.hooks != HOOKS_BESIDE || abi != ABI_NATIVE;
}

/* Whether it executes a 32-bit program (or an x32 one): its memory ends at 4 GiB. */
static __always_inline int is_compat(struct task_struct *task)
{
	u64 end = BPF_CORE_READ(task, mm, task_size);

	return end && end <= 1ULL << 32;
}

/* What a task is that was not met before. */
static __always_inline u32 mode_of(struct task_struct *task)
{
	u64 key = SEED_PROCESS | (u32)number_of_process(task);
	u32 *mode = bpf_map_lookup_elem(&seeds, &key);

	return mode ? *mode : MODE_TRACED;
}

static __always_inline int is_of_user(struct task_struct *task)
{
	return BPF_CORE_READ(task, cred, uid.val) == settings.user || BPF_CORE_READ(task, cred, euid.val) == settings.user;
}

/* The state of the task that makes a call, if its calls are wanted. A call that begins without one is lost. */
static __always_inline struct task *caller(struct task_struct *current, int begins)
{
	struct task *task;

	if (settings.scope == SCOPE_TASKS) {
		task = bpf_task_storage_get(&tasks, current, 0, 0);
		return task;
	}
	/* What was entered under one user or in one cgroup may return elsewhere. */
	if (!begins && settings.scope != SCOPE_EVERYONE) {
		task = bpf_task_storage_get(&tasks, current, 0, 0);
		if (task && task->open)
			return task;
	}
	if (settings.scope == SCOPE_CGROUP && bpf_current_task_under_cgroup(&cgroup, 0) != 1)
		return 0;
	if (settings.scope == SCOPE_USER && !is_of_user(current))
		return 0;
	if (!is_visible(current))
		return 0;
	task = bpf_task_storage_get(&tasks, current, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!task) {
		if (begins && mode_of(current) == MODE_TRACED) {
			COUNT(calls);
			COUNT(calls_lost);
		}
		return 0;
	}
	if (task->mode == MODE_UNKNOWN)
		task->mode = mode_of(current);
	return task->mode == MODE_EXCLUDED ? 0 : task;
}

/* The state of a task that sleeps in a call when tracing begins, if its calls are wanted. (Whether another task is in a cgroup cannot be asked on older kernels.) */
static __always_inline struct task *sleeper(struct task_struct *found)
{
	if (settings.scope == SCOPE_TASKS)
		return bpf_task_storage_get(&tasks, found, 0, 0);
	if (settings.scope == SCOPE_CGROUP || (settings.scope == SCOPE_USER && !is_of_user(found)))
		return 0;
	struct task *task = bpf_task_storage_get(&tasks, found, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (task && task->mode == MODE_UNKNOWN)
		task->mode = mode_of(found);
	return task;
}

/* Whether an exit with this number is the open call's. */
static __always_inline int closes(struct call *call, u32 flags, s32 nr)
{
	/* An execve may return in another ABI than it was entered in, under the number of execve there. */
	return call->nr == nr || flags & (PLAN_SIGRETURN | PLAN_EXECUTES);
}
