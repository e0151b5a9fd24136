/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Copies the memory that copied memory points to. Each copy is a piece of the same argument that follows the piece with
 * the pointer, and is found by its address.
 *
 * If memory cannot be read at entry, the whole operation is repeated at exit, so that all pieces of an operation are of
 * the same time.
 */
#pragma once

#include "pieces.h"

/* The maximum number of elements of an array that are followed. */
#define ELEMENTS_MAX 32
/* The maximum number of strings of an array of pointers that are copied: strace shows all of them with -v. */
#define STRINGS_MAX 128
/* The maximum number of pointers that are copied of an array that ends with a null pointer. */
#define POINTERS_MAX (PIECE_MAX / 8)
#define POINTERS_BLOCK 32
/* Copies of more bytes than this are deferred until all pointers were followed. */
#define INNER_MAX 512

/* A tag may contain the size of the ABI's words. */
#define TAG_WITH_WORD(tag, word) ((tag) | (word) << 16)
#define WORD_OF(tag) ((tag) >> 16 & 0xff)
#define WITHOUT_WORD(tag) ((tag) & 0xffff)

/*
 * Returns word `i`, of 4 or 8 bytes, of the memory that was copied to the piece at `start`. Global, like the other
 * bodies of loops, so that the verifier does not have to follow its paths for each iteration.
 */
__noinline u64 word_at(struct scratch *scratch, u64 start, u32 i, u32 word)
{
	u64 at = start + sizeof(struct piece) + i * word;

	barrier_var(at);
	if (!scratch || at > sizeof(scratch->payload) - 8)
		return 0;
	return word == 8 ? *(u64 *)(scratch->payload + at) : *(u32 *)(scratch->payload + at);
}

/*
 * Adds a nested piece. If the memory cannot be read, it returns -1 at entry, and adds a piece with PIECE_FAULT at exit.
 */
static __always_inline int copy_inner(struct scratch *scratch, u64 address, u64 wanted, u32 limit, u32 tag)
{
	if (!wanted || !address)
		return 0;
	/* Large copies are deferred, so that there is room for the memory with further pointers. */
	u64 all = wanted < limit ? wanted : limit;
	if (all > INNER_MAX && !defer_copy(scratch, address, wanted, all, tag, DEFERRED_BYTES))
		return 0;
	if (!copy_bytes(scratch, address, wanted, limit, tag))
		return 0;
	if ((tag >> 8 & 0xff) == WHEN_ENTRY)
		return -1;
	return add_empty(scratch, address, wanted, tag, PIECE_FAULT);
}

/*
 * Copies the memory that element `i` of an array of struct iovec points to, at most `total` bytes. Returns how many of
 * these bytes the element has, or -1.
 */
__noinline s64 copy_element(struct scratch *scratch, u64 start, u32 i, u64 total, u32 tag)
{
	if (!scratch)
		return 0;
	u64 base = word_at(scratch, start, 2 * i, WORD_OF(tag));
	u64 length = word_at(scratch, start, 2 * i + 1, WORD_OF(tag));

	if (length > total)
		length = total;
	if (copy_inner(scratch, base, length, scratch->data_limit, WITHOUT_WORD(tag)))
		return -1;
	return length & ~(1ULL << 63);
}

/* UIO_MAXIOV: the kernel refuses more elements of an array. */
#define ARRAY_MAX 1024

/* Copies the first elements of an array; -1 if they cannot be read. */
static __always_inline int copy_array(struct scratch *scratch, u64 address, u64 *count, u64 size, u32 tag)
{
	if (*count > ARRAY_MAX)
		*count = ARRAY_MAX;
	return copy_bytes(scratch, address, *count * size, ELEMENTS_MAX * size, WITHOUT_WORD(tag));
}

/* Copies an array of struct iovec, and at most `total` bytes of the memory that its elements point to. */
__noinline int copy_iovec(struct scratch *scratch, u64 address, u64 count, u64 total, u32 tag)
{
	if (!scratch || !address || !count)
		return 0;
	u64 start = scratch->call.payload;

	if (copy_array(scratch, address, &count, WORD_OF(tag) * 2, tag))
		return -1;
	if (start > START_MAX)
		return 0;
	for (u32 i = 0; i < ELEMENTS_MAX && i < count && total; i++) {
		s64 length = copy_element(scratch, start, i, total, tag);
		if (length < 0) {
			scratch->call.payload = start;
			return -1;
		}
		total -= length;
	}
	return 0;
}

