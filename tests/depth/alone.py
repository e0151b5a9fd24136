#!/usr/bin/env python3
"""Compares what rtrace alone knows about the calls of a program with what it knows beside strace.

usage: alone.py [BESIDE_JSON ALONE_JSON ALONE_OUTPUT]... --layouts FILE [--exceptions FILE [--some]] [--examples N]

BESIDE_JSON is what `rtrace --json --full` says about a scene while strace traces it, and ALONE_JSON what it says about
the same scene at full speed. ALONE_OUTPUT is what the program printed then, and told.py compares it with ALONE_JSON.
`rtrace list --json`, with `tables` and with `syscalls`, prints the layouts.

The tasks of the two runs are paired by who created them, and the calls of a task by their names and their entries. An
argument has a value when its call is entered and another one when it returns, and these are compared apart. It is

  equal       the values are the same at each place
  excused     all that differs matches rows of the exceptions, which say what depends on the run
  unreadable  the memory was decoded beside strace, and its address is all that is known alone
  different   anything else

Three kinds of numbers differ between two runs of a program, and the JSON says which these are:

  addresses   Two addresses are the same if both are above 4 GiB, where the kernel chooses them at random. Others are
              the program's own, and must have the same number. 0 is one of these.
  names       The IDs of tasks, the inodes of files without a path, and the ports that the kernel chooses are the same
              if each of one run always stands for the same one of the other. So are other numbers, and those in texts,
              that are such an ID, inode or port in both runs. Descriptors must have the same numbers.
  registers   An argument that the kernel does not use is the same if it is not used in both runs.

Each line of the exceptions is `SYSCALL ARGUMENT PATTERN REASON...`. All but the reason are globs, and the pattern is
matched with each difference as this script prints it. A call that is in one run only, or that has another result, has
the argument `-`. What the program told begins with `told: `. A row that matches nothing is an error, unless its reason
begins with `sometimes` (not every run has this difference), or --some says that these are not all traces. The exit
status is 0 if nothing is unreadable or different, 1 if something is, and 2 for a usage error.
"""

import argparse
import json
import re
import sys
from collections import Counter, defaultdict
from difflib import SequenceMatcher

from compare import Exceptions
from reencode import Layouts
from told import told

# Addresses that the kernel chooses are above this one, and those that a program chooses itself are below it.
CHOSEN_BY_THE_KERNEL = 1 << 32
# The first port that the kernel chooses itself, if nobody has changed ip_local_port_range.
FIRST_FREE_PORT = 32768
# The members of the JSON that have numbers of these kinds.
NAMES = {"pid": "task", "here": "task", "pidfd": "task", "inode": "inode", "pipe": "inode", "peer": "inode"}
PORTS = ("port", "sin_port", "sin6_port")
NUMBER = re.compile("([0-9]+)")
CREATE_TASKS = ("clone", "clone3", "fork", "vfork")


class Run:
    """The calls of one program, by task, from its execve on."""

    def __init__(self, events, program=None):
        calls = [event for event in events if event.get("type") == "call"]
        begin = next((at for at, call in enumerate(calls) if is_start(call, program)), None)
        if begin is None:
            sys.exit(f"alone.py: no call in the trace starts {program or 'a program'}")
        self.program = executed(calls[begin])
        self.first = calls[begin]["tid"]
        # strace and the children with which it tries out ptrace have made calls before.
        others = {call["tid"] for call in calls[:begin]} - {self.first}
        self.events = [event for event in events if event.get("tid") not in others]
        self.calls = defaultdict(list)
        for call in calls[begin:]:
            if call["tid"] not in others:
                self.calls[call["tid"]].append(call)

    def tasks(self):
        """Returns the tasks by their place in the tree: (0,) is the first child of the first task, which is ()."""
        places, rest = {(): self.first}, [tid for tid in self.calls if tid != self.first]
        todo = [()]
        while todo:
            place = todo.pop()
            for at, tid in enumerate(created(self.calls[places[place]])):
                places[*place, at] = tid
                todo.append((*place, at))
        known = set(places.values())
        # Tasks whose creation is not in the trace, in the order of their first calls.
        places.update({("?", at): tid for at, tid in enumerate(tid for tid in rest if tid not in known)})
        return places


def executed(call):
    """Returns the path of a successful execve."""
    if call["name"] == "execve" and call.get("executes") and call["arguments"]:
        return call["arguments"][0].get("entry", {}).get("text")
    return None


