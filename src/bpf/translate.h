/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Translates the pids in a call whose caller is in a pid namespace below rtrace's own, and the user and group ids if
 * the caller is in a user namespace. User space could not translate them later, when the task and the namespace may be
 * gone.
 */
#pragma once

#include "pieces.h"
#include "numbers.h"

/*
 * A namespace keeps its numbers in an IDR (include/linux/idr.h), a tree of nodes with 64 slots, or 16 on small systems.
 * Numbers have at most 22 bits (PID_MAX_LIMIT in include/linux/threads.h), so six levels are enough for either.
 */
#define IDR_LEVELS_MAX 6
#define IDR_SLOTS (bpf_core_field_size(struct xa_node, slots) / sizeof(void *))
/* The lowest two bits of an entry give its type: 10 is a node, 00 a pointer to the stored item (lib/radix-tree.c). */
#define IDR_ENTRY 3
#define IDR_NODE 2

/*
 * Returns the struct pid with this number in the namespace of the task with the struct pid `own`, as find_pid_ns() in
 * kernel/pid.c does; 0 if there is none.
 */
__noinline u64 pid_called(u64 own, u32 number)
{
	u64 level = level_of(own), namespace, entry;

	if (bpf_probe_read_kernel(&namespace, sizeof(namespace), (void *)(upid_at(own, level) + UPID_NAMESPACE)))
		return 0;
	if (bpf_probe_read_kernel(&entry, sizeof(entry), (void *)(namespace + bpf_core_field_offset(struct pid_namespace, idr.idr_rt.xa_head))))
		return 0;
	for (u32 i = 0; i < IDR_LEVELS_MAX && (entry & IDR_ENTRY) == IDR_NODE; i++) {
		u64 node = entry - IDR_NODE;
		u8 shift;
		if (bpf_probe_read_kernel(&shift, sizeof(shift), (void *)(node + bpf_core_field_offset(struct xa_node, shift))))
			return 0;
		u64 slot = number >> (shift & 31);
		/* The tree is only as deep as its largest number needs. */
		if (i == 0 && slot >= IDR_SLOTS)
			return 0;
		u64 place = node + bpf_core_field_offset(struct xa_node, slots) + (slot & (IDR_SLOTS - 1)) * sizeof(entry);
		if (bpf_probe_read_kernel(&entry, sizeof(entry), (void *)place))
			return 0;
	}
	if (!entry || entry & IDR_ENTRY)
		return 0;
	/* The memory may have been reused during the search. */
	s32 found;
	if (bpf_probe_read_kernel(&found, sizeof(found), (void *)upid_at(entry, level)) || (u32)found != number)
		return 0;
	return entry;
}

/* Adds the translation of a pid from the caller's namespace to rtrace's own, if a task has that pid. */
__noinline int add_number(struct scratch *scratch, s32 number, u32 arg)
{
	u64 own;

	if (!scratch || number <= 0)
		return 0;
	struct task_struct *current = bpf_get_current_task_btf();
	if (bpf_probe_read_kernel(&own, sizeof(own), &current->thread_pid))
		return 0;
	u64 pid = pid_called(own, number);
	s32 here = pid ? number_here(pid) : 0;
	return here ? describe_empty(scratch, number, here, TAG(ARG_NUMBER | arg, WHEN_ENTRY), PIECE_WHOLE) : 0;
}

/*
 * The number of extents in a map itself: UID_GID_MAP_MAX_BASE_EXTENTS in include/linux/user_namespace.h. A separate
 * array has up to 340, for which this many steps of a binary search are enough.
 */
#define EXTENTS_HERE 5
#define EXTENTS_STEPS 9

/* Returns whether the caller's user and group ids may differ from the kernel's own. */
static __always_inline int has_own_users(struct task_struct *task)
{
	return FOLLOW(user_namespace, FOLLOW(cred, FOLLOW(task_struct, task, cred), user_ns), level) > 0;
}

/*
 * Compares an id with an extent: -1 if it is below it, 1 if it is above it, 0 if it is inside it; then `*lower` is the
 * id in the first namespace.
 */
static __always_inline int compare_extent(u64 extents, u32 at, u32 id, u64 *lower)
{
	u32 extent[3];

	if (bpf_probe_read_kernel(extent, sizeof(extent), (void *)(extents + at * sizeof(extent))) || id < extent[0])
		return -1;
	if (id - extent[0] >= extent[2])
		return 1;
	*lower = extent[1] + (id - extent[0]);
	return 0;
}

/*
 * Returns the id in the first namespace of an id in the namespace with this map, as map_id_down() in
 * kernel/user_namespace.c does; ~0 if it is not mapped.
 */
__noinline u64 id_below(u64 map, u32 id)
{
	u64 extents = map + bpf_core_field_offset(struct uid_gid_map, extent), lower = ~0ULL;
	u32 count, first = 0;

	if (bpf_probe_read_kernel(&count, sizeof(count), (void *)(map + bpf_core_field_offset(struct uid_gid_map, nr_extents))))
		return ~0ULL;
	if (count <= EXTENTS_HERE) {
		for (u32 i = 0; i < EXTENTS_HERE && i < count; i++)
			if (!compare_extent(extents, i, id, &lower))
				break;
		return lower;
	}
	if (bpf_probe_read_kernel(&extents, sizeof(extents), (void *)(map + bpf_core_field_offset(struct uid_gid_map, forward))))
		return ~0ULL;
	for (u32 i = 0; i < EXTENTS_STEPS && first < count; i++) {
		u32 middle = first + (count - first) / 2;
		int order = compare_extent(extents, middle, id, &lower);
		if (!order)
			break;
		if (order < 0)
			count = middle;
		else
			first = middle + 1;
	}
	return lower;
}

static __always_inline void add_id(struct scratch *scratch, u64 map, u32 id, u32 arg)
{
	u64 here = id == ~0u ? ~0ULL : id_below(map, id);

	if (here != ~0ULL && here != id)
		add_empty(scratch, id, here, TAG(ARG_USER | arg, WHEN_ENTRY), PIECE_WHOLE);
}

/*
 * Adds the translations of the user and group ids in the call to the first user namespace: of the arguments at entry,
 * of the return value at exit.
 */
__noinline int add_ids(struct scratch *scratch, u32 place, u32 when)
{
	const volatile struct plan *plan = plan_at(place);
	u64 namespace;

	if (!scratch)
		return 0;
	struct task_struct *current = bpf_get_current_task_btf();
	if (!has_own_users(current))
		return 0;
	namespace = number_of(&scratch->walk, FOLLOW(cred, FOLLOW(task_struct, current, cred), user_ns));
	u64 users = namespace + bpf_core_field_offset(struct user_namespace, uid_map);
	u64 groups = namespace + bpf_core_field_offset(struct user_namespace, gid_map);
	u32 uids = plan->uids, gids = plan->gids;
	if (when == WHEN_EXIT) {
		if ((uids | gids) & 1 << ARG_RETURN && scratch->call.ret >= 0)
			add_id(scratch, uids & 1 << ARG_RETURN ? users : groups, scratch->call.ret, ARG_RETURN);
		return 0;
	}
	for (u32 i = 0; i < 6; i++)
		if ((uids | gids) & 1 << i)
			add_id(scratch, uids & 1 << i ? users : groups, scratch->call.args[i], i);
	return 0;
}
