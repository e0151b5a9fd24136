/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Executes a call's plan: copies at entry what the kernel will read, and at exit what it wrote.
 */
#pragma once

#include "indirect_fds.h"
#include "links.h"
#include "parts.h"
#include "translate.h"

/* include/uapi/asm-generic/errno-base.h and errno.h, include/linux/errno.h */
enum { EINTR = 4, E2BIG = 7, EOVERFLOW = 75, ERESTARTSYS = 512, ERESTART_RESTARTBLOCK = 516 };

/* Returns an argument by an index that the compiler does not know. */
static __always_inline u64 argument(struct call *call, u32 arg)
{
	return arg < 6 ? call->args[arg] : 0;
}

/* Returns whether the call uses the argument of this operation. */
static __always_inline int is_used(struct call *call, const volatile struct op *op)
{
	return passes(op->test, argument(call, op->test_arg), op->test_mask);
}

/*
 * Returns the number of elements that the call names. For lengths that the kernel overwrites, it is at most the size of
 * the buffer at entry.
 */
static __always_inline u64 count_of(struct scratch *scratch, const volatile struct op *op, u32 when)
{
	u32 count = op->count;

	if (count < 6) {
		u64 value = argument(&scratch->call, count);
		return op->when & OP_COUNT_32 ? (u32)value : value;
	}
	if (count == COUNT_RETURN) {
		u64 returned = scratch->call.ret > 0 ? scratch->call.ret : 0;
		u64 room = op->room == NO_ARG ? returned : argument(&scratch->call, op->room);
		if (op->when & OP_COUNT_32)
			room = (u32)room;
		return returned < room ? returned : room;
	}
	if (count == COUNT_ONE)
		return 1;
	u32 length = 0;
	if (bpf_probe_read_user(&length, sizeof(length), (void *)(argument(&scratch->call, count - COUNT_AT) + op->count_offset)))
		return 0;
	if (!length && op->room != NO_ARG)
		length = op->room;
	return when == WHEN_ENTRY || length < scratch->room ? length : scratch->room;
}

/*
 * Returns the number of bytes that the call reads or writes by an ioctl's command (include/uapi/asm-generic/ioctl.h).
 */
static __always_inline u64 bytes_of_command(u32 command, u32 when)
{
	u32 direction = when == WHEN_EXIT ? 2 : 1;

	return command >> 30 & direction ? command >> 16 & 0x3fff : 0;
}

/* Returns count * size. Products beyond 64 bits need not be exact, because copies are limited anyway. */
static __always_inline u64 product(u64 count, u64 size)
{
	return count >> 32 ? count : count * size;
}

/* Returns the number of files for which the caller's table of descriptors has room. */
__noinline u32 files_max(void)
{
	const void *files = MEMBER(task_struct, bpf_get_current_task_btf(), files);

	if (!files)
		return 0;
	const void *table = MEMBER(files_struct, files, fdt);
	return table ? MEMBER(fdtable, table, max_fds) : 0;
}

/* Returns the number of bytes of an operation whose memory contains no pointers. */
static __always_inline u64 bytes_of(struct scratch *scratch, const volatile struct op *op, u64 count, u32 when)
{
	u64 size = op->size;

	switch (op->kind) {
	case OP_NODES:
		count -= count != 0;
	case OP_FILES:
	case OP_BITS:
		return ((count + 7) / 8 + size - 1) & ~(size - 1);
	case OP_TAIL:
		if (op->link == 2)
			count = (u16)count;
		if (op->links_count)
			count = product(count, op->links_count);
		return when == WHEN_ENTRY && op->when & OP_AT_EXIT ? size : size + count;
	case OP_PAGES:
		return (count + PAGE_BYTES - 1) / PAGE_BYTES;
	case OP_COMMAND:
		return bytes_of_command(argument(&scratch->call, 1), when);
	}
	return product(count, size);
}