def is_start(call, program):
    """Whether this call starts the program; without a name, this is the first program that is started."""
    path = executed(call)
    return path is not None and program in (None, path)


def created(calls):
    """Returns the IDs of the tasks that these calls created, in order."""
    found = [call["return"].get("value") for call in calls if call["name"] in CREATE_TASKS and "return" in call]
    return [value.get("here", value["pid"]) for value in found if isinstance(value, dict) and value.get("pid", 0) > 0]


def read_events(path):
    with open(path, encoding="utf-8", errors="surrogateescape") as lines:
        return [json.loads(line) for line in lines]


def is_address(value):
    return isinstance(value, dict) and "address" in value and set(value) <= {"address", "unread"}


def is_contents(value):
    return isinstance(value, dict) and "address" in value and not is_address(value)


class Names:
    """The numbers that name the same thing in the two runs."""

    def __init__(self):
        self.forward, self.back = {}, {}

    def same(self, kind, beside, alone):
        """Whether the two name the same thing, which they do from now on if nothing else has these names."""
        if min(beside, alone) <= 0:
            return beside == alone
        one = self.forward.setdefault((kind, beside), alone)
        other = self.back.setdefault((kind, alone), beside)
        return (one, other) == (alone, beside)

    def same_text(self, beside, alone):
        """Compares texts; a number of one may be the name of what the number of the other names."""
        parts = NUMBER.split(beside), NUMBER.split(alone)
        return len(parts[0]) == len(parts[1]) and all(
            one == other or NUMBER.fullmatch(one) and NUMBER.fullmatch(other) and self.is_known(int(one), int(other))
            for one, other in zip(*parts)
        )

    def is_known(self, beside, alone):
        return any(self.forward.get((kind, beside)) == alone for kind in ("task", "inode", "port"))


class Differences:
    """What differs between two values: the kind, and where and how."""

    def __init__(self, names):
        self.names, self.found = names, []

    def add(self, kind, place, beside, alone):
        gap = f"{place.removeprefix('.')}={short(beside)}, alone {short(alone)}"
        # An exception for a value does not excuse that it is missing.
        self.found.append((kind, gap if kind == "value" else f"{kind}: {gap}"))

    def compare(self, beside, alone, place):
        if isinstance(beside, dict) and isinstance(alone, dict):
            self.compare_objects(beside, alone, place)
        elif isinstance(beside, list) and isinstance(alone, list):
            if len(beside) != len(alone):
                self.add(shorter(len(beside), len(alone)), place, beside, alone)
                return
            for at, (one, other) in enumerate(zip(beside, alone)):
                self.compare(one, other, f"{place}[{at}]")
        elif isinstance(beside, str) and isinstance(alone, str):
            if not self.names.same_text(beside, alone):
                self.add("value", place, beside, alone)
        elif type(beside) is not type(alone) or beside != alone:
            self.add("value", place, beside, alone)

    def compare_objects(self, beside, alone, place):
        if is_contents(beside) and is_address(alone) and int(alone["address"], 16):
            self.add("unreadable", place, beside, alone)
        elif is_address(beside) and is_contents(alone):
            self.add("unreadable beside", place, beside, alone)
        elif "text" in beside and "text" in alone:
            self.compare_texts(beside, alone, place)
        else:
            for name in [*beside, *(name for name in alone if name not in beside)]:
                self.compare_members(name, beside, alone, place)

    def compare_members(self, name, beside, alone, place):
        inner = place if name in ("members", "array") else f"{place}.{name}"
        if name not in beside or name not in alone:
            self.add(shorter(name in beside, name in alone), inner, beside.get(name), alone.get(name))
            return
        one, other = beside[name], alone[name]
        if name == "address":
            numbers = int(one, 16), int(other, 16)
            same = one == other or min(numbers) >= CHOSEN_BY_THE_KERNEL
        elif type(one) is type(other) is int:
            same = self.is_name(name, one, other) or name not in NAMES and one == other
        else:
            self.compare(one, other, inner)
            return
        if not same:
            self.add("value", inner, one, other)

    def is_name(self, name, beside, alone):
        """Whether different numbers in a member of this name are names of the same thing."""
        if name in NAMES:
            return self.names.same(NAMES[name], beside, alone)
        if name in PORTS and min(beside, alone) >= FIRST_FREE_PORT:
            return self.names.same("port", beside, alone)
        return name != "fd" and self.names.is_known(beside, alone)

    def compare_texts(self, beside, alone, place):
        one, other = text_of(beside["text"]), text_of(alone["text"])
        # A name may have more digits in one of the runs.
        left_out = ("text", "address")
        rest = [{key: side[key] for key in side if key not in left_out} for side in (beside, alone)]
        for side, text in zip(rest, (one, other)):
            if "wanted" in side:
                side["wanted"] -= len(text)
        if self.names.same_text(one, other) and rest[0] == rest[1]:
            return
        begins = one.startswith(other) or other.startswith(one)
        self.add(shorter(len(one), len(other)) if begins else "value", place, beside, alone)


