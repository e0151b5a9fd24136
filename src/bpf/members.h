/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reading the kernel's structs by address, and making one number of many.
 *
 * Whatever is read may be freed at that moment: a load of what is not there gives zero, and a load of what is something else by now gives that. Who reads, looks twice.
 */
#pragma once

#include "state.h"

/* The kernel's numbers of the structs that are read so, and of its functions that are called; types.rs finds them by these names. What this kernel does not have is 0. */
struct kernel_types {
	u32 task_struct, files_struct, fdtable, list_head, file, fs_struct, dentry, mount, inode, super_block;
	u32 linux_binprm, mm_struct, pid, signal_struct, ns_common, proc_ns_operations, cred, user_namespace;
	u32 socket, sock, inet_sock, unix_sock, unix_address, netlink_sock;
	u32 bpf_rdonly_cast, bpf_task_from_pid, bpf_task_from_vpid, bpf_task_release;
};
const volatile struct kernel_types kernel_types SEC(".rodata.types");

/*
 * The kernel's functions are called as helpers of numbers that there are not, in whose place loaded.rs puts them: for functions declared as such, libbpf would read all types of the kernel, which takes as long
 * as having a program verified.
 */
#define KERNEL_FUNCTIONS 0x7fff0000
enum kernel_function { RDONLY_CAST, TASK_FROM_PID, TASK_FROM_VPID, TASK_RELEASE };
#define KERNEL_FUNCTION(which) ((void *)(KERNEL_FUNCTIONS + which))

/*
 * A kernel from 6.2 on lets an address be taken for a struct: its members are then read by plain loads, 20 times as fast. There are objects for both kinds of kernel, because the verifier
 * takes long to remove what the running one does not need.
 */
#ifdef PLAIN_LOADS
static void *(*const rdonly_cast)(const void *address, u32 type) = KERNEL_FUNCTION(RDONLY_CAST);
#define READ_MEMBER(type, address, member) ((struct type *)rdonly_cast(address, kernel_types.type))->member
#else
#define READ_MEMBER(type, address, member) BPF_CORE_READ((struct type *)address, member)
#endif

#define MEMBER(type, address, member)                                                                            \
	({                                                                                                       \
		/* Outside of what is relocated: the way to the address may lead through structs of our own. */          \
		const void *address_ = (const void *)(address);                                                 \
		READ_MEMBER(type, address_, member);                                                            \
	})

/*
 * A member of the struct that a pointer from a tracepoint or a helper leads to. Every kernel takes a plain load of it. But from 6.2 on, if the member is itself a pointer, the verifier searches the names of all
 * types for it (btf_nested_type_is_trusted() in kernel/bpf/btf.c), which takes a millisecond; it does not if the struct's address went through rdonly_cast().
 */
#ifdef PLAIN_LOADS
#define FOLLOW(type, pointer, member) MEMBER(type, pointer, member)
#else
#define FOLLOW(type, pointer, member) ((pointer)->member)
#endif

/* A pointer as a number, to calculate with: the verifier forgets what goes through memory. */
static __always_inline u64 number_of(struct walk *walk, const void *pointer)
{
	*(volatile u64 *)&walk->pointer = (u64)pointer;
	return *(volatile u64 *)&walk->pointer;
}

/* Odd numbers with bits all over: a product of one has something of every bit in its upper half. */
#define SCATTER 0x9e3779b97f4a7c15ULL
#define SCATTER_TOO 0xc2b2ae3d27d4eb4fULL

/* A number that stands for all that went in: scattered, and the upper half laid over the lower one. Each step can be undone, so two that differ in one value never meet. */
static __always_inline u64 mixed(u64 hash, u64 value)
{
	hash = (hash ^ value) * SCATTER;
	return hash ^ hash >> 32;
}
