#!/usr/bin/env python3
"""Tests of alone.py: values of rtrace beside strace and alone, and what the comparison must say.

`run` runs this file before it compares anything: `test_alone.py -q`.
"""

import unittest

from alone import Comparison, Differences, Names, Run, align
from compare import Exceptions
from reencode import Layouts

HERE, THERE = {"address": "0x7f0000001000"}, {"address": "0x7fff00002000"}
UNREAD = {**THERE, "unread": True}
TEXT = {"text": "abc", **HERE}
PAIR = {"struct": "pair", "members": {"one": 5, "two": {"flags": ["TWO"]}}, **HERE}


def pair(**members):
    return {**PAIR, "members": {**PAIR["members"], **members}, **THERE}


def file(**file):
    return {"fd": 3, "file": file}


def socket(**socket):
    return file(socket={"inode": 71, "protocol": "TCP", **socket})


# The verdict, the value beside strace, and the value alone. The tasks 20 and 7 beside strace are 30 and 1007 alone, the
# inode 71 is 81, and the port 40001 is 50001.
CASES = [
    # Memory.
    ("equal", TEXT, {"text": "abc", **THERE}),
    ("unreadable", TEXT, THERE),
    ("unreadable", TEXT, UNREAD),
    ("unreadable", PAIR, UNREAD),
    ("unreadable", {"array": [1], **HERE}, UNREAD),
    ("unreadable", {"array": [TEXT, TEXT], **HERE}, {"array": [TEXT, UNREAD], **HERE}),
    ("unreadable", PAIR | {"members": {"one": TEXT}}, PAIR | {"members": {"one": UNREAD}}),
    ("different", TEXT, {"address": "0x0"}),  # another pointer, and not memory that was not read
    ("different", UNREAD, TEXT),
    ("different", TEXT, {"text": "abd", **HERE}),
    ("different", TEXT, {"text": "ab", **HERE}),
    ("different", TEXT, {"text": "abc", "cut": True, **HERE}),
    ("different", TEXT, {"text": {"bytes": "616263"}, "wanted": 3, **HERE}),
    ("different", {"text": {"bytes": "ff00"}, **HERE}, {"text": {"bytes": "ff01"}, **HERE}),
    ("equal", PAIR, pair()),
    ("different", PAIR, pair(one=6)),
    ("different", PAIR, pair(two={"flags": []})),
    ("different", PAIR, pair(three=7)),
    ("different", PAIR, {**PAIR, "members": {"one": 5}}),
    ("different", PAIR, {**PAIR, "more": True}),
    ("different", PAIR, {**PAIR, "struct": "options"}),
    ("different", {"array": [1, 2], **HERE}, {"array": [2, 1], **HERE}),
    ("different", {"array": [1, 2], **HERE}, {"array": [1], "more": True, **HERE}),
    # Numbers and names of constants.
    ("equal", 5, 5),
    ("different", 5, 6),
    ("different", 5, {"constant": "FIVE", "value": 5}),
    ("different", 1, True),
    ("different", {"constant": "ONE", "value": 1}, {"constant": "TWO", "value": 1}),
    ("different", None, 5),
    # Addresses.
    ("equal", HERE, THERE),
    ("different", HERE, UNREAD),
    ("different", HERE, {"address": "0x0"}),
    ("different", {"address": "0x1234"}, {"address": "0x1238"}),
    ("different", {"address": "0x70000000"}, HERE),
    ("different", {"hex": "0x7f0000001000"}, {"hex": "0x7fff00002000"}),  # rtrace does not say that this is an address
    # Names that the kernel chooses.
    ("equal", {"pid": 20, "comm": "workload"}, {"pid": 30, "comm": "workload"}),
    ("different", {"pid": 20, "comm": "workload"}, {"pid": 30, "comm": "other"}),
    ("different", {"pid": 20}, {"pid": 31}),  # another task
    ("different", {"pid": 21}, {"pid": 30}),
    ("different", {"pid": 20}, {"pid": 20}),
    ("different", {"pid": 0}, {"pid": 30}),
    ("different", {"pid": -1}, {"pid": 30}),
    ("different", {"pid": 0}, {"pid": 6}),
    ("equal", {"pid": 5}, {"pid": 6}),  # a task of another program
    ("equal", file(pipe=71), file(pipe=81)),
    ("different", file(pipe=71), file(pipe=82)),
    ("different", file(pipe=71), file(pipe=71)),
    ("equal", socket(peer=72), {"fd": 3, "file": {"socket": {"inode": 81, "protocol": "TCP", "peer": 82}}}),
    ("different", socket(peer=72), {"fd": 3, "file": {"socket": {"inode": 81, "protocol": "TCP", "peer": 81}}}),
    ("different", file(pipe=71), {"fd": 4, "file": {"pipe": 81}}),
    ("equal", {"ip": "127.0.0.1", "port": 40001}, {"ip": "127.0.0.1", "port": 50001}),
    ("different", {"ip": "127.0.0.1", "port": 40001}, {"ip": "127.0.0.1", "port": 50002}),
    ("different", {"ip": "127.0.0.1", "port": 80}, {"ip": "127.0.0.1", "port": 81}),  # nobody chooses this at random
    ("different", {"ip": "127.0.0.1", "port": 40001}, {"ip": "127.0.0.2", "port": 50001}),
    ("equal", pair(one=20), pair(one=30)),  # a number that is the ID of a task
    ("different", pair(one=20), pair(one=31)),
    ("different", {"fd": 20}, {"fd": 30}),  # a descriptor is the same in both runs
    ("equal", file(path="/proc/20/maps"), file(path="/proc/30/maps")),
    ("different", file(path="/proc/20/maps"), file(path="/proc/31/maps")),
    ("different", file(path="/proc/20/maps"), file(path="/proc/30/stat")),
    ("equal", {"text": "a 20, b 71", **HERE}, {"text": "a 30, b 81", **HERE}),
    ("different", {"text": "a 20, b 71", **HERE}, {"text": "a 30, b 82", **HERE}),
    ("different", {"text": "abc", **HERE}, {"text": "abc7", **HERE}),
    ("different", {"text": "a 200", **HERE}, {"text": "a 300", **HERE}),  # the ID is only a part of the number
    ("equal", {"text": "7", "wanted": 4, **HERE}, {"text": "1007", "wanted": 7, **HERE}),  # three more digits
    ("different", {"text": "7", "wanted": 4, **HERE}, {"text": "1007", "wanted": 4, **HERE}),
    # The sides of an argument.
    ("different", {"entry": TEXT}, {}),
    ("different", {}, {"exit": TEXT}),
]  # fmt: skip


