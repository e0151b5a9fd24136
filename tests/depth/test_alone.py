#!/usr/bin/env python3
"""Tests of alone.py and told.py: values of rtrace beside strace and alone, and what the comparison must say.

`run` runs this file before it compares anything: `test_alone.py -q`.
"""

import unittest

from alone import Comparison, Differences, Names, Run, align
from compare import Exceptions
from reencode import Layouts
from told import name_of, told

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
    return {"type": "call", "name": name, "tid": tid, "pid": tid, "exit": "returned", "return": {"raw": 0, "value": 0},
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


def write(text, fd=1, count=None, **more):
    memory = {"name": "buf", "entry": {"text": text, **HERE, **more}}
    return call("write", {"name": "fd", "entry": {"fd": fd}}, memory, **{"return": {"value": count or len(text)}})


def fact(output, *calls, events=()):
    """Returns whether rtrace agrees with all that the program says."""
    lines = [write(output)] if output else []
    return all(same for same, _ in told(output, Run([execve("/program"), *lines, *calls, *events])))


class Told(unittest.TestCase):
    def test_all_that_is_printed_is_what_rtrace_shows(self):
        run = [execve("/program"), write("one\n"), write("no\n", fd=2), write({"bytes": "74776f0a"}, count=4)]
        self.assertTrue(all(same for same, _ in told("one\ntwo\n", Run(run))))
        for output in ("one\n", "one\ntwo\nthree\n", "one\ntwoo\n", "one\ntwi\n", ""):
            self.assertFalse(all(same for same, _ in told(output, Run(run))), output)
        cut = [execve("/program"), write("o", count=4, cut=True), write("two\n")]
        self.assertTrue(all(same for same, _ in told("one\ntwo\n", Run(cut))))
        self.assertFalse(all(same for same, _ in told("ine\ntwo\n", Run(cut))))
        short = [execve("/program"), write("on", count=4), write("two\n")]
        self.assertFalse(all(same for same, _ in told("one\ntwo\n", Run(short))))
        unread = [execve("/program"), write("one\n"), call("write", {"name": "fd", "entry": {"fd": 1}})]
        self.assertFalse(all(same for same, _ in told("one\ntwo\n", Run(unread))))

    def test_values_of_a_call_are_those_that_are_printed(self):
        def sizes(*values):
            names = ("seccomp_notif", "seccomp_notif_resp", "seccomp_data")
            memory = {"struct": "sizes", "members": dict(zip(names, values)), **HERE}
            operation = {"name": "op", "entry": {"constant": "SECCOMP_GET_NOTIF_SIZES", "value": 3}}
            return call("seccomp", operation, {"name": "uargs", "exit": memory})

        self.assertTrue(fact("sizes 80 24 64\n", sizes(80, 24, 64)))
        self.assertFalse(fact("sizes 80 24 64\n", sizes(80, 24, 65)))
        self.assertFalse(fact("sizes 80 24 64\n", sizes(80, 24)))
        self.assertFalse(fact("sizes 80 24 64\n"))
        self.assertFalse(fact("sizes 80 24 64\n", call("seccomp", {"name": "uargs", "exit": UNREAD})))

    def test_elements_and_results_are_found(self):
        size = call("lsm_list_modules", {"name": "size", "exit": {"array": [32], **HERE}})
        self.assertTrue(fact("modules 32\n", size))
        self.assertFalse(fact("modules 33\n", size))
        program = call("bpf", {"name": "cmd", "entry": {"constant": "BPF_PROG_LOAD", "value": 5}})
        command = {"name": "cmd", "entry": {"constant": "BPF_OBJ_GET_INFO_BY_FD", "value": 15}}
        memory = {"struct": "attr", "members": {"bpf_fd": {"fd": 3}}, **HERE}
        of_it = call("bpf", command, {"name": "uattr", "exit": memory})
        loaded = {**program, "return": {"raw": 3, "value": {"fd": 3}}}
        self.assertTrue(fact("loaded 3\n", loaded, of_it))
        self.assertFalse(fact("loaded 4\n", loaded, of_it))

    def test_signals_are_those_that_are_caught(self):
        info = {"si_signo": 10, "si_code": {"constant": "SI_TKILL", "value": -6}, "si_pid": 1, "si_uid": 0}
        event = {"type": "signal", "tid": 1, "fate": "handled", "sender": {"tid": 2}, "siginfo": info}
        given = "given 10 code -6 pid 1 uid 0\n"
        self.assertTrue(fact("sender 2\n" + given, events=[event]))
        self.assertFalse(fact("sender 3\n" + given, events=[event]))
        self.assertFalse(fact(given.replace("-6", "0"), events=[event]))
        self.assertFalse(fact(given))
        self.assertFalse(fact(given, events=[event, event]))

    def test_entries_of_a_directory_are_all_there(self):
        entries = [{"struct": "dirent64", "members": {"d_name": {"text": name, **HERE}}} for name in (".", "seven")]
        listed = call("getdents64", {"name": "dirent", "exit": {"array": entries, **HERE}}, **{"return": {"value": 48}})
        self.assertTrue(fact("entries 48 . seven\n", listed))
        for output in ("entries 48 .\n", "entries 48 seven .\n", "entries 40 . seven\n"):
            self.assertFalse(fact(output, listed), output)

    def test_calls_have_the_paths_that_are_printed(self):
        def opened(number, path):
            directory = {"name": "dfd", "entry": {"fd": number}}
            return call("openat", directory, {"name": "filename", "entry": path})

        self.assertTrue(fact("named 5 2f61\n", opened(5, {"text": "/a", **HERE})))
        self.assertFalse(fact("named 5 2f61\n", opened(5, {"text": "/b", **HERE})))
        self.assertFalse(fact("named 5 2f61\n", opened(5, UNREAD)))
        self.assertFalse(fact("named 5 2f61\n", opened(6, {"text": "/a", **HERE})))
        names = [{"name": f"{name}name", "entry": {"text": f"/{name}", **HERE}} for name in ("old", "new")]
        renamed = call("renameat2", {"name": "olddfd", "entry": {"fd": 5}}, *names)
        self.assertTrue(fact("named 5 2f6f6c64 2f6e6577\n", renamed))
        self.assertFalse(fact("named 5 2f6f6c64 2f6e6578\n", renamed))

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
