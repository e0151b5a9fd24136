/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The aggregate of a task: its calls summed by syscall, which is all that a summary needs.
 *
 * It covers calls that were entered and returned, and calls that never return: those are a task's last calls. All other
 * calls are rare and special, so they are written as records as usual; so is a call whose task gets no memory for an
 * aggregate. An aggregate that has no room for another call is written and starts anew, so that no call is left out.
 * aggregate.rs mirrors the structs.
 *
 * When many tasks end at once, the rings of the CPUs may be full before the reader is scheduled, and an aggregate is
 * the only record of its task's calls. It is therefore written as compactly as possible, and not to a ring but to a
 * separate buffer (`ended_tasks`) whose size depends on the number of tasks. If that buffer is full, the ring is tried;
 * if both are full, as many calls are lost as the aggregate counts.
 */
#pragma once

#include "select.h"

/* The number of syscalls in one aggregate, as a power of two. */
#define SUMS_BITS 5
#define SUMS_MAX (1 << SUMS_BITS)
/*
 * The number of different durations and errors that are counted, as a power of two, and the number of slots in which
 * one of them may be.
 */
#define SPREAD_BITS 9
#define SPREAD_MAX (1 << SPREAD_BITS)
#define PROBES 8

/*
 * A word of the spread: the count is in the lower bits; above it are a value, a bit that distinguishes errors from
 * durations, and the index of the sum.
 */
#define SPREAD_COUNT_BITS 14
#define SPREAD_VALUE_BITS 12
#define SPREAD_ERROR (1 << SPREAD_VALUE_BITS)

/* Longer durations have no bucket: about 4.5 minutes. */
#define DURATION_MAX ((1ULL << 38) - 1)

struct sum {
	/* The syscall's number, plus one; the numbers of the ABIs follow each other. 0: the slot is free. */
	u32 key;
	u32 calls;
	/* Nanoseconds. */
	u64 total, min, max;
	/* The sum of the squares of the durations, a number of 128 bits. */
	u64 squares, squares_high;
};

struct aggregate {
	u64 calls;
	/* While the aggregate is packed: the number of sums, and later of words, that were moved together. */
	u64 used;
	/* The record starts here. */
	struct call head;
	struct sum sums[SUMS_MAX];
	u32 spread[SPREAD_MAX];
};

#define AGGREGATE_BODY (SUMS_MAX * sizeof(struct sum) + SPREAD_MAX * sizeof(u32))
#define AGGREGATE_WORDS (AGGREGATE_BODY / sizeof(u32))
#define ALL_SUMS ((1ULL << SUMS_MAX) - 1)
_Static_assert(sizeof(struct aggregate) == 2 * sizeof(u64) + sizeof(struct call) + AGGREGATE_BODY, "no padding");
_Static_assert(sizeof(struct aggregate) < 3900, "it fits into 4 KiB, with what the kernel adds");

/* The initial bytes of an aggregate's body. */
const volatile u8 zeros[AGGREGATE_BODY] SEC(".rodata.zeros");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct aggregate);
} aggregates SEC(".maps");

/* The aggregates of ended tasks, of all CPUs; ended_tasks.rs reads them. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* as many bytes as the plan says */
} ended_tasks SEC(".maps");

/* These are global functions, because the verifier checks each only once and takes its result for any number. */

/*
 * Returns a duration's bucket in a histogram with a precision of two digits: nanoseconds up to 255, then 128 buckets
 * for each doubling.
 */
__noinline int bucket_of(u64 duration)
{
	u32 doublings = 0;

	for (; doublings < 30 && duration > 255; doublings++)
		duration >>= 1;
	return doublings * 128 + (duration & 255);
}

/* Returns the index of a syscall's sum, which is created if necessary; negative: there is no room. */
__noinline int sum_at(struct aggregate *aggregate, u32 key)
{
	if (!aggregate)
		return -1;
	for (u32 i = 0; i < PROBES; i++) {
		u32 at = (key + i) & (SUMS_MAX - 1);
		u32 there = aggregate->sums[at].key;

		if (there == key)
			return at;
		if (!there) {
			aggregate->sums[at].key = key;
			return at;
		}
	}
	return -1;
}

static __always_inline u32 first_place(u32 value)
{
	return (value * 0x9e3779b1u) >> (32 - SPREAD_BITS);
}

/* Counts a value, and returns the index of its word; negative: there is no room. */
__noinline int count_value(struct aggregate *aggregate, u32 value)
{
	u32 first = first_place(value);

	if (!aggregate)
		return -1;
	for (u32 i = 0; i < PROBES; i++) {
		u32 at = (first + i) & (SPREAD_MAX - 1);
		u32 there = aggregate->spread[at];

		if (there && there >> SPREAD_COUNT_BITS != value)
			continue;
		u32 counted = (there ? there : value << SPREAD_COUNT_BITS) + 1;
		if (counted >> SPREAD_COUNT_BITS != value)
			return -1;
		aggregate->spread[at] = counted;
		return at;
	}
	return -1;
}

