#!/usr/bin/env python3
"""Compares what rtrace and strace know about the same calls, argument by argument, whatever their styles.

usage: compare.py [STRACE_TEXT RTRACE_JSON]... [--layouts FILE] [--exceptions FILE [--some]] [--examples N]

STRACE_TEXT is the output of `strace -f -v`, RTRACE_JSON that of `rtrace --json --full` of the same run, and the layouts
are those of `rtrace list --json tables`. An argument is one of

  equal      rtrace has everything that strace says, in the same place (rules.py states it for each kind of value)
  unchecked  rtrace shows more than strace, and nothing here shows that it is right: it decodes bytes or numbers that
             it does not show as such, and that cannot be made again of what it shows
  excused    all that differs matches rows of the exceptions
  different  anything else

Each line of the exceptions is `SYSCALL ARGUMENT PATTERN REASON...`. All but the reason are globs, and the pattern is
matched with each difference (`lacks`, below an example). A row that matches nothing is an error, unless --some says
that these are not all traces. The exit status is 0 if nothing differs, 1 if something does, and 2 for a usage error.
"""

import argparse
import fnmatch
import json
import sys
from collections import Counter, defaultdict

from reencode import Layouts
from rules import Comparer
from strace_text import Array, Change, Struct, Text, calls

# The names of strace for arguments that it does not show in the order of the registers.
LABELS = {
    "child_stack": ("newsp", "stack"),
    "flags": ("clone_flags", "flags"),
    "parent_tid": ("parent_tidptr",),
    "child_tidptr": ("child_tidptr",),
}


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


class Exceptions:
    """The rows of the file of exceptions, and how often each matched."""

    def __init__(self, lines=()):
        self.rows, self.matched = [], Counter()
        for line in lines:
            if line.strip() and not line.startswith("#"):
                syscall, argument, pattern, reason = line.split(None, 3)
                self.rows.append((syscall, argument, pattern, reason.strip()))

    def excuse(self, syscall, argument, gaps):
        """Whether each of the differences of an argument matches a row."""
        used = []
        for gap in gaps:
            row = next(
                (row for row in self.rows if all(map(fnmatch.fnmatchcase, (syscall, argument, gap), row[:3]))), None
            )
            if row is None:
                return False
            used.append(row)
        self.matched.update(set(used))
        return True

    def unmatched(self):
        return [row for row in self.rows if row not in self.matched]

    def report(self, unmatched):
        """Prints the rows that matched, and those that should have."""
        for row, count in self.matched.items():
            print(f"may differ: {' '.join(row[:3])}: {count} ({row[3]})")
        for row in unmatched:
            print(f"nothing differs as this exception says, which must be removed: {' '.join(row)}")


class Comparison:
    """The sums of all compared traces."""

    def __init__(self, exceptions, layouts):
        self.exceptions, self.comparer = exceptions, Comparer(layouts)
        self.totals = Counter(
            {
                name: 0
                for name in (
                    "calls",
                    "equal calls",
                    "arguments",
                    "equal arguments",
                    "unchecked",
                    "excused",
                    "different",
                )
            }
        )
        self.kinds, self.notes = Counter(), Counter()
        self.examples, self.unreadable = defaultdict(list), []

    def differs(self, key, example):
        self.totals["different"] += bool(key[2]) or key[0] == "no argument"
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
        equal = True
        for wanted, known in pairs_of_arguments(text, event):
            self.totals["arguments"] += 1
            if known is None:
                self.differs(("no argument", text.name, ""), text.line[:300])
                equal = False
            else:
                equal &= self.add_argument(text, wanted, known)
        self.totals["equal calls"] += equal

    def add_argument(self, text, wanted, known):
        """Counts an argument, and returns whether it is equal."""
        verdict = self.comparer.compare_argument(wanted, known)
        name = known.get("name", "?")
        if not verdict.gaps and not verdict.unchecked:
            self.totals["equal arguments"] += 1
            return True
        sides = {side: known[side] for side in ("entry", "exit", "unused") if side in known}
        example = f"{text.line[:600]}\n        rtrace: {json.dumps(sides)[:500]}\n        "
        if not verdict.gaps:
            self.totals["unchecked"] += 1
            self.notes[text.name, name] += 1
            self.examples["unchecked", text.name, name].append(
                f"{example}unchecked: {', '.join(verdict.unchecked)[:300]}"
            )
        elif self.exceptions.excuse(text.name, name, verdict.gaps):
            self.totals["excused"] += 1
        else:
            key = kind_of(verdict.gaps, known, wanted), text.name, name
            self.differs(key, f"{example}lacks: {', '.join(verdict.gaps)[:300]}")
        return False

    def report(self, examples, is_all):
        """Prints the figures, and returns whether nothing differs."""
        for name, count in self.totals.items():
            print(f"{name}: {count}")
        for text, reason in self.unreadable[:20]:
            print(f"unreadable: {reason}: {text[:200]}")
        unmatched = self.exceptions.unmatched() if is_all else []
        self.exceptions.report(unmatched)
        for (syscall, argument), count in self.notes.most_common():
            self.print_kind(count, ("unchecked", syscall, argument), examples)
        for key, count in sorted(self.kinds.items(), key=lambda item: (item[0][0], -item[1])):
            self.print_kind(count, key, examples)
        return not self.kinds and not self.unreadable and not unmatched

    def print_kind(self, count, key, examples):
        print(f"{count:6} {key[0]:12} {key[1]} {key[2]}")
        for example in self.examples[key][:examples]:
            print(f"      {example}")


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("traces", nargs="+", metavar="STRACE_TEXT RTRACE_JSON")
    options.add_argument("--layouts")
    options.add_argument("--exceptions")
    options.add_argument("--some", action="store_true")
    options.add_argument("--examples", type=int, default=3)
    options = options.parse_args()
    if len(options.traces) % 2:
        sys.exit("compare.py: the files come in pairs: strace's text, rtrace's JSON")
    layouts = Layouts(open(options.layouts, encoding="utf-8") if options.layouts else ())
    comparison = Comparison(
        Exceptions(open(options.exceptions, encoding="utf-8") if options.exceptions else ()), layouts
    )
    for strace_text, rtrace_json in zip(options.traces[::2], options.traces[1::2]):
        comparison.add(strace_text, rtrace_json)
    sys.exit(0 if comparison.report(options.examples, not options.some) else 1)


if __name__ == "__main__":
    main()
