/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The records that are written for user space. record.rs mirrors this file; a test compares the two by the type
 * information of the object.
 *
 * A record is a struct call and, if memory was copied, pieces: each a struct piece and its bytes, padded to a multiple
 * of 8.
 */
#pragma once

#include "kernel.h"

/* The result of a call, or what else the record is about. */
enum how {
	HOW_RETURNED,
	/* The call does not return, or its task ended inside it. */
	HOW_NEVER,
	/* The return was not traced: the task's next call came first. */
	HOW_UNSEEN,
	/* The call is in flight: an iteration over the tasks found it. */
	HOW_PENDING,
	/* Not a call: the task ends, and ret is its exit code in the format of wait(2). */
	HOW_TASK_END,
	/* Pieces of a call whose record follows later. */
	HOW_PART,
	/* Not a call: an aggregate of `ret` calls of a task (aggregate.h), which follows in place of pieces. */
	HOW_AGGREGATE,
	/* The stack of a call whose record follows later. */
	HOW_STACK,
	/* Not a call: a signal was sent, or is delivered to a task (signals.h). */
	HOW_SIGNAL_SENT,
	HOW_SIGNAL,
	/*
	 * A call at its entry, with what was copied there. Its record follows later. If `ret` is not 0, some memory
	 * could not be read, and is read again when the call returns.
	 */
	HOW_ENTRY,
	/*
	 * The arguments of a request of io_uring that was submitted. `nr` is its opcode, REQUEST_*, and its flags in the
	 * upper half, `ret` the address of the kernel's struct io_kiocb, and `lost` and `late` are the halves of that of
	 * its ring.
	 */
	HOW_REQUEST,
	/*
	 * What the kernel has written for a request that has completed. `start` is that of the record with the arguments.
	 */
	HOW_REQUEST_END,
};

/* What else decides about the meaning of a request's arguments, beside the opcode. */
enum {
	/* The descriptor is the index of a file that is registered with the ring. */
	REQUEST_REGISTERED = 1 << 10,
	/* What the request opens is registered with the ring. */
	REQUEST_OPENS_REGISTERED = 1 << 11,
	/* A record follows when the request completes. */
	REQUEST_HAS_END = 1 << 12,
};

/* The lower part of `bits`: enum abi. */
#define CALL_ABI 3

/* Flags of a record, in the upper part of `bits`. */
enum {
	/* The task is being killed, so that the program never gets the result of the call. */
	CALL_KILLED = 4,
	/* A program returned a value in the kernel's place (inject.h). */
	CALL_INJECTED = 8,
	/* There was no entry: the call was answered by seccomp or a tracer, or tracing began inside it. */
	CALL_NO_ENTRY = 16,
	/* The call was listed as pending. */
	CALL_SHOWN = 32,
	/*
	 * The task that wrote the record is now the leader of its process: another thread than the leader entered the
	 * call, and executed a program.
	 */
	CALL_LEADS = 64,
	/* The task is in a pid namespace below the first one, to which the pids in the call belong. */
	CALL_NESTED = 128,
};

/* Flags of a signal. */
enum {
	/* Any thread of the process may handle the signal. */
	SIGNAL_TO_PROCESS = 1,
	/* The signal is not delivered. */
	SIGNAL_IGNORED = 2,
	/* The signal has a si_pid and a si_uid that are not known here. */
	SIGNAL_NUMBERLESS = 4,
	/* `start` is the sender: the process in the lower half, the thread in the upper. */
	SIGNAL_HAS_SENDER = 8,
};

struct call {
	/*
	 * The time when the record was written, CLOCK_MONOTONIC in ns. The event itself has no time and task
	 * (source/frame.rs), because reading the clock once more costs as much as a tenth of all this.
	 */
	u64 time;
	/* The time of the entry; without an entry, that of the exit. */
	u64 start;
	s64 ret;
	u64 args[6];
	/* The number in the call's ABI, without the bit of x32. */
	s32 nr;
	/* The thread that entered. An exec by another thread than the leader returns with the leader's tid. */
	s32 tid;
	/* The process. */
	s32 pid;
	/* The number of this task's records that were lost since its previous record. */
	u32 lost;
	/* The time between the end of the call and the writing of the record, in ns. */
	u32 late;
	/* The number of bytes of pieces that follow. */
	u16 payload;
	u8 how;
	/* CALL_*, and enum abi (CALL_ABI). */
	u8 bits;
};

