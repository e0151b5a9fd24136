/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The requests of io_uring: their arguments are read when the kernel has taken a request from the ring, in the task
 * that submits it, and what the kernel has written is read when the request completes. The events io_uring:* show the
 * requests themselves (engine/follow/requests.rs); the records of these programs only add memory and files to them.
 * They are written behind the records of the events, because rtrace opens the events first. If no requests are traced,
 * submissions are only counted.
 *
 * When a request is submitted, the kernel has prepared it: it has read the paths and structs that it needs at once.
 * Their pages are therefore present.
 */
#pragma once

#include "calls.h"

/* struct io_uring_sqe (include/uapi/linux/io_uring.h), in which many members have several names. */
struct sqe {
	u8 opcode;
	u8 flags;
	u16 ioprio;
	s32 fd;
	u64 off;
	u64 addr;
	u32 len;
	u32 op_flags;
	u64 user_data;
	u16 buf_index;
	u16 personality;
	u32 file_index;
	u64 addr3;
	u64 unused;
};

_Static_assert(sizeof(struct sqe) == 64, "as the kernel's");

/* IOSQE_FIXED_FILE and IORING_SETUP_SQE128 of the same file. */
#define SQE_FIXED_FILE 1
#define SETUP_SQE128 (1 << 10)
#define OP_CLOSE 19

/* include/linux/sched.h: threads that the kernel has created in a process, for example to poll a ring. */
#define PF_IO_WORKER 0x10
#define PF_USER_WORKER 0x4000

/* Requests are made inside calls, whose data is in the other storage. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct scratch);
} request_scratches SEC(".maps");

/* A request in flight whose end will be recorded: what is needed of its struct scratch then. */
struct request_end {
	u64 start;
	/* The address space of the submitter, to which the addresses belong. */
	u64 mm;
	u64 args[6];
	s32 nr;
	u32 place;
	u32 retry;
	u32 room;
	u32 rooms[MESSAGES_MAX];
	u32 data_limit;
	u32 unused;
};

/* By the address of the request, which the kernel uses again. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1); /* more if requests are traced */
	__type(key, u64);
	__type(value, struct request_end);
} request_ends SEC(".maps");

/* Returns the state of the task that submits a request, if it is traced. */
static __always_inline struct task *submitter(struct task_struct *current)
{
	struct task *task = caller(current, 0);

	/* A thread that the kernel has created is traced like its process. */
	if (!task && settings.scope == SCOPE_TASKS && current->flags & (PF_IO_WORKER | PF_USER_WORKER))
		task = bpf_task_storage_get(&tasks, current->group_leader, 0, 0);
	return task && task->mode != MODE_SET_UP && may_be_shown(current) ? task : 0;
}

/*
 * Reads entry `at` of the ring; 0 if it is that of the request. (The ring is memory of the program. One that changes an
 * entry before its submission has returned may be shown with the new values.)
 */
static __always_inline int read_sqe(struct sqe *sqe, struct io_ring_ctx *ring, u32 at, u32 opcode, u64 user_data)
{
	u32 *array = BPF_CORE_READ(ring, sq_array);
	u64 entries = (u64)BPF_CORE_READ(ring, sq_sqes);

	at &= BPF_CORE_READ(ring, sq_entries) - 1;
	/* Some rings have no array of indices (IORING_SETUP_NO_SQARRAY). */
	if (array && bpf_probe_read_kernel(&at, sizeof(at), array + at))
		return -1;
	if (BPF_CORE_READ(ring, flags) & SETUP_SQE128)
		at <<= 1;
	if (bpf_probe_read_kernel(sqe, sizeof(*sqe), (void *)(entries + (u64)at * sizeof(*sqe))))
		return -1;
	return sqe->opcode == opcode && sqe->user_data == user_data ? 0 : -1;
}

/* Returns the value of an argument. */
static __always_inline u64 sqe_value(struct sqe *sqe, u32 field)
{
	switch (field) {
	case SQE_FD:
		return (s64)sqe->fd;
	case SQE_OFF:
		return sqe->off;
	case SQE_ADDR:
		return sqe->addr;
	case SQE_LEN:
		return sqe->len;
	case SQE_OP_FLAGS:
		return sqe->op_flags;
	case SQE_ADDR3:
		return sqe->addr3;
	case SQE_FILE_INDEX:
		return sqe->file_index;
	case SQE_SPLICE_FD_IN:
		return (s64)(s32)sqe->file_index;
	case SQE_BUF_INDEX:
		return sqe->buf_index;
	case SQE_ADDR_LEN:
		return (u16)sqe->file_index;
	case SQE_CMD_OP:
		return (u32)sqe->off;
	}
	return 0;
}

