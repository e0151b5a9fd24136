#!/usr/bin/env python3
"""Writes seeds of the target `messages` into a directory: netlink messages that this kernel sends and accepts, and
control messages that it passes on. As root, they are made in a network namespace of their own."""

import array
import ctypes
import fcntl
import os
import socket
import struct
import sys

ROUTE, SOCK_DIAG, XFRM, AUDIT, NETFILTER, UEVENT, GENERIC, CRYPTO = 0, 4, 6, 9, 12, 15, 16, 21
CONTROL, RECEIVED, TWO_BUFFERS, FULL = 0xFF, 0x20, 0x40, 1
REQUEST, ACK, DUMP, CREATE = 1, 4, 0x300, 0x400
CLONE_NEWNET = 0x40000000
SIZE_MAX = 2000
directory = sys.argv[1]
written = 0


def put(of, how, data):
    global written
    written += 1
    with open(os.path.join(directory, f"{of}.{written:04}"), "wb") as file:
        # Each third message is in two buffers.
        file.write(bytes([of, how | (TWO_BUFFERS if written % 3 == 0 and of != CONTROL else 0), 0]) + data)


def attribute(kind, data):
    return struct.pack("<HH", 4 + len(data), kind) + data + bytes(-len(data) % 4)


def message(kind, flags, payload):
    return struct.pack("<IHHII", 16 + len(payload), kind, flags, 1, 0) + payload


def first_messages(data):
    """Returns as many whole messages as a seed may have; of one that is longer, the beginning."""
    end = 0
    while end + 16 <= len(data):
        length = (struct.unpack_from("<I", data, end)[0] + 3) & ~3
        if length < 16 or (end and end + length > SIZE_MAX):
            break
        end += length
    return data[:end][: 2 * SIZE_MAX]


def ask(protocol, kind, flags, payload):
    """Writes a request, and the first answers to it."""
    request = message(kind, REQUEST | flags, payload)
    put(protocol, FULL, request)
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol) as asked:
            asked.setsockopt(270, 11, 1)  # NETLINK_EXT_ACK
            asked.settimeout(0.3)
            asked.send(request)
            for _ in range(4):
                answer = asked.recv(65536)
                put(protocol, FULL | RECEIVED, first_messages(answer))
                if not flags & DUMP or answer[4:6] in (b"\2\0", b"\3\0"):  # NLMSG_ERROR, NLMSG_DONE
                    break
    except OSError:
        pass


def links():
    """Makes links, addresses and routes, so that there is something to list."""
    def link(name, kind, more=b""):
        info = attribute(1, kind) + (attribute(2 | 0x8000, more) if more else b"")
        ask(ROUTE, 16, ACK | CREATE, bytes(16) + attribute(3, name) + attribute(18 | 0x8000, info))

    link(b"d0\0", b"dummy\0")
    link(b"b0\0", b"bridge\0", attribute(5, struct.pack("<I", 1)))
    link(b"v0\0", b"veth\0", attribute(1, bytes(16) + attribute(3, b"v1\0")))
    index = socket.if_nametoindex("v0")
    ask(ROUTE, 16, ACK | CREATE, bytes(16) + attribute(3, b"v0.7\0") + attribute(5, struct.pack("<I", index))
        + attribute(18 | 0x8000, attribute(1, b"vlan\0") + attribute(2 | 0x8000, attribute(1, struct.pack("<H", 7)))))
    ask(ROUTE, 16, ACK, struct.pack("<BxHiII", 0, 0, index, 1, 1))
    ask(ROUTE, 20, ACK | CREATE, struct.pack("<BBBBI", 2, 24, 0, 0, index) + attribute(2, bytes([10, 9, 0, 1])))
    hop = lambda gateway: struct.pack("<HBBi", 16, 0, 1, index) + attribute(5, bytes([10, 9, 0, gateway]))
    route = struct.pack("<8BI", 2, 16, 0, 0, 254, 3, 0, 1, 0) + attribute(1, bytes([10, 77, 0, 0]))
    ask(ROUTE, 24, ACK | CREATE, route + attribute(9, hop(2) + hop(3)) + attribute(8 | 0x8000, attribute(2, struct.pack("<I", 1400))))
    ask(ROUTE, 104, ACK | CREATE, struct.pack("<4BI", 2, 0, 0, 0, 0) + attribute(1, struct.pack("<I", 5))
        + attribute(5, struct.pack("<I", index)) + attribute(6, bytes([10, 9, 0, 9])))
    ask(ROUTE, 28, ACK | CREATE, struct.pack("<BxxxiHBB", 2, index, 0x80, 0, 1) + attribute(1, bytes([10, 9, 0, 5]))
        + attribute(2, bytes([2, 0, 0, 0, 0, 5])))
    ask(ROUTE, 32, ACK | CREATE, struct.pack("<8BI", 2, 0, 0, 0, 100, 0, 0, 1, 0) + attribute(6, struct.pack("<I", 77)))
    ask(ROUTE, 36, ACK | CREATE, struct.pack("<BxxxiIII", 0, index, 0x10000, 0xFFFFFFFF, 0) + attribute(1, b"fq_codel\0"))


