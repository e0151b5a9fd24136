/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The header for BPF programs that rtrace runs: `rtrace -e file.bpf.c`.
 *
 *     #include <rtrace.bpf.h>
 *
 *     SEC("tp/syscalls/sys_enter_openat filename:ustring flags")
 *     int opens(struct rtrace_enter *call)
 *     {
 *             return 1;
 *     }
 *
 * A program has an event of its own, with the fields that its section names. The event is shown if the program does not
 * return 0; the return value has no effect on other users of the tracepoint. RTRACE_EVENT declares other kinds of
 * events, which rtrace_give() writes; RTRACE_TEXT declares text events, which rtrace_say() writes. rtrace-programs(7)
 * describes the sections.
 *
 * This file needs no other header. Programs that need other headers (vmlinux.h, linux/bpf.h, bpf/bpf_helpers.h) include
 * them before this one, which then leaves out their declarations.
 */
#ifndef RTRACE_BPF_H
#define RTRACE_BPF_H

#if !defined(__VMLINUX_H__) && !defined(_LINUX_TYPES_H)
typedef signed char __s8;
typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef int pid_t;
#endif

#if !defined(__VMLINUX_H__) && !defined(__LINUX_BPF_H__) && !defined(_UAPI__LINUX_BPF_H__)
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERF_EVENT_ARRAY = 4,
	BPF_MAP_TYPE_PERCPU_HASH = 5,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_EXIST = 2,
};

#define BPF_F_CURRENT_CPU 0xffffffffULL
#endif

#ifndef __BPF_HELPERS__
#define SEC(name) __attribute__((section(name), used))
#define __uint(name, number) int (*name)[number]
#define __type(name, of) of *name
#define __always_inline inline __attribute__((always_inline))

/* The kernel's helpers by their numbers, described in bpf-helpers(7). */
static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value, __u64 flags) = (void *)2;
static long (*bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static __u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static __u32 (*bpf_get_smp_processor_id)(void) = (void *)8;
static __u64 (*bpf_get_current_pid_tgid)(void) = (void *)14;
static __u64 (*bpf_get_current_uid_gid)(void) = (void *)15;
static long (*bpf_get_current_comm)(void *to, __u32 size) = (void *)16;
static long (*bpf_perf_event_output)(void *context, void *map, __u64 flags, void *data, __u64 size) = (void *)25;
static long (*bpf_probe_read_user)(void *to, __u32 size, const void *from) = (void *)112;
static long (*bpf_probe_read_kernel)(void *to, __u32 size, const void *from) = (void *)113;
static long (*bpf_probe_read_user_str)(void *to, __u32 size, const void *from) = (void *)114;
static long (*bpf_probe_read_kernel_str)(void *to, __u32 size, const void *from) = (void *)115;
#endif

/* The contexts of programs at syscalls:sys_enter_* and sys_exit_*. */
struct rtrace_enter {
	__u64 unused;
	int nr;
	unsigned long args[6];
};

struct rtrace_exit {
	__u64 unused;
	int nr;
	long ret;
};

/* Declares the event `name`, whose records are `struct name` with the members as fields. */
#define RTRACE_EVENT(name)                                                                                                                           \
	struct {                                                                                                                                     \
		__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);                                                                                         \
		__type(key, int);                                                                                                                    \
		__type(value, struct name);                                                                                                          \
	} name SEC(".maps")

/* Writes a record of such an event. `record` points to the struct, all bytes of which must have been set. */
#define rtrace_give(context, name, record) bpf_perf_event_output(context, &name, BPF_F_CURRENT_CPU, record, sizeof(*(record)))

/* Declares the event `name` whose records are text. */
#define RTRACE_TEXT(name)                                                                                                                            \
	struct {                                                                                                                                     \
		__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);                                                                                         \
		__uint(key_size, sizeof(int));                                                                                                       \
		__uint(value_size, sizeof(int));                                                                                                     \
	} name SEC(".maps")

/* Writes a record of such an event: an array of char, for example a literal. */
#define rtrace_say(context, name, text)                                                                                                              \
	({                                                                                                                                           \
		char rtrace_text_[] = text;                                                                                                          \
		bpf_perf_event_output(context, &name, BPF_F_CURRENT_CPU, rtrace_text_, sizeof(rtrace_text_));                                         \
	})

/* Whether an array of char begins with this literal. */
#define rtrace_begins(text, with)                                                                                                                    \
	({                                                                                                                                           \
		int rtrace_same_ = 1;                                                                                                                \
		_Pragma("unroll") for (unsigned int rtrace_at_ = 0; rtrace_at_ < sizeof(with) - 1; rtrace_at_++)                                     \
			rtrace_same_ &= (text)[rtrace_at_] == (with)[rtrace_at_];                                                                    \
		rtrace_same_;                                                                                                                        \
	})

/*
 * Declares the license of a file's programs. The kernel offers bpf_perf_event_output() and most other helpers that are
 * useful here only to programs under the GPL ("GPL", "Dual BSD/GPL", ...).
 */
#define RTRACE_LICENSE(name) char rtrace_license[] SEC("license") = name

#endif