/*
 * Reads the request, and fills in the head of its record. Returns the index of the request's plan, or less than 0 if
 * the entry of the ring cannot be read. This function and the next one are global, so that their stack is not in use
 * while memory is copied: older kernels have 512 bytes for all functions together.
 */
__noinline int begin_request(struct scratch *scratch, u64 address)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct io_kiocb *req = (struct io_kiocb *)address;
	struct io_ring_ctx *ring = BPF_CORE_READ(req, ctx);
	u64 user_data = BPF_CORE_READ(req, cqe.user_data);
	u32 next = BPF_CORE_READ(ring, cached_sq_head);
	u32 opcode = BPF_CORE_READ(req, opcode);
	struct sqe sqe;

	if (!scratch)
		return -1;
	/* A request of 128 bytes in a ring of both sizes takes two entries (IORING_SETUP_SQE_MIXED). */
	if (read_sqe(&sqe, ring, next - 1, opcode, user_data) && read_sqe(&sqe, ring, next - 2, opcode, user_data))
		return -1;
	const volatile struct request_plan *of = ELEMENT(request_plans, opcode);
	struct call *call = &scratch->call;
	u32 is_registered = sqe.flags & SQE_FIXED_FILE;
	call->nr = opcode | sqe.flags << 16;
	for (u32 i = 0; i < 6; i++)
		call->args[i] = sqe_value(&sqe, of->fields[i]);
	/* file_index is one more than the index in the ring's table; most requests have it for what they open. */
	if (of->opens && sqe.file_index) {
		call->nr |= REQUEST_OPENS_REGISTERED;
		if (opcode == OP_CLOSE) {
			is_registered = 1;
			call->args[0] = sqe.file_index - 1;
		}
	}
	if (is_registered)
		call->nr |= REQUEST_REGISTERED;
	call->ret = address;
	call->lost = (u32)(u64)ring;
	call->late = (u64)ring >> 32;
	call->tid = number_of_task(current);
	call->pid = number_of_process(current);
	call->payload = 0;
	call->bits = ABI_NATIVE | (is_nested(current) ? CALL_NESTED : 0);
	call->start = bpf_ktime_get_ns();
	return chosen_by(is_registered ? of->registered : of->place, call->args);
}

/* Adds the registered file that the request names in place of a descriptor. */
__noinline int add_registered_file(struct scratch *scratch)
{
	if (!scratch)
		return 0;
	struct call *call = &scratch->call;
	const volatile struct request_plan *of = ELEMENT(request_plans, call->nr & 0xff);
	u64 ring = (u64)call->late << 32 | call->lost;

	for (u32 i = 0; i < 6; i++)
		if (of->fields[i] == SQE_FD)
			add_file_of(scratch, ring | RING, call->args[i], TAG(ARG_FILE | i, WHEN_ENTRY));
	return 0;
}

/*
 * Stores what the end of the request needs, if the request opens a file, or if memory is read at its end. (The index of
 * a registered file that it opens has no name.)
 */
__noinline int store_end(struct scratch *scratch, u64 req, u32 place)
{
	struct request_end end = {};

	if (!scratch)
		return 0;
	if (scratch->call.nr & REQUEST_OPENS_REGISTERED || !(plan_at(place)->flags & PLAN_WORKS_AT_EXIT || scratch->retry)) {
		bpf_map_delete_elem(&request_ends, &req);
		return 0;
	}
	end.start = scratch->call.start;
	end.place = place;
	end.nr = scratch->call.nr;
	end.retry = scratch->retry;
	end.mm = (u64)bpf_get_current_task_btf()->mm;
	end.room = scratch->room;
	end.data_limit = scratch->data_limit;
	__builtin_memcpy(end.args, scratch->call.args, sizeof(end.args));
	__builtin_memcpy(end.rooms, scratch->rooms, sizeof(end.rooms));
	if (!bpf_map_update_elem(&request_ends, &req, &end, 0))
		scratch->call.nr |= REQUEST_HAS_END;
	return 0;
}

