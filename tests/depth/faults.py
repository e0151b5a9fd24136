#!/usr/bin/env python3
"""Makes faults in traces, and counts those that the comparison with what the program told finds.

usage: faults.py LAYOUTS [ALONE_JSON ALONE_OUTPUT]...

The files are those that `run -k DIR` leaves: DIR/layouts, DIR/NAME.alone.jsonl and DIR/NAME.alone.out. In each call
that the program told, this script changes one value after another: a number becomes one higher, a text gets another
first character, flags, arrays and structs lose one of their parts that is not 0, and contents become the bare address.
It counts the changes after which more is told otherwise, or unchecked, than without them. The others are printed, each
kind with its first example.
"""

import ipaddress
import json
import sys
from collections import Counter, defaultdict

from alone import Run, read_events
from reencode import Layouts
from told_calls import compare, is_meant, split

# What is no statement about the memory or the registers of a call.
NAMES = {"constant", "prefixes", "name", "comm", "struct", "packed"}
OTHER = NAMES | {"file", "wanted", "cut", "more", "unread", "default"}


def faults(value, layouts):
    """Yields the kind of each change of a value, and the changed value. A flag that is 0 is as good as none."""
    for kind, changed in all_faults(value, layouts):
        numbers = [layouts.number_of(side) if isinstance(side, dict) else None for side in (value, changed)]
        if None in numbers or numbers[0] != numbers[1]:
            yield kind, changed


def all_faults(value, layouts):
    """The same, with changes that mean the same number."""
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int):
        yield "number", value + 1
    elif isinstance(value, list):
        if value:
            yield "element", value[:-1]
        for at, item in enumerate(value):
            for kind, changed in faults(item, layouts):
                yield kind, [*value[:at], changed, *value[at + 1 :]]
    elif isinstance(value, dict):
        yield from faults_of_object(value, layouts)


def faults_of_object(value, layouts):
    """Yields what may be wrong in an object of the JSON."""
    if "address" in value and {"struct", "array", "text"} & set(value) and not is_empty(value):
        yield "address only", {"address": value["address"]}
    for name, inner in value.items():
        if name in OTHER:
            continue
        if name == "members":
            for member in inner:
                if not is_empty(inner[member]):
                    yield "member", {**value, name: {key: inner[key] for key in inner if key != member}}
                for kind, changed in faults(inner[member], layouts):
                    yield kind, {**value, name: {**inner, member: changed}}
        elif isinstance(inner, str):
            if inner:
                yield name, {**value, name: other(name, inner)}
        else:
            for kind, changed in faults(inner, layouts):
                yield "flag" if name == "flags" else kind, {**value, name: changed}


def other(name, text):
    """Returns another text of the same form."""
    if name in ("address", "hex", "raw", "rest", "si_addr"):
        return hex(int(text, 16) + 1)
    if name == "ip":
        return str(ipaddress.ip_address(text) + 1) if not text.endswith("255") else "0.0.0.0"
    if name in ("bytes", "mac", "uuid"):
        return ("1" if text[0] != "1" else "2") + text[1:]
    return ("x" if text[0] != "x" else "y") + text[1:]


def is_empty(value):
    """Whether all numbers in a value are 0, and all texts and sets are empty."""
    if isinstance(value, dict):
        return all(is_empty(inner) for name, inner in value.items() if name not in OTHER | {"address"}) and (
            set(value) != {"address"} or int(value["address"], 16) == 0
        )
    if isinstance(value, list):
        return all(map(is_empty, value))
    if isinstance(value, str) and set(value) <= set("0.:\0"):
        return True
    return value in (0, "", None, False) or isinstance(value, str) and value.startswith("0x") and int(value, 16) == 0


def verdicts(line, call, layouts):
    """Returns what is different and what is unchecked."""
    rows = list(compare(line, call, layouts))
    return [Counter(row[1:] for row in rows if row[0] == verdict) for verdict in ("different", "unchecked")]


def main():
    if len(sys.argv) < 4 or len(sys.argv) % 2:
        sys.exit(__doc__.split("\n\n")[1])
    with open(sys.argv[1], encoding="utf-8") as lines:
        layouts = Layouts(lines)
    made, found, missed = Counter(), Counter(), defaultdict(list)
    for trace, output in zip(sys.argv[2::2], sys.argv[3::2]):
        with open(output, encoding="utf-8", errors="surrogateescape") as text:
            told, _ = split(text.read())
        calls = [call for calls in Run(read_events(trace)).calls.values() for call in calls]
        for line in told:
            call = next(call for call in calls if is_meant(line, call))
            before = verdicts(line, call, layouts)
            for kind, name, wrong, example in wrong_calls(call, layouts):
                made[kind] += 1
                now = [after - known for after, known in zip(verdicts(line, wrong, layouts), before)]
                if any(now):
                    found["different" if now[0] else "unchecked"] += 1
                else:
                    missed[kind, call["name"], name].append(example)
    print(f"made {made.total()}: {dict(made.most_common())}")
    print(f"found: {dict(found)}, not found: {sum(map(len, missed.values()))}")
    for key, examples in sorted(missed.items(), key=lambda item: -len(item[1])):
        print(f"{len(examples):6} {' '.join(key)}: {examples[0]}")


def wrong_calls(call, layouts):
    """Yields the kind of each fault, where it is, the call with this fault, and a text that shows it."""
    for at, argument in enumerate(call["arguments"] or []):
        for side in {"entry", "exit"} & argument.keys():
            for kind, changed in faults(argument[side], layouts):
                arguments = [*call["arguments"]]
                arguments[at] = {**argument, side: changed}
                texts = [json.dumps(value) for value in (argument[side], changed)]
                begin = max(0, next((i for i, (one, other) in enumerate(zip(*texts)) if one != other), 0) - 60)
                example = " -> ".join(text[begin : begin + 120] for text in texts)
                yield kind, f"{argument['name']} {side}", {**call, "arguments": arguments}, example


if __name__ == "__main__":
    main()
