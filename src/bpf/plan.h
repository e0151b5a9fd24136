/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What user space tells before loading: constants to the verifier. settings.rs mirrors this file.
 */
#pragma once

#include "kernel.h"

/* In the order of the Rust side's Abi. */
enum abi { ABI_X86_64, ABI_I386, ABI_X32, ABI_AARCH64, ABI_COUNT };

/* Numbers that have a plan in each ABI. */
#define NR_COUNT 1024
/* Behind them stands the plan of all other numbers. */
#define NR_OTHER (ABI_COUNT * NR_COUNT)
/* Plans that differ. */
#define PLANS_MAX 1024
#define OPS_MAX 6
/* Values of arguments that choose a plan: slots, of which a value is in one of the first few behind where its hash points to. */
#define CHOICES_BITS 12
#define CHOICES_MAX (1 << CHOICES_BITS)
#define PROBES_MAX 8
/* Pointers in structs that are followed. */
#define LINKS_MAX 64

enum scope {
	/* Tasks that were seeded, and what they make. */
	SCOPE_TASKS,
	SCOPE_EVERYONE,
	/* Whatever is in the cgroup at the time of its call. */
	SCOPE_CGROUP,
	/* Whatever is of the user then. */
	SCOPE_USER,
};

/* What the programs on calls are attached to. */
enum hooks {
	/* The tracepoints of all calls. */
	HOOKS_ALL,
	/* The events of single syscalls. Only calls of the machine's own ABI have them. */
	HOOKS_OWN,
	/* The tracepoints of all calls, for what has no such events. */
	HOOKS_BESIDE,
};

struct settings {
	u32 scope;
	/* What a traced task makes is traced. */
	u32 inherit;
	/* Tell how tasks end. */
	u32 ends;
	/* A call that has been in flight for so many ns is listed. */
	u32 pending_after;
	/* rt_sigreturn is wanted: its exit has lost the number. */
	u32 sigreturn;
	/* No more bytes of data are copied from one place. */
	u32 string_limit;
	/* Calls are summed up, and nothing is copied of what they name. */
	u32 sums;
	u32 hooks;
	/* Only calls that fail are wanted. */
	u32 failures;
	u32 user;
	/* Some calls have filters. */
	u32 filters;
	/* Events of each kind, one a CPU, of records with stacks; 0: there are none. */
	u32 cpus;
	/* Only calls that took so many ns. */
	u64 least;
	/* rtrace is in a pid namespace below the first. */
	u32 nested;
	/* rtrace's privileges are not its caller's: only what is his alone is shown (own.h). `user` and `group` are his. */
	u32 own_only;
	u32 group;
	u32 unused;
};

enum {
	PLAN_WANTED = 1,
	/* Its number may be that of the exit of another that is wanted (execveat returns as execve). */
	PLAN_EXIT_MATTERS = 2,
	/* Returns a second time, as 0, in the new task. */
	PLAN_CLONES = 4,
	PLAN_EXECUTES = 8,
	PLAN_NEVER_RETURNS = 16,
	/* The kernel forgets its number. */
	PLAN_SIGRETURN = 32,
	/* Returns a descriptor. */
	PLAN_OPENS = 64,
	/* Something is copied at its exit, so that its record is written noticeably later. */
	PLAN_WORKS_AT_EXIT = 128,
};

/* What to copy of the caller's memory. */
enum op_kind {
	/* Up to a NUL. */
	OP_STRING,
	/* As many elements of `size` bytes as `count` says. */
	OP_BYTES,
	/* As many bits, in whole words of `size` bytes. */
	OP_BITS,
	/* The same of a node mask, of which the kernel takes one bit less than the call says (mm/mempolicy.c). */
	OP_NODES,
	/* `size` bytes and as many more; what the call overwrites counts only behind it. */
	OP_TAIL,
	/* A byte for each page that as many bytes take. */
	OP_PAGES,
	/* What an ioctl's command says of size and direction. */
	OP_COMMAND,
	/* A struct of as many bytes, and what it points to. */
	OP_LINKED,
	/* Pointers to strings, up to a null one; `limit` bytes of each string. `size` is that of a pointer, here and below. */
	OP_STRINGS,
	/* `count` struct iovec, struct msghdr, `count` struct mmsghdr (to be sent if `limit` is not 0), and what they point to. */
	OP_IOVEC,
	OP_MSGHDR,
	OP_MMSGHDR,
};

