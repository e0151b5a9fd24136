/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads members of the kernel's structs by address, and hashes numbers.
 *
 * Memory may be freed at any time while it is read: a load from an unmapped address gives zero, and a load of reused
 * memory gives the new contents. Readers therefore check their result by reading again.
 */
#pragma once

#include "state.h"

/*
 * The kernel's type ids of the structs that are read in this way and of the functions that are called. types.rs finds
 * them by these names; a type that the kernel does not have is 0.
 */
struct kernel_types {
	u32 task_struct, files_struct, fdtable, list_head, file, fs_struct, dentry, mount, inode, super_block;
	u32 linux_binprm, mm_struct, pid, signal_struct, ns_common, proc_ns_operations, cred, user_namespace;
	u32 socket, sock, inet_sock, unix_sock, unix_address, netlink_sock;
	u32 bpf_rdonly_cast, bpf_task_from_pid, bpf_task_from_vpid, bpf_task_release;
};
const volatile struct kernel_types kernel_types SEC(".rodata.types");

/*
 * The kernel's functions are called as helpers with numbers that do not exist; loaded.rs replaces them. For functions
 * that are declared properly, libbpf would read all types of the kernel, which takes as long as having a program
 * verified.
 */
#define KERNEL_FUNCTIONS 0x7fff0000
enum kernel_function { RDONLY_CAST, TASK_FROM_PID, TASK_FROM_VPID, TASK_RELEASE };
#define KERNEL_FUNCTION(which) ((void *)(KERNEL_FUNCTIONS + which))

/*
 * Kernels from 6.2 on can cast an address to a struct, whose members are then read by plain loads, 20 times as fast.
 * There is one object for each kind of kernel, because the verifier takes long to remove the code that the running
 * kernel does not need.
 */
#ifdef PLAIN_LOADS
static void *(*const rdonly_cast)(const void *address, u32 type) = KERNEL_FUNCTION(RDONLY_CAST);
#define READ_MEMBER(type, address, member) ((struct type *)rdonly_cast(address, kernel_types.type))->member
#else
#define READ_MEMBER(type, address, member) BPF_CORE_READ((struct type *)address, member)
#endif

#define MEMBER(type, address, member)                                                                            \
	({                                                                                                       \
		/* Evaluated outside of the relocated expression: it may use our own structs. */                    \
		const void *address_ = (const void *)(address);                                                 \
		READ_MEMBER(type, address_, member);                                                            \
	})

/*
 * Reads a member of a struct by a pointer from a tracepoint or a helper. Every kernel accepts a plain load for that.
 * But from 6.2 on, if the member is itself a pointer, the verifier searches the names of all types for it
 * (btf_nested_type_is_trusted() in kernel/bpf/btf.c), which takes a millisecond, unless the struct's address went
 * through rdonly_cast().
 */
#ifdef PLAIN_LOADS
#define FOLLOW(type, pointer, member) MEMBER(type, pointer, member)
#else
#define FOLLOW(type, pointer, member) ((pointer)->member)
#endif

/*
 * Returns a pointer as a number for arithmetic. The value goes through memory, so that the verifier forgets its type.
 */
static __always_inline u64 number_of(struct walk *walk, const void *pointer)
{
	*(volatile u64 *)&walk->pointer = (u64)pointer;
	return *(volatile u64 *)&walk->pointer;
}

/* Odd numbers with evenly distributed bits: every bit of a factor affects the upper half of the product. */
#define SCATTER 0x9e3779b97f4a7c15ULL
#define SCATTER_TOO 0xc2b2ae3d27d4eb4fULL

/*
 * Returns a hash of `hash` and `value`. Each step is invertible, so that inputs that differ in a single value never
 * collide.
 */
static __always_inline u64 mixed(u64 hash, u64 value)
{
	hash = (hash ^ value) * SCATTER;
	return hash ^ hash >> 32;
}