/* Executes operation `i` of the plan at `place`; -1 if the memory cannot be read. */
__noinline int operate(struct scratch *scratch, u32 place, u32 i, u32 when)
{
	u64 at = i;
	barrier_var(at);
	if (!scratch || at >= OPS_MAX)
		return 0;
	const volatile struct op *op = &plan_at(place)->ops[at];
	u64 address = argument(&scratch->call, op->arg);
	u32 tag = TAG(op->arg, when);

	if (!address || (op->test && !is_used(&scratch->call, op)))
		return 0;
	u32 kind = op->kind, limit = op->limit == LIMIT_OF_SOCKET ? scratch->data_limit : op->limit;

	if (kind == OP_STRING)
		return copy_string(scratch, address, limit, tag);
	u64 count = count_of(scratch, op, when);
	if (kind == OP_FILES) {
		u32 most = files_max();
		/* The kernel reads no set if the number, an int, is negative. */
		if ((s32)count < 0)
			return 0;
		if (count > most)
			count = most;
	}
	if (kind <= OP_COMMAND) {
		/* Nearly all operations are OP_BYTES. */
		u64 wanted = kind == OP_BYTES ? product(count, op->size) : bytes_of(scratch, op, count, when);
		if (wanted)
			return copy_bytes(scratch, address, wanted, limit, tag);
		return kind == OP_COMMAND ? 0 : add_empty(scratch, address, 0, tag, PIECE_WHOLE);
	}
	if (kind == OP_LINKED)
		return copy_linked(scratch, address, count * op->size, limit, LINKS(op->link, op->links_count) | tag);

	/* The elements of the other kinds consist of words of the ABI. */
	tag = TAG_WITH_WORD(tag, (u32)op->size);
	if (kind == OP_STRINGS)
		return copy_strings(scratch, address, limit, tag);
	/* The number of bytes that the call read or wrote, if it is known. */
	u64 total = when == WHEN_EXIT ? scratch->call.ret : ~0ULL;
	if (when == WHEN_EXIT && scratch->call.ret < 0)
		total = 0;
	if (kind == OP_IOVEC)
		return copy_iovec(scratch, address, count, total, tag);
	/* Memory that the call will overwrite is copied after that. */
	int is_before = when != WHEN_EXIT && op->when & OP_AT_EXIT;
	if (kind == OP_MSGHDR)
		return copy_msghdr(scratch, address, is_before ? 0 : total, tag);
	if (kind == OP_POINTERS)
		return copy_targets(scratch, address, count, limit, tag);
	if (kind == OP_MMSGHDR)
		return copy_mmsghdr(scratch, address, count, limit ? SENDS : 0, tag);
	return 0;
}

/* Adds the files of the descriptors that were found in control messages, which are in the memory of argument 1. */
__noinline int add_passed_files(struct scratch *scratch, u32 when)
{
	if (!scratch)
		return 0;
	for (u32 i = 0; i < PASSED_MAX && i < scratch->passed_count; i++)
		add_file(scratch, scratch->passed[i], TAG(ARG_FILE | ARG_INSIDE | 1, when));
	scratch->passed_count = 0;
	return 0;
}

/* Adds the files of descriptors that a call takes, and the numbers of tasks and users in it. */
__noinline int add_objects_at_entry(struct scratch *scratch, u32 place)
{
	const volatile struct plan *plan = plan_at(place);

	if (!scratch)
		return 0;
	u32 fds = plan->fds;
	scratch->walk.kind = FILE_ROOTED;
	for (u32 i = 0; i < 6; i++)
		if (fds & 1 << i)
			add_file(scratch, scratch->call.args[i], TAG(ARG_FILE | i, WHEN_ENTRY));
	/* Calls that read or write the data of a socket have no other descriptor. */
	scratch->data_limit = settings.string_limit;
	if (scratch->walk.kind == FILE_SOCKET && scratch->walk.socket.family == AF_NETLINK && settings.struct_limit > settings.string_limit)
		scratch->data_limit = settings.struct_limit;
	scratch->passed_count = 0;
	if (plan->indirect_fds)
		add_indirect_files(scratch, plan->indirect_fds);
	u32 pids = scratch->call.bits & CALL_NESTED ? plan->pids : 0;
	for (u32 i = 0; i < 6; i++)
		if (pids & 1 << i)
			add_number(scratch, scratch->call.args[i], i);
	if (plan->uids | plan->gids)
		add_ids(scratch, place, WHEN_ENTRY);
	return 0;
}

/* Copies memory before the kernel executes the call. */
__noinline int copy_at_entry(struct scratch *scratch, u32 place)
{
	const volatile struct plan *plan = plan_at(place);

	if (!scratch)
		return 0;
	scratch->retry = 0;
	scratch->unread = 0;
	scratch->deferred_count = 0;
	scratch->deferred_next = 0;
	scratch->parts = 0;
	scratch->room = ~0u;
	for (u32 i = 0; i < OPS_MAX && i < plan->ops_count; i++) {
		const volatile struct op *op = &plan->ops[i];
		u32 count = op->count;
		u32 deferred = scratch->deferred_count;
		if (op->when & OP_AT_ENTRY && operate(scratch, place, i, WHEN_ENTRY)) {
			scratch->retry |= 1 << i;
			scratch->deferred_count = deferred;
		}
		if (op->when & OP_AT_EXIT && count >= COUNT_AT) {
			u32 room = 0;
			if (!bpf_probe_read_user(&room, sizeof(room), (void *)(argument(&scratch->call, count - COUNT_AT) + op->count_offset)))
				scratch->room = room;
		}
	}
	return 0;
}