enum piece_when { WHEN_ENTRY, WHEN_EXIT, WHEN_RETRY };
enum piece_state { PIECE_WHOLE, PIECE_CUT, PIECE_FAULT };

struct piece {
	u64 address;
	/* The number of bytes that the call names. */
	u64 wanted;
	/* The number of bytes that follow. */
	u32 length;
	u8 arg;
	u8 when;
	u8 state;
	/* The piece continues an earlier piece of the same argument and time. */
	u8 continues;
};

/* In `arg`: not a piece, but the number of partial records of the call that were written before, in `wanted`. */
#define ARG_PARTS 0x40

/*
 * In `arg`: the piece describes the file of a descriptor. The lower bits have the index of the argument, or ARG_RETURN.
 * The address is the descriptor, and `wanted` is the file's identifier.
 */
#define ARG_FILE 0x80
/* In addition: the descriptor is in the memory that the argument points to. */
#define ARG_INSIDE 0x40
#define ARG_RETURN 6

/*
 * In `arg`, without the bits above: not a piece, but a pid in the caller's pid namespace, in `address`, and in rtrace's
 * own, in `wanted`.
 */
#define ARG_NUMBER 0x20
/* The same for a user or group id, in the caller's user namespace and in the first one. */
#define ARG_USER 0x10

/* How a file is named. */
enum file_kind {
	/* By the path from the task's root. */
	FILE_ROOTED,
	/* By such a path whose beginning did not fit. */
	FILE_CUT,
	/* By a single name, because the file is in no directory. */
	FILE_PATHLESS,
	/* By the protocol of a socket, preceded by a struct socket_info. */
	FILE_SOCKET,
};

/*
 * This follows the piece of a file that the task uses for the first time, and then its names from the file up, each
 * with a NUL.
 */
struct file_info {
	u64 inode;
	/* include/uapi/linux/magic.h */
	u32 magic;
	/* The pid of a pidfd's process, or 0. */
	s32 pid;
	u8 kind;
	u8 unlinked;
	/* The type of the file (S_IFMT). */
	u16 type;
	/* Of a device, its number as the kernel has it (include/linux/kdev_t.h), otherwise 0. */
	u32 device;
};

/* The addresses of a socket. */
struct socket_info {
	/* AF_* and SOCK_*. */
	u16 family;
	u16 type;
	u32 protocol;
	/*
	 * In network byte order: one word of IPv4, four of IPv6. For other families one number: a netlink port, an
	 * interface, or a vsock context ID.
	 */
	u32 local[4];
	u32 remote[4];
	u32 local_port;
	u32 remote_port;
	/* The inode of a UNIX socket's peer. */
	u64 peer;
};

/* The protocol's name, and the bytes of a UNIX socket's address. */
struct socket_names {
	char protocol[32];
	u8 address[108];
};

/*
 * Precedes each call that an iteration over the tasks lists. The call is followed by a u64, which is 1 if the call did
 * not end while it was copied.
 */
struct listed {
	u64 time;
	s32 pid;
	s32 tid;
};

/* At least the number of general registers of any architecture. */
#define LISTED_REGISTERS_MAX 33

/* The registers and stack of a task in a call in flight, followed by the bytes from its stack pointer upwards. */
struct listed_stack {
	/* The time of the call's entry, as in its record. */
	u64 start;
	s32 tid;
	/* PERF_SAMPLE_REGS_ABI_* (include/uapi/linux/perf_event.h): 1 for registers of 32 bits, 2 for 64. */
	u32 width;
	/* The registers that follow, one bit for each PERF_REG_* (asm/perf_regs.h). */
	u64 mask;
	u64 registers[LISTED_REGISTERS_MAX];
	u64 bytes;
};
