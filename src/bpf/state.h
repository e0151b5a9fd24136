/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is remembered: of each task, and in the account.
 *
 * All memory is the task's own, because a program may be interrupted in favour of another task on the same CPU. Traced tasks have a struct task; one that made a call
 * whose memory is copied has a struct scratch besides.
 */
#pragma once

#include "plan.h"
#include "record.h"

/* The kernel allots no more than 8 KiB to a task's value where it may not sleep; its own part of that is some 150 bytes. */
#define SCRATCH_BYTES 8000
/* The most bytes of one piece. */
#define PIECE_MAX 4096

/* Messages of an array that are followed. */
#define MESSAGES_MAX 8

/* enum of struct task's mode. */
enum mode {
	MODE_UNKNOWN,
	MODE_TRACED,
	/* rtrace's child before it executes the command: only its execve counts. */
	MODE_SET_UP,
	MODE_EXCLUDED,
};

/* Files that a task remembers, by descriptor. */
#define FILES_MAX 32

struct known_file {
	/* Of all that makes its name. */
	u64 key;
	/* 0: none. */
	u64 id;
};

struct task {
	u32 mode;
	/* Records that found no room since the last that did. */
	u32 lost;
	/* OPEN_*: a call was entered, and where it stands. */
	u32 open;
	/* The place of that call's plan. */
	u32 place;
	/* The start of the call that was listed last as pending. */
	u64 listed;
	/* Calls that began and are not in the account yet, where they are summed up. */
	u64 begun;
	/* It executed a program, and the call that did it was given. */
	u32 executed;
	u32 unused;
	/* Where its stack began, if it is a thread that was made under trace. */
	u64 stack_top;
	/* The start of the call whose stack was listed last. */
	u64 stack_listed;
	struct call call;
};

enum {
	OPEN_NONE,
	OPEN_HERE,
	OPEN_IN_SCRATCH,
	/* It is left out: of it only number and ABI are known, here. */
	OPEN_LEFT_OUT,
	/* As OPEN_HERE, but only until the look that met it in flight has decided whether it is. */
	OPEN_BEGUN,
};

/* Takes a task's open call, where the task itself is at work: OPEN_*, but not OPEN_BEGUN. */
static __always_inline u32 take_open(struct task *task)
{
	u32 open = task->open;

	if (open == OPEN_BEGUN) {
		open = __sync_lock_test_and_set(&task->open, OPEN_NONE);
		return open == OPEN_BEGUN ? OPEN_HERE : open;
	}
	task->open = OPEN_NONE;
	return open;
}

/* A file that is looked at, and the way up from it to the root. */
struct walk {
	u64 file;
	u64 pointer;
	u64 dentry, mount;
	u64 root_dentry, root_mount;
	/* How far it was gone. */
	u64 here_dentry, here_mount;
	/* How many bytes of names were told. */
	u32 used;
	/* enum file_kind */
	u32 kind;
	s32 pid;
	/* A name was just being changed: its parts may not belong together. */
	u32 changing;
	u32 is_over;
	u32 unused;
	struct socket_note socket;
};

/* What did not fit into the record and is still to be copied: no more than `left` of the `wanted` bytes from `address` on. */
struct debt {
	u64 address;
	u64 wanted;
	u32 left;
	u16 tag;
	u16 kind;
};

enum {
	DEBT_BYTES = 1,
	/* Up to a NUL; what is wanted is not known. */
	DEBT_STRING = 2,
	/* A piece with what stands before it was given. */
	DEBT_BEGUN = 4,
};

#define DEBTS_MAX 64

struct debts {
	struct debt list[DEBTS_MAX];
};

struct scratch {
	struct known_file files[FILES_MAX];
	struct walk walk;
	/* Bit i: operation i could not read at entry. */
	u32 retry;
	/* What a length that the kernel overwrites was at entry; that of each message's address. */
	u32 room;
	u32 rooms[MESSAGES_MAX];
	/* Debts of this call, the next that is to be paid, and records with parts of the call that were written. */
	u32 debts;
	u32 debt;
	u32 parts;
	/* One more than where the piece of pointers is behind which a string could not be read, and that piece's tag; 0: none. */
	u32 unread;
	u32 unread_tag;
	u32 unused;
	struct call call;
	u8 payload[SCRATCH_BYTES - FILES_MAX * sizeof(struct known_file) - sizeof(struct walk) - sizeof(struct call) - 32 - 4 * MESSAGES_MAX];
};

_Static_assert(sizeof(struct scratch) == SCRATCH_BYTES, "no padding");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task);
} tasks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct scratch);
} scratches SEC(".maps");

/* Few calls have such data. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct debts);
} debts_of SEC(".maps");

/* A key that means a process: its number and this. */
#define SEED_PROCESS (1ULL << 32)

/* Tasks and processes that are known from the start, and their mode. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1); /* as many as there are, when that is known */
	__type(key, u64);
	__type(value, u32);
} seeds SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} cgroup SEC(".maps");

/* One perf event a CPU for each kind of record; their ring is read like that of all other events. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__type(key, u32);
	__type(value, u32);
} output SEC(".maps");

/* Set when no calls, then when nothing is to be recorded any more: tracepoints' events take long to be rid of. */
enum is_over {
	CALLS_ARE_OVER = 1,
	ALL_IS_OVER,
};
volatile u64 is_over SEC(".data.is_over");

/* account.rs reads it. */
struct account {
	/* Calls that are wanted: counted when they begin, or at the exit of one that has no entry. */
	u64 calls;
	/* Their records that found no room. */
	u64 calls_lost;
	/* The same of how tasks end, and of signals. */
	u64 ends_lost;
	/* Tasks that could not be followed: no memory for their state. (The kernel keeps little at hand where nobody may wait for it.) */
	u64 tasks_lost;
	/* Calls whose memory was not copied, because there was none to copy it to. */
	u64 scratch_lost;
	/* Records with parts of calls that found no room. */
	u64 parts_lost;
	/* 32-bit programs that were begun, or there, where only events of single syscalls are looked at: those do not see their calls. */
	u64 compat;
	/* Calls of which it was certain that they are not to be shown. */
	u64 left_out;
	/* Calls of tasks that are not the caller's alone, where rtrace was lent its privileges: they are in no other count. */
	u64 withheld;
};

/* One a CPU. It is no per-CPU map because those cannot be mapped: see src/sys/map_memory.rs. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* as many as CPUs are possible, when that is known */
	__type(key, u32);
	__type(value, struct account);
} accounts SEC(".maps");

/* A CPU's count may be added to by two tasks, one of which was interrupted by the other. */
#define COUNT_MORE(what, count)                                                   \
	do {                                                                      \
		u32 here_ = bpf_get_smp_processor_id();                           \
		struct account *account_ = bpf_map_lookup_elem(&accounts, &here_); \
		if (account_)                                                     \
			__sync_fetch_and_add(&account_->what, count);             \
	} while (0)
#define COUNT(what) COUNT_MORE(what, 1)

/* A call that begins. The programs on calls are not interrupted in favour of other tasks, so their count needs no locked instruction; nobody else adds to it but by one. */
#define COUNT_BEGUN()                                                              \
	do {                                                                       \
		u32 here_ = bpf_get_smp_processor_id();                            \
		struct account *account_ = bpf_map_lookup_elem(&accounts, &here_); \
		if (account_)                                                      \
			account_->calls++;                                         \
	} while (0)
