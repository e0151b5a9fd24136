#!/usr/bin/env python3
"""Tests of told.py, told_calls.py and faults.py: what a program tells of its calls, what rtrace says about them, and
what the comparison must say.

`run` runs this file before it compares anything: `test_told.py -q`.
"""

import json
import unittest

import faults
from alone import Run
from reencode import Layouts
from test_alone import HERE, UNREAD, call, execve
from told import name_of, told
from told_calls import compare, split, told_calls


def number(bits, **more):
    return {"number": {"bits": bits, **more}}


def struct(name, size, /, **members):
    members = [{"name": member, **kind} for member, kind in members.items()]
    return {"type": "struct", "name": name, "sizes": {"x86_64": size}, "members": {"x86_64": members}}


# A struct of 16 bytes, with four bytes between `flags` and `to`, which points to another one; and a syscall with a set.
PAIR = struct("pair", 16, size={"offset": 0, **number(16)}, flags={"offset": 2, **number(16)}, to={"offset": 8, **number(64)})
TABLE = {"type": "table", "name": "letters", "constants": [{"name": "A", "value": 1}, {"name": "B", "value": 2}]}
HEADER = struct("nlattr", 4, nla_len={"offset": 0, **number(16)}, nla_type={"offset": 2, **number(16)})
BLOCK = {"type": "syscall", "name": "probe_set", "arguments": [{"name": "all", "struct": "sigset"}]}
SELECT = {"type": "syscall", "name": "select", "arguments": [{"name": "ready", "struct": "fd_set"}]}


def known_layouts():
    return Layouts(map(json.dumps, (PAIR, TABLE, HEADER, BLOCK, SELECT)))


def line(*registers, memory=(), returned=0, bits=None, **more):
    """Returns what the program tells of a call."""
    parts = [
        {"address": hex(address), "size": size, "flow": flow, "entry": entry.hex(), **({"exit": exit[0].hex()} if exit else {})}
        for address, size, flow, entry, *exit in memory
    ]
    return {"tid": 1, "number": 9, "begin": 10, "end": 20, "return": returned, "registers": [*map(hex, registers)],
            "bits": bits or [64] * len(registers), "memory": parts, **more}  # fmt: skip


def passed(name, register, entry=None, exit=None, **more):
    """Returns an argument of rtrace."""
    sides = {side: value for side, value in (("entry", entry), ("exit", exit)) if value is not None}
    return {"name": name, "registers": [hex(register)], **sides, **more}


def made(*arguments, name="probe", at=15, **more):
    """Returns a call of rtrace, which began at a time."""
    return call(name, *arguments, **{"number": 9, **more}, start={"monotonic": str(at)})


def text(address, text, **more):
    return {"text": text, "address": hex(address), **more}


def pair(address, **members):
    return {"struct": "pair", "members": members, "address": hex(address)}


def bytes_of_pair(size, flags, to):
    return size.to_bytes(2, "little") + flags.to_bytes(2, "little") + bytes(4) + to.to_bytes(8, "little")


A, B = {"flags": ["A"]}, {"flags": ["B"]}
WHOLE = bytes_of_pair(16, 1, 0x2000)
BOTH = ((0x1000, 16, "in", WHOLE), (0x2000, 4, "in", b"abc\0"))
SHOWN = pair(0x1000, size=16, flags=A, to=text(0x2000, "abc"))
NO_WORD = {"address": "0x2000", "unread": True}



def shown(address, value, **more):
    """Returns a call whose argument points to a value at this address."""
    return made(passed("all", address, {**value, "address": hex(address)}), **more)


def capabilities(one, other, last):
    sets = {"effective": [one, other], "permitted": [last], "inheritable": []}
    members = {name: {"array": [{"constant": "CAP", "value": item} for item in items]} for name, items in sets.items()}
    return {"struct": "capabilities", "members": members}


def siginfo(pid, code):
    return {"struct": "siginfo", "members": {"si_signo": 10, "si_code": code, "si_pid": {"pid": pid}}}


def attribute(data):
    members = {"nla_len": 10, "nla_type": 1, **({"data": data} if data else {})}
    return {"struct": "nlattr", "members": members}