def names():
    known = Names()
    for kind, beside, alone in (("task", 20, 30), ("task", 7, 1007), ("inode", 71, 81), ("port", 40001, 50001)):
        known.same(kind, beside, alone)
    return known


def call(name, *arguments, tid=1, **more):
    return {"type": "call", "name": name, "number": 0, "tid": tid, "pid": tid, "exit": "returned", "return": {"raw": 0, "value": 0},
            "time": {"monotonic": "1"}, "arguments": list(arguments), **more}  # fmt: skip


def execve(path, tid=1):
    return call("execve", {"name": "filename", "entry": {"text": path, **HERE}}, tid=tid, executes=True)


def fork(child, tid=1):
    return call("clone", tid=tid, **{"return": {"raw": child, "value": {"pid": child}}})


def failed(name, error, *arguments):
    return call(name, *arguments, **{"return": {"raw": -1, "errno": 1, "name": error}})


def number(value):
    return {"name": "number", "entry": value}


def compared(beside, alone, *rows):
    comparison = Comparison(Exceptions(rows), Layouts())
    comparison.add([execve("/program"), *beside], [execve("/program"), *alone], "")
    return comparison


class Values(unittest.TestCase):
    def test_each_pair_has_its_verdict(self):
        for expected, beside, alone in CASES:
            with self.subTest(beside=beside, alone=alone):
                differences = Differences(names())
                differences.compare(beside, alone, "value")
                kinds = {kind for kind, _ in differences.found}
                said = "unreadable" if "unreadable" in kinds else "different" if kinds else "equal"
                self.assertEqual(said, expected, differences.found)


    def test_what_is_missing_has_a_kind_of_its_own(self):
        for expected, beside, alone in (
            ("unreadable", TEXT, HERE),
            ("unreadable beside", HERE, TEXT),
            ("less alone", TEXT, {**TEXT, "text": "ab"}),
            ("less beside", {**TEXT, "text": "ab"}, TEXT),
            ("less alone", PAIR, {**PAIR, "members": {"one": 5}}),
            ("less beside", {"array": [1]}, {"array": [1, 2]}),
            ("value", TEXT, {**TEXT, "text": "xyz"}),
        ):
            with self.subTest(beside=beside, alone=alone):
                differences = Differences(names())
                differences.compare(beside, alone, "value")
                self.assertEqual([kind for kind, _ in differences.found], [expected])