/*
 * Captures what is read before the kernel executes the call. The parts are functions that do not call each other: the
 * verifier bounds the stack of a chain of calls, and that to the name of a file is the longest.
 */
static __always_inline void capture_at_entry(struct scratch *scratch, u32 place)
{
	add_objects_at_entry(scratch, place);
	copy_at_entry(scratch, place);
	if (scratch->passed_count)
		add_passed_files(scratch, WHEN_ENTRY);
}

/*
 * Returns OP_AT_EXIT if an operation is due after this result of the call, otherwise 0. The function is global, so that
 * the verifier does not have to follow each path through it for each operation.
 */
__noinline u32 due_at_exit(u32 when, s64 ret)
{
	if ((ret <= 0 && when & OP_POSITIVE) || (ret >= 0 && when & OP_NOT_DONE))
		return 0;
	int is_too_small = ret == -E2BIG || ret == -EOVERFLOW;
	if (ret >= 0 || when & OP_FAILED || (is_too_small && when & OP_TOO_SMALL))
		return when & OP_AT_EXIT;
	int interrupted = ret == -EINTR || (ret <= -ERESTARTSYS && ret >= -ERESTART_RESTARTBLOCK);

	return interrupted && when & OP_INTERRUPTED ? when & OP_AT_EXIT : 0;
}

/* Executes operation `i` at exit, and adds a piece with PIECE_FAULT if its memory cannot be read. */
static __always_inline int operate_at_exit(struct scratch *scratch, u32 place, u32 i, u32 when)
{
	u64 at = i;
	barrier_var(at);
	if (!scratch || at >= OPS_MAX)
		return 0;
	u32 arg = plan_at(place)->ops[at].arg;
	/* After an execve the memory is that of another program. */
	int is_gone = when == WHEN_RETRY && plan_at(place)->flags & PLAN_EXECUTES && scratch->call.ret >= 0;
	if (is_gone || operate(scratch, place, at, when))
		add_empty(scratch, argument(&scratch->call, arg), 0, TAG(arg, when), PIECE_FAULT);
	return 0;
}

/* Returns whether the call returns a pid of a pid namespace below rtrace's own. */
static __always_inline int returns_number(struct scratch *scratch, const volatile struct plan *plan)
{
	return plan->pids & 1 << ARG_RETURN && scratch->call.bits & CALL_NESTED;
}

static __always_inline int returns_id(const volatile struct plan *plan)
{
	return (plan->uids | plan->gids) & 1 << ARG_RETURN;
}

/* Copies what the call wrote, and what could not be read at entry: the kernel itself has touched those pages by now. */
__noinline int capture_at_exit(struct scratch *scratch, u32 place)
{
	const volatile struct plan *plan = plan_at(place);

	if (!scratch)
		return 0;
	if (plan->flags & PLAN_OPENS && scratch->call.ret >= 0)
		add_file(scratch, scratch->call.ret, TAG(ARG_FILE | ARG_RETURN, WHEN_EXIT));
	if (returns_number(scratch, plan))
		add_number(scratch, scratch->call.ret, ARG_RETURN);
	if (returns_id(plan))
		add_ids(scratch, place, WHEN_EXIT);
	/* Deferred copies cannot be made after an execve either. */
	scratch->deferred_next = plan->flags & PLAN_EXECUTES && scratch->call.ret >= 0 ? scratch->deferred_count : 0;
	for (u32 i = 0; i < OPS_MAX && i < plan->ops_count; i++) {
		if (scratch->retry & 1 << i)
			operate_at_exit(scratch, place, i, WHEN_RETRY);
		if (due_at_exit(plan->ops[i].when, scratch->call.ret))
			operate_at_exit(scratch, place, i, WHEN_EXIT);
	}
	if (scratch->passed_count)
		add_passed_files(scratch, WHEN_EXIT);
	if (plan->indirect_fds >= INDIRECT_PIPE && !scratch->call.ret)
		add_opened_files(scratch, plan->indirect_fds);
	return 0;
}

/* Gives up what could not be read before an execve, which replaced the memory. */
__noinline int give_up_retries(struct scratch *scratch, u32 place)
{
	const volatile struct plan *plan = plan_at(place);

	if (!scratch)
		return 0;
	for (u32 i = 0; i < OPS_MAX && i < plan->ops_count; i++) {
		u32 arg = plan->ops[i].arg;
		if (scratch->retry & 1 << i)
			add_empty(scratch, argument(&scratch->call, arg), 0, TAG(arg, WHEN_RETRY), PIECE_FAULT);
	}
	return 0;
}
