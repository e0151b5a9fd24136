/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Calls that the programs change (--inject), where no supervisor does (answered.h, due_signals.h).
 *
 * The program at the entry of a call chooses its effect. A program at the beginning of the kernel function of the
 * syscall then returns a value in place of the function. The call has its entry and its exit as any other.
 */
#pragma once

#include "select.h"
#include "state.h"

#define EFFECTS_MAX 256
/* The maximum number of calls that are counted (when=). */
#define COUNTERS_MAX 1500
/* The last number of when= stands for no end. */
#define LAST_OF_ALL 0xffff

/* What happens to calls; effects.rs mirrors it. */
struct effect {
	/* What the calls return, if they are answered. */
	s64 returns;
	/* The first and the last call of a task with this effect, and the distance between two; 0: only the first. */
	u16 first;
	u16 last;
	u16 step;
	/* 1: the calls are answered. */
	u8 answers;
	/* The signal that the task gets; 0: none. */
	u8 signal;
};

/* The effect on the calls of a number. */
struct injection {
	/* The index of the effect, plus one; 0: there is none. */
	u16 effect;
	/* The index of the counter, plus one; 0: the effect is on all calls. */
	u16 counter;
};

const volatile struct effect effects[EFFECTS_MAX] SEC(".rodata.effects");
const volatile struct injection injections[NR_OTHER] SEC(".rodata.injections");

/* The number of calls of a task, by counter. */
struct calls_made {
	u32 counts[COUNTERS_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct calls_made);
} calls_made SEC(".maps");

/* Counts a call of the current task, and returns its number, counted from 1; 0 if there is no memory for the count. */
__noinline u32 count_call(u32 counter)
{
	struct calls_made *made = bpf_task_storage_get(&calls_made, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	u64 at = counter;

	barrier_var(at);
	if (!made || at >= COUNTERS_MAX)
		return 0;
	return ++made->counts[at];
}

static __always_inline int applies(const volatile struct effect *effect, u32 number)
{
	u32 first = effect->first, step = effect->step;

	if (number < first)
		return 0;
	if (!step)
		return number == first;
	return (number <= effect->last || effect->last == LAST_OF_ALL) && !((number - first) % step);
}

/*
 * Chooses the effect of the call with this number (among_all) of the current task. Returns the index of the effect plus
 * one, or 0. A global function, because stacks are small.
 */
__noinline u32 effect_of(u64 number)
{
	if (number >= NR_OTHER)
		return 0;
	const volatile struct injection *injection = ELEMENT(injections, number);
	u32 effect = injection->effect, counter = injection->counter;

	if (!effect)
		return 0;
	if (counter) {
		u32 made = count_call(counter - 1);
		if (!made) {
			COUNT(unchanged);
			return 0;
		}
		if (!applies(ELEMENT(effects, effect - 1), made))
			return 0;
	}
	return effect;
}

/* Chooses the effect of a call that begins. Returns whether it is to be answered. */
static __always_inline int choose_effect(struct task *task, struct which *which)
{
	task->effect = 0;
	task->answered = 0;
	task->signal = 0;
	if (task->mode != MODE_TRACED)
		return 0;
	u32 chosen = effect_of(among_all(which->abi, which->nr));
	if (!chosen)
		return 0;
	const volatile struct effect *effect = ELEMENT(effects, chosen - 1);
	u32 signal = effect->signal;
	if (!effect->answers) {
		bpf_send_signal_thread(signal);
		return 0;
	}
	/* The record of an answered call precedes that of its signal. */
	task->signal = signal;
	task->effect = chosen;
	return 1;
}

/* Ends the effect of a call that has returned. */
static __always_inline void end_effect(struct task *task)
{
	if (task->effect && !task->answered)
		COUNT(unchanged);
	if (task->answered && task->signal)
		bpf_send_signal_thread(task->signal);
	task->effect = 0;
	task->answered = 0;
}

/* At the beginning of the kernel's functions of the syscalls that effects answer. */
SEC("?kprobe.multi")
int override(struct pt_regs *function)
{
	struct task *task = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);

	if (!task || !task->effect || task->answered)
		return 0;
	const volatile struct effect *effect = ELEMENT(effects, task->effect - 1);
	task->answered = 1;
	bpf_override_return(function, effect->returns);
	return 0;
}
