#!/usr/bin/env python3
"""Compares what rtrace and strace know about the same calls, argument by argument, whatever their styles.

usage: compare.py [STRACE_TEXT RTRACE_JSON]... [--exceptions FILE] [--examples N]

STRACE_TEXT is the output of `strace -f -v`, and RTRACE_JSON that of `rtrace --json --full`, of the same run. An argument
is equal if rtrace has every number, string and constant that strace has: in the same member of the same struct where
both name it. rtrace may know more. The script prints totals, the kinds of differences, and examples of each.

Each line of FILE is an argument that may differ: `SYSCALL ARGUMENT REASON...`, where a `*` stands for any. The exit
status is 0 if nothing else differs, 1 if something does, and 2 for a usage error.
"""

import argparse
import fnmatch
import json
import re
import sys
from collections import Counter, defaultdict

from strace_text import Array, Change, Either, Function, Name, Number, Struct, Text, calls

MASKS = (1 << 64) - 1, (1 << 32) - 1
HEX = re.compile("(?:[0-9a-f]{2})*")
HARDWARE_ADDRESS = re.compile("[0-9a-f]{2}(?::[0-9a-f]{2})+")
REAL_TIME = {"RTMIN": "SIGRT_0", "SIGRTMIN": "SIGRT_0"}
# The names of strace for arguments that it does not show in the order of the registers.
LABELS = {"child_stack": ("newsp", "stack"), "flags": ("clone_flags", "flags"), "parent_tid": ("parent_tidptr",), "child_tidptr": ("child_tidptr",)}


class Facts:
    """Everything that rtrace says about a value: its numbers, its constants and its strings."""

    def __init__(self, value=None):
        self.numbers, self.names, self.texts = set(), set(), []
        self.add(value)

    def add(self, value):
        if isinstance(value, bool) or value is None:
            return
        if isinstance(value, int):
            self.numbers.add(value)
        elif isinstance(value, str):
            self.names.add(value)
            self.texts.append(value.encode("utf-8", "surrogateescape"))
            try:
                self.numbers.add(int(value, 0))
            except ValueError:
                pass
        elif isinstance(value, list):
            for item in value:
                self.add(item)
        elif isinstance(value, dict):
            if set(value) == {"bytes"} and isinstance(value["bytes"], str) and HEX.fullmatch(value["bytes"]):
                self.texts.append(bytes.fromhex(value["bytes"]))
            for name, item in value.items():
                if name not in ("prefixes", "struct", "unread", "cut", "more"):
                    self.add(item)
            if "flags" in value and "rest" not in value and not value["flags"]:
                self.numbers.add(0)

    def has_number(self, number):
        return any(number & mask in {n & mask for n in self.numbers} for mask in MASKS)

    def has_text(self, text):
        wanted = text.bytes
        return any(
            known == wanted or (text.is_cut and known.startswith(wanted)) or known.rstrip(b"\0") == wanted.rstrip(b"\0")
            for known in self.texts
        )


def members_of(value):
    """Returns the members of every struct in the value by their names."""
    found = defaultdict(list)

    def walk(value):
        if isinstance(value, dict):
            for name, member in value.get("members", {}).items() if isinstance(value.get("members"), dict) else ():
                found[name].append(member)
            for member in value.values():
                walk(member)
        elif isinstance(value, list):
            for item in value:
                walk(item)

    walk(value)
    return found


def is_named_bit(name, value, known):
    """Whether the member is a single bit (`disabled=1`) that rtrace has as a flag, or leaves out as it is not set."""
    flags = {flag for found in members_of(known).get("flags", []) if isinstance(found, dict) for flag in found.get("flags", [])}
    is_set = any(flag.endswith("_" + name) for flag in flags)
    return isinstance(value, Number) and value.value == is_set and (is_set or name not in members_of(known))


def shows_payload(known):
    """Whether rtrace decodes the payload of a message, which strace may show as bytes."""
    payloads = members_of(known).get("payload", [])
    return any(isinstance(payload, dict) and {"struct", "array"} & set(payload) for payload in payloads)


def command_number(values):
    """Returns the number of an ioctl command that has no name: _IOC(direction, type, number, size), asm-generic/ioctl.h."""
    directions = {"_IOC_NONE": 0, "_IOC_WRITE": 1, "_IOC_READ": 2}
    parts = values[0].values if isinstance(values[0], Either) else values[:1]
    direction = sum(directions[part.text] if isinstance(part, Name) else part.value for part in parts)
    kind, number, size = (value.value for value in values[1:])
    return direction << 30 | size << 16 | kind << 8 | number


