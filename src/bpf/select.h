/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Selects the calls and the tasks that are traced.
 */
#pragma once

#include "numbers.h"
#include "own.h"

/* A call's number, its ABI, and the index of its plan. */
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

/*
 * Returns whether a sleeping task with these registers is in a call: -ENOSYS is the result until the call has another.
 */
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

/* Returns the index of a syscall number of an ABI among all numbers. */
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

/*
 * Returns the index of the plan that the arguments select. The plan that one argument selects may have a chooser for
 * another argument.
 */
static __always_inline u32 chosen_by(u32 place, u64 *args)
{
	for (u32 i = 0; i < CHOOSERS_MAX; i++) {
		const volatile struct plan *plan = plan_at(place);
		u64 arg = plan->chooser_arg;
		barrier_var(arg);
		if (!plan->chooser || arg >= 6)
			break;
		u32 next = chosen(place, args[arg]);
		if (next == place)
			break;
		place = next;
	}
	return place;
}

/* The same for the arguments of a call. */
static __always_inline u32 chosen_place(struct which *which, struct pt_regs *regs)
{
	u32 place = which->place;

	if (!plan_at(place)->chooser)
		return place;
	u64 args[6];
	arguments(args, regs, which->abi);
	return chosen_by(place, args);
}

/*
 * Returns whether calls of this ABI are traced by this object. Next to programs on events of single syscalls, only
 * calls without such events are.
 */
static __always_inline int is_traced_here(u32 abi)
{
	return settings.hooks != HOOKS_COMPAT || abi != ABI_NATIVE;
}

/* Returns whether a task executes a 32-bit program (or an x32 one): its memory ends at 4 GiB. */
static __always_inline int is_compat(struct task_struct *task)
{
	u64 end = BPF_CORE_READ(task, mm, task_size);

	return end && end <= 1ULL << 32;
}

/* Returns the mode of a task that has no state yet. */
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

/*
 * Returns the state of the task that makes a call, if its calls are traced. If a call begins and there is no memory for
 * the state, the call is lost.
 */
static __always_inline struct task *caller(struct task_struct *current, int begins)
{
	struct task *task;

	if (settings.scope == SCOPE_TASKS) {
		task = bpf_task_storage_get(&tasks, current, 0, 0);
		return task;
	}
	/*
	 * A call that was entered under one user or in one cgroup may return under another user or in another cgroup.
	 */
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

/*
 * Returns the state of a task that sleeps in a call when tracing begins, if its calls are traced. (Older kernels have
 * no test of whether another task is in a cgroup.)
 */
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

/* Returns whether an exit with this number belongs to the open call. */
static __always_inline int closes(struct call *call, u32 flags, s32 nr)
{
	/* An execve may return in another ABI than it was entered in, under the number of execve there. */
	return call->nr == nr || flags & (PLAN_SIGRETURN | PLAN_EXECUTES);
}
