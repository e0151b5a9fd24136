/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a descriptor is at the call: the open file itself, not what a later look would find.
 *
 * A file is told as a piece whose address is the descriptor and whose `wanted` is an identifier. The first time a task uses it, the piece has the file's name; after that,
 * user space knows the identifier. A task remembers a few of its files by all that makes their name. Struct file and dentry are used again at once when they are free, and any
 * directory on the way may be renamed, any file system on the way mounted elsewhere: so each time the way is gone up to the root, over the dentries and the hashes of their names. That costs
 * some loads a step; only the names themselves are not copied again.
 */
#pragma once

#include "pieces.h"

/* Names from a file up to the root that are told. */
#define NAMES_MAX 48
/* Bytes of one name: NAME_MAX and a NUL. */
#define NAME_ROOM 256
/* All of them together: PATH_MAX. */
#define NAMES_ROOM (PIECE_MAX - sizeof(struct file_note))

/* A kernel from 6.2 on lets an address be taken for a struct: its members are then read by plain loads, 20 times as fast. */
extern void *bpf_rdonly_cast(const void *address, u32 type) __ksym __weak;

/* The kernel's numbers of the structs that are read so; types.rs finds them by these names. */
struct kernel_types {
	u32 task_struct, files_struct, fdtable, list_head, file, fs_struct, dentry, mount, inode;
};
const volatile struct kernel_types kernel_types SEC(".rodata.types");

#define MEMBER(type, address, member)                                                                            \
	(bpf_ksym_exists(bpf_rdonly_cast) ?                                                                      \
		 ((struct type *)bpf_rdonly_cast((void *)(address), kernel_types.type))->member :               \
		 BPF_CORE_READ((struct type *)(address), member))

/* The file that is open as `fd`, or null. */
static __always_inline struct file *file_of(struct task_struct *current, s32 fd)
{
	if (fd < 0)
		return 0;
	struct files_struct *files = MEMBER(task_struct, current, files);
	if (!files)
		return 0;
	struct fdtable *table = MEMBER(files_struct, files, fdt);
	if (!table || (u32)fd >= MEMBER(fdtable, table, max_fds))
		return 0;
	/* Any struct that begins with a pointer. */
	struct file **place = MEMBER(fdtable, table, fd) + fd;
	return (struct file *)MEMBER(list_head, place, next);
}

/* Prepares for the way up from the file to the root of the task's file system. */
static __always_inline void at_the_file(struct walk *walk, struct task_struct *current)
{
	struct file *file = (struct file *)walk->file;

	walk->dentry = (u64)MEMBER(file, file, f_path.dentry);
	walk->mount = (u64)MEMBER(file, file, f_path.mnt) - bpf_core_field_offset(struct mount, mnt);
	struct fs_struct *fs = MEMBER(task_struct, current, fs);
	walk->root_dentry = (u64)MEMBER(fs_struct, fs, root.dentry);
	walk->root_mount = (u64)MEMBER(fs_struct, fs, root.mnt) - bpf_core_field_offset(struct mount, mnt);
	walk->used = 0;
	walk->reached_root = 0;
}

/* An odd number with bits all over: products of it scatter what they are made of. */
#define MIX(hash, value) (((hash) ^ (value)) * 0x9e3779b97f4a7c15ULL)

/* A pointer as a number, to calculate with: the verifier forgets what goes through memory. */
static __always_inline u64 number_of(struct walk *walk, void *pointer)
{
	*(volatile u64 *)&walk->pointer = (u64)pointer;
	return *(volatile u64 *)&walk->pointer;
}

/* What stands for all names on the way up: where their dentries are, and the hashes and lengths of the names in them. */
__noinline u64 way_of(struct scratch *scratch)
{
	if (!scratch)
		return 0;
	struct walk *walk = &scratch->walk;
	u64 dentry = walk->dentry, mount = walk->mount;
	u64 hash = 0;

	for (u32 i = 0; i < NAMES_MAX; i++) {
		if (dentry == walk->root_dentry && mount == walk->root_mount)
			break;
		hash = MIX(hash, dentry);
		hash ^= hash >> 32;
		if (dentry == number_of(walk, MEMBER(mount, mount, mnt.mnt_root))) {
			u64 above = number_of(walk, MEMBER(mount, mount, mnt_parent));
			if (above == mount)
				break;
			dentry = number_of(walk, MEMBER(mount, mount, mnt_mountpoint));
			mount = above;
			continue;
		}
		hash = MIX(hash, MEMBER(dentry, dentry, d_name.hash_len));
		hash ^= hash >> 32;
		u64 parent = number_of(walk, MEMBER(dentry, dentry, d_parent));
		if (parent == dentry)
			break;
		dentry = parent;
	}
	return hash;
}

