/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The state of a socket at the call: its protocol and its addresses.
 *
 * They are part of the key of the file, so that a socket that was bound or connected meanwhile is described again.
 */
#pragma once

#include "members.h"

/* include/linux/socket.h */
enum { AF_UNIX = 1, AF_INET = 2, AF_INET6 = 10, AF_NETLINK = 16, AF_PACKET = 17, AF_VSOCK = 40 };

#define SWAPPED(port) __builtin_bswap16(port)

static __always_inline void read_ipv4(struct socket_info *info, u64 sk)
{
	info->local[0] = MEMBER(sock, sk, __sk_common.skc_rcv_saddr);
	info->remote[0] = MEMBER(sock, sk, __sk_common.skc_daddr);
}

static __always_inline void read_ipv6(struct socket_info *info, u64 sk)
{
	if (!bpf_core_field_exists(struct sock, __sk_common.skc_v6_daddr))
		return;
	info->local[0] = MEMBER(sock, sk, __sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32[0]);
	info->local[1] = MEMBER(sock, sk, __sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32[1]);
	info->local[2] = MEMBER(sock, sk, __sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32[2]);
	info->local[3] = MEMBER(sock, sk, __sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32[3]);
	info->remote[0] = MEMBER(sock, sk, __sk_common.skc_v6_daddr.in6_u.u6_addr32[0]);
	info->remote[1] = MEMBER(sock, sk, __sk_common.skc_v6_daddr.in6_u.u6_addr32[1]);
	info->remote[2] = MEMBER(sock, sk, __sk_common.skc_v6_daddr.in6_u.u6_addr32[2]);
	info->remote[3] = MEMBER(sock, sk, __sk_common.skc_v6_daddr.in6_u.u6_addr32[3]);
}

/* A socket and its inode are allocated together. */
static __always_inline u64 inode_of_socket(u64 socket)
{
	u64 inode = socket + bpf_core_field_offset(struct socket_alloc, vfs_inode);

	return MEMBER(inode, inode, i_ino);
}

static __always_inline void read_unix(struct walk *walk, u64 sk)
{
	u64 peer = number_of(walk, MEMBER(unix_sock, sk, peer));
	u64 socket = peer ? number_of(walk, MEMBER(sock, peer, sk_socket)) : 0;

	/* The peer has no socket as long as the connection was not accepted. */
	if (socket)
		walk->socket.peer = inode_of_socket(socket);
}

static __always_inline void read_netlink(struct socket_info *info, u64 sk)
{
	info->local[0] = MEMBER(netlink_sock, sk, portid);
	info->remote[0] = MEMBER(netlink_sock, sk, dst_portid);
}

/* These two families may be modules, whose types are not known. */
static __always_inline void read_packet(struct socket_info *info, u64 sk)
{
	if (!bpf_core_field_exists(struct packet_sock, num))
		return;
	info->local[0] = BPF_CORE_READ((struct packet_sock *)sk, ifindex);
	info->protocol = SWAPPED(BPF_CORE_READ((struct packet_sock *)sk, num));
}

static __always_inline void read_vsock(struct socket_info *info, u64 sk)
{
	if (!bpf_core_field_exists(struct vsock_sock, remote_addr))
		return;
	info->local[0] = BPF_CORE_READ((struct vsock_sock *)sk, local_addr.svm_cid);
	info->local_port = BPF_CORE_READ((struct vsock_sock *)sk, local_addr.svm_port);
	info->remote[0] = BPF_CORE_READ((struct vsock_sock *)sk, remote_addr.svm_cid);
	info->remote_port = BPF_CORE_READ((struct vsock_sock *)sk, remote_addr.svm_port);
}

static __always_inline u64 sock_of(struct walk *walk)
{
	u64 socket = number_of(walk, MEMBER(file, walk->file, private_data));

	return socket ? number_of(walk, MEMBER(socket, socket, sk)) : 0;
}

/* Reads the socket's state into walk->socket and returns a hash of it. */
__noinline u64 read_socket(struct scratch *scratch)
{
	if (!scratch)
		return 0;
	struct walk *walk = &scratch->walk;
	struct socket_info *info = &walk->socket;
	u64 sk = sock_of(walk);

	__builtin_memset(info, 0, sizeof(*info));
	if (!sk)
		return 0;
	info->family = MEMBER(sock, sk, __sk_common.skc_family);
	info->type = MEMBER(sock, sk, sk_type);
	info->protocol = MEMBER(sock, sk, sk_protocol);
	u64 hash = 0;
	switch (info->family) {
	case AF_INET6:
		read_ipv6(info, sk);
		/* fallthrough */
	case AF_INET:
		if (info->family == AF_INET)
			read_ipv4(info, sk);
		info->local_port = SWAPPED(MEMBER(inet_sock, sk, inet_sport));
		info->remote_port = SWAPPED(MEMBER(sock, sk, __sk_common.skc_dport));
		break;
	case AF_UNIX:
		read_unix(walk, sk);
		/* The address is assigned only once. */
		hash = MEMBER(unix_sock, sk, addr) != 0;
		break;
	case AF_NETLINK:
		read_netlink(info, sk);
		break;
	case AF_PACKET:
		read_packet(info, sk);
		break;
	case AF_VSOCK:
		read_vsock(info, sk);
		break;
	}
	u64 *words = (u64 *)info;
	for (u32 i = 0; i < sizeof(*info) / 8; i++)
		hash = mixed(hash, words[i]);
	return hash;
}

/*
 * Writes the socket's state to `at`, followed by the protocol's name and a UNIX socket's address. Returns the number of
 * bytes.
 */
__noinline int write_socket_info(struct scratch *scratch, u64 at)
{
	if (!scratch || at > sizeof(scratch->payload) - sizeof(struct socket_info) - sizeof(struct socket_names))
		return 0;
	struct walk *walk = &scratch->walk;
	struct socket_info *info = (struct socket_info *)(scratch->payload + at);
	struct socket_names *names = (struct socket_names *)(info + 1);
	u64 length = 0;

	*info = walk->socket;
	__builtin_memset(names->protocol, 0, sizeof(names->protocol));
	bpf_probe_read_kernel_str(names->protocol, sizeof(names->protocol), MEMBER(dentry, walk->dentry, d_name.name));
	if (info->family == AF_UNIX) {
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
	return sizeof(*info) + sizeof(names->protocol) + length;
}
