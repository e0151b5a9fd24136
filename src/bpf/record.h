/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What is given to user space. record.rs mirrors this file; a test holds the two together by the object's own type information.
 *
 * A record is a struct call and, if memory was copied, pieces: each a struct piece and its bytes, filled up to a multiple of 8.
 */
#pragma once

#include "kernel.h"

/* What became of a call. */
enum how {
	HOW_RETURNED,
	/* It does not return, or its task ended inside it. */
	HOW_NEVER,
	/* Its return was not seen: the task's next call came first. */
	HOW_UNSEEN,
	/* It is in flight: what a look at the tasks found. */
	HOW_PENDING,
	/* No call: the task ends, and ret is its exit code as wait(2) would have it. */
	HOW_TASK_END,
	/* Pieces of a call whose record comes later. */
	HOW_PART,
	/* No call, but the sums of many of a task, and ret is how many (tally.h); they follow in place of pieces. */
	HOW_TALLY,
	/* The stack of a call whose record comes later. */
	HOW_STACK,
	/* No call: a signal was sent, or is given to a task (signals.h). */
	HOW_SIGNAL_SENT,
	HOW_SIGNAL,
};

/* Bits beside. */
enum {
	/* There was no entry: something else than the kernel's syscall answered, or tracing began inside the call. */
	CALL_NO_ENTRY = 1,
	/* It was listed as pending. */
	CALL_SHOWN = 2,
	/* Whoever wrote the record is the leader of its process by now: another thread than the leader entered, and executed a program. */
	CALL_LEADS = 4,
	/* Whoever it is of is in a pid namespace below the first one: the numbers of tasks in the call are of that. */
	CALL_NESTED = 8,
};

/* Of a signal. */
enum {
	/* Any of the process's threads may take it. */
	SIGNAL_TO_PROCESS = 1,
	/* Nobody is given it. */
	SIGNAL_IGNORED = 2,
	/* It has a si_pid and a si_uid that are not known here. */
	SIGNAL_NUMBERLESS = 4,
	/* `start` is who sent it: the process in the lower half, the thread in the upper. */
	SIGNAL_HAS_SENDER = 8,
};

struct call {
	/* CLOCK_MONOTONIC, ns: when the record was written. The event's own fields say nothing of time and task (source/frame.rs): reading the clock once more costs as much as a tenth of all this. */
	u64 time;
	/* Without an entry, it is the exit's. */
	u64 start;
	s64 ret;
	u64 args[6];
	/* As its ABI has it, without x32's bit. */
	s32 nr;
	/* Who entered. An exec by another thread than the leader returns in the leader's name. */
	s32 tid;
	/* Its process. */
	s32 pid;
	/* Records of this task that found no room since the last one that did. */
	u32 lost;
	/* So many ns before the record was written did the call end. */
	u32 late;
	/* How many bytes of pieces follow. */
	u16 payload;
	u8 how;
	/* CALL_* in the upper half, enum abi in the lower. */
	u8 bits;
};

enum piece_when { WHEN_ENTRY, WHEN_EXIT, WHEN_RETRY };
enum piece_state { PIECE_WHOLE, PIECE_CUT, PIECE_FAULT };

struct piece {
	u64 address;
	/* How many bytes the call names. */
	u64 wanted;
	/* How many follow. */
	u32 length;
	u8 arg;
	u8 when;
	u8 state;
	/* It goes on where an earlier piece of the same argument and moment ends. */
	u8 continues;
};

/* In `arg`: no piece, but how many records with parts of the call were written before, in `wanted`. */
#define ARG_PARTS 0x40

/* In `arg`: the piece is a descriptor's file. The argument's number is in the lower bits, or that of the return. Its address is the descriptor, `wanted` is the file's identifier. */
#define ARG_FILE 0x80
/* Beside that: it stands in the memory that the argument points to. */
#define ARG_INSIDE 0x40
#define ARG_RETURN 6

/* In `arg`, without the bits above: no piece, but the number of a task in the caller's pid namespace, in `address`, and in rtrace's own, in `wanted`. */
#define ARG_NUMBER 0x20
/* The same of a user or a group, in the caller's user namespace and in the first one. */
#define ARG_USER 0x10

/* What the names are. */
enum file_kind {
	/* The path from the task's root. */
	FILE_ROOTED,
	/* As before, but there was no room for its beginning. */
	FILE_CUT,
	/* One name of what is in no directory. */
	FILE_APART,
	/* The protocol of a socket, and before it stands a struct socket_note. */
	FILE_SOCKET,
};

/* What follows the piece of a file that is told for the first time: this, and its names from the file up, each with a NUL. */
struct file_note {
	u64 inode;
	/* include/uapi/linux/magic.h */
	u32 magic;
	/* The process that a pidfd is of, or 0. */
	s32 pid;
	u8 kind;
	u8 unlinked;
	u16 unused;
	u32 unused_too;
};

/* What a socket is connected to. */
struct socket_note {
	/* AF_* and SOCK_*. */
	u16 family;
	u16 type;
	u32 protocol;
	/* In the order of the network: one word of IPv4, four of IPv6. Else one number: a netlink port, an interface, a virtual machine. */
	u32 local[4];
	u32 remote[4];
	u32 local_port;
	u32 remote_port;
	/* The inode of a UNIX socket's peer. */
	u64 peer;
};

/* A protocol's name, and what bytes of a UNIX socket's address there are. */
struct socket_names {
	char protocol[32];
	u8 address[108];
};

/* Before each call that a look at the tasks gives; behind it comes one more u64, 1 if the call stood still while it was copied. */
struct listed {
	u64 time;
	s32 pid;
	s32 tid;
};

/* More than the general registers of any architecture. */
#define LISTED_REGISTERS_MAX 33

/* A task's registers and stack in a call in flight: this, and the bytes from its stack pointer upwards. */
struct listed_stack {
	/* When the call was entered, as its record says. */
	u64 start;
	s32 tid;
	/* PERF_SAMPLE_REGS_ABI_* (include/uapi/linux/perf_event.h): 1 for registers of 32 bits, 2 for 64. */
	u32 width;
	/* Which registers follow, a bit for each PERF_REG_* (asm/perf_regs.h). */
	u64 mask;
	u64 registers[LISTED_REGISTERS_MAX];
	u64 bytes;
};
