/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Data that one record does not hold: it is put down as debts while the call's pieces are copied, and paid in records of their own, which come before the call's.
 */
#pragma once

#include "nested.h"

/* So much is copied at once, so that three of it fill a record. */
#define PART_MAX 2048
#define PART_START_MAX (sizeof(((struct scratch *)0)->payload) - sizeof(struct piece) - PART_MAX)
/* Records of one call: 6 MiB. */
#define PARTS_MAX 1024

/* Copies some bytes of a debt behind the piece; how many, or less than 0. */
static __always_inline s64 pay_bytes(struct debt *debt, struct piece *piece, u32 when)
{
	u64 length = debt->left;

	barrier_var(length);
	if (length > PART_MAX)
		length = PART_MAX;
	if (!bpf_probe_read_user(piece + 1, length, (void *)debt->address))
		return length;
	u64 first = PAGE_BYTES - (debt->address & (PAGE_BYTES - 1));
	barrier_var(first);
	if (when == WHEN_ENTRY || first > PART_MAX || bpf_probe_read_user(piece + 1, first, (void *)debt->address))
		return -1;
	debt->left = first;
	return first;
}

/* The same of a string. */
static __always_inline s64 pay_string(struct debt *debt, struct piece *piece)
{
	u64 room = debt->left + 1;

	barrier_var(room);
	if (room > PART_MAX)
		room = PART_MAX;
	s64 read = bpf_probe_read_user_str(piece + 1, room, (void *)debt->address);
	if (read <= 0)
		return -1;
	u8 last = 0;
	if (read == room && bpf_probe_read_user(&last, 1, (void *)(debt->address + read - 1)))
		last = 0;
	debt->wanted = read - (last == 0);
	if (!last)
		debt->left = read - 1;
	return read - 1;
}

/* Pays as much of debt `i` as one piece holds: 1 if nothing is left of it that can be read now. */
__noinline int pay(struct scratch *scratch, u32 i, u32 when)
{
	struct debts *debts = bpf_task_storage_get(&debts_of, bpf_get_current_task_btf(), 0, 0);
	u64 at = i;

	barrier_var(at);
	if (!scratch || !debts || at >= DEBTS_MAX)
		return 1;
	struct debt *debt = &debts->list[at];
	u64 start = scratch->call.payload;
	barrier_var(start);
	if (!debt->left)
		return 1;
	if (start > PART_START_MAX)
		return 0;
	struct piece *piece = (struct piece *)(scratch->payload + start);
	u32 is_string = debt->kind & DEBT_STRING;
	s64 length = is_string ? pay_string(debt, piece) : pay_bytes(debt, piece, when);
	if (length < 0) {
		/* What cannot be read at entry is tried again at exit. */
		if (when == WHEN_EXIT)
			debt->left = 0;
		return 1;
	}
	u32 tag = debt->tag;
	if (when == WHEN_EXIT && tag >> 8 == WHEN_ENTRY)
		tag = TAG(tag & 0xff, WHEN_RETRY);
	u64 wanted = debt->wanted;
	describe(piece, debt->address, wanted, length, tag, length < wanted ? PIECE_CUT : PIECE_WHOLE);
	piece->continues = (debt->kind & DEBT_BEGUN) != 0;
	scratch->call.payload = start + sizeof(struct piece) + ((length + 7) & ~7ULL);
	debt->kind |= DEBT_BEGUN;
	debt->address += length;
	debt->left -= length;
	if (!is_string)
		debt->wanted -= length;
	return !debt->left;
}

/* Pays debts as long as there is room: 1 if more are left. */
__noinline int fill(struct scratch *scratch, u32 when)
{
	if (!scratch)
		return 0;
	for (u32 i = 0; i < 4; i++) {
		if (scratch->debt >= scratch->debts)
			return 0;
		if (pay(scratch, scratch->debt, when))
			scratch->debt++;
	}
	return 1;
}

struct giving {
	void *ctx;
	struct scratch *scratch;
	u32 when;
};

/* Writes a record with a part of the call, if one is full, and begins the next: 1 if that was all. */
static long give_part(u64 i, struct giving *giving)
{
	struct scratch *scratch = giving->scratch;

	if (!fill(scratch, giving->when))
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
	if (bpf_perf_event_output(giving->ctx, &output, BPF_F_CURRENT_CPU, &scratch->call, sizeof(scratch->call) + payload)) {
		COUNT(parts_lost);
		forget_files(scratch);
	}
	scratch->call.how = HOW_PENDING;
	scratch->call.payload = 0;
	describe_empty(scratch, 0, scratch->parts, TAG(ARG_PARTS, giving->when), PIECE_WHOLE);
	return 0;
}

/* Gives what does not fit into the call's own record, as much of it as can be read at this moment. */
static __always_inline void give_parts(void *ctx, struct scratch *scratch, u32 when)
{
	struct giving giving = { .ctx = ctx, .scratch = scratch, .when = when };

	if (scratch->debt < scratch->debts)
		bpf_loop(PARTS_MAX, give_part, &giving, 0);
}