/* Where a count comes from; smaller values are an argument's number. */
enum {
	COUNT_RETURN = 6,
	COUNT_ONE,
	/* The u32 that an argument points to. */
	COUNT_AT = 16,
};

enum {
	OP_AT_ENTRY = 1,
	OP_AT_EXIT = 2,
	/* At exit also if a signal interrupted the call. */
	OP_INTERRUPTED = 4,
	/* The argument that counts is an int: the register's upper half means nothing. */
	OP_COUNT_32 = 8,
	/* At exit also if the call failed. */
	OP_FAILED = 16,
	/* At exit only if the call returned more than 0. */
	OP_POSITIVE = 32,
	/* At exit not if the call succeeded. */
	OP_NOT_DONE = 64,
};

/* Whether the call uses the argument at all: a test of another one's lower half. */
enum op_test {
	TEST_NONE,
	/* Some bit of the mask is set, or none. */
	TEST_ANY,
	TEST_NO,
	/* It is the mask, or it is not. */
	TEST_IS,
	TEST_IS_NOT,
	/* Its lower seven bits are the number of a bit of the mask. */
	TEST_AMONG,
};

struct op {
	u8 arg;
	u8 kind;
	u8 when;
	u8 count;
	/* Of an element, bytes. */
	u16 size;
	/* The argument that says how much room there is for what the return counts; NO_ARG if none does. */
	u8 room;
	u8 test;
	u8 test_arg;
	/* The first of its links, and how many. */
	u8 link;
	u8 links_count;
	u8 unused;
	u32 test_mask;
	/* No more bytes than this are copied. */
	u32 limit;
};

#define NO_ARG 6

/* Descriptors that no argument is. */
enum elsewhere {
	ELSEWHERE_NONE,
	/* In the struct pollfd to which the first argument points; the second counts them. */
	ELSEWHERE_POLLED,
	/* Arguments 3 and 4, or 3 alone, of the processes that arguments 0 and 1 are. */
	ELSEWHERE_COMPARED,
	ELSEWHERE_COMPARED_ONE,
	/* Argument 1, of the process whose pidfd is argument 0. */
	ELSEWHERE_FETCHED,
};

struct plan {
	u16 flags;
	u8 ops_count;
	/* Bit i: argument i is a descriptor. */
	u8 fds;
	/* If not 0, values of an argument, masked, choose other plans. */
	u16 chooser;
	u8 chooser_arg;
	/* enum elsewhere */
	u8 elsewhere;
	u32 chooser_mask;
	/* The kind of its records, by what of the stack they have; if the last one is another, the smallest that will do from the one to the other. */
	u8 stack;
	u8 stack_last;
	/* Where it is not known how deep the stack is. */
	u8 stack_usual;
	/* Bit i: argument i is the number of a task; bit ARG_RETURN: the return is. */
	u8 pids;
	/* The same for users and groups. */
	u8 uids;
	u8 gids;
	u16 unused;
	struct op ops[OPS_MAX];
};

/* Kinds of records: the first has nothing of the stack. The smallest of so many is taken at most. */
#define STACKS_MAX 16
#define STACKS_FITTED 5

/* A value that chooses, behind its chooser in the upper half; 0 in slots that are free. */
struct choice {
	u64 key;
	u64 place;
};

