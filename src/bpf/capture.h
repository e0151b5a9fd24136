/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Copying the caller's memory, as the call's plan says.
 *
 * Never a byte more is read than the call names: data often ends at the end of a mapping. Each function is a program of its own to the verifier (global), which looks at each once
 * and not at every combination of them.
 */
#pragma once

#include "state.h"

/* A piece that begins later than this could not hold PIECE_MAX bytes. */
#define START_MAX (sizeof(((struct scratch *)0)->payload) - sizeof(struct piece) - PIECE_MAX)
/* Behind the last that could hold even a piece without bytes. */
#define HEADER_MAX (sizeof(((struct scratch *)0)->payload) - sizeof(struct piece))

/* include/uapi/asm-generic/errno-base.h, include/linux/errno.h */
enum { EINTR = 4, ERESTARTSYS = 512, ERESTART_RESTARTBLOCK = 516 };

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
	piece->unused = 0;
}

/* A piece without bytes, if there is room for that. */
__noinline int add_empty(struct scratch *scratch, u64 address, u64 wanted, u32 tag, u32 state)
{
	if (!scratch)
		return 0;
	u64 at = scratch->call.payload;
	if (at > HEADER_MAX)
		return 0;
	describe((struct piece *)(scratch->payload + at), address, wanted, 0, tag, state);
	scratch->call.payload = at + sizeof(struct piece);
	return 0;
}

/* Copies no more than `limit` of the bytes that the call names; -1 if they cannot be read, and then nothing is added. */
__noinline int copy_bytes(struct scratch *scratch, u64 address, u64 wanted, u32 limit, u32 tag)
{
	if (!scratch)
		return 0;
	u64 at = scratch->call.payload;
	if (at > START_MAX)
		return add_empty(scratch, address, wanted, tag, PIECE_CUT);
	struct piece *piece = (struct piece *)(scratch->payload + at);
	u64 length = wanted < limit ? wanted : limit;
	barrier_var(length);
	if (length > PIECE_MAX)
		length = PIECE_MAX;
	if (bpf_probe_read_user(piece + 1, length, (void *)address))
		return -1;
	describe(piece, address, wanted, length, tag, length < wanted ? PIECE_CUT : PIECE_WHOLE);
	scratch->call.payload = at + sizeof(struct piece) + ((length + 7) & ~7ULL);
	return 0;
}

/* Copies no more than `limit` bytes of a string, its NUL not counted; -1 as above. */
__noinline int copy_string(struct scratch *scratch, u64 address, u32 limit, u32 tag)
{
	if (!scratch)
		return 0;
	u64 at = scratch->call.payload;
	if (at > START_MAX)
		return add_empty(scratch, address, 0, tag, PIECE_CUT);
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
	scratch->call.payload = at + sizeof(struct piece) + ((read + 7) & ~7ULL);
	return 0;
}

/* An argument's value, by a number that is not known here. */
static __always_inline u64 argument(struct call *call, u32 arg)
{
	return arg < 6 ? call->args[arg] : 0;
}

/* How many elements the call names; for lengths that the kernel overwrites, no more than there was room for. */
static __always_inline u64 count_of(struct scratch *scratch, u32 count, u32 when_bits, u32 when)
{
	if (count < 6) {
		u64 value = argument(&scratch->call, count);
		return when_bits & OP_COUNT_32 ? (u32)value : value;
	}
	if (count == COUNT_RETURN)
		return scratch->call.ret > 0 ? scratch->call.ret : 0;
	if (count == COUNT_ONE)
		return 1;
	u32 length = 0;
	if (bpf_probe_read_user(&length, sizeof(length), (void *)argument(&scratch->call, count - COUNT_AT)))
		return 0;
	return when == WHEN_ENTRY || length < scratch->room ? length : scratch->room;
}

/* Carries out operation `i` of the plan at `place`; -1 if the memory cannot be read. */
__noinline int operate(struct scratch *scratch, u32 place, u32 i, u32 when)
{
	u64 at = i;
	barrier_var(at);
	if (!scratch || at >= OPS_MAX)
		return 0;
	const volatile struct op *op = &plan_at(place)->ops[at];
	u64 address = argument(&scratch->call, op->arg);
	u32 tag = TAG(op->arg, when);

	if (!address)
		return 0;
	if (op->kind == OP_STRING)
		return copy_string(scratch, address, op->limit, tag);
	u64 count = count_of(scratch, op->count, op->when, when);
	u64 size = op->size;
	/* Larger products are cut anyway. */
	u64 wanted = count >> 32 ? count : count * size;
	if (op->kind == OP_BITS)
		wanted = ((count + 7) / 8 + size - 1) & ~(size - 1);
	return wanted ? copy_bytes(scratch, address, wanted, op->limit, tag) : 0;
}

/* What is read before the call is carried out. */
__noinline int capture_at_entry(struct scratch *scratch, u32 place)
{
	const volatile struct plan *plan = plan_at(place);

	if (!scratch)
		return 0;
	scratch->retry = 0;
	scratch->room = ~0u;
	for (u32 i = 0; i < OPS_MAX && i < plan->ops_count; i++) {
		const volatile struct op *op = &plan->ops[i];
		u32 count = op->count;
		if (op->when & OP_AT_ENTRY) {
			if (operate(scratch, place, i, WHEN_ENTRY))
				scratch->retry |= 1 << i;
		} else if (count >= COUNT_AT) {
			u32 room = 0;
			if (!bpf_probe_read_user(&room, sizeof(room), (void *)argument(&scratch->call, count - COUNT_AT)))
				scratch->room = room;
		}
	}
	return 0;
}

/* What the call wrote, and what could not be read before: the kernel itself has touched that by now. */
__noinline int capture_at_exit(struct scratch *scratch, u32 place)
{
	const volatile struct plan *plan = plan_at(place);

	if (!scratch)
		return 0;
	/* After an execve that memory is another's. */
	int is_gone = plan->flags & PLAN_EXECUTES && scratch->call.ret >= 0;
	s64 ret = scratch->call.ret;
	int failed = ret < 0;
	int interrupted = ret == -EINTR || (ret <= -ERESTARTSYS && ret >= -ERESTART_RESTARTBLOCK);
	for (u32 i = 0; i < OPS_MAX && i < plan->ops_count; i++) {
		u32 when = plan->ops[i].when;
		u32 arg = plan->ops[i].arg;
		if (scratch->retry & 1 << i && (is_gone || operate(scratch, place, i, WHEN_RETRY)))
			add_empty(scratch, argument(&scratch->call, arg), 0, TAG(arg, WHEN_RETRY), PIECE_FAULT);
		if (when & OP_AT_EXIT && (!failed || (interrupted && when & OP_INTERRUPTED)) && operate(scratch, place, i, WHEN_EXIT))
			add_empty(scratch, argument(&scratch->call, arg), 0, TAG(arg, WHEN_EXIT), PIECE_FAULT);
	}
	return 0;
}
