/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Copies a struct and the memory that its members point to, by the links of its row (links.rs).
 */
#pragma once

#include "nested.h"

/* The maximum number of pointers of a struct that are followed. */
#define LINKS_OF_ONE 16

/* The links to follow, in a tag: the index of the first, and their number. */
#define LINKS(first, count) ((u32)(first) << 16 | (u32)(count) << 24)

/* Returns a number of 1, 2, 4 or 8 bytes at `offset` in the memory that was copied to the piece at `start`. */
static __always_inline u64 number_at(struct scratch *scratch, u64 start, u32 offset, u32 bytes)
{
	u64 at = start + sizeof(struct piece) + offset;

	barrier_var(at);
	if (at > sizeof(scratch->payload) - 8)
		return 0;
	u64 number = *(u64 *)(scratch->payload + at);
	return bytes == 8 ? number : bytes == 4 ? (u32)number : bytes == 2 ? (u16)number : (u8)number;
}

/*
 * Adds the string that a pointer in a struct points to. If it cannot be read, it returns -1 at entry, and adds a piece
 * with PIECE_FAULT at exit.
 */
static __always_inline int copy_inner_string(struct scratch *scratch, u64 address, u32 limit, u32 tag)
{
	if (!address || !copy_string(scratch, address, limit, tag))
		return 0;
	if ((tag >> 8 & 0xff) == WHEN_ENTRY)
		return -1;
	return add_empty(scratch, address, 0, tag, PIECE_FAULT);
}

/* Copies the memory that one pointer of the struct in the piece at `start` points to. */
__noinline int copy_link(struct scratch *scratch, u64 start, u32 place, u32 length, u32 tag)
{
	u64 at = place;

	barrier_var(at);
	if (!scratch || at >= LINKS_MAX)
		return 0;
	const volatile struct link *link = &links[at];
	u32 when = tag >> 8 & 0xff;
	if (!(link->when & (when == WHEN_EXIT ? OP_AT_EXIT : OP_AT_ENTRY)) || link->offset + link->bytes > length)
		return 0;
	if (link->test && (link->test_offset + 4 > length ||
			   !passes(link->test, number_at(scratch, start, link->test_offset, 4), link->test_mask)))
		return 0;
	u64 pointer = number_at(scratch, start, link->offset, link->bytes);
	if (!link->size)
		return copy_inner_string(scratch, pointer, link->limit, tag);
	u64 count = 1;
	if (link->count == COUNT_RETURN)
		count = scratch->call.ret > 0 ? scratch->call.ret : 0;
	if (link->count_bytes) {
		u64 named = link->count_offset + link->count_bytes <= length ? number_at(scratch, start, link->count_offset, link->count_bytes) : 0;
		if (link->count != COUNT_RETURN || named < count)
			count = named;
	}
	return copy_inner(scratch, pointer, count >> 32 ? count : count * link->size, link->limit, tag);
}

/*
 * Returns the size of the piece at `start`. It is a function because the verifier of Linux 6.1 forgets a comparison if
 * the compiler keeps the number on the stack.
 */
__noinline u32 length_at(struct scratch *scratch, u64 start)
{
	barrier_var(start);
	return scratch && start <= START_MAX ? ((struct piece *)(scratch->payload + start))->length : 0;
}

/* Copies a struct of `wanted` bytes, and the memory that its links point to. */
__noinline int copy_linked(struct scratch *scratch, u64 address, u64 wanted, u32 limit, u32 tag)
{
	if (!scratch)
		return 0;
	u64 start = scratch->call.payload;
	u32 first = tag >> 16 & 0xff, count = tag >> 24, plain = WITHOUT_WORD(tag);

	if (copy_bytes(scratch, address, wanted, limit, plain))
		return -1;
	barrier_var(start);
	if (start > START_MAX)
		return 0;
	u32 length = length_at(scratch, start);
	for (u32 i = 0; i < LINKS_OF_ONE && i < count; i++) {
		if (copy_link(scratch, start, first + i, length, plain)) {
			scratch->call.payload = start;
			return -1;
		}
	}
	return 0;
}
