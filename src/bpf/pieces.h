/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Copies the caller's memory, piece by piece.
 *
 * No byte is read beyond those that the call names, because data often ends at the end of a mapping. Each function is
 * global: the verifier checks it once as a program of its own, and not in every combination with the others. Calls may
 * be eight levels deep.
 */
#pragma once

#include "state.h"

/* The smallest page. */
#define PAGE_BYTES 4096

/* The last offset at which a piece can hold PIECE_MAX bytes. */
#define START_MAX (sizeof(((struct scratch *)0)->payload) - sizeof(struct piece) - PIECE_MAX)
/* The last offset at which a piece without bytes fits. */
#define HEADER_MAX (sizeof(((struct scratch *)0)->payload) - sizeof(struct piece))

/* The argument and the time in one word, because global functions have at most five parameters. */
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

/* Adds a piece without bytes, if there is room for it. */
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

/* Defers a copy for which there is no room now until the record so far was written; -1 if there are too many. */
static __always_inline int defer_copy(struct scratch *scratch, u64 address, u64 wanted, u64 left, u32 tag, u32 kind)
{
	struct deferred_copies *copies = bpf_task_storage_get(&deferred_of, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	u64 at = scratch->deferred_count;

	barrier_var(at);
	if (!copies || at >= DEFERRED_MAX)
		return -1;
	struct deferred *copy = &copies->list[at];
	copy->address = address;
	copy->wanted = wanted;
	copy->left = left;
	copy->tag = tag;
	copy->kind = kind;
	scratch->deferred_count = at + 1;
	return 0;
}

/*
 * Reads memory into a piece. A few bytes are read by way of the stack, because the kernel checks the bounds of
 * allocated memory (CONFIG_HARDENED_USERCOPY), which takes longer than the copy.
 */
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

/* Copies at most `limit` of the bytes that the call names. If they cannot be read, it adds nothing and returns -1. */
__noinline int copy_bytes(struct scratch *scratch, u64 address, u64 wanted, u32 limit, u32 tag)
{
	if (!scratch)
		return 0;
	u64 at = scratch->call.payload;
	barrier_var(at);
	u64 all = wanted < limit ? wanted : limit;
	if (at > START_MAX)
		return all && !defer_copy(scratch, address, wanted, all, tag, DEFERRED_BYTES) ? 0 : describe_empty(scratch, address, wanted, tag, PIECE_CUT);
	struct piece *piece = (struct piece *)(scratch->payload + at);
	u64 length = all;
	barrier_var(length);
	if (length > PIECE_MAX)
		length = PIECE_MAX;
	if (read_user(piece, length, address)) {
		/*
		 * At entry the page may not have been touched yet. At exit, the bytes up to the next page may be all
		 * that there are.
		 */
		u64 first = PAGE_BYTES - (address & (PAGE_BYTES - 1));
		if ((tag >> 8 & 0xff) == WHEN_ENTRY || first >= length || bpf_probe_read_user(piece + 1, first, (void *)address))
			return -1;
		length = first;
	}
	describe(piece, address, wanted, length, tag, length < wanted ? PIECE_CUT : PIECE_WHOLE);
	scratch->call.payload = at + sizeof(struct piece) + ((length + 7) & ~7ULL);
	if (length == PIECE_MAX && length < all)
		defer_copy(scratch, address + length, wanted - length, all - length, tag, DEFERRED_BYTES | DEFERRED_BEGUN);
	return 0;
}

/* Adds the kernel's copy of a string that is in the caller's memory at `address`. */
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

/* Copies at most `limit` bytes of a string, not counting its NUL; -1 as above. */
__noinline int copy_string(struct scratch *scratch, u64 address, u32 limit, u32 tag)
{
	if (!scratch)
		return 0;
	u64 at = scratch->call.payload;
	barrier_var(at);
	if (at > START_MAX)
		return !defer_copy(scratch, address, 0, limit, tag, DEFERRED_STRING) ? 0 : describe_empty(scratch, address, 0, tag, PIECE_CUT);
	struct piece *piece = (struct piece *)(scratch->payload + at);
	u64 room = limit + 1;
	barrier_var(room);
	if (room > PIECE_MAX)
		room = PIECE_MAX;
	s64 read = bpf_probe_read_user_str(piece + 1, room, (void *)address);
	if (read <= 0) {
		/* The bytes up to the limit may be all that there are, and all that the kernel reads. */
		u64 length = room - 1;
		barrier_var(length);
		if (!length || length >= PIECE_MAX || bpf_probe_read_user(piece + 1, length, (void *)address))
			return -1;
		describe(piece, address, length + 1, length, tag, PIECE_CUT);
		scratch->call.payload = at + sizeof(struct piece) + ((length + 7) & ~7ULL);
		return 0;
	}
	/* If the buffer is full, the last byte tells whether the string continues. */
	u8 last = 0;
	if (read == room && bpf_probe_read_user(&last, 1, (void *)(address + read - 1)))
		last = 0;
	describe(piece, address, read + (last != 0), read - 1, tag, last ? PIECE_CUT : PIECE_WHOLE);
	scratch->call.payload = at + sizeof(struct piece) + ((read - 1 + 7) & ~7ULL);
	if (last && limit >= PIECE_MAX)
		defer_copy(scratch, address + read - 1, 0, limit - (read - 1), tag, DEFERRED_STRING | DEFERRED_BEGUN);
	return 0;
}