/* Control messages (include/linux/socket.h) of which descriptors are recorded, and how many of them are examined. */
enum { SOL_SOCKET = 1, SCM_RIGHTS = 1, SCM_PIDFD = 4 };
#define CONTROL_MAX 8

/* Remembers the descriptor at `address`. Returns 0 if it cannot be read, or if there are too many. */
__noinline int pass_descriptor(struct scratch *scratch, u64 address)
{
	s32 fd;

	if (!scratch || bpf_probe_read_user(&fd, sizeof(fd), (void *)address))
		return 0;
	u64 place = scratch->passed_count;
	barrier_var(place);
	if (place >= PASSED_MAX)
		return 0;
	scratch->passed[place] = fd;
	scratch->passed_count = place + 1;
	return 1;
}

/*
 * Remembers the descriptors in the control message at `address`, after which the memory has `left` bytes. Returns the
 * distance to the next message, or 0 if this is the last one.
 */
__noinline u64 pass_message(struct scratch *scratch, u64 address, u64 left, u32 word)
{
	u64 length = 0;
	u32 kind[2];
	u32 head = word + sizeof(kind);

	if (!scratch || left < head || bpf_probe_read_user(&length, word == 8 ? 8 : 4, (void *)address))
		return 0;
	if (length < head || length > left || bpf_probe_read_user(kind, sizeof(kind), (void *)(address + word)))
		return 0;
	if (kind[0] == SOL_SOCKET && (kind[1] == SCM_RIGHTS || kind[1] == SCM_PIDFD))
		for (u32 i = 0; i < PASSED_MAX && head + 4 * (i + 1) <= length; i++)
			if (!pass_descriptor(scratch, address + head + 4 * i))
				break;
	return (length + word - 1) & ~((u64)word - 1);
}

/* Copies control messages, and remembers the descriptors in them. */
__noinline int copy_control(struct scratch *scratch, u64 address, u64 length, u32 tag)
{
	if (!scratch || !address || !length)
		return 0;
	if (copy_inner(scratch, address, length, settings.struct_limit, WITHOUT_WORD(tag)))
		return -1;
	u64 at = 0;
	for (u32 i = 0; i < CONTROL_MAX && at < length; i++) {
		u64 distance = pass_message(scratch, address + at, length - at, WORD_OF(tag));
		if (!distance)
			break;
		at += distance;
	}
	return 0;
}

/*
 * Copies a struct msghdr and, if `total` is not 0, the memory that it points to: the address, at most `total` bytes of
 * data, and control messages.
 */
__noinline int copy_msghdr(struct scratch *scratch, u64 address, u64 total, u32 tag)
{
	if (!scratch || !address)
		return 0;
	u64 start = scratch->call.payload;
	u32 word = WORD_OF(tag), plain = WITHOUT_WORD(tag);
	u32 size = word == 8 ? 56 : 28;

	if (copy_bytes(scratch, address, size, size, plain))
		return -1;
	if (start > START_MAX)
		return 0;
	/* An int, padded to a word. */
	u64 name_length = (u32)word_at(scratch, start, 1, word);
	if (!total) {
		scratch->room = name_length;
		return 0;
	}
	/* The kernel sets the length of the address, but writes no more bytes than there was room for. */
	if (name_length > scratch->room)
		name_length = scratch->room;
	if (copy_inner(scratch, word_at(scratch, start, 0, word), name_length, 128, plain) ||
	    copy_iovec(scratch, word_at(scratch, start, 2, word), word_at(scratch, start, 3, word), total, tag) ||
	    copy_control(scratch, word_at(scratch, start, 4, word), word_at(scratch, start, 5, word), tag)) {
		scratch->call.payload = start;
		return -1;
	}
	return 0;
}

#define SENDS 1