SIGNALS = {"array": [{"signal": 2, "name": "SIGINT"}, {"signal": 9, "name": "SIGKILL"}]}
WORDS = {"array": [text(0x2000, "abc"), text(0x3000, "def")]}
POINTERS = (0x2000).to_bytes(8, "little") + (0x3000).to_bytes(8, "little")
# Version 3 has the lower words of the three sets, and then the upper ones.
SETS_OF_V3 = b"".join(word.to_bytes(4, "little") for word in (1 << 1, 1 << 2, 0, 1 << 3, 0, 0))
INFO = b"".join((word % (1 << 32)).to_bytes(4, "little") for word in (10, 0, -1, 0, 7))
ATTRIBUTE = bytes([10, 0, 1, 0, 2, 0, 0, 0, 0, 9])

# The verdict, what the program told, and what rtrace says.
CASES = [
    # Registers.
    ("equal", line(5), made(passed("fd", 5, {"fd": 5}))),
    ("different", line(5), made(passed("fd", 6, {"fd": 5}))),
    ("different", line(5), made(passed("fd", 5, {"fd": 6}))),
    ("different", line(5, 7), made(passed("fd", 5, {"fd": 5}))),  # rtrace lacks an argument
    ("equal", line(5, 7, bits=[64, 0]), made(passed("fd", 5, {"fd": 5}))),  # the kernel ignores it
    ("equal", line(5, 0), made(passed("fd", 5, {"fd": 5}))),
    ("equal", line(5), made(passed("fd", 5, {"fd": 5}), passed("zero", 0, 0))),
    ("equal", line(0xFFFFFFFF), made(passed("fd", 0xFFFFFFFF, {"fd": -1}))),
    ("equal", line((1 << 64) - 1), made(passed("fd", (1 << 64) - 1, {"fd": -1}))),
    ("different", line(0xFFFFFFFE), made(passed("fd", 0xFFFFFFFE, {"fd": -1}))),
    ("different", line(0xBAD00000001), made(passed("one", 0xBAD00000001, 1))),
    ("equal", line(0xBAD00000001, bits=[32]), made(passed("one", 0xBAD00000001, 1))),
    ("different", line(0xBAD00000001, bits=[32]), made(passed("one", 0xBAD00000001, 0xBAD00000001))),
    ("equal", line(3), made(passed("letters", 3, {"flags": ["A", "B"]}))),
    ("different", line(3), made(passed("letters", 3, {"flags": ["A"]}))),
    ("equal", line(7), made(passed("letters", 7, {"flags": ["A", "B"], "rest": "0x4"}))),
    ("unchecked", line(3), made(passed("letters", 3, {"flags": ["C"]}))),  # no table has it
    ("equal", line(0x302), made(passed("parts", 0x302, {"packed": "parts", "members": {"a": 3, "b": 2}, "raw": "0x302"}))),
    ("unchecked", line(0x302), made(passed("parts", 0x302, {"packed": "parts", "members": {"a": 3, "b": 4}, "raw": "0x302"}))),
    # The result.
    ("equal", line(returned=-9), made(**{"return": {"raw": -9, "errno": 9}})),
    ("different", line(returned=-9), made(**{"return": {"raw": -1, "errno": 1}})),
    ("different", line(returned=4), made(**{"return": {"raw": 4, "value": {"fd": 5}}})),
    ("different", line(returned=4), made(**{"return": {}})),
    # Memory that the kernel reads.
    ("equal", line(0x1000, memory=BOTH), made(passed("pair", 0x1000, SHOWN))),
    ("different", line(0x1000, memory=BOTH), made(passed("pair", 0x1000, {"address": "0x1000", "unread": True}))),
    ("different", line(0x1000, memory=BOTH), made(passed("pair", 0x1000, {**SHOWN, "address": "0x1008"}))),
    ("different", line(0x1000, memory=BOTH), made(passed("pair", 0x1000, pair(0x1000, size=17, flags=A, to=text(0x2000, "abc"))))),
    ("different", line(0x1000, memory=BOTH), made(passed("pair", 0x1000, pair(0x1000, size=16, flags=B, to=text(0x2000, "abc"))))),
    ("different", line(0x1000, memory=BOTH), made(passed("pair", 0x1000, pair(0x1000, size=16, to=text(0x2000, "abc"))))),
    ("different", line(0x1000, memory=BOTH), made(passed("pair", 0x1000, pair(0x1000, size=16, flags=A, to=text(0x2000, "abd"))))),
    ("different", line(0x1000, memory=BOTH), made(passed("pair", 0x1000, pair(0x1000, size=16, flags=A, to=text(0x2000, "ab"))))),
    ("different", line(0x1000, memory=BOTH), made(passed("pair", 0x1000, pair(0x1000, size=16, flags=A, to=text(0x2001, "abc"))))),
    ("different", line(0x1000, memory=BOTH), made(passed("pair", 0x1000, pair(0x1000, size=16, flags=A, to=NO_WORD)))),
    ("unchecked", line(0x1000, memory=BOTH[:1]), made(passed("pair", 0x1000, SHOWN))),  # the program did not tell the text
    ("unchecked", line(0x1000, memory=BOTH), made(passed("pair", 0x1000, pair(0x1000, size=16, flags={"flags": ["C"]}, to=text(0x2000, "abc"))))),
    ("equal", line(0x2000, memory=BOTH[1:]), made(passed("word", 0x2000, text(0x2000, "abc")))),
    ("equal", line(0x2000, memory=BOTH[1:]), made(passed("word", 0x2000, text(0x2000, {"bytes": "616263"})))),
    ("unchecked", line(0x2000, memory=BOTH[1:]), made(passed("word", 0x2000, text(0x2000, "ab", cut=True)))),
    ("different", line(0x2000, memory=BOTH[1:]), made(passed("word", 0x2000, text(0x2000, "xb", cut=True)))),
    ("unchecked", line(0x2000, memory=BOTH[1:]), made(passed("word", 0x2000, text(0x2000, "abc\0\0")))),  # more than was told
    # Two places that show the same memory.
    ("different", line(0x2000, 0x2000, memory=BOTH[1:]),
     made(passed("word", 0x2000, text(0x2000, "xbc")), passed("again", 0x2000, text(0x2000, "abc")))),
    # Numbers and sets.
    ("equal", line(0x1000, memory=[(0x1000, 8, "in", bytes([1, 0, 0, 0, 2, 0, 0, 0]))]), made(passed("all", 0x1000, {"array": [1, 2], **{"address": "0x1000"}}))),
    ("equal", line(0x1000, memory=[(0x1000, 2, "in", bytes([1, 2]))]), made(passed("all", 0x1000, {"array": [1, 2], "address": "0x1000"}))),
    ("different", line(0x1000, memory=[(0x1000, 2, "in", bytes([1, 2]))]), made(passed("all", 0x1000, {"array": [1, 3], "address": "0x1000"}))),
    ("different", line(0x1000, memory=[(0x1000, 2, "in", bytes([1, 2]))]), made(passed("all", 0x1000, {"array": [1], "address": "0x1000"}))),
    ("equal", line(0x1000, memory=[(0x1000, 8, "in", bytes([5]))]), made(passed("ready", 0x1000, {"array": [0, 2], "address": "0x1000"}), name="select")),
    ("different", line(0x1000, memory=[(0x1000, 8, "in", bytes([2]))]), made(passed("ready", 0x1000, {"array": [2], "address": "0x1000"}), name="select")),
    ("equal", line(0x1000, memory=[(0x1000, 8, "in", bytes([2, 1]))]), shown(0x1000, SIGNALS, name="probe_set")),
    ("different", line(0x1000, memory=[(0x1000, 8, "in", bytes([4, 1]))]), shown(0x1000, SIGNALS, name="probe_set")),
    # Pointers to texts, of which the second is in memory that is not told.
    ("unchecked", line(0x1000, memory=[(0x1000, 16, "in", POINTERS), BOTH[1]]), shown(0x1000, WORDS)),
    ("different", line(0x1000, memory=[(0x1000, 16, "in", POINTERS[8:] + POINTERS[:8]), BOTH[1]]), shown(0x1000, WORDS)),
    # Structs of which the tables have no layout.
    ("equal", line(0x1000, memory=[(0x1000, 24, "in", SETS_OF_V3)]), shown(0x1000, capabilities(1, 35, 2))),
    ("different", line(0x1000, memory=[(0x1000, 24, "in", SETS_OF_V3)]), shown(0x1000, capabilities(1, 34, 2))),
    ("different", line(0x1000, memory=[(0x1000, 24, "in", SETS_OF_V3)]), shown(0x1000, capabilities(1, 35, 3))),
    ("equal", line(0x1000, memory=[(0x1000, 128, "in", INFO)]), shown(0x1000, siginfo(7, -1))),
    ("different", line(0x1000, memory=[(0x1000, 128, "in", INFO)]), shown(0x1000, siginfo(8, -1))),
    ("different", line(0x1000, memory=[(0x1000, 128, "in", INFO)]), shown(0x1000, siginfo(7, -2))),
    # What follows a header that has its length.
    ("equal", line(0x1000, memory=[(0x1000, 12, "in", ATTRIBUTE)]), shown(0x1000, attribute({"mac": "02:00:00:00:00:09"}))),
    ("different", line(0x1000, memory=[(0x1000, 12, "in", ATTRIBUTE)]), shown(0x1000, attribute({"mac": "02:00:00:00:00:08"}))),
    ("different", line(0x1000, memory=[(0x1000, 12, "in", ATTRIBUTE)]), shown(0x1000, attribute(None))),
    # Memory that the kernel writes.
    ("equal", line(0x1000, memory=[(0x1000, 4, "out", b"junk", b"abck")]), made(passed("buf", 0x1000, exit=text(0x1000, "abc")))),
    ("equal", line(0x1000, memory=[(0x1000, 4, "out", b"junk", b"junk")]), made(passed("buf", 0x1000, {"address": "0x1000"}))),
    ("different", line(0x1000, memory=[(0x1000, 4, "out", b"junk", b"abck")]), made(passed("buf", 0x1000, exit=text(0x1000, "ab")))),
    ("different", line(0x1000, memory=[(0x1000, 4, "out", b"junk", b"abck")]), made(passed("buf", 0x1000, {"address": "0x1000"}))),
    ("different", line(0x1000, memory=[(0x1000, 4, "out", b"junk", b"abck")]), made(passed("buf", 0x1000, exit=text(0x1000, "xbc")))),
    ("equal", line(0x1000, memory=[(0x1000, 2, "both", b"\1\0", b"\2\0")]),
     made(passed("size", 0x1000, {"array": [1], "address": "0x1000"}, {"array": [2], "address": "0x1000"}))),
    ("different", line(0x1000, memory=[(0x1000, 2, "both", b"\1\0", b"\2\0")]),
     made(passed("size", 0x1000, {"array": [2], "address": "0x1000"}, {"array": [2], "address": "0x1000"}))),
    ("different", line(0x1000, memory=[(0x1000, 2, "both", b"\1\0", b"\2\0")]),
     made(passed("size", 0x1000, exit={"array": [2], "address": "0x1000"}))),
    ("different", line(0x1000, memory=[(0x1000, 2, "both", b"\1\0", b"\2\0")]),
     made(passed("size", 0x1000, {"array": [1], "address": "0x1000"}))),
]  # fmt: skip


