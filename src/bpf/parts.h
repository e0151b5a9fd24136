/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Copies data that does not fit into one record. Such copies are deferred while the pieces of the call are copied, and
 * then written in partial records that precede the record of the call.
 */
#pragma once

#include "nested.h"

/* The bytes that are copied at once; three such copies fill a record. */
#define PART_MAX 2048
#define PART_START_MAX (sizeof(((struct scratch *)0)->payload) - sizeof(struct piece) - PART_MAX)
/* The maximum number of partial records of one call: 6 MiB. */
#define PARTS_MAX 1024

/* Copies some bytes of a deferred copy to the piece. Returns their number, or less than 0. */
static __always_inline s64 copy_deferred_bytes(struct deferred *copy, struct piece *piece, u32 when)
{
	u64 length = copy->left;

	barrier_var(length);
	if (length > PART_MAX)
		length = PART_MAX;
	if (!bpf_probe_read_user(piece + 1, length, (void *)copy->address))
		return length;
	u64 first = PAGE_BYTES - (copy->address & (PAGE_BYTES - 1));
	barrier_var(first);
	if (when == WHEN_ENTRY || first > PART_MAX || bpf_probe_read_user(piece + 1, first, (void *)copy->address))
		return -1;
	copy->left = first;
	return first;
}

/* The same for a string. */
static __always_inline s64 copy_deferred_string(struct deferred *copy, struct piece *piece)
{
	u64 room = copy->left + 1;

	barrier_var(room);
	if (room > PART_MAX)
		room = PART_MAX;
	s64 read = bpf_probe_read_user_str(piece + 1, room, (void *)copy->address);
	if (read <= 0)
		return -1;
	u8 last = 0;
	if (read == room && bpf_probe_read_user(&last, 1, (void *)(copy->address + read - 1)))
		last = 0;
	copy->wanted = read - (last == 0);
	if (!last)
		copy->left = read - 1;
	return read - 1;
}

/* Copies as much of deferred copy `i` as one piece holds. Returns 1 if nothing that can be read now is left of it. */
__noinline int copy_deferred(struct scratch *scratch, u32 i, u32 when)
{
	struct deferred_copies *copies = bpf_task_storage_get(&deferred_of, bpf_get_current_task_btf(), 0, 0);
	u64 at = i;

	barrier_var(at);
	if (!scratch || !copies || at >= DEFERRED_MAX)
		return 1;
	struct deferred *copy = &copies->list[at];
	u64 start = scratch->call.payload;
	barrier_var(start);
	if (!copy->left)
		return 1;
	if (start > PART_START_MAX)
		return 0;
	struct piece *piece = (struct piece *)(scratch->payload + start);
	u32 is_string = copy->kind & DEFERRED_STRING;
	s64 length = is_string ? copy_deferred_string(copy, piece) : copy_deferred_bytes(copy, piece, when);
	if (length < 0) {
		/* Memory that cannot be read at entry is tried again at exit. */
		if (when == WHEN_EXIT)
			copy->left = 0;
		return 1;
	}
	u32 tag = copy->tag;
	if (when == WHEN_EXIT && tag >> 8 == WHEN_ENTRY)
		tag = TAG(tag & 0xff, WHEN_RETRY);
	u64 wanted = copy->wanted;
	describe(piece, copy->address, wanted, length, tag, length < wanted ? PIECE_CUT : PIECE_WHOLE);
	piece->continues = (copy->kind & DEFERRED_BEGUN) != 0;
	scratch->call.payload = start + sizeof(struct piece) + ((length + 7) & ~7ULL);
	copy->kind |= DEFERRED_BEGUN;
	copy->address += length;
	copy->left -= length;
	if (!is_string)
		copy->wanted -= length;
	return !copy->left;
}

/* Makes deferred copies as long as there is room. Returns 1 if more are left. */
__noinline int fill(struct scratch *scratch, u32 when)
{
	if (!scratch)
		return 0;
	for (u32 i = 0; i < 4; i++) {
		if (scratch->deferred_next >= scratch->deferred_count)
			return 0;
		if (copy_deferred(scratch, scratch->deferred_next, when))
			scratch->deferred_next++;
	}
	return 1;
}

/* The arguments of emit_part. */
struct emission {
	void *ctx;
	struct scratch *scratch;
	u32 when;
};

/* Writes a partial record if it is full, and begins the next one. Returns 1 if nothing is left. */
static long emit_part(u64 i, struct emission *emission)
{
	struct scratch *scratch = emission->scratch;

	if (!fill(scratch, emission->when))
		return 1;
	u64 payload = scratch->call.payload;
	barrier_var(payload);
	if (payload <= PART_START_MAX)
		return 0;
	if (payload > sizeof(scratch->payload))
		return 1;
	scratch->call.how = HOW_PART;
	scratch->call.time = bpf_ktime_get_ns();
	scratch->parts++;
	if (put_record(emission->ctx, BPF_F_CURRENT_CPU, &scratch->call, sizeof(scratch->call) + payload)) {
		COUNT(parts_lost);
		forget_files(scratch);
	}
	scratch->call.how = HOW_PENDING;
	scratch->call.payload = 0;
	describe_empty(scratch, 0, scratch->parts, TAG(ARG_PARTS, emission->when), PIECE_WHOLE);
	return 0;
}

/* Writes what does not fit into the call's own record, as far as it can be read now. */
static __always_inline void emit_parts(void *ctx, struct scratch *scratch, u32 when)
{
	struct emission emission = { .ctx = ctx, .scratch = scratch, .when = when };

	if (scratch->deferred_next < scratch->deferred_count)
		bpf_loop(PARTS_MAX, emit_part, &emission, 0);
}
