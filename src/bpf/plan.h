/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What user space tells before loading: constants to the verifier. settings.rs mirrors this file.
 */
#pragma once

#include "kernel.h"

/* In the order of the Rust side's Abi. */
enum abi { ABI_X86_64, ABI_I386, ABI_X32, ABI_AARCH64, ABI_COUNT };

/* Numbers that have a plan of their own in each ABI. */
#define NR_COUNT 1024
/* The plan of all other numbers. */
#define PLACE_OTHER (ABI_COUNT * NR_COUNT)
#define PLACE_COUNT (PLACE_OTHER + 1)
#define OPS_MAX 6

enum scope {
	/* Tasks that were seeded, and what they make. */
	SCOPE_TASKS,
	SCOPE_EVERYONE,
	/* Whatever is in the cgroup at the time of its call. */
	SCOPE_CGROUP,
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
	/* Pointers to strings, up to a null one; `limit` bytes of each string. `size` is that of a pointer, here and below. */
	OP_STRINGS,
	/* `count` struct iovec, struct msghdr, `count` struct mmsghdr, and what they point to. */
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
};

struct op {
	u8 arg;
	u8 kind;
	u8 when;
	u8 count;
	/* Of an element, bytes. */
	u16 size;
	/* No more bytes than this are copied. */
	u16 limit;
};

struct plan {
	u16 flags;
	u8 ops_count;
	/* Bit i: argument i is a descriptor. */
	u8 fds;
	u32 unused;
	struct op ops[OPS_MAX];
};

const volatile struct settings settings SEC(".rodata.settings");
const volatile struct plan plans[PLACE_COUNT] SEC(".rodata.plans");

/* The barriers keep the compiler from parting the test from the use, which the verifier could not follow. */
static __always_inline const volatile struct plan *plan_at(u32 place)
{
	u64 at = place;

	barrier_var(at);
	if (at >= PLACE_COUNT)
		at = PLACE_OTHER;
	const volatile struct plan *plan = &plans[at];
	barrier_var(plan);
	return plan;
}
