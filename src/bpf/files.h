/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a descriptor is at the call: the open file itself, not what a later look would find. Descriptors that the call is given are looked at when it is entered (so connect's socket is not
 * connected yet, and close's file is still open), the one that it returns when it returns.
 *
 * A file is told as a piece whose address is the descriptor and whose `wanted` is an identifier. The first time a task uses it, the piece has the file's name; after that,
 * user space knows the identifier. A task remembers some of its files by all that makes their name. Struct file and dentry are used again at once when they are free, and any
 * directory on the way may be renamed, any file system on the way mounted elsewhere: so each time the way is gone up to the root. That costs some loads a step; only the names themselves are
 * not copied again. (One look at the kernel's rename_lock and mount_lock would not do: a whole tree may be removed, and another one made of the same dentries, without either.)
 */
#pragma once

#include "numbers.h"
#include "pieces.h"
#include "sockets.h"
#include "way.h"

/* include/uapi/linux/magic.h */
enum { SOCKFS_MAGIC = 0x534f434b, ANON_INODE_FS_MAGIC = 0x09041934, PID_FS_MAGIC = 0x50494446, NSFS_MAGIC = 0x6e736673 };

/* A file that so many others were told after is told again: user space forgets some time. */
#define FRESH_MAX (1 << 16)
/* So often is a file told anew whose name changes meanwhile. */
#define TRIES_MAX 4

/* So much of a name is looked at where it is not hashed, in words; longer ones are those of a file's own inode. */
#define NAME_WORDS_MAX 5
/* "[pidfd]" and its NUL. */
#define WORD_PIDFD 0x005d64666469705bULL

/* The file that a task has open as `fd`, or 0. */
static __always_inline u64 file_of(struct walk *walk, u64 task, s32 fd)
{
	if (fd < 0)
		return 0;
	const void *files = MEMBER(task_struct, task, files);
	if (!files)
		return 0;
	const void *table = MEMBER(files_struct, files, fdt);
	if (!table || (u32)fd >= MEMBER(fdtable, table, max_fds))
		return 0;
	/* Any struct that begins with a pointer. */
	u64 place = number_of(walk, MEMBER(fdtable, table, fd)) + fd * sizeof(void *);
	return number_of(walk, MEMBER(list_head, place, next));
}

static __always_inline u32 magic_of(struct walk *walk)
{
	u64 block = number_of(walk, MEMBER(dentry, walk->dentry, d_sb));

	return MEMBER(super_block, block, s_magic);
}

/* Eight bytes of a name. They are mostly in the dentry itself, where more follows. */
static __always_inline u64 word_of_name(struct walk *walk, u64 name, u32 i)
{
	return number_of(walk, MEMBER(list_head, name + 8 * i, next));
}

/* The struct pid that a pidfd is of; 0 for other files. */
static __always_inline u64 pid_of(struct walk *walk, u64 inode, u32 magic, u64 name)
{
	u64 pid = 0;

	if (magic == PID_FS_MAGIC)
		pid = number_of(walk, MEMBER(inode, inode, i_private));
	else if (magic == ANON_INODE_FS_MAGIC && word_of_name(walk, name, 0) == WORD_PIDFD)
		pid = number_of(walk, MEMBER(file, walk->file, private_data));
	return pid;
}

/* What stands for a file that is in no directory. Its name has no hash, and many such files have one inode. */
static __always_inline u64 key_apart(struct scratch *scratch, u64 inode)
{
	struct walk *walk = &scratch->walk;
	u32 magic = magic_of(walk);

	if (magic == SOCKFS_MAGIC) {
		walk->kind = FILE_SOCKET;
		return look_at_socket(scratch);
	}
	u64 name = number_of(walk, MEMBER(dentry, walk->dentry, d_name.name));
	u32 length = MEMBER(dentry, walk->dentry, d_name.len);
	walk->kind = FILE_APART;
	u64 pid = pid_of(walk, inode, magic, name);
	/* Not the address: the next process may have its pid there, and before Linux 6.9 nothing else tells their pidfds apart. */
	s32 number = pid ? MEMBER(pid, pid, numbers[0].nr) : 0;
	walk->pid = pid && settings.nested ? number_here(pid) : number;
	u64 hash = mixed(number, length);
	for (u32 i = 0; i < NAME_WORDS_MAX && 8 * i < length; i++)
		hash = mixed(hash, word_of_name(walk, name, i));
	return hash;
}

static __always_inline int is_unhashed(u64 dentry)
{
	return !MEMBER(dentry, dentry, d_hash.pprev);
}

/* What stands for a file and its name. */
static __always_inline u64 key_of_file(struct scratch *scratch)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct walk *walk = &scratch->walk;
	u64 inode = (u64)MEMBER(file, walk->file, f_inode);
	at_the_file(walk, current);
	walk->pid = 0;
	walk->kind = FILE_ROOTED;
	walk->changing = 0;
	u64 hash = is_apart(walk) ? key_apart(scratch, inode) : way_of(scratch);
	hash = mixed(hash, MEMBER(inode, inode, i_ino));
	return mixed(hash, (u64)MEMBER(inode, inode, i_generation) << 1 | is_unhashed(walk->dentry));
}

__noinline u64 key_of(struct scratch *scratch)
{
	return scratch ? key_of_file(scratch) : 0;
}

/* Writes the name of what is in no directory to `at`. */
static __always_inline void tell_apart(struct scratch *scratch, u64 inode, u64 at)
{
	struct walk *walk = &scratch->walk;
	const void *name = MEMBER(dentry, walk->dentry, d_name.name);

	if (magic_of(walk) == NSFS_MAGIC) {
		u64 common = number_of(walk, MEMBER(inode, inode, i_private));
		u64 operations = number_of(walk, MEMBER(ns_common, common, ops));
		name = MEMBER(proc_ns_operations, operations, name);
	}
	walk->used = copy_name(scratch, at, name);
}

/* Adds the piece of a file that user space does not know yet. */
__noinline int tell_file(struct scratch *scratch, u64 id, u32 fd, u32 tag)
{
	if (!scratch)
		return 0;
	struct walk *walk = &scratch->walk;
	u64 at = scratch->call.payload;
	u64 names = at + sizeof(struct piece) + sizeof(struct file_note);
	u64 dentry = walk->dentry;
	u64 inode = number_of(walk, MEMBER(file, walk->file, f_inode));
	u32 magic = magic_of(walk);

	barrier_var(at);
	if (at > sizeof(scratch->payload) - sizeof(struct piece) - sizeof(struct file_note))
		return -1;
	walk->used = 0;
	if (walk->kind == FILE_SOCKET)
		walk->used = tell_socket(scratch, names);
	else if (walk->kind == FILE_APART)
		tell_apart(scratch, inode, names);
	else
		tell_way(scratch, names);
	struct piece *piece = (struct piece *)(scratch->payload + at);
	struct file_note *note = (struct file_note *)(piece + 1);
	note->inode = MEMBER(inode, inode, i_ino);
	note->magic = magic;
	note->pid = walk->pid;
	note->kind = walk->kind;
	note->unlinked = walk->kind != FILE_APART && is_unhashed(dentry) && number_of(walk, MEMBER(dentry, dentry, d_parent)) != dentry;
	note->unused = 0;
	note->unused_too = 0;
	u64 length = sizeof(*note) + walk->used;
	describe(piece, fd, id, length, tag, PIECE_WHOLE);
	scratch->call.payload = at + sizeof(*piece) + ((length + 7) & ~7ULL);
	return 0;
}

/* Nothing that was told of files came to anybody. */
static __always_inline void forget_files(struct scratch *scratch)
{
	for (u32 i = 0; i < FILES_MAX; i++)
		scratch->files[i].id = 0;
}

u64 files_told = 0;

/* Tells the file at which `scratch->walk` is, and which has this key: 1 if that is what it was called all the time. */
__noinline int tell_as(struct scratch *scratch, u64 key, u32 fd, u32 tag)
{
	if (!scratch)
		return 0;
	struct known_file *known = &scratch->files[fd % FILES_MAX];
	u16 before = scratch->call.payload;
	u64 id = __sync_fetch_and_add(&files_told, 1) + 1;

	known->id = 0;
	if (tell_file(scratch, id, fd, tag))
		return 1;
	int is_cut = scratch->walk.kind == FILE_CUT;
	if (key_of(scratch) != key || scratch->walk.changing) {
		scratch->call.payload = before;
		return 0;
	}
	/* Another time there may be room for all of it. */
	if (!is_cut) {
		known->key = key;
		known->id = id;
	}
	return 1;
}

/* Tells the file that a task has open as `fd`, if it has one. */
__noinline int note_anew(struct scratch *scratch, u64 task, u32 fd, u32 tag)
{
	if (!scratch)
		return 0;
	struct walk *walk = &scratch->walk;
	struct known_file *known = &scratch->files[fd % FILES_MAX];
	u16 before = scratch->call.payload;
	for (u32 i = 0; i < TRIES_MAX; i++) {
		u64 file = file_of(walk, task, fd);
		if (!file)
			return 0;
		walk->file = file;
		if (!tell_as(scratch, key_of(scratch), fd, tag))
			continue;
		/* What was told is true if nobody closed the file meanwhile. */
		if (file_of(walk, task, fd) == file)
			return 0;
		known->id = 0;
		scratch->call.payload = before;
	}
	return 0;
}

/* Adds the piece of the file that a task has open as `fd`, if it has one. */
__noinline int note_file_of(struct scratch *scratch, u64 task, u32 fd, u32 tag)
{
	if (!scratch)
		return 0;
	struct walk *walk = &scratch->walk;
	struct known_file *known = &scratch->files[fd % FILES_MAX];
	u64 file = file_of(walk, task, fd);
	if (!file)
		return 0;
	walk->file = file;
	u64 key = key_of_file(scratch);
	u64 id = known->id;
	if (id && known->key == key && files_told - id < FRESH_MAX)
		return describe_empty(scratch, fd, id, tag, PIECE_WHOLE);
	return note_anew(scratch, task, fd, tag);
}

/* The same of the calling task. */
static __always_inline int note_file(struct scratch *scratch, u32 fd, u32 tag)
{
	return note_file_of(scratch, number_of(&scratch->walk, bpf_get_current_task_btf()), fd, tag);
}