/*
 * Returns how many bytes of message `i` of an array are to be copied now: none of a message that the call will
 * overwrite, or that was copied when it was sent. Also sets the size of the message's address.
 */
__noinline u64 extent_of(struct scratch *scratch, u64 start, u32 i, u32 sends, u32 tag)
{
	u64 at = i;
	u32 is_exit = (tag >> 8 & 0xff) == WHEN_EXIT;

	barrier_var(at);
	if (!scratch || at >= MESSAGES_MAX)
		return 0;
	/* The kernel sets the length of an address, but writes no more bytes than there was room for. */
	if (!is_exit)
		scratch->rooms[at] = sends ? ~0u : (u32)word_at(scratch, start, i * 8 + 1, WORD_OF(tag));
	if (sends != !is_exit)
		return 0;
	scratch->room = scratch->rooms[at];
	return is_exit ? (u32)word_at(scratch, start, i * 8 + 7, WORD_OF(tag)) : ~0ULL;
}

/*
 * Copies an array of struct mmsghdr: each is a msghdr and the number of bytes that were sent or received, padded to a
 * word.
 */
__noinline int copy_mmsghdr(struct scratch *scratch, u64 address, u64 count, u32 sends, u32 tag)
{
	if (!scratch || !address)
		return 0;
	u64 start = scratch->call.payload;
	u64 size = WORD_OF(tag) * 8;
	u32 is_exit = (tag >> 8 & 0xff) == WHEN_EXIT;

	if (copy_array(scratch, address, &count, size, tag))
		return -1;
	if (start > START_MAX)
		return 0;
	if (is_exit && count > scratch->call.ret)
		count = scratch->call.ret;
	for (u32 i = 0; i < MESSAGES_MAX && i < count; i++) {
		u64 extent = extent_of(scratch, start, i, sends, tag);
		if (extent && copy_msghdr(scratch, address + i * size, extent, tag)) {
			scratch->call.payload = start;
			return -1;
		}
	}
	return 0;
}

/* Copies the `size` bytes that pointer `i` in the piece at `start` points to; -1 if they cannot be read at entry. */
__noinline int copy_target(struct scratch *scratch, u64 start, u32 i, u32 size, u32 tag)
{
	if (!scratch)
		return 0;
	return copy_inner(scratch, word_at(scratch, start, i, WORD_OF(tag)), size, size, WITHOUT_WORD(tag));
}

/* Copies an array of pointers, and the `size` bytes that each of them points to. */
__noinline int copy_targets(struct scratch *scratch, u64 address, u64 count, u32 size, u32 tag)
{
	if (!scratch || !address || !count)
		return 0;
	u64 start = scratch->call.payload;

	if (copy_array(scratch, address, &count, WORD_OF(tag), tag))
		return -1;
	if (start > START_MAX)
		return 0;
	for (u32 i = 0; i < ELEMENTS_MAX && i < count; i++) {
		if (copy_target(scratch, start, i, size, tag)) {
			scratch->call.payload = start;
			return -1;
		}
	}
	return 0;
}

/* Copies a pointer to `at`. Returns 1 if it is not null, 0 if it is, and -1 if it cannot be read (null in the copy). */
__noinline int copy_pointer(struct scratch *scratch, u64 at, u64 address, u32 word)
{
	u64 pointer = 0;

	barrier_var(at);
	if (!scratch || at > sizeof(scratch->payload) - 8)
		return 0;
	int failed = bpf_probe_read_user(&pointer, word == 8 ? 8 : 4, (void *)address) != 0;
	if (word == 8)
		*(u64 *)(scratch->payload + at) = pointer;
	else
		*(u32 *)(scratch->payload + at) = pointer;
	return failed ? -1 : pointer != 0;
}

/*
 * Copies a block of pointers, or those up to a null pointer. Returns their number, including the null pointer; or
 * POINTERS_BLOCK + 1 if there is none in the block; or, if a pointer cannot be read, -1 less the number before it.
 */
__noinline int copy_block(struct scratch *scratch, u64 at, u64 address, u32 word)
{
	if (!scratch)
		return 0;
	for (u32 i = 0; i < POINTERS_BLOCK; i++) {
		int more = copy_pointer(scratch, at + i * word, address + i * word, word);
		if (more < 0)
			return -1 - (int)i;
		if (!more)
			return i + 1;
	}
	return POINTERS_BLOCK + 1;
}

