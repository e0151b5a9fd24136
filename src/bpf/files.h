/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a descriptor is at the call: the open file itself, not what a later look would find.
 *
 * A file is told as a piece whose address is the descriptor and whose `wanted` is an identifier. The first time a task uses it, the piece has the file's name; after that,
 * user space knows the identifier. A task remembers a few of its files by everything that makes their name: struct file and dentry are used again at once when they are free, so the
 * name's hash and the inode belong to it, and so do the kernel's counts of all renames and all changes of mounts.
 */
#pragma once

#include "pieces.h"

/* Names from a file up to the root that are told. */
#define NAMES_MAX 48
/* Bytes of one name: NAME_MAX and a NUL. */
#define NAME_ROOM 256
/* All of them together: PATH_MAX. */
#define NAMES_ROOM (PIECE_MAX - sizeof(struct file_note))

/* Where the kernel counts: found before tracing begins, 0 where it cannot be. */
u64 rename_lock_at = 0;
u64 mount_lock_at = 0;

static __always_inline u32 count_at(u64 address)
{
	u32 count = 0;

	if (address)
		bpf_probe_read_kernel(&count, sizeof(count), (void *)address);
	return count;
}

/* The file that is open as `fd`, or null. */
static __always_inline struct file *file_of(struct task_struct *current, s32 fd)
{
	struct file *file = 0;

	if (fd < 0 || !current->files)
		return 0;
	struct fdtable *table = current->files->fdt;
	if (!table || (u32)fd >= table->max_fds)
		return 0;
	bpf_probe_read_kernel(&file, sizeof(file), (void *)(table->fd + fd));
	return file;
}

/* What its name is made of, and where that may be told from other names. */
static __always_inline void key_of(struct file_key *key, struct task_struct *current, struct file *file)
{
	struct dentry *dentry = BPF_CORE_READ(file, f_path.dentry);
	struct inode *inode = BPF_CORE_READ(file, f_inode);

	key->dentry = (u64)dentry;
	key->mount = (u64)BPF_CORE_READ(file, f_path.mnt);
	key->root = (u64)current->fs->root.dentry;
	key->hash_len = BPF_CORE_READ(dentry, d_name.hash_len);
	key->inode = BPF_CORE_READ(inode, i_ino);
	key->generation = BPF_CORE_READ(inode, i_generation);
	key->unhashed = !BPF_CORE_READ(dentry, d_hash.pprev);
	key->renames = count_at(rename_lock_at);
	key->mounts = count_at(mount_lock_at);
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
	if (dentry == BPF_CORE_READ(mount, mnt.mnt_root)) {
		struct mount *above = BPF_CORE_READ(mount, mnt_parent);
		if (above == mount) {
			walk->reached_root = 1;
			return 0;
		}
		walk->dentry = (u64)BPF_CORE_READ(mount, mnt_mountpoint);
		walk->mount = (u64)above;
		return 1;
	}
	u64 used = walk->used;
	barrier_var(used);
	if (used > NAMES_ROOM - NAME_ROOM)
		return 0;
	u8 *name = scratch->payload + at + sizeof(struct piece) + sizeof(struct file_note) + used;
	s64 length = bpf_probe_read_kernel_str(name, NAME_ROOM, BPF_CORE_READ(dentry, d_name.name));
	if (length <= 0)
		return 0;
	walk->used = used + length;
	struct dentry *parent = BPF_CORE_READ(dentry, d_parent);
	walk->dentry = (u64)parent;
	/* Not below any mount's root: sockets, pipes and their like. */
	return parent != dentry;
}

/* Adds the piece of a file that user space does not know yet. */
__noinline int tell_file(struct scratch *scratch, u64 file_at, u64 id, u32 fd, u32 tag)
{
	struct file *file = (struct file *)file_at;
	struct task_struct *current = bpf_get_current_task_btf();

	if (!scratch)
		return 0;
	u64 at = scratch->call.payload;
	barrier_var(at);
	if (at > START_MAX)
		return -1;
	struct walk *walk = &scratch->walk;
	walk->dentry = (u64)BPF_CORE_READ(file, f_path.dentry);
	walk->mount = (u64)BPF_CORE_READ(file, f_path.mnt) - bpf_core_field_offset(struct mount, mnt);
	walk->root_dentry = (u64)current->fs->root.dentry;
	walk->root_mount = (u64)current->fs->root.mnt - bpf_core_field_offset(struct mount, mnt);
	walk->used = 0;
	walk->reached_root = 0;
	struct dentry *dentry = (struct dentry *)walk->dentry;
	for (u32 i = 0; i < NAMES_MAX; i++)
		if (!step_up(scratch, at))
			break;
	struct piece *piece = (struct piece *)(scratch->payload + at);
	struct file_note *note = (struct file_note *)(piece + 1);
	note->inode = BPF_CORE_READ(file, f_inode, i_ino);
	note->magic = BPF_CORE_READ(dentry, d_sb, s_magic);
	note->reached_root = walk->reached_root;
	note->unlinked = !BPF_CORE_READ(dentry, d_hash.pprev) && BPF_CORE_READ(dentry, d_parent) != dentry;
	u64 length = sizeof(*note) + walk->used;
	describe(piece, fd, id, length, tag, PIECE_WHOLE);
	scratch->call.payload = at + sizeof(*piece) + ((length + 7) & ~7ULL);
	return 0;
}

static __always_inline int same_key(struct file_key *a, struct file_key *b)
{
	return a->dentry == b->dentry && a->mount == b->mount && a->root == b->root && a->hash_len == b->hash_len && a->inode == b->inode &&
	       a->generation == b->generation && a->unhashed == b->unhashed && a->renames == b->renames && a->mounts == b->mounts;
}

u64 files_told = 0;

/* Adds the piece of the file that is open as `fd`, if one is. */
__noinline int note_file(struct scratch *scratch, struct task *task, u32 fd, u32 tag)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct file_key key;

	if (!scratch || !task)
		return 0;
	struct file *file = file_of(current, fd);
	if (!file)
		return 0;
	key_of(&key, current, file);
	struct known_file *known = &task->files[fd % FILES_MAX];
	if (known->id && same_key(&known->key, &key))
		return describe_empty(scratch, fd, known->id, tag, PIECE_WHOLE);
	u64 id = __sync_fetch_and_add(&files_told, 1) + 1;
	u16 before = scratch->call.payload;
	if (tell_file(scratch, (u64)file, id, fd, tag))
		return 0;
	/* A rename on the way up may have made a path of two. */
	if (key.renames != count_at(rename_lock_at) || key.mounts != count_at(mount_lock_at)) {
		scratch->call.payload = before;
		return 0;
	}
	/* Without the counts, a rename would not be noticed. */
	if (rename_lock_at && mount_lock_at) {
		known->key = key;
		known->id = id;
	}
	return 0;
}
