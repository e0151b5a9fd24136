#!/usr/bin/env python3
"""Tests of compare.py and rules.py: arguments as strace writes them, as rtrace has them in JSON, and what the comparison must say.

`run` runs this file before it compares anything: `test_compare.py -q`.
"""

import json
import unittest

from compare import Comparison, Exceptions
from reencode import Layouts
from rules import Comparer
from strace_text import calls


def number(name, offset, bits, table=None, **more):
    meaning = {"meaning": {"kind": "table", "table": table}} if table else {}
    used_if = {"used_if": more.pop("used_if")} if "used_if" in more else {}
    return {"name": name, "offset": offset, "number": {"bits": bits, "signed": False, **meaning, **more}, **used_if}


def struct(name, size, *members):
    return {"type": "struct", "name": name, "sizes": {"x86_64": size}, "members": {"x86_64": list(members)}}


def table(name, **constants):
    return {"type": "table", "name": name, "constants": [{"name": key, "value": value} for key, value in constants.items()]}


LAYOUTS = [
    struct("pair", 8, number("one", 0, 32), number("two", 4, 16, "pair_flags"), {"name": "three", "offset": 6, "number": {"bits": 16, "signed": False}}),
    struct("options", 16, number("size", 0, 32), number("idle", 4, 32, used_if="flags&POLL"), number("flags", 8, 64, "option_flags")),
    struct("perf_event_attr", 16, number("flags", 0, 64, "perf_attr_flags")),
    struct("address", 8, number("port", 0, 16, big_endian=True), number("ip", 4, 32, big_endian=True)),
    struct("nlmsghdr", 16, number("nlmsg_len", 0, 32), number("nlmsg_type", 4, 16)),
    struct("names", 12, {"name": "list", "offset": 0, "array": {"count": 3, "element": {"number": {"bits": 32, "signed": False}}}}),
    table("pair_flags", PAIR_A=1, PAIR_B=2, PAIR_BOTH=3, PAIR_NONE=0),
    table("option_flags", OPTION_POLL=1),
    table("perf_attr_flags", perf_event_attr_disabled=1, perf_event_attr_exclude_user=16, perf_event_attr_requested_skid_0=65536),
    table("one_table", SOCK_NONBLOCK=2048, S_IFREG=32768),
    table("other_table", O_NONBLOCK=2048, AMBIGUOUS=1),
    table("third_table", AMBIGUOUS=2),
    table("control", CTRL_ON=2, CTRL_OFF=1, CTRL_INHERIT=16),
]

ADDRESS = {"address": "0x1000"}
FLAGS = {"flags": ["PAIR_A", "PAIR_B"]}
PAIR = {"struct": "pair", "members": {"one": 5, "two": {"flags": ["PAIR_B"]}, "three": 7}, **ADDRESS}
ATTR = {"struct": "perf_event_attr", "members": {"flags": {"flags": ["perf_event_attr_disabled", "perf_event_attr_requested_skid_0"]}}}
PACKED = {"packed": "control", "members": {"now": {"constant": "CTRL_ON", "value": 2}, "next": {"constant": "CTRL_OFF", "value": 1},
                                           "flags": {"flags": ["CTRL_INHERIT"]}}, "raw": "0x16"}  # fmt: skip
NODES = {"name": "nmask"}
CUT = {"text": "abc", "cut": True}


def entry(value, **more):
    return {"entry": value, **more}