def missing(wanted, known):
    """Returns what strace says and rtrace does not, as words."""
    if isinstance(wanted, Change):
        return missing(wanted.before, known) + missing(wanted.after, known)
    if isinstance(wanted, Struct):
        by_name, out = members_of(known), []
        for name, value in wanted.members:
            candidates = by_name.get(name)
            if candidates and isinstance(value, Change):
                sides = value.before, value.after
                gaps = [gap for side in sides for gap in min((missing(side, candidate) for candidate in candidates), key=len)]
            elif candidates:
                gaps = min((missing(value, candidate) for candidate in candidates), key=len)
            else:
                gaps = [] if name and is_named_bit(name, value, known) else missing(value, known)
            out += [f"{name or ''}={gap}" if name else gap for gap in gaps]
        return out
    if isinstance(wanted, Array):
        items = known.get("array") if isinstance(known, dict) else None
        values = [value for _, value in wanted.values]
        if isinstance(items, list) and len(items) >= len(values):
            return [gap for value, item in zip(values, items) for gap in missing(value, item)]
        is_decoded = shows_payload(known)
        return [gap for value in values if not (is_decoded and isinstance(value, Text)) for gap in missing(value, known)]
    if isinstance(wanted, Function) and wanted.name == "if_nametoindex":
        return []  # the number of an interface, which rtrace has, instead of its name
    if isinstance(wanted, Function) and wanted.name == "_IOC":
        return missing(Number(command_number(wanted.values)), known)
    if isinstance(wanted, Function):
        # Its names are those of the members and macros of C, as in inet_pton(AF_INET6, "::1", &sin6_addr).
        return [gap for value in wanted.values if not isinstance(value, Name) for gap in missing(value, known)]
    if isinstance(wanted, Either) and wanted.operators == {"or"}:
        return min((missing(value, known) for value in wanted.values), key=len)
    if isinstance(wanted, Either):
        # In 1<<CAP_SYS_ADMIN, the name is the fact.
        is_shift = "<<" in wanted.operators
        return [gap for value in wanted.values if not (is_shift and isinstance(value, Number)) for gap in missing(value, known)]
    facts = Facts(known)
    if isinstance(wanted, Number):
        return [] if facts.has_number(wanted.value) else [str(wanted.value)]
    if isinstance(wanted, Text):
        return [] if facts.has_text(wanted) else [repr(wanted.bytes[:40])]
    if isinstance(wanted, Name):
        text = wanted.text
        if text.startswith("?"):
            return []  # strace does not know either
        if HARDWARE_ADDRESS.fullmatch(text) and facts.has_text(Text(bytes.fromhex(text.replace(":", "")), False)):
            return []
        if facts.names & {text, "SIG" + text, REAL_TIME.get(text)}:
            return []
        # strace has one name for a futex operation and its flag.
        if text.startswith("FUTEX_") and text.endswith("_PRIVATE") and {text[:-8], "FUTEX_PRIVATE_FLAG"} <= facts.names:
            return []
        return [text]
    raise TypeError(wanted)


def is_deeper(wanted, known):
    """Whether rtrace decodes what strace shows as bytes or as a number."""
    sides = [known.get(side) for side in ("entry", "exit")]
    is_struct = any(isinstance(side, dict) and ({"struct", "flags", "array", "constant"} & set(side)) for side in sides)
    is_text = any(isinstance(side, dict) and "text" in side for side in sides)
    if isinstance(wanted, Change):
        return is_deeper(wanted.before, known) and is_deeper(wanted.after, known)
    if isinstance(wanted, Text):
        return is_struct
    is_number = isinstance(wanted, Array) and len(wanted.values) == 1 and isinstance(wanted.values[0][1], Number)
    return is_number and (is_struct or is_text)


def pairs_of_arguments(text, event):
    """Pairs strace's arguments with rtrace's; strace may leave out those that are not used, and sort those with labels."""
    known = event["arguments"] or []
    if text.name in ("clone", "clone2") and any(label for label, _ in text.arguments):
        by_name = {argument["name"]: argument for argument in known}
        for label, wanted in text.arguments:
            yield wanted, next((by_name[name] for name in LABELS.get(label, (label,)) if name in by_name), None)
        return
    used = [argument for argument in known if not argument.get("unused")]
    if len(text.arguments) == len(used) or len(text.arguments) > len(known):
        known = used
    for at, (_, wanted) in enumerate(text.arguments):
        yield wanted, known[at] if at < len(known) else None


def kind_of(gaps, known, wanted):
    """Names the kind of a difference."""
    if isinstance(known, dict) and isinstance(wanted, (Struct, Array, Change, Text)):
        for side in (known.get("entry"), known.get("exit")):
            if isinstance(side, dict) and set(side) <= {"address", "unread"}:
                return "address"
            if isinstance(side, dict) and "text" in side and isinstance(wanted, (Struct, Array)):
                return "bytes"
            if isinstance(side, dict) and "array" in side and not side["array"]:
                return "empty"
        if known.get("exit") is None and not isinstance(known.get("entry"), dict):
            return "number"
    if all(gap.split("=")[-1].isupper() or "_" in gap.split("=")[-1] for gap in gaps):
        return "constant"
    if any("=" in gap for gap in gaps):
        return "member"
    return "value"