/* A pointer in a struct, and how many elements of `size` bytes it points to. */
struct link {
	u16 offset;
	/* Where in the struct the count is. */
	u16 count_offset;
	/* Of the pointer, and of the count; without bytes the count is the call's return, or 1. */
	u8 bytes;
	u8 count_bytes;
	u8 count;
	u8 when;
	u32 size;
	u32 limit;
	/* Only with one of these bits in the struct's first word, unless there are none. */
	u32 flags;
};

/* filter.rs: what is decided here of --filter. */
#define TESTS_MAX 8
#define FILTERS_MAX 32
#define TEXTS_MAX 32
#define TEXT_BYTES 64

/* What a test is about; smaller values are an argument's number. */
enum {
	FILTER_RET = 6,
	FILTER_ERRNO,
	FILTER_DURATION,
	FILTER_PID,
	FILTER_TID,
	FILTER_COMM,
	/* The string that an argument points to. */
	FILTER_TEXT = 16,
};

enum filter_op {
	FILTER_EQUAL,
	FILTER_NOT_EQUAL,
	FILTER_LESS,
	FILTER_LESS_OR_EQUAL,
	FILTER_GREATER,
	FILTER_GREATER_OR_EQUAL,
	FILTER_ANY_BIT,
	FILTER_ALL_BITS,
	FILTER_IS,
	FILTER_IS_NOT,
	FILTER_BEGINS_WITH,
	FILTER_BEGINS_OTHERWISE,
};

/* WIDTH_SPLIT: signed, 64 bits, over two registers. */
enum filter_width { WIDTH_S32, WIDTH_U32, WIDTH_S64, WIDTH_U64, WIDTH_U16, WIDTH_SPLIT };

enum {
	/* The last one of its clause: one of them must hold. */
	FILTER_ENDS_CLAUSE = 1,
	/* Its clause is decided when the call returns. */
	FILTER_AT_EXIT = 2,
};

struct filter_test {
	u8 what;
	u8 op;
	u8 width;
	u8 flags;
	/* Bytes of a beginning. */
	u32 length;
	/* A text's number, where texts are compared. */
	u64 with;
};

struct filter {
	u32 count;
	u32 unused;
	struct filter_test tests[TESTS_MAX];
};

const volatile struct filter filters[FILTERS_MAX] SEC(".rodata.filters");
/* The filter of each number in each ABI, and of all others; the first has no tests. */
const volatile u8 filter_of[NR_OTHER + 1] SEC(".rodata.filter_of");
const volatile u8 texts[TEXTS_MAX][TEXT_BYTES] SEC(".rodata.texts");

const volatile struct settings settings SEC(".rodata.settings");
/* The place in `plans` of each number in each ABI, and of all others. Place 0 is that of what nobody wants. */
const volatile u16 places[NR_OTHER + 1] SEC(".rodata.places");
const volatile struct plan plans[PLANS_MAX] SEC(".rodata.plans");
const volatile struct choice choices[CHOICES_MAX] SEC(".rodata.choices");
const volatile struct link links[LINKS_MAX] SEC(".rodata.links");
/* Of each kind: bytes of stack. */
const volatile u32 stack_bytes[STACKS_MAX] SEC(".rodata.stacks");

/* An element of an array, or the first for a number that is none. The barriers keep the compiler from parting the test from the use, which the verifier could not follow. */
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

/* The plan's place for this value of the argument that chooses; its own if the value is none of those that matter. */
__noinline u32 chosen(u32 place, u32 value)
{
	const volatile struct plan *plan = plan_at(place);
	u64 key = (u64)plan->chooser << 32 | (value & plan->chooser_mask);
	u64 hash = key * 0x9e3779b97f4a7c15ULL >> (64 - CHOICES_BITS);

	for (u32 i = 0; i < PROBES_MAX; i++) {
		const volatile struct choice *choice = &choices[(hash + i) & (CHOICES_MAX - 1)];
		if (choice->key == key)
			return choice->place;
	}
	return place;
}
