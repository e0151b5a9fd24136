/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A task's calls, summed up by syscall: all that a summary asks for, without a record of each.
 *
 * Summed up are calls that were entered and returned, and those that never return: a task makes them last. All others
 * are few, each is another case, and so they are given as records as ever; the same holds for a call whose task gets no
 * memory here. A tally that has no room for one call more is given and begins anew, so nothing is left out. tally.rs
 * mirrors the structs.
 *
 * When many tasks end at once, the rings of the CPUs may be full, whoever reads them has not had his turn yet, and a
 * tally is all that is left of its task's calls. So it is given as short as it can be, and not there, but to a buffer
 * of its own (`kept`), which is as large as the tasks are many. A ring is tried where that is full; where both are, as
 * many calls are lost as the tally counts.
 */
#pragma once

#include "select.h"

/* Syscalls that a tally can hold, as a power of two, and where one of them may stand at most behind its first place. */
#define SUMS_BITS 5
#define SUMS_MAX (1 << SUMS_BITS)
/* The same of how often each of their durations and errors came. */
#define SPREAD_BITS 9
#define SPREAD_MAX (1 << SPREAD_BITS)
#define PROBES 8

/* Of the spread's words: the count is in the lower bits, above it are a value, whether it is an error or a duration, and the place among the sums. */
#define SPREAD_COUNT_BITS 14
#define SPREAD_VALUE_BITS 12
#define SPREAD_ERROR (1 << SPREAD_VALUE_BITS)

/* Longer ones have no bucket: some 4.5 minutes. */
#define DURATION_MAX ((1ULL << 38) - 1)

struct sum {
	/* The syscall's number in its ABI, those of the ABIs one behind the other, and one; 0: nothing is here. */
	u32 key;
	u32 calls;
	/* Nanoseconds. */
	u64 total, min, max;
	/* Of their squares, a number of 128 bits. */
	u64 squares, squares_high;
};

struct tally {
	u64 calls;
	/* While it is packed: how many sums, and then how many words, stand together. */
	u64 used;
	/* From here on it is the record. */
	struct call head;
	struct sum sums[SUMS_MAX];
	u32 spread[SPREAD_MAX];
};

#define TALLY_BODY (SUMS_MAX * sizeof(struct sum) + SPREAD_MAX * sizeof(u32))
#define TALLY_WORDS (TALLY_BODY / sizeof(u32))
#define ALL_SUMS ((1ULL << SUMS_MAX) - 1)
_Static_assert(sizeof(struct tally) == 2 * sizeof(u64) + sizeof(struct call) + TALLY_BODY, "no padding");
_Static_assert(sizeof(struct tally) < 3900, "it fits into 4 KiB, with what the kernel adds");

/* What a tally begins with. */
const volatile u8 zeros[TALLY_BODY] SEC(".rodata.zeros");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct tally);
} tallies SEC(".maps");

/* Records of tasks that have ended, for all CPUs; kept.rs reads them. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* as many bytes as the plan says */
} kept SEC(".maps");

/* Functions of their own, because the verifier looks at each once, and takes what it returns for any number. */

/* The buckets of a histogram whose values are right to two digits: nanoseconds up to 255, then 128 for each doubling. */
__noinline int bucket_of(u64 duration)
{
	u32 doublings = 0;

	for (; doublings < 30 && duration > 255; doublings++)
		duration >>= 1;
	return doublings * 128 + (duration & 255);
}

/* Where a syscall's sum is, or can be; negative: there is no room. */
__noinline int sum_at(struct tally *tally, u32 key)
{
	if (!tally)
		return -1;
	for (u32 i = 0; i < PROBES; i++) {
		u32 at = (key + i) & (SUMS_MAX - 1);
		u32 there = tally->sums[at].key;

		if (there == key)
			return at;
		if (!there) {
			tally->sums[at].key = key;
			return at;
		}
	}
	return -1;
}

static __always_inline u32 first_place(u32 value)
{
	return (value * 0x9e3779b1u) >> (32 - SPREAD_BITS);
}

/* Counts one more of a value, and returns where; negative: there is no room. */
__noinline int count_value(struct tally *tally, u32 value)
{
	u32 first = first_place(value);

	if (!tally)
		return -1;
	for (u32 i = 0; i < PROBES; i++) {
		u32 at = (first + i) & (SPREAD_MAX - 1);
		u32 there = tally->spread[at];

		if (there && there >> SPREAD_COUNT_BITS != value)
			continue;
		u32 counted = (there ? there : value << SPREAD_COUNT_BITS) + 1;
		if (counted >> SPREAD_COUNT_BITS != value)
			return -1;
		tally->spread[at] = counted;
		return at;
	}
	return -1;
}

