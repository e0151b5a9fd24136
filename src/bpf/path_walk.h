/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The path walk: from an open file up to the root of its task's file system, over dentries and mounts.
 */
#pragma once

#include "members.h"

/* The maximum number of names and mounts of a walk. */
#define STEPS_MAX 64
#define STEPS_BLOCK 8
/* The size of one name: NAME_MAX and a NUL. */
#define NAME_ROOM 256
/* The size of all names together: PATH_MAX. */
#define NAMES_ROOM 4096

/* Sets the start and the root of a walk. */
static __always_inline void start_walk(struct walk *walk, struct task_struct *current)
{
	u64 file = walk->file;

	walk->dentry = (u64)MEMBER(file, file, f_path.dentry);
	walk->mount = (u64)MEMBER(file, file, f_path.mnt) - bpf_core_field_offset(struct mount, mnt);
	const void *fs = MEMBER(task_struct, current, fs);
	walk->root_dentry = (u64)MEMBER(fs_struct, fs, root.dentry);
	walk->root_mount = (u64)MEMBER(fs_struct, fs, root.mnt) - bpf_core_field_offset(struct mount, mnt);
}

/* Returns whether a file is in no directory, as a pipe, a socket or an eventfd. */
static __always_inline int is_pathless(struct walk *walk)
{
	u64 dentry = walk->dentry;

	return (u64)MEMBER(dentry, dentry, d_parent) == dentry && (u64)MEMBER(mount, walk->mount, mnt.mnt_root) != dentry;
}

/*
 * Walks a few steps from `here`, and returns a hash of them and of `hash`. The function is global, so that the verifier
 * follows the steps only once.
 */
__noinline u64 hash_steps(struct scratch *scratch, u64 hash)
{
	if (!scratch)
		return 0;
	struct walk *walk = &scratch->walk;
	u64 dentry = walk->here_dentry, mount = walk->here_mount;
	u64 root = (u64)MEMBER(mount, mount, mnt.mnt_root);
	u32 changing = 0;

	walk->is_over = 1;
	for (u32 i = 0; i < STEPS_BLOCK; i++) {
		if (dentry == walk->root_dentry && mount == walk->root_mount)
			goto over;
		if (dentry == root) {
			u64 above = number_of(walk, MEMBER(mount, mount, mnt_parent));
			if (above == mount)
				goto over;
			hash = mixed(hash, dentry);
			dentry = number_of(walk, MEMBER(mount, mount, mnt_mountpoint));
			mount = above;
			root = (u64)MEMBER(mount, mount, mnt.mnt_root);
			continue;
		}
		u64 name = MEMBER(dentry, dentry, d_name.hash_len), changes = MEMBER(dentry, dentry, d_seq.seqcount.sequence);
		/* The sequence count is odd while the name is being changed. */
		changing |= changes & 1;
		hash = mixed(hash ^ dentry * SCATTER_TOO, name + changes * SCATTER);
		u64 parent = number_of(walk, MEMBER(dentry, dentry, d_parent));
		if (parent == dentry)
			goto over;
		dentry = parent;
	}
	walk->is_over = 0;
	walk->here_dentry = dentry;
	walk->here_mount = mount;
over:
	walk->changing |= changing;
	return hash;
}

/*
 * Returns a hash of all names on the path: the addresses of their dentries, how often these were changed, and the
 * hashes and lengths of the names in them.
 */
static __always_inline u64 path_hash(struct scratch *scratch)
{
	struct walk *walk = &scratch->walk;
	u64 hash = 0;

	walk->here_dentry = walk->dentry;
	walk->here_mount = walk->mount;
	walk->changing = 0;
	for (u32 i = 0; i < STEPS_MAX / STEPS_BLOCK; i++) {
		hash = hash_steps(scratch, hash);
		if (walk->is_over)
			break;
	}
	return hash;
}

/* Copies a name to `at`. Returns its number of bytes with the NUL, or 0 if there is no room. */
static __always_inline u64 copy_name(struct scratch *scratch, u64 at, const void *name)
{
	barrier_var(at);
	if (at > sizeof(scratch->payload) - NAME_ROOM)
		return 0;
	s64 length = bpf_probe_read_kernel_str(scratch->payload + at, NAME_ROOM, name);
	return length > 0 ? length : 0;
}

/* Walks one step up: adds a name to those at `at`, or goes over to the mount above. Returns 0 where the walk ends. */
__noinline int step_up(struct scratch *scratch, u64 at)
{
	if (!scratch)
		return 0;
	struct walk *walk = &scratch->walk;
	u64 dentry = walk->dentry, mount = walk->mount;

	if (dentry == walk->root_dentry && mount == walk->root_mount) {
		walk->kind = FILE_ROOTED;
		return 0;
	}
	if (dentry == number_of(walk, MEMBER(mount, mount, mnt.mnt_root))) {
		u64 above = number_of(walk, MEMBER(mount, mount, mnt_parent));
		if (above == mount) {
			walk->kind = FILE_ROOTED;
			return 0;
		}
		walk->dentry = (u64)MEMBER(mount, mount, mnt_mountpoint);
		walk->mount = above;
		return 1;
	}
	u64 parent = number_of(walk, MEMBER(dentry, dentry, d_parent));
	if (parent == dentry || walk->used > NAMES_ROOM - NAME_ROOM)
		return 0;
	u64 length = copy_name(scratch, at + walk->used, MEMBER(dentry, dentry, d_name.name));
	if (!length)
		return 0;
	walk->used += length;
	walk->dentry = parent;
	return 1;
}

/* Writes the names from the file upwards to `at`. */
static __always_inline void write_path_names(struct scratch *scratch, u64 at)
{
	scratch->walk.kind = FILE_CUT;
	for (u32 i = 0; i < STEPS_MAX; i++)
		if (!step_up(scratch, at))
			break;
}