/* Writes the record of a request. */
static __always_inline void emit_request(void *ctx, struct scratch *scratch, u32 how)
{
	scratch->call.how = how;
	scratch->call.time = bpf_ktime_get_ns();
	if (!put_record(ctx, BPF_F_CURRENT_CPU, &scratch->call, sizeof(scratch->call) + payload_of(scratch)))
		return;
	COUNT(parts_lost);
	forget_files(scratch);
}

static __always_inline void submitted(void *ctx, struct io_kiocb *req)
{
	struct task_struct *current = bpf_get_current_task_btf();
	u32 opcode = BPF_CORE_READ(req, opcode);

	/* The arguments of 32-bit programs have other layouts. */
	if (!ELEMENT(request_plans, opcode)->wanted || is_compat(current) || !submitter(current))
		return;
	struct scratch *scratch = bpf_task_storage_get(&request_scratches, current, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!scratch) {
		COUNT(scratch_lost);
		return;
	}
	u64 address = number_of(&scratch->walk, req);
	int place = begin_request(scratch, address);
	if (place < 0)
		return;
	if (scratch->call.nr & REQUEST_REGISTERED)
		add_registered_file(scratch);
	capture_at_entry(scratch, place);
	emit_parts(ctx, scratch, WHEN_ENTRY);
	store_end(scratch, address, place);
	emit_request(ctx, scratch, HOW_REQUEST);
}

SEC("?tp_btf/io_uring_submit_req")
int submit_req(u64 *ctx)
{
	submitted(ctx, (struct io_kiocb *)ctx[0]);
	return 0;
}

/* The same before Linux 6.3. */
SEC("?tp_btf/io_uring_submit_sqe")
int submit_sqe(u64 *ctx)
{
	submitted(ctx, (struct io_kiocb *)ctx[0]);
	return 0;
}

/*
 * A request completes, in the submitter or in a thread that the kernel has created for it. Such a thread shares the
 * address space and the descriptors of the submitter.
 */
SEC("?tp_btf/io_uring_complete")
int complete_request(u64 *ctx)
{
	struct task_struct *current = bpf_get_current_task_btf();
	u64 req = ctx[1];
	struct request_end *end = req ? bpf_map_lookup_elem(&request_ends, &req) : 0;

	if (!end)
		return 0;
	struct scratch *scratch = bpf_task_storage_get(&request_scratches, current, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!scratch) {
		COUNT(scratch_lost);
		bpf_map_delete_elem(&request_ends, &req);
		return 0;
	}
	struct call *call = &scratch->call;
	u32 place = end->place;
	int is_same = (u64)current->mm == end->mm && may_be_shown(current);
	__builtin_memcpy(call->args, end->args, sizeof(call->args));
	__builtin_memcpy(scratch->rooms, end->rooms, sizeof(scratch->rooms));
	scratch->room = end->room;
	scratch->retry = end->retry;
	scratch->data_limit = end->data_limit;
	scratch->deferred_count = 0;
	scratch->parts = 0;
	scratch->unread = 0;
	scratch->passed_count = 0;
	call->nr = end->nr;
	call->start = end->start;
	bpf_map_delete_elem(&request_ends, &req);
	call->ret = (s64)BPF_CORE_READ((struct io_kiocb *)req, cqe.res);
	call->tid = number_of_task(current);
	call->pid = number_of_process(current);
	call->payload = 0;
	call->lost = 0;
	call->late = 0;
	call->bits = ABI_NATIVE | (is_nested(current) ? CALL_NESTED : 0);
	if (is_same) {
		capture_at_exit(scratch, place);
		emit_parts(ctx, scratch, WHEN_EXIT);
	}
	emit_request(ctx, scratch, HOW_REQUEST_END);
	return 0;
}

/* The numbers of requests that traced tasks made, by opcode, where requests are only counted. User space maps them. */
volatile u64 requests_made[REQUESTS_MAX] SEC(".data.requests_made");

static __always_inline void count_request(struct io_kiocb *req)
{
	u64 opcode = BPF_CORE_READ(req, opcode);

	if (!is_over && submitter(bpf_get_current_task_btf()))
		__sync_fetch_and_add(&requests_made[opcode % REQUESTS_MAX], 1);
}

SEC("?tp_btf/io_uring_submit_req")
int count_req(u64 *ctx)
{
	count_request((struct io_kiocb *)ctx[0]);
	return 0;
}

/* The same before Linux 6.3. */
SEC("?tp_btf/io_uring_submit_sqe")
int count_sqe(u64 *ctx)
{
	count_request((struct io_kiocb *)ctx[0]);
	return 0;
}