class ToldCalls(unittest.TestCase):
    def test_each_pair_has_its_verdict(self):
        layouts = known_layouts()
        for expected, told_line, known in CASES:
            with self.subTest(told=told_line, known=known):
                rows = list(told_calls([told_line], [known], layouts))
                verdicts = {verdict for verdict, *_ in rows}
                said = next((name for name in ("different", "unchecked") if name in verdicts), "equal")
                self.assertEqual(said, expected, rows)

    def test_the_call_is_the_one_between_the_two_times(self):
        layouts = known_layouts()
        mine, others = made(passed("fd", 5, {"fd": 5})), [made(at=9), made(at=21), {**made(), "tid": 2}, {**made(), "number": 8}]
        for calls, expected in (([mine, *others], "equal"), (others, "different"), ([mine, mine], "different"), ([], "different")):
            self.assertEqual({verdict for verdict, *_ in told_calls([line(5)], calls, layouts)} - {"equal"}, {expected} - {"equal"})
        # A call that does not return has no second time.
        endless = {key: value for key, value in line(5).items() if key not in ("end", "return")}
        self.assertEqual({verdict for verdict, *_ in told_calls([endless], [mine], layouts)}, {"equal"})

    def test_lines_of_calls_are_told_apart_from_others(self):
        self.assertEqual(split('one\n{"told":{"tid":7}}\ntwo\n'), ([{"tid": 7}], ["one", "two"]))

    def test_each_fault_is_found(self):
        layouts = known_layouts()
        told_line, known = line(0x1000, memory=BOTH), made(passed("pair", 0x1000, SHOWN))
        kinds = set()
        for kind, where, wrong, example in faults.wrong_calls(known, layouts):
            kinds.add(kind)
            rows = list(compare(told_line, wrong, layouts))
            self.assertIn("different", {verdict for verdict, *_ in rows}, f"{kind} {where} {example}")
        self.assertEqual(kinds, {"address", "address only", "flag", "member", "number", "text"})


