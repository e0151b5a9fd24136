/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The members of the kernel's structs of io_uring that the programs read (see kernel.h). */
#pragma once

#include "kernel.h"

/* include/linux/io_uring_types.h */
struct io_cqe {
	u64 user_data;
	s32 res;
} KERNEL_STRUCT;

/* A registered file. The lowest bits of `file_ptr` are flags. */
struct io_rsrc_node {
	unsigned long file_ptr;
} KERNEL_STRUCT;

struct io_rsrc_data {
	unsigned int nr;
	struct io_rsrc_node **nodes;
} KERNEL_STRUCT;

struct io_file_table {
	struct io_rsrc_data data;
} KERNEL_STRUCT;

struct io_ring_ctx {
	unsigned int flags;
	u32 *sq_array;
	void *sq_sqes;
	unsigned int cached_sq_head;
	unsigned int sq_entries;
	struct io_file_table file_table;
} KERNEL_STRUCT;

/* Registered files before Linux 6.13. */
struct io_fixed_file {
	unsigned long file_ptr;
} KERNEL_STRUCT;

struct io_file_table___array {
	struct io_fixed_file *files;
} KERNEL_STRUCT;

struct io_ring_ctx___array {
	struct io_file_table___array file_table;
	unsigned int nr_user_files;
} KERNEL_STRUCT;

struct io_kiocb {
	u8 opcode;
	struct io_cqe cqe;
	struct io_ring_ctx *ctx;
} KERNEL_STRUCT;
