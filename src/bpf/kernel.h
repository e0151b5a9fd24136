/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The kernel's types, constants and struct members that the programs use.
 *
 * The structs are not complete: they only name members, whose offsets in the running kernel the loader finds (CO-RE
 * relocations). Therefore no dump of a kernel's types is needed.
 */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;

/* The names that libbpf's headers expect. */
typedef u8 __u8;
typedef u16 __u16;
typedef u32 __u32;
typedef u64 __u64;
typedef s32 __s32;
typedef s64 __s64;
typedef u16 __be16;
typedef u32 __be32;
typedef u32 __wsum;

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

/* include/uapi/linux/bpf.h */
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERF_EVENT_ARRAY = 4,
	BPF_MAP_TYPE_CGROUP_ARRAY = 8,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
	BPF_F_NO_PREALLOC = 1,
	BPF_F_MMAPABLE = 1 << 10,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
	BPF_RB_AVAIL_DATA = 0,
	BPF_RB_RING_SIZE = 1,
};
#define BPF_F_CURRENT_CPU 0xffffffffULL

#define TASK_COMM_LEN 16
/* include/linux/sched.h: the states of a sleeping task. */
#define TASK_INTERRUPTIBLE 1
#define TASK_UNINTERRUPTIBLE 2
/* In the same file, a flag in `flags`: set shortly before the end of a task is traced. */
#define PF_EXITING 4
/* include/uapi/asm-generic/errno.h */
#define ENOSYS 38
/* include/linux/err.h */
#define MAX_ERRNO 4095

#define KERNEL_STRUCT __attribute__((preserve_access_index))

struct thread_info {
	u32 status;
} KERNEL_STRUCT;

struct list_head {
	struct list_head *next;
} KERNEL_STRUCT;

/* include/linux/seqlock.h, dcache.h, fs.h, fdtable.h, fs_struct.h, mount.h, fs/mount.h */
struct seqcount {
	unsigned int sequence;
} KERNEL_STRUCT;

struct seqcount_spinlock {
	struct seqcount seqcount;
} KERNEL_STRUCT;

struct qstr {
	u32 len;
	u64 hash_len;
	const unsigned char *name;
} KERNEL_STRUCT;

struct hlist_bl_node {
	void *pprev;
} KERNEL_STRUCT;

struct super_block {
	unsigned long s_magic;
} KERNEL_STRUCT;

struct inode {
	u16 i_mode;
	u32 i_rdev;
	unsigned long i_ino;
	u32 i_generation;
	void *i_private;
} KERNEL_STRUCT;

struct dentry {
	struct seqcount_spinlock d_seq;
	struct hlist_bl_node d_hash;
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
	struct super_block *d_sb;
} KERNEL_STRUCT;

struct vfsmount {
	struct dentry *mnt_root;
} KERNEL_STRUCT;

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
} KERNEL_STRUCT;

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
} KERNEL_STRUCT;

struct file {
	struct path f_path;
	struct inode *f_inode;
	void *private_data;
} KERNEL_STRUCT;

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
} KERNEL_STRUCT;

struct files_struct {
	struct fdtable *fdt;
} KERNEL_STRUCT;

struct fs_struct {
	struct path root, pwd;
} KERNEL_STRUCT;

struct mm_struct {
	unsigned long task_size;
	unsigned long start_stack;
	unsigned long arg_start;
	unsigned long flags;
} KERNEL_STRUCT;

/* The same from 6.18 on. */
struct mm_struct___words {
	struct {
		unsigned long __mm_flags[1];
	} flags;
} KERNEL_STRUCT;

/* include/linux/sched/exec_state.h, from 7.2 on: says who may read a program's memory. */
enum task_dumpable {
	TASK_DUMPABLE_OWNER = 1,
};

struct task_exec_state {
	enum task_dumpable dumpable;
} KERNEL_STRUCT;

/* Ids in the initial user namespace. */
typedef struct {
	u32 val;
} kuid_t;

typedef struct {
	u32 val;
} kgid_t;
struct uid_gid_extent {
	u32 first;
	u32 lower_first;
	u32 count;
} KERNEL_STRUCT;

/* Up to five extents are in the map itself; more are in a sorted array of their own. */
struct uid_gid_map {
	u32 nr_extents;
	union {
		struct uid_gid_extent extent[5];
		struct uid_gid_extent *forward;
	};
} KERNEL_STRUCT;

struct user_namespace {
	struct uid_gid_map uid_map;
	struct uid_gid_map gid_map;
	int level;
} KERNEL_STRUCT;

/* One word of bits. Its members have other names before 6.3. */
struct kernel_capabilities {
	u64 val;
};

struct cred {
	kuid_t uid;
	kgid_t gid;
	kuid_t suid;
	kgid_t sgid;
	kuid_t euid;
	kgid_t egid;
	struct kernel_capabilities cap_permitted;
	struct user_namespace *user_ns;
} KERNEL_STRUCT;

