/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The numbers of tasks and processes in rtrace's own pid namespace, which are those that ps shows there. A task has one
 * number in each namespace from the first down to its own, and none in others.
 */
#pragma once

#include "members.h"

/* include/linux/pid.h: a struct pid has one struct upid for each namespace. Before 6.5 the type declares only one. */
#define UPID_BYTES 16
#define UPID_NAMESPACE 8

/* The index of a task's process id: PIDTYPE_TGID in include/linux/pid_types.h. */
#define OF_PROCESS 1

/* rtrace's own namespace, where it is not the first one: its level and its address. */
struct own_namespace {
	u64 level;
	u64 address;
};
volatile struct own_namespace own_namespace SEC(".data.own_namespace");

/* Returns how many numbers the struct pid at this address has in addition to the one in the first namespace. */
static __always_inline u64 level_of(u64 pid)
{
	u32 level;

	return bpf_probe_read_kernel(&level, sizeof(level), (void *)(pid + bpf_core_field_offset(struct pid, level))) ? 0 : level;
}

static __always_inline u64 upid_at(u64 pid, u64 level)
{
	return pid + bpf_core_field_offset(struct pid, numbers) + level * UPID_BYTES;
}

/*
 * Returns the number of a struct pid in rtrace's namespace; 0 if it has none there. A global function, because stacks
 * are small.
 */
__noinline s32 number_here(u64 pid)
{
	u64 level = settings.nested ? own_namespace.level : 0, namespace;
	s32 number;

	if (!pid || level_of(pid) < level)
		return 0;
	u64 upid = upid_at(pid, level);
	if (bpf_probe_read_kernel(&namespace, sizeof(namespace), (void *)(upid + UPID_NAMESPACE)))
		return 0;
	/* Every task has a number in the first namespace. */
	if (settings.nested && namespace != own_namespace.address)
		return 0;
	return bpf_probe_read_kernel(&number, sizeof(number), (void *)upid) ? 0 : number;
}

static __noinline s32 number_in_namespace(struct task_struct *task, u32 of_process)
{
	void *address = &task->thread_pid;
	u64 pid;

	if (of_process) {
		struct signal_struct *process = FOLLOW(task_struct, task, signal);
		address = &process->pids[OF_PROCESS];
	}
	return bpf_probe_read_kernel(&pid, sizeof(pid), address) ? 0 : number_here(pid);
}

static __always_inline s32 number_of_task(struct task_struct *task)
{
	return settings.nested ? number_in_namespace(task, 0) : task->pid;
}

static __always_inline s32 number_of_process(struct task_struct *task)
{
	return settings.nested ? number_in_namespace(task, 1) : task->tgid;
}

/* Returns whether a task has a number in rtrace's namespace; a task without one is not traced. */
static __always_inline int is_visible(struct task_struct *task)
{
	return !settings.nested || number_of_task(task);
}

/* Returns whether a task is in a pid namespace below rtrace's, to which the pids in its calls belong. */
static __always_inline int is_nested(struct task_struct *task)
{
	return FOLLOW(pid, FOLLOW(task_struct, task, thread_pid), level) > (settings.nested ? own_namespace.level : 0);
}

/* Finds the pid namespace of rtrace, which runs this program. */
SEC("iter/task")
int find_own_namespace(struct bpf_iter__task *ctx)
{
	struct task_struct *current = bpf_get_current_task_btf();
	u64 pid, namespace;

	/* Only once, after the last task. */
	if (ctx->task || bpf_probe_read_kernel(&pid, sizeof(pid), &current->thread_pid))
		return 0;
	u64 level = level_of(pid);
	if (bpf_probe_read_kernel(&namespace, sizeof(namespace), (void *)(upid_at(pid, level) + UPID_NAMESPACE)))
		return 0;
	own_namespace.level = level;
	own_namespace.address = namespace;
	return 0;
}
