/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The part of --filter that is decided in the kernel, and the conditions for snapshots, as user space writes it before
 * loading. filter.rs and filter_bytes.rs mirror this file, which plan.h includes.
 */
#pragma once

#define TESTS_MAX 8
#define FILTERS_MAX 32
#define TEXTS_MAX 32
#define TEXT_BYTES 64

/* The value that a test compares; smaller values are the index of an argument. */
enum {
	FILTER_RET = 6,
	FILTER_ERRNO,
	FILTER_DURATION,
	FILTER_PID,
	FILTER_TID,
	FILTER_COMM,
	/* The string that an argument points to; the index of the argument is added. */
	FILTER_TEXT = 16,
	/* A number in the memory that an argument points to; the index of the argument is added. */
	FILTER_MEMORY = 32,
};

/* The place of a number in memory: its offset, its size in bytes, and how it is read. */
enum {
	FILTER_OFFSET_MASK = 0xffffff,
	FILTER_SIZE_SHIFT = 24,
	FILTER_SIZE_MASK = 0xf,
	FILTER_SIGNED = 1 << 28,
	FILTER_BIG_ENDIAN = 1 << 29,
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

/* WIDTH_SPLIT: signed, 64 bits, in two registers. */
enum filter_width { WIDTH_S32, WIDTH_U32, WIDTH_S64, WIDTH_U64, WIDTH_U16, WIDTH_SPLIT };

enum {
	/* The last test of its clause, of which one test must hold. */
	FILTER_ENDS_CLAUSE = 1,
	/* The clause is decided when the call returns. */
	FILTER_AT_EXIT = 2,
};

struct filter_test {
	u8 what;
	u8 op;
	u8 width;
	u8 flags;
	/* The number of bytes of a prefix, or the place of a number in memory. */
	u32 length;
	/* A number, or the index of a text. */
	u64 with;
};

struct filter {
	u32 count;
	/* What a test is worth that cannot be decided: 1 in filters of --filter, 0 in conditions for snapshots. */
	u32 undecided;
	struct filter_test tests[TESTS_MAX];
};

const volatile struct filter filters[FILTERS_MAX] SEC(".rodata.filters");
/* The index of the filter of each number in each ABI, and of all others. Filter 0 has no tests. */
const volatile u8 filter_of[NR_OTHER + 1] SEC(".rodata.filter_of");
/* The same for the conditions for snapshots. No call with filter 0 satisfies them. */
const volatile u8 condition_of[NR_OTHER + 1] SEC(".rodata.condition_of");
const volatile u8 texts[TEXTS_MAX][TEXT_BYTES] SEC(".rodata.texts");