class Arguments(unittest.TestCase):
    def verdict(self, beside, alone, **more):
        comparison = Comparison(Exceptions(), Layouts())
        comparison.add_argument("call", {"name": "memory", **beside}, {"name": "memory", **alone}, Names(), **more)
        return next(name for name in ("equal", "unreadable", "different") if comparison.totals[name])

    def test_entry_and_exit_are_compared_apart(self):
        self.assertEqual(self.verdict({"entry": 1, "exit": 2}, {"entry": 1, "exit": 2}), "equal")
        self.assertEqual(self.verdict({"entry": 1, "exit": 2}, {"entry": 2, "exit": 1}), "different")
        self.assertEqual(self.verdict({"entry": HERE, "exit": TEXT}, {"entry": HERE, "exit": UNREAD}), "unreadable")
        self.assertEqual(self.verdict({"entry": HERE, "exit": TEXT}, {"entry": TEXT, "exit": HERE}), "unreadable")
        self.assertEqual(self.verdict({"entry": HERE}, {"entry": HERE, "exit": TEXT}), "different")

    def test_registers_of_unused_arguments_do_not_count(self):
        unused = {"unused": True, "registers": ["0x5"]}
        self.assertEqual(self.verdict(unused, {**unused, "registers": ["0x6"]}), "equal")
        self.assertEqual(self.verdict(unused, {"registers": ["0x5"], "entry": 5}), "different")
        self.assertEqual(self.verdict(unused, {"registers": ["0x5"]}), "different")

    def test_only_entries_of_calls_with_other_results_are_compared(self):
        written, other = ({"name": "memory", "entry": 1, "exit": value} for value in (2, 3))
        self.assertEqual(compared([call("read", written)], [call("read", other)]).totals["different"], 1)
        comparison = compared([call("read", written)], [failed("read", "EINTR", other)])
        self.assertEqual(comparison.totals["different"], 0)
        self.assertEqual(list(comparison.kinds), [("result", "read", "")])

    def test_calls_with_other_arguments_are_other_calls(self):
        comparison = compared([call("read", number(1), number(2))], [call("read", number(1))])
        self.assertEqual(list(comparison.kinds), [("only beside strace", "read", ""), ("only alone", "read", "")])


class Calls(unittest.TestCase):
    def paired(self, beside, alone):
        text = [[(name, number(value)) for name, value in calls] for calls in (beside, alone)]
        pairs = align(*([call(*part) for part in calls] for calls in text))
        return [" ".join(map(self.shown, sides)) for sides in pairs]

    def shown(self, side):
        return f"{side['name']}{side['arguments'][0]['entry']}" if side else "-"

    def test_calls_that_are_alike_are_paired_first(self):
        found = self.paired([("read", 1), ("read", 2)], [("read", 0), ("read", 1), ("read", 2)])
        self.assertEqual(found, ["- read0", "read1 read1", "read2 read2"])
        beside = [call("read", number({"pid": 20, **TEXT})), call("read", number(PAIR))]
        values = [UNREAD, {"pid": 30, **TEXT, **THERE}, pair()]
        alone = [call("read", number(value)) for value in values]
        self.assertEqual(list(align(beside, alone)), list(zip([None, *beside], alone)))

    def test_other_calls_are_paired_by_their_names_and_arguments(self):
        found = self.paired([("read", 1), ("open", 7), ("write", 2)], [("read", 1), ("open", 8), ("write", 2)])
        self.assertEqual(found, ["read1 read1", "open7 open8", "write2 write2"])
        found = self.paired([("read", 1), ("open", 7)], [("read", 1), ("close", 8)])
        self.assertEqual(found, ["read1 read1", "open7 -", "- close8"])

    def test_calls_of_one_run_only_are_differences(self):
        comparison = compared([call("read"), call("open")], [call("read"), call("close")])
        self.assertEqual(list(comparison.kinds), [("only beside strace", "open", ""), ("only alone", "close", "")])
        self.assertEqual([comparison.totals[f"calls {where} only"] for where in ("beside strace", "alone")], [1, 1])

    def test_calls_of_strace_are_left_aside(self):
        tracer = [execve("/strace", tid=5), fork(6, tid=5), call("ptrace", tid=6), fork(1, tid=5)]
        beside = [*tracer, call("ptrace", tid=1), execve("/program"), call("wait4", tid=5), call("read")]
        comparison = Comparison(Exceptions(), Layouts())
        comparison.add(beside, [execve("/program"), call("read")], "")
        self.assertEqual((comparison.totals["calls"], len(comparison.kinds)), (2, 0), comparison.kinds)
        comparison = Comparison(Exceptions(), Layouts())
        comparison.add([*beside, call("open")], [execve("/program"), call("read")], "")
        self.assertEqual(list(comparison.kinds), [("only beside strace", "open", "")])

    def test_tasks_are_paired_by_who_created_them(self):
        run = Run([execve("/program"), fork(4), fork(3), fork(9, tid=3), call("read", tid=9), call("read", tid=8)])
        self.assertEqual(run.tasks(), {(): 1, (0,): 4, (1,): 3, (1, 0): 9, ("?", 0): 8})
        # The second child makes its call first in one of the runs.
        beside = [fork(4), fork(3), call("read", number(7), tid=3), call("read", number(6), tid=4)]
        alone = [fork(14), fork(13), call("read", number(6), tid=14), call("read", number(7), tid=13)]
        self.assertEqual(compared(beside, alone).totals["equal"], 3)
        self.assertEqual(compared(beside, [fork(13), fork(14), *alone[2:]]).totals["different"], 2)

    def test_tasks_are_names(self):
        task = [call("kill", number({"pid": tid})) for tid in (4, 3)]
        self.assertEqual(compared([fork(4), task[0]], [fork(3), task[1]]).totals["different"], 0)
        self.assertEqual(compared([fork(4), task[0]], [fork(3), task[0]]).totals["different"], 1)

    def test_names_are_known_before_their_descriptors_are_used(self):
        memory = [{"text": f"pipe:[{inode}]", **HERE} for inode in (71, 81, 82)]
        text = [call("readlink", {"name": "buf", "exit": value}) for value in memory]
        pipe = [call("close", number(file(pipe=inode))) for inode in (71, 81)]
        self.assertEqual(compared([text[0], pipe[0]], [text[1], pipe[1]]).totals["different"], 0)
        self.assertEqual(compared([text[0], pipe[0]], [text[2], pipe[1]]).totals["different"], 1)


