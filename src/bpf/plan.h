/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The settings that user space writes before loading: they are constants to the verifier. settings.rs and encode.rs
 * mirror this file.
 */
#pragma once

#include "kernel.h"

/* In the order of Abi in the Rust code. */
enum abi { ABI_X86_64, ABI_I386, ABI_X32, ABI_AARCH64, ABI_COUNT };

/* The number of syscall numbers in each ABI that have a plan. */
#define NR_COUNT 1024
/* The index of the plan of all other numbers, which follows them. */
#define NR_OTHER (ABI_COUNT * NR_COUNT)
#define NR_SIGNAL (NR_OTHER + 1)
/* The maximum number of different plans. */
#define PLANS_MAX 1024
#define OPS_MAX 6
/*
 * Values of arguments that select a plan, in a hash table with open addressing: each value is in one of the first few
 * slots from the one that its hash selects.
 */
#define CHOICES_BITS 15
#define CHOICES_MAX (1 << CHOICES_BITS)
#define PROBES_MAX 8
/* The maximum number of arguments that select a plan. They are looked up one after the other. */
#define CHOOSERS_MAX 3
/* The number of opcodes for which a request of io_uring has room. */
#define REQUESTS_MAX 256
/* The maximum number of pointers in structs that are followed. */
#define LINKS_MAX 192

enum scope {
	/* The tasks in the map seeds, and the tasks that they create. */
	SCOPE_TASKS,
	SCOPE_EVERYONE,
	/* Tasks that are in the cgroup when they make the call. */
	SCOPE_CGROUP,
	/* Tasks that are of the user when they make the call. */
	SCOPE_USER,
};

/* The tracepoints that the programs on calls are attached to. */
enum hooks {
	/* The tracepoints of all calls. */
	HOOKS_ALL,
	/* The events of single syscalls, which fire only for calls of the machine's native ABI. */
	HOOKS_OWN,
	/* The tracepoints of all calls, for the calls that have no such events. */
	HOOKS_COMPAT,
};

struct settings {
	u32 scope;
	/* Tasks that a traced task creates are traced too. */
	u32 inherit;
	/* The ends of tasks are recorded. */
	u32 ends;
	/* A call that has been in flight for this many ns is listed. */
	u32 pending_after;
	/* rt_sigreturn is traced: its exit has lost the number. */
	u32 sigreturn;
	/* The maximum number of bytes that are copied of one string or buffer. */
	u32 string_limit;
	/* Calls are aggregated, and none of the memory that their arguments point to is copied. */
	u32 sums;
	u32 hooks;
	/* Only calls that fail are recorded. */
	u32 failures;
	u32 user;
	/* Some calls have filters. */
	u32 filters;
	/*
	 * The number of CPUs, each of which has an event for every kind of record with stacks; 0: there are no such
	 * kinds.
	 */
	u32 cpus;
	/* Only calls that take at least this many ns are recorded. */
	u64 min_duration;
	/* rtrace is in a pid namespace below the first one. */
	u32 nested;
	/*
	 * rtrace's privileges are lent to its caller: only the caller's own tasks are shown (own.h). `user` and `group`
	 * are the caller's.
	 */
	u32 own_only;
	u32 group;
	/* The maximum number of bytes that are copied of netlink messages and of control messages. */
	u32 struct_limit;
	/* Some calls have a record of their entry. */
	u32 entries;
	/* The path of the current directory is recorded for AT_FDCWD. */
	u32 directories;
	/* The supervisor may want tasks to get signals (due_signals). */
	u32 sends_signals;
	/* The programs themselves change calls (inject.h). */
	u32 injects;
	/*
	 * The ring of a CPU is overwritten: whenever this many bytes (a power of two) were written to it, a new epoch of
	 * names begins (state.h). 0: rings are not overwritten.
	 */
	u32 epoch_bytes;
	/*
	 * The index in `output` of the event of CPU 0 that reports calls which satisfy the condition for a snapshot; 0:
	 * there is none.
	 */
	u32 matches;
};

enum {
	PLAN_WANTED = 1,
	/* An exit with its number may be that of another traced call (execveat returns as execve). */
	PLAN_EXIT_MATTERS = 2,
	/* The call returns a second time, with 0, in the new task. */
	PLAN_CLONES = 4,
	PLAN_EXECUTES = 8,
	PLAN_NEVER_RETURNS = 16,
	/* The kernel forgets the call's number before its exit. */
	PLAN_SIGRETURN = 32,
	/* The call returns a file descriptor. */
	PLAN_OPENS = 64,
	/* Memory is copied at the call's exit, so that its record is written noticeably later. */
	PLAN_WORKS_AT_EXIT = 128,
	/* The call returns an int in the lower half of the register, and 0 in the upper half. */
	PLAN_RETURNS_INT = 256,
	/* The call's entry has a record of its own. */
	PLAN_RECORDS_ENTRY = 512,
};

