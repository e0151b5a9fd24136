/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * File descriptors that are not plain arguments: those in an array, and those of another process.
 */
#pragma once

#include "files.h"
#include "own.h"

/* The number of elements of an array whose descriptors are recorded. */
#define POLLED_MAX 16
/* sizeof(struct pollfd) */
#define POLLFD_BYTES 8

/*
 * The kernel's functions that find a task by its pid: in the first namespace (from 6.2 on), or in the caller's (from
 * 6.14 on).
 */
static struct task_struct *(*const task_from_pid)(s32 pid) = KERNEL_FUNCTION(TASK_FROM_PID);
static struct task_struct *(*const task_from_vpid)(s32 pid) = KERNEL_FUNCTION(TASK_FROM_VPID);
static void (*const task_release)(struct task_struct *task) = KERNEL_FUNCTION(TASK_RELEASE);

/* Releases the reference and returns the address. The task is not freed before this program ends. */
static __always_inline u64 release_task(struct walk *walk, struct task_struct *task)
{
	if (!task)
		return 0;
	u64 number = number_of(walk, task);
	task_release(task);
	return number;
}

static __always_inline u64 task_in_first_namespace(struct walk *walk, s32 pid)
{
	return kernel_types.bpf_task_from_pid && pid > 0 ? release_task(walk, task_from_pid(pid)) : 0;
}

/* Returns the task with this pid in the caller's namespace. */
static __always_inline u64 task_by_callers_pid(struct walk *walk, s32 pid)
{
	if (kernel_types.bpf_task_from_vpid)
		return release_task(walk, task_from_vpid(pid));
	struct task_struct *current = bpf_get_current_task_btf();
	u64 own = number_of(walk, MEMBER(task_struct, current, thread_pid));
	return MEMBER(pid, own, level) == 0 ? task_in_first_namespace(walk, pid) : 0;
}

/* Returns the task of one of the caller's pidfds. */
static __always_inline u64 task_of_pidfd(struct walk *walk, s32 fd)
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

static __always_inline void add_task_file(struct scratch *scratch, u64 task, u32 arg)
{
	if (task && may_be_shown((struct task_struct *)task))
		add_file_of(scratch, task, scratch->call.args[arg], TAG(ARG_FILE | arg, WHEN_ENTRY));
}

static __always_inline void add_polled_files(struct scratch *scratch)
{
	u64 address = scratch->call.args[0];
	u32 count = scratch->call.args[1];

	for (u32 i = 0; i < POLLED_MAX && i < count; i++) {
		s32 fd;
		if (bpf_probe_read_user(&fd, sizeof(fd), (void *)(address + i * POLLFD_BYTES)))
			return;
		add_file(scratch, fd, TAG(ARG_FILE | ARG_INSIDE, WHEN_ENTRY));
	}
}

/* Adds the file of the descriptor at the beginning of the memory that argument 1 points to. */
static __always_inline void add_first_file(struct scratch *scratch)
{
	s32 fd;

	if (!bpf_probe_read_user(&fd, sizeof(fd), (void *)scratch->call.args[1]))
		add_file(scratch, fd, TAG(ARG_FILE | ARG_INSIDE | 1, WHEN_ENTRY));
}

/* Adds the files of descriptors that are not plain arguments, at entry. */
__noinline int add_indirect_files(struct scratch *scratch, u32 indirect_fds)
{
	if (!scratch)
		return 0;
	struct walk *walk = &scratch->walk;

	switch (indirect_fds) {
	case INDIRECT_POLLED:
		add_polled_files(scratch);
		break;
	case INDIRECT_COMPARED:
		add_task_file(scratch, task_by_callers_pid(walk, scratch->call.args[1]), 4);
		/* fallthrough */
	case INDIRECT_COMPARED_ONE:
		add_task_file(scratch, task_by_callers_pid(walk, scratch->call.args[0]), 3);
		break;
	case INDIRECT_FETCHED:
		add_task_file(scratch, task_of_pidfd(walk, scratch->call.args[0]), 1);
		break;
	case INDIRECT_FIRST:
		add_first_file(scratch);
		break;
	}
	return 0;
}

/* Adds the files of the two descriptors that a call has opened, after it has written them to memory. */
__noinline int add_opened_files(struct scratch *scratch, u32 indirect_fds)
{
	u32 arg = indirect_fds == INDIRECT_PAIR ? 3 : 0;
	s32 pair[2];

	if (!scratch || bpf_probe_read_user(pair, sizeof(pair), (void *)scratch->call.args[arg]))
		return 0;
	add_file(scratch, pair[0], TAG(ARG_FILE | ARG_INSIDE | arg, WHEN_EXIT));
	add_file(scratch, pair[1], TAG(ARG_FILE | ARG_INSIDE | arg, WHEN_EXIT));
	return 0;
}