/* include/linux/sched/signal.h, signal_types.h */
struct signal_struct {
	int group_exit_code;
	unsigned int flags;
	struct pid *pids[4];
} KERNEL_STRUCT;

struct sigaction {
	void *sa_handler;
} KERNEL_STRUCT;

struct k_sigaction {
	struct sigaction sa;
} KERNEL_STRUCT;

/* include/linux/sched/signal.h: a flag of struct signal_struct. */
#define SIGNAL_GROUP_EXIT 4
/* include/uapi/asm-generic/signal.h */
#define SIGKILL 9

/* include/linux/signal_types.h: the signals that are pending for a thread. */
typedef struct {
	unsigned long sig[1];
} sigset_t;

struct sigpending {
	sigset_t signal;
} KERNEL_STRUCT;

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	unsigned int flags;
	unsigned long nvcsw;
	const struct cred *real_cred;
	const struct cred *cred;
	int pid;
	int tgid;
	int exit_state;
	int exit_code;
	struct pid *thread_pid;
	struct mm_struct *mm;
	struct task_exec_state *exec_state;
	struct task_struct *group_leader;
	struct fs_struct *fs;
	struct files_struct *files;
	struct signal_struct *signal;
	struct sigpending pending;
} KERNEL_STRUCT;

/* include/linux/pid.h, ns_common.h, proc_ns.h */
struct upid {
	int nr;
} KERNEL_STRUCT;

struct pid {
	/* The number of namespaces below the first one in which it has a number. */
	unsigned int level;
	struct upid numbers[1];
} KERNEL_STRUCT;

struct proc_ns_operations {
	const char *name;
} KERNEL_STRUCT;

/* include/linux/xarray.h, idr.h, pid_namespace.h: the map from a namespace's pids to struct pid. */
struct xarray {
	void *xa_head;
} KERNEL_STRUCT;

struct xa_node {
	unsigned char shift;
	void *slots[64];
} KERNEL_STRUCT;

struct idr {
	struct xarray idr_rt;
} KERNEL_STRUCT;

struct pid_namespace {
	struct idr idr;
} KERNEL_STRUCT;

struct ns_common {
	const struct proc_ns_operations *ops;
} KERNEL_STRUCT;

/*
 * include/linux/net.h, include/net/sock.h, inet_sock.h, af_unix.h, af_vsock.h, net/netlink/af_netlink.h,
 * net/packet/internal.h
 */
struct sock;

struct socket {
	struct sock *sk;
} KERNEL_STRUCT;

struct socket_alloc {
	struct inode vfs_inode;
} KERNEL_STRUCT;

struct in6_addr {
	union {
		__be32 u6_addr32[4];
	} in6_u;
} KERNEL_STRUCT;

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	u16 skc_family;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
} KERNEL_STRUCT;

struct sock {
	struct sock_common __sk_common;
	struct socket *sk_socket;
	u16 sk_type;
	u16 sk_protocol;
} KERNEL_STRUCT;

struct inet_sock {
	__be16 inet_sport;
} KERNEL_STRUCT;

/* The family, followed by the address. */
struct sockaddr_un {
	u16 sun_family;
} KERNEL_STRUCT;

struct unix_address {
	int len;
	struct sockaddr_un name[1];
} KERNEL_STRUCT;

struct unix_sock {
	struct unix_address *addr;
	struct sock *peer;
} KERNEL_STRUCT;

struct netlink_sock {
	u32 portid;
	u32 dst_portid;
} KERNEL_STRUCT;

struct packet_sock {
	int ifindex;
	__be16 num;
} KERNEL_STRUCT;

struct sockaddr_vm {
	u32 svm_port;
	u32 svm_cid;
} KERNEL_STRUCT;

struct vsock_sock {
	struct sockaddr_vm local_addr;
	struct sockaddr_vm remote_addr;
} KERNEL_STRUCT;

struct linux_binprm {
	const char *filename;
	const char *interp;
} KERNEL_STRUCT;

/*
 * The context of a program on the event of a syscall: struct syscall_tp_t in kernel/trace/trace_syscalls.c. On the
 * events of all syscalls (include/trace/events/syscalls.h) the number is a long.
 */
struct syscall_event {
	u64 hidden;
	s32 nr;
	u32 unused;
	/* At exit. */
	s64 ret;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
} KERNEL_STRUCT;

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} KERNEL_STRUCT;

#if defined(__TARGET_ARCH_x86)

struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, sp;
} KERNEL_STRUCT;

#elif defined(__TARGET_ARCH_arm64)

struct pt_regs {
	unsigned long regs[31];
	unsigned long sp;
	unsigned long pc;
	unsigned long orig_x0;
	int syscallno;
} KERNEL_STRUCT;

#else
#error "this architecture's registers are not known here"
#endif
