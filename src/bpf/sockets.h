/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a socket is at the call: its protocol and its addresses, as they are at this moment.
 *
 * They are part of what a socket is known by, so that one that was bound or connected since is told anew.
 */
#pragma once

#include "members.h"

/* include/linux/socket.h */
enum { AF_UNIX = 1, AF_INET = 2, AF_INET6 = 10, AF_NETLINK = 16, AF_PACKET = 17, AF_VSOCK = 40 };

#define SWAPPED(port) __builtin_bswap16(port)

static __always_inline void look_at_ipv4(struct socket_note *note, u64 sk)
{
	note->local[0] = MEMBER(sock, sk, __sk_common.skc_rcv_saddr);
	note->remote[0] = MEMBER(sock, sk, __sk_common.skc_daddr);
}

static __always_inline void look_at_ipv6(struct socket_note *note, u64 sk)
{
	if (!bpf_core_field_exists(struct sock, __sk_common.skc_v6_daddr))
		return;
	note->local[0] = MEMBER(sock, sk, __sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32[0]);
	note->local[1] = MEMBER(sock, sk, __sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32[1]);
	note->local[2] = MEMBER(sock, sk, __sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32[2]);
	note->local[3] = MEMBER(sock, sk, __sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32[3]);
	note->remote[0] = MEMBER(sock, sk, __sk_common.skc_v6_daddr.in6_u.u6_addr32[0]);
	note->remote[1] = MEMBER(sock, sk, __sk_common.skc_v6_daddr.in6_u.u6_addr32[1]);
	note->remote[2] = MEMBER(sock, sk, __sk_common.skc_v6_daddr.in6_u.u6_addr32[2]);
	note->remote[3] = MEMBER(sock, sk, __sk_common.skc_v6_daddr.in6_u.u6_addr32[3]);
}

/* A socket and its inode are allotted together. */
static __always_inline u64 inode_of_socket(u64 socket)
{
	u64 inode = socket + bpf_core_field_offset(struct socket_alloc, vfs_inode);

	return MEMBER(inode, inode, i_ino);
}

static __always_inline void look_at_unix(struct walk *walk, u64 sk)
{
	u64 peer = number_of(walk, MEMBER(unix_sock, sk, peer));
	u64 socket = peer ? number_of(walk, MEMBER(sock, peer, sk_socket)) : 0;

	/* Nobody has accepted it yet if the peer has no socket. */
	if (socket)
		walk->socket.peer = inode_of_socket(socket);
}

static __always_inline void look_at_netlink(struct socket_note *note, u64 sk)
{
	note->local[0] = MEMBER(netlink_sock, sk, portid);
	note->remote[0] = MEMBER(netlink_sock, sk, dst_portid);
}

/* This and the next may be modules, whose types are not known. */
static __always_inline void look_at_packet(struct socket_note *note, u64 sk)
{
	if (!bpf_core_field_exists(struct packet_sock, num))
		return;
	note->local[0] = BPF_CORE_READ((struct packet_sock *)sk, ifindex);
	note->protocol = SWAPPED(BPF_CORE_READ((struct packet_sock *)sk, num));
}

static __always_inline void look_at_vsock(struct socket_note *note, u64 sk)
{
	if (!bpf_core_field_exists(struct vsock_sock, remote_addr))
		return;
	note->local[0] = BPF_CORE_READ((struct vsock_sock *)sk, local_addr.svm_cid);
	note->local_port = BPF_CORE_READ((struct vsock_sock *)sk, local_addr.svm_port);
	note->remote[0] = BPF_CORE_READ((struct vsock_sock *)sk, remote_addr.svm_cid);
	note->remote_port = BPF_CORE_READ((struct vsock_sock *)sk, remote_addr.svm_port);
}

static __always_inline u64 sock_of(struct walk *walk)
{
	u64 socket = number_of(walk, MEMBER(file, walk->file, private_data));

	return socket ? number_of(walk, MEMBER(socket, socket, sk)) : 0;
}

/* What stands for the socket's state; it is in walk->socket then. */
__noinline u64 look_at_socket(struct scratch *scratch)
{
	if (!scratch)
		return 0;
	struct walk *walk = &scratch->walk;
	struct socket_note *note = &walk->socket;
	u64 sk = sock_of(walk);

	__builtin_memset(note, 0, sizeof(*note));
	if (!sk)
		return 0;
	note->family = MEMBER(sock, sk, __sk_common.skc_family);
	note->type = MEMBER(sock, sk, sk_type);
	note->protocol = MEMBER(sock, sk, sk_protocol);
	u64 hash = 0;
	switch (note->family) {
	case AF_INET6:
		look_at_ipv6(note, sk);
		/* fallthrough */
	case AF_INET:
		if (note->family == AF_INET)
			look_at_ipv4(note, sk);
		note->local_port = SWAPPED(MEMBER(inet_sock, sk, inet_sport));
		note->remote_port = SWAPPED(MEMBER(sock, sk, __sk_common.skc_dport));
		break;
	case AF_UNIX:
		look_at_unix(walk, sk);
		/* It is given once. */
		hash = MEMBER(unix_sock, sk, addr) != 0;
		break;
	case AF_NETLINK:
		look_at_netlink(note, sk);
		break;
	case AF_PACKET:
		look_at_packet(note, sk);
		break;
	case AF_VSOCK:
		look_at_vsock(note, sk);
		break;
	}
	u64 *words = (u64 *)note;
	for (u32 i = 0; i < sizeof(*note) / 8; i++)
		hash = mixed(hash, words[i]);
	return hash;
}

/* Writes the protocol's name and a UNIX socket's address behind the note at `at`: how many bytes. */
__noinline int tell_socket(struct scratch *scratch, u64 at)
{
	if (!scratch || at > sizeof(scratch->payload) - sizeof(struct socket_note) - sizeof(struct socket_names))
		return 0;
	struct walk *walk = &scratch->walk;
	struct socket_note *note = (struct socket_note *)(scratch->payload + at);
	struct socket_names *names = (struct socket_names *)(note + 1);
	u64 length = 0;

	*note = walk->socket;
	__builtin_memset(names->protocol, 0, sizeof(names->protocol));
	bpf_probe_read_kernel_str(names->protocol, sizeof(names->protocol), MEMBER(dentry, walk->dentry, d_name.name));
	if (note->family == AF_UNIX) {
		u64 address = number_of(walk, MEMBER(unix_sock, sock_of(walk), addr));
		if (address) {
			length = MEMBER(unix_address, address, len) - sizeof(u16);
			barrier_var(length);
			if (length > sizeof(names->address))
				length = 0;
			address += bpf_core_field_offset(struct unix_address, name) + sizeof(u16);
			if (bpf_probe_read_kernel(names->address, length, (void *)address))
				length = 0;
		}
	}
	return sizeof(*note) + sizeof(names->protocol) + length;
}
