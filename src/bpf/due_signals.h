/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Signals that the user wants tasks to get at their calls (--inject).
 */
#pragma once

#include "numbers.h"
#include "state.h"

/*
 * The signals that rtrace's supervisor wants tasks to get at their present call: the task's number in the upper half of
 * a word, the signal in the lower half; 0: the slot is free. A task's signal is in one of the slots from the one with
 * its number on (src/inject/due_signals.rs).
 */
enum { SIGNAL_SLOTS = 1024, SIGNAL_PROBES = 4 };
volatile u64 due_signals[SIGNAL_SLOTS] SEC(".data.due_signals");

/* Sends the signal that the supervisor wants the current task to get at its call, as from the kernel. */
__noinline int send_due_signal(void)
{
	u32 tid = number_of_task(bpf_get_current_task_btf());

	for (u32 i = 0; i < SIGNAL_PROBES; i++) {
		volatile u64 *slot = &due_signals[(tid + i) % SIGNAL_SLOTS];
		u64 due = *slot;

		if (due >> 32 != tid)
			continue;
		*slot = 0;
		return bpf_send_signal_thread((u32)due);
	}
	return 0;
}