# The verdict, the argument in strace's text, and the argument in rtrace's JSON.
CASES = [
    # Numbers.
    ("equal", "5", entry(5)),
    ("different", "5", entry(6)),
    ("equal", "-1", entry(0xFFFFFFFF)),
    ("equal", "0xffffffffffffffff", entry({"hex": "0xffffffffffffffff"})),
    ("equal", "18446744073709551615", entry(-1)),
    ("different", "0xdeadc0de00000001", entry(1)),  # cut to 32 bits
    ("different", "1", entry("16058010441870278657")),
    ("equal", "1", entry({"constant": "ONE", "value": 1})),
    ("different", "2", entry({"constant": "ONE", "value": 1})),
    ("equal", "3", entry(FLAGS)),
    ("different", "1", entry(FLAGS)),
    ("unchecked", "3", entry({"flags": ["AMBIGUOUS"]})),
    ("unchecked", "3", entry({"flags": ["UNKNOWN"]})),
    ("different", "5", entry({"constant": None, "value": 7}, registers=["0x5"])),  # the register alone is no value
    ("different", "5", entry({"fd": 4, "file": {"pipe": 5}})),  # another number that belongs to the value
    ("equal", "5", {"unused": True, "registers": ["0x5"]}),
    ("different", "0", entry({"array": [], **ADDRESS})),  # an array in memory is no number
    ("different", "0", entry({"array": [{"pid": 0}], **ADDRESS})),
    ("equal", "0x1000", entry({"array": [], **ADDRESS})),
    ("equal", "0x1000", entry({"text": "abc", **ADDRESS})),
    ("different", "0x1001", entry({"text": "abc", **ADDRESS})),
    ("different", "NULL", entry({"text": "abc", **ADDRESS})),
    # Constants and flags.
    ("equal", "PAIR_A", entry({"flags": ["PAIR_A"]})),
    ("different", "PAIR_A", entry(1)),
    ("different", "PAIR_A", entry({"constant": "PAIR_B", "value": 2})),
    ("equal", "PAIR_A|PAIR_B", entry(FLAGS)),
    ("different", "PAIR_A", entry(FLAGS)),  # rtrace has a flag too many
    ("different", "PAIR_A|PAIR_B", entry({"flags": ["PAIR_A"]})),
    ("equal", "PAIR_A|PAIR_B", entry({"flags": ["PAIR_BOTH"]})),
    ("different", "PAIR_A", entry({"flags": ["PAIR_BOTH"]})),
    ("equal", "PAIR_A|0x2", entry(FLAGS)),
    ("different", "PAIR_A|0x4", entry(FLAGS)),
    ("equal", "PAIR_A|0x4", entry({"flags": ["PAIR_A"], "rest": "0x4"})),
    ("different", "PAIR_A", entry({"flags": ["PAIR_A"], "rest": "0x4"})),
    ("equal", "PAIR_A", entry({"flags": ["PAIR_NONE", "PAIR_A"]})),
    ("different", "SOCK_NONBLOCK", entry({"flags": ["O_NONBLOCK"]})),  # the same number, and another name
    ("unchecked", "PAIR_A|0x2", entry({"flags": ["PAIR_A", "UNKNOWN"]})),
    ("equal", "S_IFREG|0644", entry({"permissions": 420, "type": "S_IFREG"})),
    ("different", "S_IFREG|0644", entry({"permissions": 384, "type": "S_IFREG"})),
    ("different", "S_IFREG|0644", entry({"permissions": 420})),
    ("equal", "SIGCHLD", entry({"signal": 17, "name": "SIGCHLD"})),
    ("equal", "FUTEX_WAIT_PRIVATE", entry({"flags": ["FUTEX_WAIT", "FUTEX_PRIVATE_FLAG"]})),
    ("different", "FUTEX_WAIT_PRIVATE", entry({"flags": ["FUTEX_WAIT"]})),
    ("equal", "ONE or TWO", entry({"constant": "TWO", "value": 2})),
    ("different", "ONE or TWO", entry({"constant": "THREE", "value": 3})),
    # Numbers that are composed of values.
    ("equal", "CTRL_ON|CTRL_OFF<<2|CTRL_INHERIT", entry(PACKED)),
    ("different", "CTRL_ON|CTRL_OFF<<3|CTRL_INHERIT", entry(PACKED)),
    ("different", "CTRL_ON|CTRL_ON<<2|CTRL_INHERIT", entry(PACKED)),
    ("equal", "CTRL_ON|0xfe<<TAG_SHIFT", entry({"packed": "tags", "members": {"flags": {"flags": ["CTRL_ON"]}, "tags": {"hex": "0xfe"}}, "raw": "0x7f2"})),
    ("different", "CTRL_ON|0xff<<TAG_SHIFT", entry({"packed": "tags", "members": {"flags": {"flags": ["CTRL_ON"]}, "tags": {"hex": "0xfe"}}, "raw": "0x7f2"})),
    ("equal", "1<<CAP_A|1<<CAP_B", entry({"array": [{"constant": "CAP_A", "value": 1}, {"constant": "CAP_B", "value": 2}]})),
    ("different", "1<<CAP_A", entry({"array": [{"constant": "CAP_A", "value": 1}, {"constant": "CAP_B", "value": 2}]})),
    ("different", "1<<CAP_A|1<<CAP_B", entry({"array": [{"constant": "CAP_A", "value": 1}]})),
    ("equal", "0", entry({"array": []})),  # a set that was made of a number has no address
    ("different", "0", entry({"array": [{"constant": "CAP_A", "value": 1}]})),
    ("equal", "makedev(0x8, 0x1)", entry({"major": 8, "minor": 1})),
    ("different", "makedev(0x8, 0x1)", entry({"major": 1, "minor": 8})),
    # Strings.
    ("equal", '"abc"', entry({"text": "abc"})),
    ("different", '"abc"', entry({"text": "abcd"})),
    ("different", '"abc"', entry({"text": "ab"})),
    ("different", '"abcd"', entry(CUT)),
    ("equal", '"abc"...', entry({"text": "abcd"})),
    ("different", '"abcd"...', entry({"text": "abc"})),
    ("equal", '"\\x61\\x00\\xff"', entry({"text": {"bytes": "6100ff"}})),
    ("equal", '"lo\\0\\0"', entry({"text": "lo"})),
    ("different", '"lo\\0x"', entry({"text": "lo"})),
    ("different", '"lo"', entry({"text": "lo\0\0"})),
    ("different", '"lo\\0"', entry({"text": "lo", "wanted": 2})),  # bytes, and not a string
    ("equal", "02:03:04:05:06:07", entry({"mac": "02:03:04:05:06:07"})),
    ("different", "02:03:04:05:06:07", entry({"mac": "02:03:04:05:06:08"})),
    # Bytes that rtrace decodes.
    ("equal", '"\\5\\0\\0\\0\\2\\0\\7\\0"', entry(PAIR)),
    ("different", '"\\5\\0\\0\\0\\1\\0\\7\\0"', entry(PAIR)),
    ("different", '"\\5\\0\\0\\0\\2\\0\\7\\1"', entry(PAIR)),
    ("different", '"\\5\\0\\0\\0\\2\\0\\7\\0\\1"', entry(PAIR)),  # rtrace does not show the last byte
    ("different", '"\\5\\0\\0\\0\\2\\0"', entry(PAIR)),  # rtrace shows bytes that are not there
    ("equal", '"\\5\\0\\0\\0\\2\\0\\7\\0\\0"', entry(PAIR)),
    ("unchecked", '"\\5\\0\\0\\0\\2\\0\\7\\0"', entry({**PAIR, "members": {**PAIR["members"], "two": {"flags": ["UNKNOWN"]}}})),
    ("different", '"\\4\\0\\0\\0\\2\\0\\7\\0"', entry({**PAIR, "members": {**PAIR["members"], "two": {"flags": ["UNKNOWN"]}}})),
    ("unchecked", '"\\5\\0\\0\\0"', entry({"struct": "unknown", "members": {"one": 5}, **ADDRESS})),
    ("equal", '"\\1\\2\\0\\0\\x7f\\0\\0\\1"', entry({"struct": "address", "members": {"port": 258, "ip": {"ip": "127.0.0.1"}}, **ADDRESS})),
    ("different", '"\\2\\1\\0\\0\\x7f\\0\\0\\1"', entry({"struct": "address", "members": {"port": 258, "ip": {"ip": "127.0.0.1"}}, **ADDRESS})),
    ("equal", "[0x0100007f]", entry({"array": [{"ip": "127.0.0.1"}], **ADDRESS})),
    ("equal", "[1869505906]", entry({"text": "reno", **ADDRESS})),
    ("different", "[1869505905]", entry({"text": "reno", **ADDRESS})),
    ("equal", "[5]", entry(PAIR)),
    ("different", "[6]", entry(PAIR)),
    ("equal", '"\\5\\0"', entry(5)),
    ("different", '"\\6\\0"', entry(5)),
    # Structs.
    ("equal", "{one=5, two=PAIR_B}", entry(PAIR)),
    ("different", "{one=7}", entry(PAIR)),  # 7 is another member
    ("different", "{four=5}", entry(PAIR)),  # 5 is the value of a member with another name
    ("different", "{four=0}", entry(PAIR)),
    ("different", "{inner={one=6}}", entry({"struct": "outer", "members": {"inner": {"struct": "pair", "members": {"one": 5}}, "one": 6}})),
    ("different", "{one=5}", entry({"struct": "outer", "members": {"inner": {"struct": "pair", "members": {"one": 5}}}})),
    ("different", "{inner={one=5}}", entry({"struct": "outer", "members": {"other": {"struct": "pair", "members": {"one": 5}}}})),
    ("equal", "{union={one=5}}", entry(PAIR)),  # rtrace has the struct in place of the union
    ("equal", "{union={fd=5, union={one=6}}}", entry({"struct": "outer", "members": {"fd": 5, "union": {"struct": "pair", "members": {"one": 6}}}})),
    ("different", "{union={fd=5, union={one=5}}}", entry({"struct": "outer", "members": {"fd": 5, "union": {"struct": "pair", "members": {"one": 6}}}})),
    ("equal", "{dst=1}", entry({"struct": "insn", "members": {"regs": {"packed": "regs", "members": {"dst": 1}, "raw": "0x1"}}})),
    ("equal", "{sa_family=AF_INET}", entry({"struct": "sockaddr_in", "members": {"sin_family": {"constant": "AF_INET", "value": 2}}})),
    ("different", "{sa_family=AF_INET}", entry({"struct": "pair", "members": {"sin_family": {"constant": "AF_INET", "value": 2}}})),
    ("equal", "{idle=0}", entry({"struct": "options", "members": {"size": 8}})),  # its row says when it is used
    ("different", "{idle=1}", entry({"struct": "options", "members": {"size": 8}})),
    ("different", "{flags=0}", entry({"struct": "options", "members": {"size": 8}})),
    ("equal", "{one=5, __reserved=0}", entry(PAIR)),
    ("different", "{one=5, __reserved=1}", entry(PAIR)),
    ("equal", "{disabled=1, exclude_user=0, precise_ip=2}", entry(ATTR)),
    ("different", "{disabled=0}", entry(ATTR)),
    ("different", "{exclude_user=1}", entry(ATTR)),
    ("different", "{precise_ip=0}", entry(ATTR)),
    ("different", "{mmap=0}", entry(ATTR)),  # no constant of this name is known
    ("equal", "{two=}", entry({"struct": "pair", "members": {"two": {"flags": []}}})),
    ("different", "{two=}", entry(PAIR)),
    ("different", "{one=5}", entry({"address": "0x1000", "unread": True})),
    ("different", "{one=5}", entry({"text": "\5\0\0\0"})),
    ("equal", "{sigev_value={sival_int=7, sival_ptr=0x100000007}}", entry({"struct": "sigevent", "members": {"sigev_value": {"hex": "0x100000007"}}})),
    ("different", "{sigev_value={sival_int=8, sival_ptr=0x7}}", entry({"struct": "sigevent", "members": {"sigev_value": {"hex": "0x7"}}})),
    ("equal", "{WIFEXITED(s) && WEXITSTATUS(s) == 3}", entry({"wait_status": {"exited": 3, "raw": "0x300"}})),
    ("different", "{WIFEXITED(s) && WEXITSTATUS(s) == 3}", entry({"wait_status": {"exited": 4, "raw": "0x400"}})),
    ("different", "{WIFSIGNALED(s) && WTERMSIG(s) == SIGKILL}", entry({"wait_status": {"exited": 9, "raw": "0x900"}})),
    # Arrays and sets.
    ("equal", "[1, 2]", entry({"array": [1, 2]})),
    ("different", "[1, 2]", entry({"array": [2, 1]})),
    ("different", "[1, 2]", entry({"array": [1, 2, 3]})),
    ("different", "[1, 2, 3]", entry({"array": [1, 2], "more": True})),
    ("equal", "[1, 2, ...]", entry({"array": [1, 2, 3]})),
    ("different", "[]", entry({"array": [1]})),
    ("equal", "[]", {"unused": True, "registers": ["0x1000"]}),
    ("different", "[1]", {"unused": True, "registers": ["0x1000"]}),
    ("equal", "[5]", entry(5)),
    ("equal", "~[CHLD]", entry({"all_but": [{"signal": 17, "name": "SIGCHLD"}]})),
    ("different", "[CHLD]", entry({"all_but": [{"signal": 17, "name": "SIGCHLD"}]})),
    ("equal", "[0x5]", entry({"array": [0, 2]}, **NODES)),
    ("different", "[0x5]", entry({"array": [0, 1]}, **NODES)),
    ("equal", "[0]", entry({"array": []}, **NODES)),
    ("different", "[0]", entry({"array": []})),  # not a set of bits
    ("different", "[0x5]", entry({"array": [0, 2]})),
    ("equal", "[[VINTR]=3]", entry({"struct": "characters", "members": {"VINTR": 3}})),
    ("different", "[[VINTR]=3]", entry({"struct": "characters", "members": {"VQUIT": 3}})),
    ("equal", "[[FIRST-1]=3]", entry({"struct": "settings", "members": {"FIRST": 3}})),
    ("equal", "[[FIRST]=3, [1]=4]", entry({"struct": "settings", "members": {"FIRST": 3, "SECOND": 4}})),
    ("different", "[[FIRST]=3, [1]=3]", entry({"struct": "settings", "members": {"FIRST": 3, "SECOND": 4}})),
    ("different", "[[FIRST]=3, [2]=4]", entry({"struct": "settings", "members": {"FIRST": 3, "SECOND": 4}})),
    ("different", "[[FIRST-1]=3]", entry({"struct": "settings", "members": {"FIRST": 4}})),
    ("different", "[[VINTR]=3]", entry({"array": [3]})),  # without the name of the index
    # Values before and after.
    ("equal", "[16 => 4]", entry(16, exit=4)),
    ("different", "[16 => 4]", entry(4, exit=16)),
    ("different", "[16 => 4]", {"exit": 4}),
    ("equal", "[16 => 16]", entry(16)),
    ("different", "[16 => 4]", entry(16)),
    ("equal", "{one=1 => 2}", entry({"struct": "pair", "members": {"one": 1}}, exit={"struct": "pair", "members": {"one": 2}})),
    ("different", "{one=1 => 2}", entry({"address": "0x1000", "unread": True}, exit={"struct": "pair", "members": {"one": 2}})),
    # Messages.
    ("equal", "[{nlmsg_len=24}, {one=5}]", entry({"array": [{"struct": "nlmsghdr", "members": {"nlmsg_len": 24, "payload": PAIR}}]})),
    ("different", "[{nlmsg_len=24}, {one=6}]", entry({"array": [{"struct": "nlmsghdr", "members": {"nlmsg_len": 24, "payload": PAIR}}]})),
    ("different", "[{nlmsg_len=24}, {nlmsg_len=24}]", entry({"array": [{"struct": "nlmsghdr", "members": {"nlmsg_len": 24, "payload": PAIR}}]})),
    ("equal", '[{nlmsg_len=24}, "\\5\\0\\0\\0\\2\\0\\7\\0"]',
     entry({"array": [{"struct": "nlmsghdr", "members": {"nlmsg_len": 24, "payload": {**PAIR, "address": "0x1010"}}, **ADDRESS}]})),
    ("different", '[{nlmsg_len=24}, "\\5\\0\\0\\0\\2\\0\\6\\0"]',
     entry({"array": [{"struct": "nlmsghdr", "members": {"nlmsg_len": 24, "payload": {**PAIR, "address": "0x1010"}}, **ADDRESS}]})),
    ("unchecked", '[{nla_len=8}, if_nametoindex("eth0")]', entry({"struct": "nlattr", "members": {"nla_len": 8, "data": 2}})),
    ("equal", '[{nla_len=8}, if_nametoindex("lo")]', entry({"struct": "nlattr", "members": {"nla_len": 8, "data": 1}})),
    ("different", '[{nla_len=8}, if_nametoindex("lo")]', entry({"struct": "nlattr", "members": {"nla_len": 8, "data": 2}})),
]  # fmt: skip


