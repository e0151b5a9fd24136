/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The part of --filter that is decided in the kernel: which calls it certainly excludes. Calls that cannot be decided
 * pass, and user space decides them. And the condition for snapshots, which a call satisfies only if that is certain.
 */
#pragma once

#include "select.h"

static __always_inline const volatile struct filter *filter_at(u32 number)
{
	return ELEMENT(filters, number);
}

static __always_inline const volatile struct filter_test *test_at(const volatile struct filter *filter, u32 number)
{
	return ELEMENT(filter->tests, number);
}

/*
 * Returns whether a string equals a text of the filter or begins with it; -1 if it cannot be read, or is longer than
 * can be compared.
 */
__noinline int compare_text(u64 address, u32 text, u32 beginning)
{
	u8 found[TEXT_BYTES] = {};
	u64 at = text;

	barrier_var(at);
	if (at >= TEXTS_MAX)
		return -1;
	const volatile u8 *asked = texts[at];
	barrier_var(asked);
	if (address ? bpf_probe_read_user_str(found, sizeof(found), (void *)address) < 0 : bpf_get_current_comm(found, TASK_COMM_LEN) != 0)
		return -1;
	for (u32 i = 0; i < TEXT_BYTES; i++) {
		u8 wanted = asked[i];

		if (beginning && i == beginning)
			return 1;
		if (found[i] != wanted)
			return 0;
		if (!wanted)
			return 1;
	}
	return -1;
}

static __always_inline int compare_number(u64 number, u32 op, u32 width, u64 with)
{
	if (width == WIDTH_S32)
		number = (u64)(s64)(s32)number;
	else if (width == WIDTH_U32)
		number = (u32)number;
	else if (width == WIDTH_U16)
		number = (u16)number;
	int is_signed = width == WIDTH_S32 || width == WIDTH_S64 || width == WIDTH_SPLIT;
	int is_less = is_signed ? (s64)number < (s64)with : number < with;

	switch (op) {
	case FILTER_EQUAL:
		return number == with;
	case FILTER_NOT_EQUAL:
		return number != with;
	case FILTER_LESS:
		return is_less;
	case FILTER_LESS_OR_EQUAL:
		return is_less || number == with;
	case FILTER_GREATER:
		return !is_less && number != with;
	case FILTER_GREATER_OR_EQUAL:
		return !is_less;
	case FILTER_ANY_BIT:
		return (number & with) != 0;
	case FILTER_ALL_BITS:
		return (number & with) == with && with;
	}
	return 1;
}

/*
 * Returns whether a number in the memory that an argument points to passes a test. The test fails if the call failed
 * and therefore did not write the memory, or if the pointer is NULL. If the memory cannot be read, it is undecided.
 */
static __always_inline int compare_memory(struct call *call, const volatile struct filter_test *test, u64 arg, int undecided)
{
	u32 place = test->length, op = test->op, width = test->width;
	u64 size = place >> FILTER_SIZE_SHIFT & FILTER_SIZE_MASK, number = 0;

	barrier_var(arg);
	barrier_var(size);
	if (arg >= 6 || !size || size > sizeof(number) || call->bits & CALL_NO_ENTRY)
		return undecided;
	if (test->flags & FILTER_AT_EXIT && call->ret < 0 && call->ret >= -MAX_ERRNO)
		return 0;
	u64 address = call->args[arg];
	if (!address)
		return 0;
	if (bpf_probe_read_user(&number, size, (void *)(address + (place & FILTER_OFFSET_MASK))))
		return undecided;
	u32 unused = 64 - 8 * size;
	if (place & FILTER_BIG_ENDIAN)
		number = __builtin_bswap64(number) >> unused;
	if (place & FILTER_SIGNED)
		number = (s64)(number << unused) >> unused;
	return compare_number(number, op, width, test->with);
}

