/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Descriptors that are no plain argument: those in an array, and those of another process.
 */
#pragma once

#include "files.h"
#include "own.h"

/* Elements of an array whose descriptors are looked at. */
#define POLLED_MAX 16
/* sizeof(struct pollfd) */
#define POLLFD_BYTES 8

/* Kernels from 6.2 and 6.14 on find a task by its number: in the first namespace, or in the caller's. */
static struct task_struct *(*const task_from_pid)(s32 pid) = KERNEL_FUNCTION(TASK_FROM_PID);
static struct task_struct *(*const task_from_vpid)(s32 pid) = KERNEL_FUNCTION(TASK_FROM_VPID);
static void (*const task_release)(struct task_struct *task) = KERNEL_FUNCTION(TASK_RELEASE);

/* A task is freed no earlier than this program ends; its number here needs no reference. */
static __always_inline u64 let_go(struct walk *walk, struct task_struct *task)
{
	if (!task)
		return 0;
	u64 number = number_of(walk, task);
	task_release(task);
	return number;
}

static __always_inline u64 task_in_first_namespace(struct walk *walk, s32 pid)
{
	return kernel_types.bpf_task_from_pid && pid > 0 ? let_go(walk, task_from_pid(pid)) : 0;
}

/* The task that the caller calls so. */
static __always_inline u64 task_called(struct walk *walk, s32 pid)
{
	if (kernel_types.bpf_task_from_vpid)
		return let_go(walk, task_from_vpid(pid));
	struct task_struct *current = bpf_get_current_task_btf();
	u64 own = number_of(walk, MEMBER(task_struct, current, thread_pid));
	return MEMBER(pid, own, level) == 0 ? task_in_first_namespace(walk, pid) : 0;
}

/* The task that this pidfd of the caller's is of. */
static __always_inline u64 task_behind(struct walk *walk, s32 fd)
{
	u64 file = file_of(walk, number_of(walk, bpf_get_current_task_btf()), fd);

	if (!file)
		return 0;
	walk->file = file;
	walk->dentry = number_of(walk, MEMBER(file, file, f_path.dentry));
	u64 inode = number_of(walk, MEMBER(file, file, f_inode));
	u64 name = number_of(walk, MEMBER(dentry, walk->dentry, d_name.name));
	u64 pid = pid_of(walk, inode, magic_of(walk), name);
	return pid ? task_in_first_namespace(walk, MEMBER(pid, pid, numbers[0].nr)) : 0;
}

static __always_inline void note_of(struct scratch *scratch, u64 task, u32 arg)
{
	if (task && may_be_shown((struct task_struct *)task))
		note_file_of(scratch, task, scratch->call.args[arg], TAG(ARG_FILE | arg, WHEN_ENTRY));
}

static __always_inline void note_polled(struct scratch *scratch)
{
	u64 address = scratch->call.args[0];
	u32 count = scratch->call.args[1];

	for (u32 i = 0; i < POLLED_MAX && i < count; i++) {
		s32 fd;
		if (bpf_probe_read_user(&fd, sizeof(fd), (void *)(address + i * POLLFD_BYTES)))
			return;
		note_file(scratch, fd, TAG(ARG_FILE | ARG_INSIDE, WHEN_ENTRY));
	}
}

/* Looks at the descriptors that are elsewhere, at entry. */
__noinline int note_elsewhere(struct scratch *scratch, u32 elsewhere)
{
	if (!scratch)
		return 0;
	struct walk *walk = &scratch->walk;

	switch (elsewhere) {
	case ELSEWHERE_POLLED:
		note_polled(scratch);
		break;
	case ELSEWHERE_COMPARED:
		note_of(scratch, task_called(walk, scratch->call.args[1]), 4);
		/* fallthrough */
	case ELSEWHERE_COMPARED_ONE:
		note_of(scratch, task_called(walk, scratch->call.args[0]), 3);
		break;
	case ELSEWHERE_FETCHED:
		note_of(scratch, task_behind(walk, scratch->call.args[0]), 1);
		break;
	}
	return 0;
}
