/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Copying the caller's memory, piece by piece.
 *
 * Never a byte more is read than the call names: data often ends at the end of a mapping. Each function is a program of its own to the verifier (global), which looks at each once
 * and not at every combination of them. They may be eight deep.
 */
#pragma once

#include "state.h"

/* The smallest page. */
#define PAGE_BYTES 4096

/* A piece that begins later than this could not hold PIECE_MAX bytes. */
#define START_MAX (sizeof(((struct scratch *)0)->payload) - sizeof(struct piece) - PIECE_MAX)
/* Behind the last that could hold even a piece without bytes. */
#define HEADER_MAX (sizeof(((struct scratch *)0)->payload) - sizeof(struct piece))

/* Which argument of which moment, in one word: global functions have five parameters. */
#define TAG(arg, when) ((arg) | (when) << 8)

static __always_inline void describe(struct piece *piece, u64 address, u64 wanted, u32 length, u32 tag, u32 state)
{
	piece->address = address;
	piece->wanted = wanted;
	piece->length = length;
	piece->arg = tag;
	piece->when = tag >> 8;
	piece->state = state;
	piece->continues = 0;
}

/* A piece without bytes, if there is room for that. */
static __always_inline int describe_empty(struct scratch *scratch, u64 address, u64 wanted, u32 tag, u32 state)
{
	u64 at = scratch->call.payload;

	if (at > HEADER_MAX)
		return 0;
	describe((struct piece *)(scratch->payload + at), address, wanted, 0, tag, state);
	scratch->call.payload = at + sizeof(struct piece);
	return 0;
}

__noinline int add_empty(struct scratch *scratch, u64 address, u64 wanted, u32 tag, u32 state)
{
	return scratch ? describe_empty(scratch, address, wanted, tag, state) : 0;
}

/* Puts down what there is no room for now, to be copied when the record so far was given; -1 if that is too much. */
static __always_inline int owe(struct scratch *scratch, u64 address, u64 wanted, u64 left, u32 tag, u32 kind)
{
	struct debts *debts = bpf_task_storage_get(&debts_of, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	u64 at = scratch->debts;

	barrier_var(at);
	if (!debts || at >= DEBTS_MAX)
		return -1;
	struct debt *debt = &debts->list[at];
	debt->address = address;
	debt->wanted = wanted;
	debt->left = left;
	debt->tag = tag;
	debt->kind = kind;
	scratch->debts = at + 1;
	return 0;
}

/* Reads into a piece. Where so few bytes are wanted, they come by the stack: the kernel checks the bounds of what was allotted (CONFIG_HARDENED_USERCOPY), which takes longer than the copy. */
static __always_inline int read_user(struct piece *piece, u64 length, u64 address)
{
	u64 few[2] = {};

	if (length > sizeof(few))
		return bpf_probe_read_user(piece + 1, length, (void *)address) != 0;
	if (bpf_probe_read_user(few, length, (void *)address))
		return 1;
	u64 *words = (u64 *)(piece + 1);
	words[0] = few[0];
	words[1] = few[1];
	return 0;
}

/* Copies no more than `limit` of the bytes that the call names; -1 if they cannot be read, and then nothing is added. */
__noinline int copy_bytes(struct scratch *scratch, u64 address, u64 wanted, u32 limit, u32 tag)
{
	if (!scratch)
		return 0;
	u64 at = scratch->call.payload;
	barrier_var(at);
	u64 all = wanted < limit ? wanted : limit;
	if (at > START_MAX)
		return all && !owe(scratch, address, wanted, all, tag, DEBT_BYTES) ? 0 : describe_empty(scratch, address, wanted, tag, PIECE_CUT);
	struct piece *piece = (struct piece *)(scratch->payload + at);
	u64 length = all;
	barrier_var(length);
	if (length > PIECE_MAX)
		length = PIECE_MAX;
	if (read_user(piece, length, address)) {
		/* At entry it may be that nobody touched the page yet. At exit, what stands before the next page may be all there is. */
		u64 first = PAGE_BYTES - (address & (PAGE_BYTES - 1));
		if ((tag >> 8 & 0xff) == WHEN_ENTRY || first >= length || bpf_probe_read_user(piece + 1, first, (void *)address))
			return -1;
		length = first;
	}
	describe(piece, address, wanted, length, tag, length < wanted ? PIECE_CUT : PIECE_WHOLE);
	scratch->call.payload = at + sizeof(struct piece) + ((length + 7) & ~7ULL);
	if (length == PIECE_MAX && length < all)
		owe(scratch, address + length, wanted - length, all - length, tag, DEBT_BYTES | DEBT_BEGUN);
	return 0;
}

/* Adds what the kernel itself has of a string in the caller's memory at `address`. */
__noinline int add_kernel_string(struct scratch *scratch, u64 address, u64 copy, u32 tag)
{
	if (!scratch)
		return 0;
	u64 at = scratch->call.payload;
	if (at > START_MAX)
		return describe_empty(scratch, address, 0, tag, PIECE_CUT);
	struct piece *piece = (struct piece *)(scratch->payload + at);
	s64 read = bpf_probe_read_kernel_str(piece + 1, PIECE_MAX, (void *)copy);
	if (read <= 0)
		return -1;
	describe(piece, address, read, read - 1, tag, PIECE_WHOLE);
	scratch->call.payload = at + sizeof(struct piece) + ((read - 1 + 7) & ~7ULL);
	return 0;
}

/* Copies no more than `limit` bytes of a string, its NUL not counted; -1 as above. */
__noinline int copy_string(struct scratch *scratch, u64 address, u32 limit, u32 tag)
{
	if (!scratch)
		return 0;
	u64 at = scratch->call.payload;
	barrier_var(at);
	if (at > START_MAX)
		return !owe(scratch, address, 0, limit, tag, DEBT_STRING) ? 0 : describe_empty(scratch, address, 0, tag, PIECE_CUT);
	struct piece *piece = (struct piece *)(scratch->payload + at);
	u64 room = limit + 1;
	barrier_var(room);
	if (room > PIECE_MAX)
		room = PIECE_MAX;
	s64 read = bpf_probe_read_user_str(piece + 1, room, (void *)address);
	if (read <= 0)
		return -1;
	/* With no room left, the last byte may stand in the place of more. */
	u8 last = 0;
	if (read == room && bpf_probe_read_user(&last, 1, (void *)(address + read - 1)))
		last = 0;
	describe(piece, address, read + (last != 0), read - 1, tag, last ? PIECE_CUT : PIECE_WHOLE);
	scratch->call.payload = at + sizeof(struct piece) + ((read - 1 + 7) & ~7ULL);
	if (last && limit > PIECE_MAX)
		owe(scratch, address + read - 1, 0, limit - (read - 1), tag, DEBT_STRING | DEBT_BEGUN);
	return 0;
}
