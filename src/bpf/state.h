/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The state of the programs: that of each task, and the counters.
 *
 * All memory belongs to a task, because a program may be preempted by another task on the same CPU. A traced task has a
 * struct task; a task that made a call whose memory is copied also has a struct scratch.
 */
#pragma once

#include "plan.h"
#include "record.h"

/*
 * The kernel allocates at most 8 KiB for a value in task storage where it may not sleep; about 150 bytes of that are
 * its own.
 */
#define SCRATCH_BYTES 8000
/* The maximum number of bytes of one piece. */
#define PIECE_MAX 4096

/* The maximum number of messages of an array that are followed. */
#define MESSAGES_MAX 8

/* The maximum number of descriptors in control messages whose files are recorded. */
#define PASSED_MAX 16

/* The values of struct task's mode. */
enum mode {
	MODE_UNKNOWN,
	MODE_TRACED,
	/* rtrace's child before it executes the command: only its execve is traced. */
	MODE_SET_UP,
	MODE_EXCLUDED,
};

/* The number of files that a task remembers, by descriptor. */
#define FILES_MAX 32

struct known_file {
	/* A hash of everything that its name depends on. */
	u64 key;
	/* The file's identifier; 0: none. */
	u64 id;
};

struct task {
	u32 mode;
	/* The number of records that were lost since the last one that was written. */
	u32 lost;
	/* OPEN_*: whether a call is open, and where its data is. */
	u32 open;
	/* The index of that call's plan. */
	u32 place;
	/* The start of the call that was last listed as pending. */
	u64 listed;
	/* The number of calls that began and are not in the counters yet, where calls are aggregated. */
	u64 begun;
	/* The task executed a program, and the record of that call was written. */
	u16 executed;
	/* The task was created during the trace, and has not returned from the call that created it. */
	u8 fresh;
	/* The open call satisfies the condition for a snapshot, as far as its entry shows. */
	u8 matches;
	/* The index, plus one, of the effect that answers the open call; 0: none does. */
	u16 effect;
	/* The open call was answered. */
	u8 answered;
	/* The signal that the task gets after the open call; 0: none. */
	u8 signal;
	/* The initial stack pointer, if the task is a thread that was created during the trace. */
	u64 stack_top;
	/* The start of the call whose stack was last listed. */
	u64 stack_listed;
	struct call call;
};

enum {
	OPEN_NONE,
	OPEN_IN_TASK,
	OPEN_IN_SCRATCH,
	/* A filter excludes the call: only its number and ABI are stored, in struct task. */
	OPEN_EXCLUDED,
	/* Like OPEN_IN_TASK, but only until the iteration that found the call in flight has decided whether it is. */
	OPEN_BEGUN,
};

/* Takes the open call of the current task: returns OPEN_*, but never OPEN_BEGUN. */
static __always_inline u32 take_open(struct task *task)
{
	u32 open = task->open;

	if (open == OPEN_BEGUN) {
		open = __sync_lock_test_and_set(&task->open, OPEN_NONE);
		return open == OPEN_BEGUN ? OPEN_IN_TASK : open;
	}
	task->open = OPEN_NONE;
	return open;
}

/* The file that is being examined, and the state of the path walk from it to the root. */
struct walk {
	u64 file;
	u64 pointer;
	u64 dentry, mount;
	u64 root_dentry, root_mount;
	/* The current position of the walk. */
	u64 here_dentry, here_mount;
	/* The number of bytes of names that were written. */
	u32 used;
	/* enum file_kind */
	u32 kind;
	s32 pid;
	/* A name was being changed during the walk, so that its components may not belong together. */
	u32 changing;
	u32 is_over;
	u32 unused;
	struct socket_info socket;
};

/*
 * A deferred copy: memory that did not fit into the record. At most `left` of the `wanted` bytes from `address` on are
 * still to be copied.
 */
struct deferred {
	u64 address;
	u64 wanted;
	u32 left;
	u16 tag;
	u16 kind;
};

enum {
	DEFERRED_BYTES = 1,
	/* A string up to its NUL, whose length is not known. */
	DEFERRED_STRING = 2,
	/* A piece with the bytes before it was written. */
	DEFERRED_BEGUN = 4,
};

#define DEFERRED_MAX 256

struct deferred_copies {
	struct deferred list[DEFERRED_MAX];
};

struct scratch {
	struct known_file files[FILES_MAX];
	struct walk walk;
	/* Bit i: operation i could not read its memory at entry. */
	u32 retry;
	/* The value at entry of a length that the kernel overwrites, and that of the address of each message. */
	u32 room;
	u32 rooms[MESSAGES_MAX];
	/*
	 * The deferred copies of this call, the index of the next one, and the number of partial records that were
	 * written.
	 */
	u32 deferred_count;
	u32 deferred_next;
	u32 parts;
	/*
	 * The offset, plus one, of the piece with pointers of which one string could not be read, and that piece's tag;
	 * 0: none.
	 */
	u32 unread;
	u32 unread_tag;
	/* The maximum number of bytes that are copied of the data of a socket. */
	u32 data_limit;
	/* The descriptors in the control messages that were copied. */
	s32 passed[PASSED_MAX];
	u32 passed_count;
	u32 unused;
	struct call call;
	u8 payload[SCRATCH_BYTES - FILES_MAX * sizeof(struct known_file) - sizeof(struct walk) - sizeof(struct call) - 40 - 4 * (MESSAGES_MAX + PASSED_MAX)];
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
	__type(value, struct deferred_copies);
} deferred_of SEC(".maps");

