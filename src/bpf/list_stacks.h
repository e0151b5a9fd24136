/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lists the registers and stacks of tasks that are in a call.
 *
 * A call in flight has no record yet, so the kernel has copied no stack for it. The registers of the task in user space
 * are at the top of its kernel stack as long as the call lasts, and a program that may sleep can read the memory of
 * another task. The registers are read again at the end: if the task left the call meanwhile, no stack is listed.
 */
#pragma once

#include "members.h"
#include "select.h"

#define PAGE 4096
/* A list is read in blocks of 32 KiB, and one task must fit into a block (bpf_seq_read() in kernel/bpf/bpf_iter.c). */
#define LISTED_STACK_BYTES (6 * PAGE)

struct stack_buffer {
	struct listed_stack head;
	u8 bytes[LISTED_STACK_BYTES];
};

/* One buffer is enough, because only rtrace reads lists, one after the other. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stack_buffer);
} stack_buffers SEC(".maps");

#if defined(__TARGET_ARCH_x86)

/* AX BX CX DX SI DI BP SP IP and R8 to R15 (arch/x86/include/uapi/asm/perf_regs.h). */
#define LISTED_REGISTERS 0xff01ffULL

static __always_inline u64 program_counter(struct pt_regs *regs)
{
	return regs->ip;
}

static __always_inline void take_registers(struct listed_stack *head, struct pt_regs *regs)
{
	u64 *to = head->registers;

	to[0] = regs->ax;
	to[1] = regs->bx;
	to[2] = regs->cx;
	to[3] = regs->dx;
	to[4] = regs->si;
	to[5] = regs->di;
	to[6] = regs->bp;
	to[7] = regs->sp;
	to[8] = regs->ip;
	to[9] = regs->r8;
	to[10] = regs->r9;
	to[11] = regs->r10;
	to[12] = regs->r11;
	to[13] = regs->r12;
	to[14] = regs->r13;
	to[15] = regs->r14;
	to[16] = regs->r15;
}

#elif defined(__TARGET_ARCH_arm64)

/* X0 to X29, LR, SP and PC (arch/arm64/include/uapi/asm/perf_regs.h). */
#define LISTED_REGISTERS 0x1ffffffffULL

static __always_inline u64 program_counter(struct pt_regs *regs)
{
	return regs->pc;
}

static __always_inline void take_registers(struct listed_stack *head, struct pt_regs *regs)
{
	for (u32 i = 0; i < 31; i++)
		head->registers[i] = regs->regs[i];
	head->registers[31] = regs->sp;
	head->registers[32] = regs->pc;
}

#endif

/* Copies the stack from the stack pointer upwards, page by page, until its end or until the buffer is full. */
static __always_inline u64 copy_stack(struct stack_buffer *buffer, struct task_struct *task, u64 stack)
{
	u64 bytes = 0;

	for (u32 i = 0; i < LISTED_STACK_BYTES / PAGE; i++) {
		u64 from = stack + bytes;
		u32 size = PAGE - (from & (PAGE - 1));
		if (bytes > LISTED_STACK_BYTES - PAGE)
			break;
		if (bpf_copy_from_user_task(buffer->bytes + bytes, size, (void *)from, task, 0))
			break;
		bytes += size;
	}
	return bytes;
}

static __always_inline int is_asleep(struct task_struct *task)
{
	return task->__state & (TASK_INTERRUPTIBLE | TASK_UNINTERRUPTIBLE);
}

/* Returns whether a task is exiting and will not return from its call. */
static __always_inline int is_ending(struct task_struct *task)
{
	return task->flags & PF_EXITING;
}

/* Returns the start of the call that a task is in; 0 if it is in none. */
static __always_inline u64 in_call_since(struct task_struct *found, struct task *task)
{
	if (task->open == OPEN_IN_TASK)
		return task->call.start;
	if (task->open != OPEN_IN_SCRATCH)
		return 0;
	struct scratch *scratch = bpf_task_storage_get(&scratches, found, 0, 0);
	return scratch ? scratch->call.start : 0;
}

/* Lists the stack of each listed call once, and after tracing has stopped that of each open call. */
SEC("iter.s/task")
int list_stacks(struct bpf_iter__task *ctx)
{
	struct task_struct *found = ctx->task;
	u32 first = 0;

	if (!found)
		return 0;
	struct task *task = bpf_task_storage_get(&tasks, found, 0, 0);
	if (!task)
		return 0;
	u64 start = in_call_since(found, task);
	if (!start || start == task->stack_listed || (start != task->listed && !is_over))
		return 0;
	struct stack_buffer *buffer = bpf_map_lookup_elem(&stack_buffers, &first);
	if (!buffer)
		return 0;
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(found);
	if (!is_asleep(found) || !is_in_call(regs) || !may_be_shown(found))
		return 0;
	u64 switches = found->nvcsw;
	u64 stack = regs->sp, program = program_counter(regs);
	struct listed_stack *head = &buffer->head;
	head->start = start;
	head->tid = number_of_task(found);
	head->width = is_compat(found) ? 1 : 2;
	head->mask = LISTED_REGISTERS;
	take_registers(head, regs);
	u64 bytes = copy_stack(buffer, found, stack);
	if (found->nvcsw != switches || !is_asleep(found) || regs->sp != stack || program_counter(regs) != program || in_call_since(found, task) != start)
		return 0;
	/* The task may have executed a program with more rights while its stack was copied. */
	if (bytes > LISTED_STACK_BYTES || !may_be_shown(found))
		return 0;
	head->bytes = bytes;
	struct seq_file *seq = ctx->meta->seq;
	/* If there is no room, the kernel calls the program again for the same task with more room. */
	if (bpf_seq_write(seq, head, sizeof(*head)) || bpf_seq_write(seq, buffer->bytes, bytes))
		return 0;
	task->stack_listed = start;
	return 0;
}