static __always_inline void add_duration(struct sum *sum, u64 duration)
{
	/* A square of more than 64 bits is computed from the upper half, which is precise to five digits. */
	u64 root = duration >> 32 ? duration >> 16 : duration;
	u64 square = root * root, low = duration >> 32 ? square << 32 : square;

	sum->squares_high += duration >> 32 ? square >> 32 : 0;
	sum->squares += low;
	sum->squares_high += sum->squares < low;
	if (!sum->calls || duration < sum->min)
		sum->min = duration;
	if (duration > sum->max)
		sum->max = duration;
	sum->total += duration;
	sum->calls++;
}

/* The sum is mostly in its first slot. */
static __always_inline int sum_of(struct aggregate *aggregate, u32 key)
{
	u32 first = key & (SUMS_MAX - 1);

	return aggregate->sums[first].key == key ? (int)first : sum_at(aggregate, key);
}

static __always_inline int count(struct aggregate *aggregate, u32 value)
{
	u32 first = first_place(value);
	u32 there = aggregate->spread[first & (SPREAD_MAX - 1)];

	if (there >> SPREAD_COUNT_BITS != value || (there + 1) >> SPREAD_COUNT_BITS != value)
		return count_value(aggregate, value);
	aggregate->spread[first & (SPREAD_MAX - 1)] = there + 1;
	return first;
}

/* Adds a call; negative: there is no room. */
__noinline int add_call(struct aggregate *aggregate, u32 key, u64 duration, u32 errno)
{
	if (!aggregate)
		return -1;
	int at = sum_of(aggregate, key);
	if (at < 0)
		return -1;
	at &= SUMS_MAX - 1;
	u32 of = at << (SPREAD_VALUE_BITS + 1);
	int error_at = 0;
	if (errno) {
		error_at = count(aggregate, of | SPREAD_ERROR | errno);
		if (error_at < 0)
			return -1;
	}
	if (count(aggregate, of | (duration < 256 ? duration : bucket_of(duration))) < 0) {
		if (errno)
			aggregate->spread[error_at & (SPREAD_MAX - 1)]--;
		return -1;
	}
	add_duration(&aggregate->sums[at], duration);
	aggregate->calls++;
	return 0;
}

/* Adds a call that never returns and therefore has no duration; negative: there is no room. */
__noinline int add_unreturned(struct aggregate *aggregate, u32 key)
{
	if (!aggregate)
		return -1;
	int at = sum_of(aggregate, key);
	if (at < 0)
		return -1;
	aggregate->sums[at & (SUMS_MAX - 1)].calls++;
	aggregate->calls++;
	return 0;
}

/*
 * Takes the count from an aggregate for the caller, which writes the record: the task's end and the last iteration over
 * all tasks may run at the same time. Returns the count.
 */
static __always_inline u64 seal(struct aggregate *aggregate)
{
	u64 calls = __sync_lock_test_and_set(&aggregate->calls, 0);

	aggregate->head.ret = calls;
	aggregate->head.how = HOW_AGGREGATE;
	aggregate->head.payload = AGGREGATE_BODY;
	/* The sums that are in the body. */
	aggregate->head.args[0] = ALL_SUMS;
	return calls;
}

/* These two move a sum or a word that counts something to the end of those that were moved before. */
static long pack_sum(u32 at, struct aggregate **packed)
{
	struct aggregate *aggregate = *packed;
	u64 from = at & (SUMS_MAX - 1), to = aggregate->used;

	if (!aggregate->sums[from].key || to >= SUMS_MAX)
		return 0;
	aggregate->head.args[0] |= 1ULL << from;
	aggregate->sums[to] = aggregate->sums[from];
	aggregate->used = to + 1;
	return 0;
}

static long pack_word(u32 at, struct aggregate **packed)
{
	struct aggregate *aggregate = *packed;
	u32 *words = (u32 *)aggregate->sums;
	u64 to = aggregate->used;
	u32 word = aggregate->spread[at & (SPREAD_MAX - 1)];

	if (!word || to >= AGGREGATE_WORDS)
		return 0;
	words[to] = word;
	aggregate->used = to + 1;
	return 0;
}

/*
 * Removes what counts nothing from the body, and returns the body's size. The struct is not an aggregate any more after
 * that. With ordinary loops the verifier would take 5 ms for each program that calls this.
 */
__noinline int pack(struct aggregate *aggregate)
{
	if (!aggregate)
		return 0;
	aggregate->head.args[0] = 0;
	aggregate->used = 0;
	bpf_loop(SUMS_MAX, pack_sum, &aggregate, 0);
	aggregate->used *= sizeof(struct sum) / sizeof(u32);
	bpf_loop(SPREAD_MAX, pack_word, &aggregate, 0);
	return aggregate->used * sizeof(u32);
}