/* Added to a pid, this makes the key of a process. */
#define SEED_PROCESS (1ULL << 32)

/* The tasks and processes that are named when tracing begins, with their mode. */
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

/* One perf event on each CPU for each kind of record. Their rings are read like those of all other events. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__type(key, u32);
	__type(value, u32);
} output SEC(".maps");

/* Set to stop recording calls, and then everything: detaching programs from tracepoints' events takes long. */
enum is_over {
	CALLS_ARE_OVER = 1,
	ALL_IS_OVER,
};
volatile u64 is_over SEC(".data.is_over");

/* The counters, which account.rs reads. */
struct account {
	/* Traced calls, counted when they begin, or at the exit if they have no entry. */
	u64 calls;
	/* Lost records of calls. */
	u64 calls_lost;
	/* Lost records of ends of tasks and of signals. */
	u64 ends_lost;
	/*
	 * Tasks that could not be followed because there was no memory for their state. (The kernel has little memory
	 * in reserve where a program may not wait for it.)
	 */
	u64 tasks_lost;
	/* Calls whose memory was not copied because no struct scratch could be allocated. */
	u64 scratch_lost;
	/* Lost partial records of calls. */
	u64 parts_lost;
	/*
	 * 32-bit programs that were started or already running where only events of single syscalls are traced, which
	 * do not fire for their calls.
	 */
	u64 compat;
	/* Calls that a filter certainly excludes. */
	u64 left_out;
	/*
	 * Calls of tasks that are not the caller's own, where rtrace was lent its privileges. No other counter includes
	 * them.
	 */
	u64 withheld;
	/* Calls that an effect should have answered, but that were executed. */
	u64 unchanged;
	/* Calls that satisfied the condition for a snapshot. */
	u64 matches;
	/* The bytes that were written to the ring of this CPU, where it is overwritten. */
	u64 written;
};

/* One element for each CPU. It is not a per-CPU map, because those cannot be mapped (src/sys/map_memory.rs). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* as many as CPUs are possible, when that is known */
	__type(key, u32);
	__type(value, struct account);
} accounts SEC(".maps");

/* Two tasks may increment a CPU's counter at the same time if one was preempted by the other. */
#define COUNT_MORE(what, count)                                                   \
	do {                                                                      \
		u32 here_ = bpf_get_smp_processor_id();                           \
		struct account *account_ = bpf_map_lookup_elem(&accounts, &here_); \
		if (account_)                                                     \
			__sync_fetch_and_add(&account_->what, count);             \
	} while (0)
#define COUNT(what) COUNT_MORE(what, 1)

/*
 * Counts a call that begins. The programs on calls are not preempted by other tasks, so that their counter needs no
 * locked instruction; all other increments of it are by one.
 */
#define COUNT_BEGUN()                                                              \
	do {                                                                       \
		u32 here_ = bpf_get_smp_processor_id();                            \
		struct account *account_ = bpf_map_lookup_elem(&accounts, &here_); \
		if (account_)                                                      \
			account_->calls++;                                         \
	} while (0)

/*
 * The epoch of the names of files. Where rings are overwritten, the record with the name of a file is overwritten too,
 * so each task names its files again in each epoch (files.h). An epoch ends when a CPU has written a part of its ring,
 * so that every name that a record refers to is at most that far before it.
 */
u64 names_epoch = 0;

/* At most this many bytes of a record are not the program's: the header, the identifier, and a size with padding. */
#define RECORD_EXTRA 32

static __always_inline void count_written(u64 size)
{
	u32 here = bpf_get_smp_processor_id();
	struct account *account = bpf_map_lookup_elem(&accounts, &here);

	if (!account)
		return;
	u64 before = account->written, after = before + size + RECORD_EXTRA;
	account->written = after;
	if ((before ^ after) & settings.epoch_bytes)
		__sync_fetch_and_add(&names_epoch, 1);
}

/*
 * Writes a record to the event with this index in `output`; 0 if there was room for it. It is no part of its callers,
 * so that what it keeps on the stack is not on theirs.
 */
static __noinline long put_record(void *ctx, u64 event, void *record, u64 size)
{
	if (settings.epoch_bytes)
		count_written(size);
	return bpf_perf_event_output(ctx, &output, event, record, size);
}

/*
 * Set while a call that satisfied the condition for a snapshot was reported, and user space has not taken the snapshot
 * yet. Further calls are only counted.
 */
volatile u64 match_reported SEC(".data.match_reported");