/* What is copied of the caller's memory. */
enum op_kind {
	/* A string up to its NUL. */
	OP_STRING,
	/* `count` elements of `size` bytes. */
	OP_BYTES,
	/* A mask of `count` bits, in whole words of `size` bytes. */
	OP_BITS,
	/* A node mask, of which the kernel reads one bit less than the call says (mm/mempolicy.c). */
	OP_NODES,
	/* A mask of descriptors, of which the kernel reads only those for which the caller's table has room. */
	OP_FILES,
	/*
	 * `size` bytes followed by `count` more, or by `count` elements. At entry, only the `size` bytes if the call
	 * overwrites the rest.
	 */
	OP_TAIL,
	/* One byte for each page of `count` bytes. */
	OP_PAGES,
	/* The size and direction that are encoded in an ioctl's command. */
	OP_COMMAND,
	/* A struct of `count` * `size` bytes, and the memory that it points to. */
	OP_LINKED,
	/*
	 * Pointers to strings, up to a null pointer, and `limit` bytes of each string. Here and below, `size` is that
	 * of a pointer.
	 */
	OP_STRINGS,
	/*
	 * `count` struct iovec, one struct msghdr, or `count` struct mmsghdr (to be sent if `limit` is not 0), and the
	 * memory that they point to.
	 */
	OP_IOVEC,
	OP_MSGHDR,
	OP_MMSGHDR,
	/* `count` pointers, and the `limit` bytes that each of them points to. */
	OP_POINTERS,
};

/* The source of a count; smaller values are the index of an argument. */
enum {
	COUNT_RETURN = 6,
	COUNT_ONE,
	/* A u32 in the memory that an argument points to; the index of the argument is added. */
	COUNT_AT = 16,
};

enum {
	OP_AT_ENTRY = 1,
	OP_AT_EXIT = 2,
	/* At exit also if a signal interrupted the call. */
	OP_INTERRUPTED = 4,
	/* The argument with the count is an int: the upper half of its register is undefined. */
	OP_COUNT_32 = 8,
	/* At exit also if the call failed. */
	OP_FAILED = 16,
	/* At exit only if the call returned more than 0. */
	OP_POSITIVE = 32,
	/* At exit not if the call succeeded. */
	OP_NOT_DONE = 64,
	/* At exit also if the call failed with E2BIG or EOVERFLOW. */
	OP_TOO_SMALL = 128,
};

/* Whether the call uses the argument at all: a test of the lower half of another argument. */
enum op_test {
	TEST_NONE,
	/* Some bit of the mask is set, or none is. */
	TEST_ANY,
	TEST_NO,
	/* The value equals the mask, or does not. */
	TEST_IS,
	TEST_IS_NOT,
};

struct op {
	u8 arg;
	u8 kind;
	u8 when;
	u8 count;
	/* The size of an element, in bytes. */
	u16 size;
	/*
	 * The argument with the size of the buffer whose used part the return value counts, or the count for which 0 in
	 * memory stands; NO_ARG if there is none.
	 */
	u8 room;
	u8 test;
	u8 test_arg;
	/*
	 * The index of the first link, and the number of links. For OP_TAIL: the bytes of the count in memory, and
	 * those of an element.
	 */
	u8 link;
	u8 links_count;
	/* The offset of a count in the memory that an argument points to. */
	u8 count_offset;
	u32 test_mask;
	/* The maximum number of bytes that are copied. */
	u32 limit;
};

#define NO_ARG 6
/* The limit of bytes that are the data of a socket: it depends on the socket. */
#define LIMIT_OF_SOCKET 0xffffffff

/* File descriptors that are not plain arguments. */
enum indirect_fds {
	INDIRECT_NONE,
	/* In the array of struct pollfd that the first argument points to; the second argument is its length. */
	INDIRECT_POLLED,
	/* Arguments 3 and 4, or 3 alone, of the processes whose pids are arguments 0 and 1 (kcmp). */
	INDIRECT_COMPARED,
	INDIRECT_COMPARED_ONE,
	/* Argument 1, of the process whose pidfd is argument 0 (pidfd_getfd). */
	INDIRECT_FETCHED,
	/* At the beginning of the memory that argument 1 points to. */
	INDIRECT_FIRST,
	/* Two that the call opens, in the memory that argument 0 (pipe2) or 3 (socketpair) points to. */
	INDIRECT_PIPE,
	INDIRECT_PAIR,
};

struct plan {
	u16 flags;
	u8 ops_count;
	/* Bit i: argument i is a file descriptor. */
	u8 fds;
	/* If not 0, masked values of an argument select other plans. */
	u16 chooser;
	u8 chooser_arg;
	/* enum indirect_fds */
	u8 indirect_fds;
	u32 chooser_mask;
	/*
	 * The kind of the call's records by the stack that they have. If stack_last is another kind, the smallest
	 * sufficient kind from `stack` to `stack_last` is used.
	 */
	u8 stack;
	u8 stack_last;
	/* The kind that is used where the depth of the stack is not known. */
	u8 stack_usual;
	/* Bit i: argument i is a pid; bit ARG_RETURN: the return value is one. */
	u8 pids;
	/* The same for user and group ids. */
	u8 uids;
	u8 gids;
	u16 unused;
	struct op ops[OPS_MAX];
};