def dumps():
    for kind, size in [(18, 16), (22, 8), (26, 12), (30, 12), (34, 12), (38, 20), (42, 20), (46, 20), (50, 4), (66, 4),
                       (74, 12), (78, 4), (82, 4), (86, 8), (90, 4), (94, 12), (106, 8), (114, 8), (118, 8)]:
        for family in (0, socket.AF_INET, socket.AF_INET6, 7):
            payload = bytearray(size)
            payload[0] = family
            if kind == 94:
                payload[8:12] = struct.pack("<I", 31)
            ask(ROUTE, kind, DUMP, bytes(payload))
    for family in (socket.AF_INET, socket.AF_INET6):
        for protocol in (6, 17):
            ask(SOCK_DIAG, 20, DUMP, struct.pack("<BBBxI", family, protocol, 0xFF, 0xFFFFFFFF) + bytes(48))
    ask(SOCK_DIAG, 20, DUMP, struct.pack("<BBHIIIII", 1, 0, 0, 0xFFFFFFFF, 0, 0x7F, 0, 0))
    ask(SOCK_DIAG, 20, DUMP, struct.pack("<BBHIIII", 16, 255, 0, 0, 0xF, 0, 0))
    ask(SOCK_DIAG, 20, DUMP, struct.pack("<BBHIIII", 17, 0, 0, 0, 0x3F, 0, 0))
    ask(GENERIC, 16, DUMP, bytes([3, 1, 0, 0]))
    ask(GENERIC, 16, ACK, bytes([3, 1, 0, 0]) + attribute(2, b"nlctrl\0"))
    ask(GENERIC, 16, ACK, bytes([3, 1, 0, 0]) + attribute(2, b"none\0"))
    ask(XFRM, 0x1D, 0, bytes(4))
    ask(XFRM, 0x15, DUMP, bytes(64))
    ask(AUDIT, 1000, ACK, b"")
    ask(NETFILTER, 0x0A01, DUMP, bytes(4))
    ask(NETFILTER, 0x0101, DUMP, bytes(4))
    ask(CRYPTO, 0x13, DUMP, bytes(8))
    ask(ROUTE, 999, ACK, bytes(16))
    put(UEVENT, FULL | RECEIVED, b"add@/devices/virtual/net/d0\0ACTION=add\0SUBSYSTEM=net\0SEQNUM=7\0")


def control():
    def header(level, kind, data):
        return struct.pack("<Qii", 16 + len(data), level, kind) + data + bytes(-len(data) % 8)

    def exchange(sender, receiver, sent, to=None):
        if sent:
            put(CONTROL, FULL, b"".join(header(*one) for one in sent))
        sender.sendmsg([b"x"], sent, 0, *([to] if to else []))
        got = receiver.recvmsg(64, 4096)[1]
        put(CONTROL, FULL | RECEIVED, b"".join(header(*one) for one in got))

    one, two = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    for option in (16, 34, 76):  # SO_PASSCRED, SO_PASSSEC, SO_PASSPIDFD
        try:
            two.setsockopt(socket.SOL_SOCKET, option, 1)
        except OSError:
            pass
    rights = array.array("i", [0, 1, 2]).tobytes()
    exchange(one, two, [(1, 1, rights), (1, 2, struct.pack("<3i", os.getpid(), os.getuid(), os.getgid()))])
    for stamp in (29, 35, 63, 64):  # SO_TIMESTAMP_OLD, SO_TIMESTAMPNS_OLD, SO_TIMESTAMP_NEW, SO_TIMESTAMPNS_NEW
        receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        receiver.bind(("127.0.0.1", 0))
        receiver.setsockopt(socket.SOL_SOCKET, stamp, 1)
        for option in (8, 12, 13, 20):  # IP_PKTINFO, IP_RECVTTL, IP_RECVTOS, IP_RECVORIGDSTADDR
            receiver.setsockopt(socket.SOL_IP, option, 1)
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            exchange(sender, receiver, [(0, 2, struct.pack("<i", 9)), (0, 1, struct.pack("<i", 0x10))], receiver.getsockname())
        except OSError:
            pass
    try:
        receiver = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        receiver.bind(("::1", 0))
        for option in (49, 51, 66, 74):  # IPV6_RECVPKTINFO, IPV6_RECVHOPLIMIT, IPV6_RECVTCLASS, IPV6_RECVORIGDSTADDR
            receiver.setsockopt(41, option, 1)
        exchange(socket.socket(socket.AF_INET6, socket.SOCK_DGRAM), receiver, [(41, 52, struct.pack("<i", 7))], receiver.getsockname())
    except OSError:
        pass
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as refused:
        refused.setsockopt(socket.SOL_IP, 11, 1)  # IP_RECVERR
        refused.connect(("127.0.0.1", 9))
        refused.settimeout(0.3)
        try:
            refused.send(b"x")
            refused.recv(1)
        except OSError:
            pass
        try:
            got = refused.recvmsg(64, 4096, 0x2000)[1]  # MSG_ERRQUEUE
            put(CONTROL, FULL | RECEIVED, b"".join(header(*one) for one in got))
        except OSError:
            pass
    put(CONTROL, FULL | 0x10, struct.pack("<Iii", 16, 1, 1) + rights[:4])


try:
    # os.unshare() is newer than the Python of old distributions.
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "unshare")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("<16sh14x", b"lo", 0x1))  # SIOCSIFFLAGS: IFF_UP
    links()
except OSError as error:
    print(f"no network namespace of their own: the links of this one are listed ({error})", file=sys.stderr)
dumps()
control()