class Exceptional(unittest.TestCase):
    ROW = "read number entry=1,?alone?* it depends on the run"

    def compared(self, beside, alone, row=ROW):
        return compared([call("read", number(beside))], [call("read", number(alone))], row)

    def test_excuses_only_the_difference_that_it_states(self):
        self.assertEqual(self.compared(1, 2).totals["excused"], 1)
        self.assertEqual(self.compared(2, 1).totals["different"], 1)
        self.assertEqual(self.compared(1, 2, "read other entry=1* reason").totals["different"], 1)
        comparison = compared([call("read")], [], "read - only?beside* reason")
        self.assertFalse(comparison.kinds)
        self.assertTrue(compared([], [call("read")], "read - only?beside* reason").kinds)
        rows = ["read - only?beside*:?[[]7]?=?returned reason", "read - only?beside*:?[[]8]* reason"]
        self.assertFalse(compared([call("read", number(7))], [], rows[0]).kinds)
        self.assertTrue(compared([call("read", number(7))], [], rows[1]).kinds)
        comparison = compared([call("read")], [failed("read", "EINTR")], "read - result=returned,?alone?EINTR reason")
        self.assertFalse(comparison.kinds)

    def test_what_is_missing_is_not_excused_as_another_value(self):
        row = "read number entry=* it depends on the run"
        self.assertEqual(self.compared(TEXT, {**TEXT, "text": "abd"}, row).totals["excused"], 1)
        self.assertEqual(self.compared(TEXT, UNREAD, row).totals["unreadable"], 1)
        self.assertEqual(self.compared(TEXT, {**TEXT, "text": "ab"}, row).totals["different"], 1)
        self.assertEqual(self.compared(TEXT, UNREAD, "read number unreadable:?entry=* reason").totals["excused"], 1)

    def report(self, comparison):
        from contextlib import redirect_stdout
        from io import StringIO

        with redirect_stdout(StringIO()):
            return comparison.report(1, True)

    def test_is_an_error_if_nothing_differs_so(self):
        self.assertTrue(self.report(self.compared(1, 2)))
        self.assertFalse(self.report(self.compared(1, 1)))
        self.assertTrue(self.report(self.compared(1, 1, "read number entry=1* sometimes it depends on the run")))
        self.assertFalse(self.report(self.compared(1, 2, "read other * reason")))


if __name__ == "__main__":
    unittest.main()