/* The members of struct io_uring_sqe that contain an argument (SqeField in the Rust code). */
enum sqe_field {
	SQE_NONE,
	SQE_FD,
	SQE_OFF,
	SQE_ADDR,
	SQE_LEN,
	SQE_OP_FLAGS,
	SQE_ADDR3,
	SQE_FILE_INDEX,
	SQE_SPLICE_FD_IN,
	SQE_BUF_INDEX,
	SQE_ADDR_LEN,
	SQE_CMD_OP,
};

/* How the arguments of a request are read. */
struct request_plan {
	/* The index of the plan, and that of the plan for a registered file. */
	u16 place;
	u16 registered;
	/* enum sqe_field for each argument. */
	u8 fields[6];
	/* The request's arguments are read at all. */
	u8 wanted;
	/* The request opens or closes a file, which file_index may say to be a registered one. */
	u8 opens;
};

/*
 * The maximum number of kinds of records, of which the first has no stack, and of kinds among which the smallest is
 * selected.
 */
#define STACKS_MAX 16
#define STACKS_FITTED 5

/* An argument value that selects a plan, with the number of its row and ABI in the upper half; 0 in free slots. */
struct choice {
	u64 key;
	u64 place;
};

/* A pointer in a struct, and the number of elements of `size` bytes that it points to. */
struct link {
	u16 offset;
	/* The offset of the count in the struct. */
	u16 count_offset;
	/* The sizes of the pointer and of the count. If the latter is 0, the count is the call's return value, or 1. */
	u8 bytes;
	u8 count_bytes;
	u8 count;
	u8 when;
	/* 0: the pointer is that of a string that ends with NUL. */
	u32 size;
	u32 limit;
	/* An op_test of the u32 at test_offset: the link is followed only if it holds. */
	u32 test_mask;
	u16 test_offset;
	u8 test;
	u8 unused;
};

#include "filter_settings.h"

const volatile struct settings settings SEC(".rodata.settings");
/*
 * The index in `plans` of each number in each ABI, of all others, and of signals, whose plan says which stack they
 * have. Plan 0 is that of calls that are not traced.
 */
const volatile u16 places[NR_SIGNAL + 1] SEC(".rodata.places");
const volatile struct plan plans[PLANS_MAX] SEC(".rodata.plans");
const volatile struct choice choices[CHOICES_MAX] SEC(".rodata.choices");
const volatile struct link links[LINKS_MAX] SEC(".rodata.links");
/* By opcode. */
const volatile struct request_plan request_plans[REQUESTS_MAX] SEC(".rodata.requests");
/* The number of bytes of stack of each kind. */
const volatile u32 stack_bytes[STACKS_MAX] SEC(".rodata.stacks");

/* Returns whether a value passes a test: an op_test with its mask. */
static __always_inline int passes(u32 test, u32 value, u32 mask)
{
	switch (test) {
	case TEST_ANY:
		return (value & mask) != 0;
	case TEST_NO:
		return (value & mask) == 0;
	case TEST_IS:
		return value == mask;
	case TEST_IS_NOT:
		return value != mask;
	}
	return 1;
}

/*
 * An element of an array, or the first one if the index is out of bounds. The barriers keep the compiler from
 * separating the test from the use, because the verifier could not follow that.
 */
#define ELEMENT(array, number)                               \
	({                                                   \
		u64 at_ = (number);                          \
		barrier_var(at_);                            \
		if (at_ >= sizeof(array) / sizeof(*(array))) \
			at_ = 0;                             \
		__typeof__(&(array)[0]) found_ = &(array)[at_]; \
		barrier_var(found_);                         \
		found_;                                      \
	})

static __always_inline const volatile struct plan *plan_at(u32 place)
{
	return ELEMENT(plans, place);
}

/*
 * Returns the index of the plan for this value of the selecting argument, or `place` itself if the value has no plan of
 * its own.
 */
__noinline u32 chosen(u32 place, u32 value)
{
	const volatile struct plan *plan = plan_at(place);
	u64 key = (u64)plan->chooser << 32 | (value & plan->chooser_mask);
	u64 hash = key * 0x9e3779b97f4a7c15ULL >> (64 - CHOICES_BITS);

	for (u32 i = 0; i < PROBES_MAX; i++) {
		const volatile struct choice *choice = &choices[(hash + i) & (CHOICES_MAX - 1)];
		if (choice->key == key)
			return choice->place;
		/* A value is in the first slot that was free. */
		if (!choice->key)
			break;
	}
	return place;
}