/* Returns whether a test holds. */
__noinline int may_hold(struct call *call, u32 filter, u32 i)
{
	if (!call)
		return 1;
	int undecided = filter_at(filter)->undecided;
	const volatile struct filter_test *test = test_at(filter_at(filter), i);
	u64 what = test->what;
	u32 op = test->op;
	barrier_var(what);

	if (what >= FILTER_MEMORY)
		return compare_memory(call, test, what - FILTER_MEMORY, undecided);
	if (what >= FILTER_TEXT || what == FILTER_COMM) {
		u64 arg = what - FILTER_TEXT, address = 0;
		barrier_var(arg);
		if (what != FILTER_COMM && arg < 6)
			address = call->args[arg];
		if (what != FILTER_COMM && !address)
			return undecided;
		/* The call may have changed the text. */
		if (what != FILTER_COMM && !undecided && call->bits & CALL_NO_ENTRY)
			return 0;
		int same = compare_text(address, (u32)test->with, test->length);
		if (same < 0)
			return undecided;
		return op == FILTER_IS || op == FILTER_BEGINS_WITH ? same : !same;
	}
	u64 number;
	if (test->width == WIDTH_SPLIT && what < 5)
		number = (u32)call->args[what] | call->args[what + 1] << 32;
	else if (what < 6)
		number = call->args[what];
	else if (what == FILTER_RET)
		number = call->ret;
	else if (what == FILTER_ERRNO)
		number = call->ret < 0 && call->ret >= -MAX_ERRNO ? -call->ret : 0;
	else if (what == FILTER_PID)
		number = number_of_process(bpf_get_current_task_btf());
	else if (what == FILTER_TID)
		number = number_of_task(bpf_get_current_task_btf());
	else if (call->bits & CALL_NO_ENTRY)
		return undecided;
	else
		number = call->time - call->start;
	return compare_number(number, op, test->width, test->with);
}

/* Returns whether a call fails a clause of a filter, of those for the entry or of those for the exit. */
__noinline int fails(struct call *call, u32 of, u32 at_exit)
{
	if (!call)
		return 0;
	const volatile struct filter *filter = filter_at(of);
	u32 count = filter->count;
	u32 holds = 0;
	for (u32 i = 0; i < TESTS_MAX && i < count; i++) {
		u32 flags = test_at(filter, i)->flags;

		if (!(flags & FILTER_AT_EXIT) != !at_exit)
			continue;
		if (!holds)
			holds = may_hold(call, of, i);
		if (!(flags & FILTER_ENDS_CLAUSE))
			continue;
		if (!holds)
			return 1;
		holds = 0;
	}
	return 0;
}

/* Returns whether a filter certainly excludes a call, by its clauses for the entry or by those for the exit. */
static __always_inline int is_excluded(struct call *call, u32 at_exit)
{
	u64 at = among_all(call->bits & CALL_ABI, call->nr);

	barrier_var(at);
	return at <= NR_OTHER && fails(call, filter_of[at], at_exit);
}

/* Returns whether a call certainly satisfies the condition for a snapshot, by its clauses for the entry or the exit. */
static __always_inline int satisfies(struct call *call, u32 at_exit)
{
	u64 at = among_all(call->bits & CALL_ABI, call->nr);

	barrier_var(at);
	if (at > NR_OTHER)
		return 0;
	u32 of = condition_of[at];
	return of && !fails(call, of, at_exit);
}

/* Returns whether the condition for a snapshot tests what is known only when the call returns. */
static __always_inline int has_clauses_at_exit(struct call *call)
{
	u64 at = among_all(call->bits & CALL_ABI, call->nr);

	barrier_var(at);
	const volatile struct filter *filter = filter_at(at <= NR_OTHER ? condition_of[at] : 0);
	for (u32 i = 0; i < TESTS_MAX && i < filter->count; i++)
		if (test_at(filter, i)->flags & FILTER_AT_EXIT)
			return 1;
	return 0;
}

/*
 * Decides whether a call that returned satisfies the condition for a snapshot. What the condition says about the entry
 * was decided there, because memory and comm may have changed. The functions that write records are called too deeply
 * to decide it: the verifier bounds the stack of a chain of calls.
 */
static __always_inline void decide_match(struct task *task, struct call *call)
{
	if (call->bits & CALL_NO_ENTRY)
		task->matches = satisfies(call, 0);
	task->matches = task->matches && satisfies(call, 1);
}

/*
 * Reports a call that satisfies the condition for a snapshot, after its record was written, unless user space is taking
 * a snapshot already.
 */
static __always_inline void report_match(void *ctx, struct task *task, struct call *call)
{
	if (!task->matches || (call->how != HOW_RETURNED && has_clauses_at_exit(call)))
		return;
	COUNT(matches);
	if (match_reported || __sync_lock_test_and_set(&match_reported, 1))
		return;
	if (bpf_perf_event_output(ctx, &output, settings.matches + bpf_get_smp_processor_id(), call, sizeof(*call)))
		match_reported = 0;
}