static __always_inline void add_duration(struct sum *sum, u64 duration)
{
	/* A square of more than 64 bits is taken of the upper half: that is right to five digits. */
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

/* The first place is mostly the right one. */
static __always_inline int sum_of(struct tally *tally, u32 key)
{
	u32 first = key & (SUMS_MAX - 1);

	return tally->sums[first].key == key ? (int)first : sum_at(tally, key);
}

static __always_inline int count(struct tally *tally, u32 value)
{
	u32 first = first_place(value);
	u32 there = tally->spread[first & (SPREAD_MAX - 1)];

	if (there >> SPREAD_COUNT_BITS != value || (there + 1) >> SPREAD_COUNT_BITS != value)
		return count_value(tally, value);
	tally->spread[first & (SPREAD_MAX - 1)] = there + 1;
	return first;
}

/* Adds a call; negative: there is no room. */
__noinline int add_call(struct tally *tally, u32 key, u64 duration, u32 errno)
{
	if (!tally)
		return -1;
	int at = sum_of(tally, key);
	if (at < 0)
		return -1;
	at &= SUMS_MAX - 1;
	u32 of = at << (SPREAD_VALUE_BITS + 1);
	int error_at = 0;
	if (errno) {
		error_at = count(tally, of | SPREAD_ERROR | errno);
		if (error_at < 0)
			return -1;
	}
	if (count(tally, of | (duration < 256 ? duration : bucket_of(duration))) < 0) {
		if (errno)
			tally->spread[error_at & (SPREAD_MAX - 1)]--;
		return -1;
	}
	add_duration(&tally->sums[at], duration);
	tally->calls++;
	return 0;
}

/* Adds a call that never returns, and so has no duration; negative: there is no room. */
__noinline int add_unreturned(struct tally *tally, u32 key)
{
	if (!tally)
		return -1;
	int at = sum_of(tally, key);
	if (at < 0)
		return -1;
	tally->sums[at & (SUMS_MAX - 1)].calls++;
	tally->calls++;
	return 0;
}

/* Takes what a tally counts, for whoever gives it: the task's end and the last look at all tasks may meet. */
static __always_inline u64 seal(struct tally *tally)
{
	u64 calls = __sync_lock_test_and_set(&tally->calls, 0);

	tally->head.ret = calls;
	tally->head.how = HOW_TALLY;
	tally->head.payload = TALLY_BODY;
	/* Which of the sums are in the body. */
	tally->head.args[0] = ALL_SUMS;
	return calls;
}

/* One of the sums, and one of the words, of a body that is packed: to behind what was packed before, if it counts something. */
static long pack_sum(u32 at, struct tally **packed)
{
	struct tally *tally = *packed;
	u64 from = at & (SUMS_MAX - 1), to = tally->used;

	if (!tally->sums[from].key || to >= SUMS_MAX)
		return 0;
	tally->head.args[0] |= 1ULL << from;
	tally->sums[to] = tally->sums[from];
	tally->used = to + 1;
	return 0;
}

static long pack_word(u32 at, struct tally **packed)
{
	struct tally *tally = *packed;
	u32 *words = (u32 *)tally->sums;
	u64 to = tally->used;
	u32 word = tally->spread[at & (SPREAD_MAX - 1)];

	if (!word || to >= TALLY_WORDS)
		return 0;
	words[to] = word;
	tally->used = to + 1;
	return 0;
}

/*
 * Leaves out of the body what counts nothing, and returns how many bytes that takes. It is no tally any more then. By
 * loops of its own, the verifier would take 5 ms for each program that does this.
 */
__noinline int pack(struct tally *tally)
{
	if (!tally)
		return 0;
	tally->head.args[0] = 0;
	tally->used = 0;
	bpf_loop(SUMS_MAX, pack_sum, &tally, 0);
	tally->used *= sizeof(struct sum) / sizeof(u32);
	bpf_loop(SPREAD_MAX, pack_word, &tally, 0);
	return tally->used * sizeof(u32);
}

/* Writes a record that must not be lost; 0 if it found room. */
static __always_inline long keep(void *ctx, struct tally *tally, u64 size)
{
	/* Whoever reads it comes by often; he is woken where that may be too late. */
	u64 is_filling = bpf_ringbuf_query(&kept, BPF_RB_AVAIL_DATA) * 4 > bpf_ringbuf_query(&kept, BPF_RB_RING_SIZE);

	if (!bpf_ringbuf_output(&kept, &tally->head, size, is_filling ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP))
		return 0;
	return bpf_perf_event_output(ctx, &output, BPF_F_CURRENT_CPU, &tally->head, size);
}

static __noinline int give_tally(void *ctx, struct tally *tally)
{
	u64 calls = seal(tally);

	if (!calls)
		return 0;
	u64 body = (u32)pack(tally);
	barrier_var(body);
	if (body > TALLY_BODY)
		body = TALLY_BODY;
	tally->head.payload = body;
	tally->head.time = bpf_ktime_get_ns();
	if (keep(ctx, tally, sizeof(tally->head) + body))
		COUNT_MORE(calls_lost, calls);
	bpf_probe_read_kernel(tally->sums, TALLY_BODY, (const void *)zeros);
	return 0;
}

/* Gives the tally of a task, which ends or goes on under another number. */
static __always_inline void give_tally_of(void *ctx, struct task_struct *current)
{
	struct tally *tally = bpf_task_storage_get(&tallies, current, 0, 0);

	if (tally)
		give_tally(ctx, tally);
}

/* Calls that a task began are counted in its own memory, which is cheaper, and come to the account from there. */
static __always_inline void count_begun(struct task *task)
{
	u64 begun = __sync_lock_test_and_set(&task->begun, 0);

	if (begun)
		COUNT_MORE(calls, begun);
}

/* The tallies of all tasks, when nothing is entered or returns any more. */
SEC("iter/task")
int list_tallies(struct bpf_iter__task *ctx)
{
	struct task_struct *found = ctx->task;

	if (!found)
		return 0;
	struct task *task = bpf_task_storage_get(&tasks, found, 0, 0);
	if (task)
		count_begun(task);
	struct tally *tally = bpf_task_storage_get(&tallies, found, 0, 0);
	u64 calls = tally ? seal(tally) : 0;
	if (!calls)
		return 0;
	struct seq_file *seq = ctx->meta->seq;
	struct listed head = { .time = bpf_ktime_get_ns(), .pid = number_of_process(found), .tid = number_of_task(found) };
	u64 stood_still = 1;
	/* Without room the kernel asks again for the same task, with more of it. */
	if (bpf_seq_write(seq, &head, sizeof(head)) || bpf_seq_write(seq, &tally->head, sizeof(tally->head) + TALLY_BODY) ||
	    bpf_seq_write(seq, &stood_still, sizeof(stood_still)))
		tally->calls = calls;
	return 0;
}

/* The tally of the task that made this call; none if there is no memory for one. */
static __always_inline struct tally *tally_for(struct task_struct *current, struct call *call)
{
	struct tally *tally = bpf_task_storage_get(&tallies, current, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (tally) {
		tally->head.tid = call->tid;
		tally->head.pid = call->pid;
	}
	return tally;
}

static __always_inline u32 sum_key(struct call *call)
{
	return (call->bits & 0xf) * NR_COUNT + call->nr + 1;
}

/* Adds the open call to its task's tally, if this exit is its own; 0 if it must be given as a record. */
static __always_inline int sum_up(void *ctx, struct task_struct *current, struct task *task, s32 nr, s64 ret)
{
	struct call *call = &task->call;
	u32 flags = plan_at(task->place)->flags;

	if (!closes(call, flags, nr) || flags & PLAN_EXECUTES || (u32)call->nr >= NR_COUNT)
		return 0;
	u64 duration = bpf_ktime_get_ns() - call->start;
	if (duration > DURATION_MAX)
		return 0;
	struct tally *tally = tally_for(current, call);
	if (!tally)
		return 0;
	u32 key = sum_key(call);
	u32 errno = ret < 0 && ret >= -4095 ? -ret : 0;
	if (!add_call(tally, key, duration, errno))
		return 1;
	give_tally(ctx, tally);
	return !add_call(tally, key, duration, errno);
}

/* The same of a call that never returns. */
static __always_inline int sum_up_unreturned(void *ctx, struct task_struct *current, struct task *task)
{
	struct call *call = &task->call;

	if ((u32)call->nr >= NR_COUNT)
		return 0;
	struct tally *tally = tally_for(current, call);
	if (!tally)
		return 0;
	if (!add_unreturned(tally, sum_key(call)))
		return 1;
	give_tally(ctx, tally);
	return !add_unreturned(tally, sum_key(call));
}