/* Writes a record to `ended_tasks`, or else to the ring; 0 if there was room. */
static __always_inline long write_aggregate(void *ctx, struct aggregate *aggregate, u64 size)
{
	/* The reader polls often; it is woken when the buffer fills faster than that. */
	u64 is_filling = bpf_ringbuf_query(&ended_tasks, BPF_RB_AVAIL_DATA) * 4 > bpf_ringbuf_query(&ended_tasks, BPF_RB_RING_SIZE);

	if (!bpf_ringbuf_output(&ended_tasks, &aggregate->head, size, is_filling ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP))
		return 0;
	return put_record(ctx, BPF_F_CURRENT_CPU, &aggregate->head, size);
}

static __noinline int emit_aggregate(void *ctx, struct aggregate *aggregate)
{
	u64 calls = seal(aggregate);

	if (!calls)
		return 0;
	u64 body = (u32)pack(aggregate);
	barrier_var(body);
	if (body > AGGREGATE_BODY)
		body = AGGREGATE_BODY;
	aggregate->head.payload = body;
	aggregate->head.time = bpf_ktime_get_ns();
	if (write_aggregate(ctx, aggregate, sizeof(aggregate->head) + body))
		COUNT_MORE(calls_lost, calls);
	bpf_probe_read_kernel(aggregate->sums, AGGREGATE_BODY, (const void *)zeros);
	return 0;
}

/* Writes the aggregate of a task that ends or continues under another tid. */
static __always_inline void emit_aggregate_of(void *ctx, struct task_struct *current)
{
	struct aggregate *aggregate = bpf_task_storage_get(&aggregates, current, 0, 0);

	if (aggregate)
		emit_aggregate(ctx, aggregate);
}

/* Adds the calls that a task began to the counters. They are first counted in the task's memory, which is cheaper. */
static __always_inline void count_begun(struct task *task)
{
	u64 begun = __sync_lock_test_and_set(&task->begun, 0);

	if (begun)
		COUNT_MORE(calls, begun);
}

/* Lists the aggregates of all tasks after tracing has stopped. */
SEC("iter/task")
int list_aggregates(struct bpf_iter__task *ctx)
{
	struct task_struct *found = ctx->task;

	if (!found)
		return 0;
	struct task *task = bpf_task_storage_get(&tasks, found, 0, 0);
	if (task)
		count_begun(task);
	struct aggregate *aggregate = bpf_task_storage_get(&aggregates, found, 0, 0);
	u64 calls = aggregate ? seal(aggregate) : 0;
	if (!calls)
		return 0;
	struct seq_file *seq = ctx->meta->seq;
	struct listed head = { .time = bpf_ktime_get_ns(), .pid = number_of_process(found), .tid = number_of_task(found) };
	u64 unchanged = 1;
	/* If there is no room, the kernel calls the program again for the same task with more room. */
	if (bpf_seq_write(seq, &head, sizeof(head)) || bpf_seq_write(seq, &aggregate->head, sizeof(aggregate->head) + AGGREGATE_BODY) ||
	    bpf_seq_write(seq, &unchanged, sizeof(unchanged)))
		aggregate->calls = calls;
	return 0;
}

/* Returns the aggregate of the task that made this call; 0 if there is no memory for one. */
static __always_inline struct aggregate *aggregate_for(struct task_struct *current, struct call *call)
{
	struct aggregate *aggregate = bpf_task_storage_get(&aggregates, current, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (aggregate) {
		aggregate->head.tid = call->tid;
		aggregate->head.pid = call->pid;
	}
	return aggregate;
}

static __always_inline u32 sum_key(struct call *call)
{
	return (call->bits & CALL_ABI) * NR_COUNT + call->nr + 1;
}

/* Adds the open call to its task's aggregate, if this exit belongs to it; 0 if the call must be written as a record. */
static __always_inline int sum_up(void *ctx, struct task_struct *current, struct task *task, s32 nr, s64 ret)
{
	struct call *call = &task->call;
	u32 flags = plan_at(task->place)->flags;

	if (!closes(call, flags, nr) || flags & PLAN_EXECUTES || (u32)call->nr >= NR_COUNT)
		return 0;
	u64 duration = bpf_ktime_get_ns() - call->start;
	if (duration > DURATION_MAX)
		return 0;
	struct aggregate *aggregate = aggregate_for(current, call);
	if (!aggregate)
		return 0;
	u32 key = sum_key(call);
	u32 errno = ret < 0 && ret >= -4095 ? -ret : 0;
	if (!add_call(aggregate, key, duration, errno))
		return 1;
	emit_aggregate(ctx, aggregate);
	return !add_call(aggregate, key, duration, errno);
}

/* The same for a call that never returns. */
static __always_inline int sum_up_unreturned(void *ctx, struct task_struct *current, struct task *task)
{
	struct call *call = &task->call;

	if ((u32)call->nr >= NR_COUNT)
		return 0;
	struct aggregate *aggregate = aggregate_for(current, call);
	if (!aggregate)
		return 0;
	if (!add_unreturned(aggregate, sum_key(call)))
		return 1;
	emit_aggregate(ctx, aggregate);
	return !add_unreturned(aggregate, sum_key(call));
}