def text_of(text):
    """Returns text, or bytes as text of as many characters."""
    return bytes.fromhex(text["bytes"]).decode("latin-1") if isinstance(text, dict) else text


def shorter(beside, alone):
    return "value" if beside == alone else "less alone" if beside > alone else "less beside"


def short(value):
    """Returns how a value is written in a list of differences."""
    if isinstance(value, dict) and "text" in value:
        flags = "".join(f" {key}={value[key]}" for key in value if key not in ("text", "address"))
        return json.dumps(text_of(value["text"]))[:300] + flags
    return json.dumps(value)[:300]


def result(call):
    """Returns the name of the error of a call, or `returned`, or why there is no result."""
    returned = call.get("return")
    if returned is None:
        return call["exit"]
    return returned.get("name", str(returned["errno"])) if "errno" in returned else "returned"


def skeleton(value):
    """Returns a value without the numbers that depend on the run."""
    if isinstance(value, dict):
        return tuple(
            (key, skeleton(part)) for key, part in sorted(value.items()) if key not in ("address", "port", *NAMES)
        )
    if isinstance(value, list):
        return tuple(map(skeleton, value))
    return value


def detail(call):
    entries = [skeleton(argument.get("entry")) for argument in call["arguments"] or []]
    return call["name"], result(call), tuple(entries)


def shape(call):
    return call["name"], *(argument.get("name") for argument in call["arguments"] or [])


def align(beside, alone):
    """Pairs the calls of one task in both runs: those that are alike first, then others with the same arguments."""
    for one, other in blocks([detail(call) for call in beside], [detail(call) for call in alone]):
        if one and other and len(one) == len(other) and is_pair(beside[one[0]], alone[other[0]]):
            yield from ((beside[left], alone[right]) for left, right in zip(one, other))
            continue
        names = [[shape(calls[at]) for at in part] for calls, part in ((beside, one), (alone, other))]
        for left, right in blocks(*names):
            if left and right and names[0][left[0]] == names[1][right[0]]:
                yield from ((beside[one[i]], alone[other[j]]) for i, j in zip(left, right))
            else:
                yield from ((beside[one[i]], None) for i in left)
                yield from ((None, alone[other[j]]) for j in right)


def is_pair(one, other):
    return detail(one) == detail(other)


def blocks(one, other):
    """Returns the ranges of two lists that match, and those that do not."""
    for _, i, j, m, n in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        yield range(i, j), range(m, n)