/* One step up: adds a name to those that were told, or goes over to the mount above; 0 at the root. */
__noinline int step_up(struct scratch *scratch, u64 at)
{
	if (!scratch || at > START_MAX)
		return 0;
	struct walk *walk = &scratch->walk;
	struct dentry *dentry = (struct dentry *)walk->dentry;
	struct mount *mount = (struct mount *)walk->mount;

	if (walk->dentry == walk->root_dentry && walk->mount == walk->root_mount) {
		walk->reached_root = 1;
		return 0;
	}
	if (dentry == MEMBER(mount, mount, mnt.mnt_root)) {
		struct mount *above = MEMBER(mount, mount, mnt_parent);
		if (above == mount) {
			walk->reached_root = 1;
			return 0;
		}
		walk->dentry = (u64)MEMBER(mount, mount, mnt_mountpoint);
		walk->mount = (u64)above;
		return 1;
	}
	u64 used = walk->used;
	barrier_var(used);
	if (used > NAMES_ROOM - NAME_ROOM)
		return 0;
	u8 *name = scratch->payload + at + sizeof(struct piece) + sizeof(struct file_note) + used;
	s64 length = bpf_probe_read_kernel_str(name, NAME_ROOM, MEMBER(dentry, dentry, d_name.name));
	if (length <= 0)
		return 0;
	walk->used = used + length;
	struct dentry *parent = MEMBER(dentry, dentry, d_parent);
	walk->dentry = (u64)parent;
	/* Not below any mount's root: sockets, pipes and their like. */
	return parent != dentry;
}

/* Adds the piece of a file that user space does not know yet. */
__noinline int tell_file(struct scratch *scratch, u64 id, u32 fd, u32 tag)
{
	if (!scratch)
		return 0;
	u64 at = scratch->call.payload;
	barrier_var(at);
	if (at > START_MAX)
		return -1;
	struct walk *walk = &scratch->walk;
	struct file *file = (struct file *)walk->file;
	struct dentry *dentry = (struct dentry *)walk->dentry;
	for (u32 i = 0; i < NAMES_MAX; i++)
		if (!step_up(scratch, at))
			break;
	struct piece *piece = (struct piece *)(scratch->payload + at);
	struct file_note *note = (struct file_note *)(piece + 1);
	note->inode = BPF_CORE_READ(file, f_inode, i_ino);
	note->magic = BPF_CORE_READ(dentry, d_sb, s_magic);
	note->reached_root = walk->reached_root;
	note->unlinked = !MEMBER(dentry, dentry, d_hash.pprev) && MEMBER(dentry, dentry, d_parent) != dentry;
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

static __always_inline int same_key(struct file_key *a, struct file_key *b)
{
	return a->way == b->way && a->inode == b->inode && a->generation == b->generation && a->unhashed == b->unhashed;
}

u64 files_told = 0;

/* Adds the piece of the file that is open as `fd`, if one is. */
__noinline int note_file(struct scratch *scratch, u32 fd, u32 tag)
{
	struct task_struct *current = bpf_get_current_task_btf();

	if (!scratch)
		return 0;
	struct file *file = file_of(current, fd);
	if (!file)
		return 0;
	struct inode *inode = MEMBER(file, file, f_inode);
	scratch->walk.file = (u64)file;
	at_the_file(&scratch->walk, current);
	u64 dentry = scratch->walk.dentry;
	struct file_key key = {
		.way = way_of(scratch),
		.inode = MEMBER(inode, inode, i_ino),
		.generation = MEMBER(inode, inode, i_generation),
		.unhashed = !MEMBER(dentry, dentry, d_hash.pprev),
	};
	struct known_file *known = &scratch->files[fd % FILES_MAX];
	if (known->id && same_key(&known->key, &key))
		return describe_empty(scratch, fd, known->id, tag, PIECE_WHOLE);
	u64 id = __sync_fetch_and_add(&files_told, 1) + 1;
	u16 before = scratch->call.payload;
	if (tell_file(scratch, id, fd, tag))
		return 0;
	/* A rename on the way up may have made one path of two. */
	at_the_file(&scratch->walk, current);
	if (key.way != way_of(scratch)) {
		scratch->call.payload = before;
		return 0;
	}
	known->key = key;
	known->id = id;
	return 0;
}