def write(text, fd=1, count=None, **more):
    memory = {"name": "buf", "entry": {"text": text, **HERE, **more}}
    return call("write", {"name": "fd", "entry": {"fd": fd}}, memory, **{"return": {"value": count or len(text)}})


def agreed(output, run):
    return all(verdict == "equal" for verdict, *_ in told(output, Run(run), Layouts()))


def fact(output, *calls, events=()):
    """Returns whether rtrace agrees with all that the program says."""
    lines = [write(output)] if output else []
    return agreed(output, [execve("/program"), *lines, *calls, *events])


class Told(unittest.TestCase):
    def test_all_that_is_printed_is_what_rtrace_shows(self):
        run = [execve("/program"), write("one\n"), write("no\n", fd=2), write({"bytes": "74776f0a"}, count=4)]
        self.assertTrue(agreed("one\ntwo\n", run))
        for output in ("one\n", "one\ntwo\nthree\n", "one\ntwoo\n", "one\ntwi\n", ""):
            self.assertFalse(agreed(output, run), output)
        cut = [execve("/program"), write("o", count=4, cut=True), write("two\n")]
        self.assertTrue(agreed("one\ntwo\n", cut))
        self.assertFalse(agreed("ine\ntwo\n", cut))
        short = [execve("/program"), write("on", count=4), write("two\n")]
        self.assertFalse(agreed("one\ntwo\n", short))
        unread = [execve("/program"), write("one\n"), call("write", {"name": "fd", "entry": {"fd": 1}})]
        self.assertFalse(agreed("one\ntwo\n", unread))

    def test_signals_are_those_that_are_caught(self):
        info = {"si_signo": 10, "si_code": {"constant": "SI_TKILL", "value": -6}, "si_pid": 1, "si_uid": 0}
        event = {"type": "signal", "tid": 1, "fate": "handled", "sender": {"tid": 2}, "siginfo": info}
        given = "given 10 code -6 pid 1 uid 0\n"
        self.assertTrue(fact("sender 2\n" + given, events=[event]))
        self.assertFalse(fact("sender 3\n" + given, events=[event]))
        self.assertFalse(fact(given.replace("-6", "0"), events=[event]))
        self.assertFalse(fact(given))
        self.assertFalse(fact(given, events=[event, event]))

    def test_files_have_their_names(self):
        def shown(file):
            return call("lseek", {"name": "fd", "entry": {"fd": 3, "file": file}}, {"name": "offset", "entry": 7777})

        self.assertTrue(fact("2f61\n", shown({"path": "/a"})))
        self.assertFalse(fact("2f61\n", shown({"path": "/b"})))
        self.assertFalse(fact("2f61\n2f62\n", shown({"path": "/a"})))
        self.assertFalse(fact("2f61\n", shown({"path": "/a"}), shown({"path": "/b"})))
        inet, unix, vsock = ({"constant": f"AF_{name}", "value": 0} for name in ("INET6", "UNIX", "VSOCK"))
        home, nobody = {"ip": "::1", "port": 80}, {"context": 0xFFFFFFFF, "port": 0xFFFFFFFF}
        route = {"family": {"constant": "AF_NETLINK", "value": 16}, "number": {"constant": "NETLINK_ROUTE", "value": 0}}
        for name, known in (
            ("/a (deleted)", {"path": "/a", "deleted": True}),
            ("/memfd:a (deleted)", {"memfd": "a"}),
            ("anon_inode:[eventfd]", {"anonymous": "[eventfd]"}),
            ("net:[5]", {"namespace": "net", "inode": 5}),
            ("pid:5", {"pidfd": 5}),
            ("pipe:[5]", {"pipe": 5}),
            ("TCPv6:[5]", {"socket": {"inode": 5, "protocol": "TCPv6", "family": inet}}),
            ("TCPv6:[[::1]:80->[::1]:80]",
             {"socket": {"inode": 5, "protocol": "TCPv6", "family": inet, "local": home, "remote": home}}),
            ('UNIX:[5->6,@"a"]',
             {"socket": {"inode": 5, "protocol": "UNIX", "family": unix, "peer": 6, "abstract": "a"}}),
            ('UNIX:[5,"/a"]', {"socket": {"inode": 5, "protocol": "UNIX", "family": unix, "path": "/a"}}),
            ("AF_VSOCK:[5]",
             {"socket": {"inode": 5, "protocol": "AF_VSOCK", "family": vsock, "local": nobody, "remote": nobody}}),
            ("AF_VSOCK:[*:9]",
             {"socket": {"inode": 5, "protocol": "AF_VSOCK", "family": vsock, "local": {"port": 9}, "remote": nobody}}),
            ("NETLINK:[ROUTE:7]", {"socket": {"inode": 5, "protocol": "NETLINK", "port": 7, **route}}),
        ):  # fmt: skip
            with self.subTest(name=name):
                self.assertEqual(name_of(known).decode(), name)


if __name__ == "__main__":
    unittest.main()
