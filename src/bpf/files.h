/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The file of a descriptor at the time of the call: the open file itself, not what a later read of /proc would find.
 * Descriptors that are arguments are examined at the entry of the call (so that connect's socket is not connected yet,
 * and close's file is still open), a returned descriptor at the exit.
 *
 * A file is recorded as a piece whose address is the descriptor and whose `wanted` is an identifier. The first time
 * that a task uses the file, the piece has the file's name; after that, user space knows the identifier. A task
 * remembers some of its files by a hash of everything that their names depend on. Struct file and struct dentry are
 * reused as soon as they are free, any directory of the path may be renamed, and any file system on it may be mounted
 * elsewhere. Therefore the path is walked up to the root each time. That costs some loads for each step; only the names
 * are not copied again. (A comparison of the kernel's rename_lock and mount_lock would not be enough: a whole tree may
 * be removed, and another one made of the same dentries, without either.)
 */
#pragma once

#include "numbers.h"
#include "pieces.h"
#include "sockets.h"
#include "path_walk.h"

/* include/uapi/linux/magic.h */
enum { SOCKFS_MAGIC = 0x534f434b, ANON_INODE_FS_MAGIC = 0x09041934, PID_FS_MAGIC = 0x50494446, NSFS_MAGIC = 0x6e736673 };

/* include/uapi/linux/stat.h */
#define S_IFMT 0170000

/* A file is named again after this many others, because user space forgets it after some time. */
#define FRESH_MAX (1 << 16)
/* How often the programs try to name a file whose name changes meanwhile. */
#define TRIES_MAX 4

/*
 * The number of words of a name that are compared where the name has no hash; longer names belong to files with an
 * inode of their own.
 */
#define NAME_WORDS_MAX 5
/* "[pidfd]" and its NUL. */
#define WORD_PIDFD 0x005d64666469705bULL

/* include/uapi/linux/fcntl.h */
#define AT_FDCWD -100
/* Added to the address of a ring of io_uring, which then stands for the owner of a file. */
#define RING 1
/* The flags in an entry of a ring's table of files (io_uring/filetable.h). */
#define ENTRY_FLAGS 7

/* Returns the file that a ring has registered at an index, or 0. */
__noinline u64 registered_file(u64 address, u32 index)
{
	struct io_ring_ctx *ring = (struct io_ring_ctx *)address;
	struct io_ring_ctx___array *older = (struct io_ring_ctx___array *)address;
	u64 entry = 0;

	if (bpf_core_field_exists(struct io_file_table, data)) {
		struct io_rsrc_node **nodes = BPF_CORE_READ(ring, file_table.data.nodes);
		struct io_rsrc_node *node = 0;
		if (index < BPF_CORE_READ(ring, file_table.data.nr) && !bpf_probe_read_kernel(&node, sizeof(node), nodes + index) && node)
			entry = BPF_CORE_READ(node, file_ptr);
	} else if (index < BPF_CORE_READ(older, nr_user_files)) {
		struct io_fixed_file *files = BPF_CORE_READ(older, file_table.files);
		bpf_probe_read_kernel(&entry, sizeof(entry), files + index);
	}
	return entry & ~(u64)ENTRY_FLAGS;
}

/*
 * Returns the file that a task has open as `fd`, or that a ring (RING) has registered at this index; 0 if none is. For
 * the current directory, which is no file, it is an address at which a file would have that path.
 */
static __always_inline u64 file_of(struct walk *walk, u64 owner, s32 fd)
{
	if (owner & RING)
		return registered_file(owner & ~(u64)RING, fd);
	u64 task = owner;
	if (fd == AT_FDCWD && settings.directories) {
		/* Only the path of a file is read, which begins where this one does. */
		u64 fs = number_of(walk, MEMBER(task_struct, task, fs));
		return fs + bpf_core_field_offset(struct fs_struct, pwd) - bpf_core_field_offset(struct file, f_path);
	}
	if (fd < 0)
		return 0;
	const void *files = MEMBER(task_struct, task, files);
	if (!files)
		return 0;
	const void *table = MEMBER(files_struct, files, fdt);
	if (!table || (u32)fd >= MEMBER(fdtable, table, max_fds))
		return 0;
	/* A struct that begins with a pointer stands for the pointer. */
	u64 place = number_of(walk, MEMBER(fdtable, table, fd)) + fd * sizeof(void *);
	return number_of(walk, MEMBER(list_head, place, next));
}

static __always_inline u32 magic_of(struct walk *walk)
{
	u64 block = number_of(walk, MEMBER(dentry, walk->dentry, d_sb));

	return MEMBER(super_block, block, s_magic);
}

/* Returns eight bytes of a name. Short names are in the dentry itself, so that the bytes after them can be read too. */
static __always_inline u64 word_of_name(struct walk *walk, u64 name, u32 i)
{
	return number_of(walk, MEMBER(list_head, name + 8 * i, next));
}

/* Returns the struct pid of a pidfd; 0 for other files. */
static __always_inline u64 pid_of(struct walk *walk, u64 inode, u32 magic, u64 name)
{
	u64 pid = 0;

	if (magic == PID_FS_MAGIC)
		pid = number_of(walk, MEMBER(inode, inode, i_private));
	else if (magic == ANON_INODE_FS_MAGIC && word_of_name(walk, name, 0) == WORD_PIDFD)
		pid = number_of(walk, MEMBER(file, walk->file, private_data));
	return pid;
}

/* Returns the key of a file that is in no directory. Its name has no hash, and many such files share an inode. */
static __always_inline u64 pathless_key(struct scratch *scratch, u64 inode)
{
	struct walk *walk = &scratch->walk;
	u32 magic = magic_of(walk);

	if (magic == SOCKFS_MAGIC) {
		walk->kind = FILE_SOCKET;
		return read_socket(scratch);
	}
	u64 name = number_of(walk, MEMBER(dentry, walk->dentry, d_name.name));
	u32 length = MEMBER(dentry, walk->dentry, d_name.len);
	walk->kind = FILE_PATHLESS;
	u64 pid = pid_of(walk, inode, magic, name);
	/*
	 * The pid is part of the key, not the address of the struct pid: that of the next process may have the same
	 * address, and before Linux 6.9 nothing else distinguishes their pidfds.
	 */
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

/* Returns the key of a file and its name. */
static __always_inline u64 key_of_file(struct scratch *scratch)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct walk *walk = &scratch->walk;
	start_walk(walk, current);
	u64 inode = (u64)MEMBER(dentry, walk->dentry, d_inode);
	walk->pid = 0;
	walk->kind = FILE_ROOTED;
	walk->changing = 0;
	u64 hash = is_pathless(walk) ? pathless_key(scratch, inode) : path_hash(scratch);
	hash = mixed(hash, MEMBER(inode, inode, i_ino));
	if (settings.epoch_bytes)
		hash = mixed(hash, names_epoch);
	return mixed(hash, (u64)MEMBER(inode, inode, i_generation) << 1 | is_unhashed(walk->dentry));
}

__noinline u64 key_of(struct scratch *scratch)
{
	return scratch ? key_of_file(scratch) : 0;
}

/* Writes the name of a file that is in no directory to `at`. */
static __always_inline void write_pathless_name(struct scratch *scratch, u64 inode, u64 at)
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

/* Adds the piece of a file with its name. */
__noinline int write_file_info(struct scratch *scratch, u64 id, u32 fd, u32 tag)
{
	if (!scratch)
		return 0;
	struct walk *walk = &scratch->walk;
	u64 at = scratch->call.payload;
	u64 names = at + sizeof(struct piece) + sizeof(struct file_info);
	u64 dentry = walk->dentry;
	u64 inode = number_of(walk, MEMBER(dentry, dentry, d_inode));
	u32 magic = magic_of(walk);

	barrier_var(at);
	if (at > sizeof(scratch->payload) - sizeof(struct piece) - sizeof(struct file_info))
		return -1;
	walk->used = 0;
	if (walk->kind == FILE_SOCKET)
		walk->used = write_socket_info(scratch, names);
	else if (walk->kind == FILE_PATHLESS)
		write_pathless_name(scratch, inode, names);
	else
		write_path_names(scratch, names);
	struct piece *piece = (struct piece *)(scratch->payload + at);
	struct file_info *info = (struct file_info *)(piece + 1);
	info->inode = MEMBER(inode, inode, i_ino);
	info->magic = magic;
	info->pid = walk->pid;
	info->kind = walk->kind;
	info->unlinked = walk->kind != FILE_PATHLESS && is_unhashed(dentry) && number_of(walk, MEMBER(dentry, dentry, d_parent)) != dentry;
	info->type = MEMBER(inode, inode, i_mode) & S_IFMT;
	info->device = MEMBER(inode, inode, i_rdev);
	u64 length = sizeof(*info) + walk->used;
	describe(piece, fd, id, length, tag, PIECE_WHOLE);
	scratch->call.payload = at + sizeof(*piece) + ((length + 7) & ~7ULL);
	return 0;
}

/* Forgets all files, because a record with names was lost. */
static __always_inline void forget_files(struct scratch *scratch)
{
	for (u32 i = 0; i < FILES_MAX; i++)
		scratch->files[i].id = 0;
}

u64 files_named = 0;

/*
 * Adds the file at which `scratch->walk` is, with its name, and remembers it by this key. Returns 1 if the name did not
 * change meanwhile.
 */
__noinline int add_name(struct scratch *scratch, u64 key, u32 fd, u32 tag)
{
	if (!scratch)
		return 0;
	struct known_file *known = &scratch->files[fd % FILES_MAX];
	u16 before = scratch->call.payload;
	u64 id = __sync_fetch_and_add(&files_named, 1) + 1;

	known->id = 0;
	if (write_file_info(scratch, id, fd, tag))
		return 1;
	int is_cut = scratch->walk.kind == FILE_CUT;
	if (key_of(scratch) != key || scratch->walk.changing) {
		scratch->call.payload = before;
		return 0;
	}
	/* The next record may have room for the whole path. */
	if (!is_cut) {
		known->key = key;
		known->id = id;
	}
	return 1;
}

/* Adds the file that `owner` has as `fd` (see file_of) with its name, if there is one. */
__noinline int add_named_file(struct scratch *scratch, u64 owner, u32 fd, u32 tag)
{
	if (!scratch)
		return 0;
	struct walk *walk = &scratch->walk;
	struct known_file *known = &scratch->files[fd % FILES_MAX];
	u16 before = scratch->call.payload;
	for (u32 i = 0; i < TRIES_MAX; i++) {
		u64 file = file_of(walk, owner, fd);
		if (!file)
			return 0;
		walk->file = file;
		if (!add_name(scratch, key_of(scratch), fd, tag))
			continue;
		/* The name is right if the descriptor was not closed meanwhile. */
		if (file_of(walk, owner, fd) == file)
			return 0;
		known->id = 0;
		scratch->call.payload = before;
	}
	return 0;
}

/* Adds the file that `owner` has as `fd` (see file_of), if any; with its name if user space does not know that. */
__noinline int add_file_of(struct scratch *scratch, u64 owner, u32 fd, u32 tag)
{
	if (!scratch)
		return 0;
	struct walk *walk = &scratch->walk;
	struct known_file *known = &scratch->files[fd % FILES_MAX];
	u64 file = file_of(walk, owner, fd);
	if (!file)
		return 0;
	walk->file = file;
	u64 key = key_of_file(scratch);
	u64 id = known->id;
	if (id && known->key == key && files_named - id < FRESH_MAX)
		return describe_empty(scratch, fd, id, tag, PIECE_WHOLE);
	return add_named_file(scratch, owner, fd, tag);
}

/* The same for the current task. */
static __always_inline int add_file(struct scratch *scratch, u32 fd, u32 tag)
{
	return add_file_of(scratch, number_of(&scratch->walk, bpf_get_current_task_btf()), fd, tag);
}