def rtrace_calls(path):
    by_task = defaultdict(list)
    with open(path, encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            event = json.loads(line)
            if event.get("type") == "call":
                by_task[event["tid"]].append(event)
    return by_task


def same_call(text, event):
    name = event["name"]
    if text.name not in (name, event.get("called")):
        return False
    result = event.get("return", {})
    if text.error:
        error = result.get("errno", result.get("error", {}))
        return text.error in json.dumps(result) or not error
    return True


def align(texts, events):
    """Pairs the calls of one task in both traces; each trace may lack some at its start and its end."""
    at = 0
    for text in texts:
        for ahead in range(at, min(at + 200, len(events))):
            if same_call(text, events[ahead]):
                yield text, events[ahead]
                at = ahead + 1
                break
        else:
            yield text, None


def read_exceptions(path):
    rules = []
    for line in open(path) if path else ():
        line = line.split("#")[0].strip()
        if line:
            syscall, argument, reason = line.split(None, 2)
            rules.append((syscall, argument, reason))
    return rules


def exception(rules, syscall, argument):
    """Returns the rule by which this argument may differ."""
    return next((rule for rule in rules if fnmatch.fnmatch(syscall, rule[0]) and fnmatch.fnmatch(argument, rule[1])), None)


class Comparison:
    """The sums of all compared traces."""

    def __init__(self, exceptions):
        self.exceptions = exceptions
        self.totals, self.kinds, self.excused = Counter(), Counter(), Counter()
        self.examples, self.unreadable = defaultdict(list), []

    def differs(self, key, example):
        self.kinds[key] += 1
        self.examples[key].append(example)

    def add(self, strace_text, rtrace_json):
        with open(strace_text, encoding="utf-8", errors="surrogateescape") as lines:
            texts, unreadable = calls(lines)
        self.unreadable += unreadable
        by_task, events = defaultdict(list), rtrace_calls(rtrace_json)
        for text in texts:
            by_task[text.tid].append(text)
        for tid, texts_of_task in by_task.items():
            for text, event in align(texts_of_task, events.get(tid, [])):
                self.add_call(text, event)

    def add_call(self, text, event):
        self.totals["calls"] += 1
        if event is None:
            self.differs(("no call", text.name, ""), text.line[:300])
            return
        differences = sum(self.kinds.values())
        for wanted, known in pairs_of_arguments(text, event):
            self.totals["arguments"] += 1
            if known is None:
                self.differs(("no argument", text.name, ""), text.line[:300])
            else:
                self.add_argument(text, wanted, known)
        self.totals["equal calls"] += differences == sum(self.kinds.values())

    def add_argument(self, text, wanted, known):
        gaps = missing(wanted, known)
        if not gaps or is_deeper(wanted, known):
            self.totals["equal arguments"] += 1
            self.totals["of these, deeper than strace's"] += bool(gaps)
            return
        rule = exception(self.exceptions, text.name, known.get("name", ""))
        if rule:
            self.excused[rule] += 1
            return
        sides = {side: known[side] for side in ("entry", "exit", "unused") if side in known}
        example = f"{text.line[:600]}\n        rtrace: {json.dumps(sides)[:500]}\n        lacks: {', '.join(gaps)[:300]}"
        self.differs((kind_of(gaps, known, wanted), text.name, known.get("name", "")), example)

    def report(self, examples):
        for name, count in self.totals.items():
            print(f"{name}: {count}")
        for text, reason in self.unreadable[:20]:
            print(f"unreadable: {reason}: {text[:200]}")
        for (syscall, argument, reason), count in self.excused.items():
            print(f"may differ: {syscall} {argument}: {count} ({reason})")
        for key, count in sorted(self.kinds.items(), key=lambda item: (item[0][0], -item[1])):
            print(f"{count:6} {key[0]:12} {key[1]} {key[2]}")
            for example in self.examples[key][:examples]:
                print(f"      {example}")
        return not self.kinds and not self.unreadable


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("traces", nargs="+", metavar="STRACE_TEXT RTRACE_JSON")
    options.add_argument("--exceptions")
    options.add_argument("--examples", type=int, default=3)
    options = options.parse_args()
    if len(options.traces) % 2:
        sys.exit("compare.py: the files come in pairs: strace's text, rtrace's JSON")
    comparison = Comparison(read_exceptions(options.exceptions))
    for strace_text, rtrace_json in zip(options.traces[::2], options.traces[1::2]):
        comparison.add(strace_text, rtrace_json)
    sys.exit(0 if comparison.report(options.examples) else 1)


if __name__ == "__main__":
    main()
