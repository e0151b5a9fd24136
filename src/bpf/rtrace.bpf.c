// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * Writes one record for each call: entry and exit are paired here, in the task's memory.
 *
 * The programs are attached to raw tracepoints, where their return value does not matter, or to the perf events of
 * tracepoints, where it must be 1. They change nothing in the traced task, unless the user wants them to (--inject).
 * Every call that is traced at its entry is written once, or counted as lost once:
 *
 *     entered, returned                        written at its return
 *     exit, exit_group                         written at entry, as never returning
 *     the task ends inside it                  written at the task's end
 *     the task's next call comes first         written then, without its return (a program was skipped)
 *     certainly excluded by a filter           only counted, at entry or return
 *     in flight when tracing ends              listed by the last iteration over all tasks
 *     its task is ending when tracing begins   listed by the first iteration, as never returning
 *     returned without entry                   written at its return (seccomp or a tracer answered it, or tracing began
 *                                              inside it; the latter are known from the first iteration)
 */
#include "kernel.h"
#include "kernel_rings.h"
#include "plan.h"
#include "record.h"
#include "state.h"
#include "select.h"
#include "capture.h"
#include "filter.h"
#include "aggregate.h"
#include "stacks.h"
#include "list_stacks.h"
#include "signals.h"
#include "calls.h"
#include "answered.h"
#include "requests.h"
#include "follow.h"
#include "lists.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/*
 * Puts the type information of types that no map contains into the object, for the test that compares C and Rust. The
 * loader ignores a section with this name.
 */
struct mirrored {
	struct piece piece;
	struct listed listed;
	struct listed_stack listed_stack;
	struct file_info file_info;
	struct socket_info socket_info;
	struct socket_names socket_names;
	enum how how;
	enum piece_when when;
	enum piece_state state;
	enum file_kind file_kind;
	enum indirect_fds indirect_fds;
	enum scope scope;
	enum hooks hooks;
	enum mode mode;
	enum abi abi;
	enum op_kind kind;
	enum op_test test;
	struct sum sum;
	enum filter_op filter_op;
	enum filter_width filter_width;
	enum sqe_field sqe_field;
	enum kernel_function kernel_function;
	struct effect effect;
	struct injection injection;
} mirrored SEC(".mirrored");