def layouts():
    return Layouts(json.dumps(row) for row in LAYOUTS)


def parsed(argument):
    found, unreadable = calls([f"call({argument}) = 0"])
    assert not unreadable, unreadable
    return found[0].arguments[0][1]


class Verdicts(unittest.TestCase):
    def test_each_pair_has_its_verdict(self):
        comparer = Comparer(layouts())
        for expected, argument, known in CASES:
            with self.subTest(strace=argument, rtrace=known):
                verdict = comparer.compare_argument(parsed(argument), known)
                said = "different" if verdict.gaps else "unchecked" if verdict.unchecked else "equal"
                self.assertEqual(said, expected, verdict.gaps + verdict.unchecked)


class Exceptional(unittest.TestCase):
    ROW = "call options two=PAIR_A rtrace calls it PAIR_B"

    def compared(self, argument, known, row=ROW):
        comparison = Comparison(Exceptions([row]), layouts())
        found, _ = calls([f"call({argument}) = 0"])
        comparison.add_argument(found[0], found[0].arguments[0][1], {"name": "options", **entry(known)})
        return comparison

    def test_excuses_only_the_difference_that_it_states(self):
        self.assertEqual(self.compared("{one=5, two=PAIR_A}", PAIR).totals["excused"], 1)
        self.assertEqual(self.compared("{one=6, two=PAIR_A}", PAIR).totals["different"], 1)
        self.assertEqual(self.compared("{two=PAIR_NONE}", PAIR).totals["different"], 1)
        self.assertEqual(self.compared("{one=5, two=PAIR_A}", PAIR, "call other two=PAIR_A reason").totals["different"], 1)

    def test_is_an_error_if_nothing_differs_so(self):
        comparison = self.compared("{one=5, two=PAIR_B}", PAIR)
        self.assertEqual(comparison.totals["equal arguments"], 1)
        self.assertEqual(len(comparison.exceptions.unmatched()), 1)
        self.assertEqual(self.compared("{one=5, two=PAIR_A}", PAIR).exceptions.unmatched(), [])


if __name__ == "__main__":
    unittest.main()