class Comparison:
    """The sums of all compared runs."""

    def __init__(self, exceptions, layouts):
        self.exceptions, self.layouts = exceptions, layouts
        calls = ("calls", "calls beside strace only", "calls alone only")
        arguments = ("arguments", "equal", "excused", "unreadable", "different")
        told = ("told", "told equal", "told unchecked", "told excused", "told otherwise")
        self.totals = Counter({name: 0 for name in (*calls, *arguments, *told)})
        self.kinds, self.examples = Counter(), defaultdict(list)

    def differs(self, key, example):
        self.kinds[key] += 1
        self.examples[key].append(example)

    def add(self, beside, alone, output):
        """Adds a scene, of which these are the events of both runs, and what the program printed alone."""
        one, other = (Run(events, Run(alone).program) for events in (beside, alone))
        names, tasks = Names(), (one.tasks(), other.tasks())
        for place in tasks[0].keys() & tasks[1].keys():
            names.same("task", tasks[0][place], tasks[1][place])
        pairs = []
        for place in [*tasks[0], *(place for place in tasks[1] if place not in tasks[0])]:
            pairs += align(*(run.calls.get(task.get(place), []) for run, task in zip((one, other), tasks)))
        # A text may have the name of something before a descriptor of it is in a call.
        for left, right in pairs:
            if left and right:
                Differences(names).compare(left["arguments"], right["arguments"], "")
        for pair in pairs:
            self.add_calls(*pair, names)
        for verdict, call, argument, sentence in told(output, other, self.layouts):
            self.add_told(verdict, call, argument, sentence)

    def add_told(self, verdict, call, argument, sentence):
        """Counts what the program told. What cannot be checked is printed, and is no failure."""
        self.totals["told"] += 1
        if verdict == "different":
            excused = self.exceptions.excuse(call, argument, [f"told: {sentence}"])
            verdict = "excused" if excused else "otherwise"
        self.totals[f"told {verdict}"] += 1
        if verdict in ("otherwise", "unchecked"):
            self.differs((f"told {verdict}", call, argument), sentence[:900])

    def add_calls(self, beside, alone, names):
        if beside is None or alone is None:
            call, where = (beside, "beside strace") if alone is None else (alone, "alone")
            self.totals[f"calls {where} only"] += 1
            entries = [argument.get("entry") for argument in call["arguments"] or []]
            gap = f"only {where}: {json.dumps(entries)[:600]} = {result(call)}"
            if not self.exceptions.excuse(call["name"], "-", [gap]):
                self.differs((f"only {where}", call["name"], ""), gap)
            return
        self.totals["calls"] += 1
        results = result(beside), result(alone)
        if results[0] != results[1]:
            gap = f"result={results[0]}, alone {results[1]}"
            if not self.exceptions.excuse(beside["name"], "-", [gap]):
                self.differs(("result", beside["name"], ""), gap)
        # Calls with different results leave different things in memory.
        sides = ("entry", "exit") if results[0] == results[1] else ("entry",)
        for one, other in zip(beside["arguments"] or [], alone["arguments"] or []):
            self.add_argument(beside["name"], one, other, names, sides)

    def add_argument(self, call, beside, alone, names, sides=("entry", "exit")):
        """Counts an argument."""
        self.totals["arguments"] += 1
        differences = Differences(names)
        if beside.get("unused") != alone.get("unused"):
            differences.add("value", "unused", beside.get("unused"), alone.get("unused"))
        for side in sides:
            if side in beside or side in alone:
                values = [{side: argument[side]} if side in argument else {} for argument in (beside, alone)]
                differences.compare_objects(*values, "")
        found, name = differences.found, beside.get("name", "?")
        if not found:
            self.totals["equal"] += 1
        elif self.exceptions.excuse(call, name, [gap for _, gap in found]):
            self.totals["excused"] += 1
        else:
            kinds = {kind for kind, _ in found}
            kind = "unreadable" if "unreadable" in kinds else found[0][0]
            self.totals["unreadable" if kind == "unreadable" else "different"] += 1
            self.differs((kind, call, name), "; ".join(gap for _, gap in found)[:900])

    def report(self, examples, is_all):
        """Prints the figures, and returns whether nothing differs."""
        for name, count in self.totals.items():
            print(f"{name}: {count}")
        unmatched = [row for row in self.exceptions.unmatched() if not row[3].startswith("sometimes")] if is_all else []
        self.exceptions.report(unmatched)
        for key, count in sorted(self.kinds.items(), key=lambda item: (item[0][0], -item[1])):
            print(f"{count:6} {key[0]:18} {key[1]} {key[2]}")
            for example in self.examples[key][:examples]:
                print(f"      {example}")
        return all(kind == "told unchecked" for kind, _, _ in self.kinds) and not unmatched


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("traces", nargs="+", metavar="BESIDE_JSON ALONE_JSON ALONE_OUTPUT")
    options.add_argument("--layouts", required=True)
    options.add_argument("--exceptions")
    options.add_argument("--some", action="store_true")
    options.add_argument("--examples", type=int, default=3)
    options = options.parse_args()
    if len(options.traces) % 3:
        options.error("the files come in threes: JSON beside strace, JSON alone, what the program printed alone")
    with open(options.layouts, encoding="utf-8") as lines:
        layouts = Layouts(lines)
    exceptions = Exceptions(open(options.exceptions, encoding="utf-8") if options.exceptions else ())
    comparison = Comparison(exceptions, layouts)
    for beside, alone, output in zip(*(options.traces[at::3] for at in range(3))):
        with open(output, encoding="utf-8", errors="surrogateescape") as text:
            comparison.add(read_events(beside), read_events(alone), text.read())
    sys.exit(0 if comparison.report(options.examples, not options.some) else 1)


if __name__ == "__main__":
    main()