/* Copies pointers up to a null pointer, which is copied too: without it, the array has more elements. */
__noinline int copy_pointers(struct scratch *scratch, u64 address, u32 tag)
{
	if (!scratch || !address)
		return 0;
	u64 at = scratch->call.payload;
	u32 word = WORD_OF(tag), plain = WITHOUT_WORD(tag);
	u64 length = 0;
	int more = 1;

	if (at > START_MAX)
		return add_empty(scratch, address, 0, plain, PIECE_CUT);
	for (u32 i = 0; i < POINTERS_MAX / POINTERS_BLOCK && more; i++) {
		int copied = copy_block(scratch, at + sizeof(struct piece) + length, address + length, word);
		if (copied < 0) {
			u32 readable = -1 - copied;
			/* At entry the page may not have been touched yet. At exit, these pointers are all that there are. */
			if ((tag >> 8 & 0xff) == WHEN_ENTRY || readable > POINTERS_BLOCK || !(length + readable))
				return -1;
			length += readable * word;
			break;
		}
		more = copied > POINTERS_BLOCK;
		length += (more ? POINTERS_BLOCK : copied) * word;
	}
	describe((struct piece *)(scratch->payload + at), address, more ? length + word : length, length, plain, more ? PIECE_CUT : PIECE_WHOLE);
	if (length > PIECE_MAX)
		length = PIECE_MAX;
	scratch->call.payload = at + sizeof(struct piece) + ((length + 7) & ~7ULL);
	return 0;
}

/* Copies the string that pointer `i` in the piece at `start` points to; 0 if the pointer is null. */
__noinline int copy_string_at(struct scratch *scratch, u64 start, u32 i, u32 limit, u32 tag)
{
	if (!scratch)
		return 0;
	u64 string = word_at(scratch, start, i, WORD_OF(tag));

	if (!string)
		return 0;
	/* The memory is gone after an execve, but the new program has the same strings. */
	if (copy_string(scratch, string, limit, WITHOUT_WORD(tag))) {
		add_empty(scratch, string, 0, WITHOUT_WORD(tag), PIECE_FAULT);
		scratch->unread = start + 1;
		scratch->unread_tag = tag;
	}
	return 1;
}

/*
 * Copies the string of pointer `i`, which could not be read, from the memory of the executed program. Returns its size
 * there, or 0 if there are no more strings.
 */
__noinline u64 copy_moved(struct scratch *scratch, u64 now, u32 i, u32 limit)
{
	if (!scratch)
		return 0;
	u32 tag = scratch->unread_tag;
	u64 at = scratch->call.payload, room = PIECE_MAX;
	u64 pointer = word_at(scratch, (u64)scratch->unread - 1, i, WORD_OF(tag));

	barrier_var(at);
	barrier_var(room);
	if (!pointer || at > START_MAX || room > PIECE_MAX)
		return 0;
	struct piece *piece = (struct piece *)(scratch->payload + at);
	s64 read = bpf_probe_read_user_str(piece + 1, room, (void *)now);
	if (read <= 0 || read == PIECE_MAX)
		return 0;
	u64 length = read - 1;
	if (length > limit)
		length = limit;
	describe(piece, pointer, read, length, TAG(tag & 0xff, WHEN_RETRY), length < read - 1 ? PIECE_CUT : PIECE_WHOLE);
	scratch->call.payload = at + sizeof(struct piece) + ((length + 7) & ~7ULL);
	return read;
}

/* Copies an array of pointers and, if `limit` is not 0, the strings that the first of them point to. */
__noinline int copy_strings(struct scratch *scratch, u64 address, u32 limit, u32 tag)
{
	if (!scratch || !address)
		return 0;
	u64 start = scratch->call.payload;

	if (copy_pointers(scratch, address, tag))
		return -1;
	if (start > START_MAX || !limit)
		return 0;
	for (u32 i = 0; i < STRINGS_MAX; i++)
		if (!copy_string_at(scratch, start, i, limit, tag))
			break;
	return 0;
}
