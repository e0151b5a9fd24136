#!/usr/bin/env python3
"""Compares the lines of rtrace in strace's style with those of strace about the same run, byte for byte.

usage: compare.py [-n EXAMPLES] [--all] STRACE RTRACE [STRACE RTRACE]...

Each pair is the output of `strace -f -o STRACE` and of `rtrace --style strace -o RTRACE`, which both watched one run.
Only the tasks that strace traced are compared. The two halves of a call that was shown in flight are joined, because
the tracers see the moments of several tasks in different orders; apart from that, a line is equal if its bytes are.
Prints the counts of equal and different lines, and the most frequent differences by syscall.

A line that only differs where a row of exceptions.tbl says so is counted separately. With --all, a row that makes no
line equal is a fault.
"""

import difflib
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

RESUMED = re.compile(r"<\.\.\. (\S+) resumed>(.*)", re.S)
UNFINISHED = re.compile(r"(.*?) ?<unfinished \.\.\.>$", re.S)
# A frame of a stack: the file, and the position in it. The name of the function and the offset in it are left out.
FRAME = re.compile(r" > ([^(]*)(?:\(.*\))?( \[0x[0-9a-f]+\])$")
# What only a tracer that stops the program sees, or prints about itself.
ARTEFACT = re.compile(r"strace: |--- stopped by |--- SIGSTOP \{si_signo=SIGSTOP, si_code=SI_USER, si_pid=\d+, si_uid=\d+\} ---$")


class Exceptions:
    """The rows of exceptions.tbl, and how many lines each of them made equal."""

    def __init__(self, text):
        rows = [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]
        self.rows = [(call, re.compile(pattern), "" if to == "-" else to) for call, pattern, to, _ in rows]
        self.used = Counter()

    def allow(self, name, wanted, found):
        """Returns whether two lines differ only as rows say. Each row that changes one of them counts as used."""
        used = []
        for at, (call, pattern, to) in enumerate(self.rows):
            if call not in ("*", name):
                continue
            changed = pattern.sub(to, wanted), pattern.sub(to, found)
            if changed != (wanted, found):
                used.append(at)
            wanted, found = changed
        if wanted != found:
            return False
        self.used.update(used)
        return True

    def unused(self):
        return [f"{call}\t{pattern.pattern}" for at, (call, pattern, _) in enumerate(self.rows) if not self.used[at]]


def tasks(text):
    """Returns the lines of each task, in order, and whether each was joined. A call in two halves stands where it ended."""
    lines, open_calls = defaultdict(list), {}
    task = ""
    for line in text.splitlines():
        if frame := FRAME.match(line):
            # The frames of a stack belong to the line above. Symbols of one address have several names.
            if lines[task]:
                above, is_joined = lines[task][-1]
                lines[task][-1] = (f"{above} > {frame[1]}{frame[2]}", is_joined)
            continue
        match = re.match(r"(?:(\d+) +)?(.*)", line)
        if ARTEFACT.match(match[2]):
            continue
        task, rest = match[1] or "", match[2]
        if begun := UNFINISHED.match(rest):
            open_calls[task] = begun[1]
        elif (resumed := RESUMED.match(rest)) and task in open_calls:
            lines[task].append((open_calls.pop(task) + resumed[2], True))
        else:
            lines[task].append((rest, False))
    for task, begun in open_calls.items():
        lines[task].append((begun + " <unfinished ...>", False))
    return lines


def without_column(line):
    """Returns a line whose result follows the call after one blank. The halves of a call have columns of their own."""
    return re.sub(r"\) += ", ") = ", line)


def call_of(line):
    """Returns the first line of a call, which is the same in both texts, without the stack below it and the column."""
    return without_column(line.split(" > ")[0])


def name_of(line):
    return re.match(r"\w*", line)[0] or line.split(" ")[0]


def compare(strace, rtrace, differences, examples, exceptions):
    equal = excepted = total = 0
    for task, wanted in strace.items():
        # Without -f, strace does not say which task it traces: it is the one that executes the program.
        same = (lines for lines in rtrace.values() if wanted and any(call_of(line) == call_of(wanted[0][0]) for line, _ in lines))
        found = rtrace.get(task, []) if task else next(same, [])
        # Before it executes the program, the task runs strace's own code.
        if wanted and wanted[0][0].startswith("execve("):
            call = call_of(wanted[0][0])
            found = found[next((at for at, (line, _) in enumerate(found) if call_of(line) == call), 0) :]
        # Calls are aligned by their names, so that a different line is compared with its twin.
        names = [[name_of(line) for line, _ in lines] for lines in (wanted, found)]
        pairs = difflib.SequenceMatcher(None, *names, autojunk=False)
        twins = {}
        for tag, i1, i2, j1, j2 in pairs.get_opcodes():
            if tag == "equal":
                twins.update(zip(range(i1, i2), range(j1, j2)))
        for at, (line, is_joined) in enumerate(wanted):
            total += 1
            twin, is_twin_joined = found[twins[at]] if at in twins else (None, False)
            # Without -f, strace has no number before the line, and so another column.
            if twin is not None and (is_joined or is_twin_joined or not task):
                line, twin = without_column(line), without_column(twin)
            if twin == line:
                equal += 1
                continue
            name = name_of(line)
            if twin is not None and exceptions.allow(name, line, twin):
                excepted += 1
                continue
            differences[name] += 1
            examples[name].append((line, twin))
        for at in set(range(len(found))) - set(twins.values()):
            differences["only rtrace: " + name_of(found[at][0])] += 1
            examples["only rtrace: " + name_of(found[at][0])].append((None, found[at][0]))
    return equal, excepted, total


def show(differences, examples, shown):
    """Prints the differences, the most frequent first, each with so many examples."""
    for name, count in differences.most_common():
        print(f"{count:6} {name}")
        seen = set()
        for wanted, found in examples[name]:
            key = re.sub(r"\d+", "", str((wanted, found)))
            if key not in seen and len(seen) < shown:
                seen.add(key)
                print(f"       strace: {wanted}\n       rtrace: {found}")


def main(arguments):
    shown, is_all = 2, False
    while arguments and arguments[0].startswith("-"):
        option = arguments.pop(0)
        if option == "--all":
            is_all = True
        elif option == "-n" and arguments:
            shown = int(arguments.pop(0))
        else:
            sys.exit(__doc__)
    exceptions = Exceptions(Path(__file__).with_name("exceptions.tbl").read_text(encoding="utf-8"))
    differences, examples = Counter(), defaultdict(list)
    equal = excepted = total = 0
    for strace, rtrace in zip(arguments[::2], arguments[1::2]):
        with open(strace, errors="backslashreplace") as one, open(rtrace, errors="backslashreplace") as other:
            counts = compare(tasks(one.read()), tasks(other.read()), differences, examples, exceptions)
        equal, excepted, total = equal + counts[0], excepted + counts[1], total + counts[2]
    rest = max(total - excepted, 1)
    print(f"lines: {total}\nequal: {equal}\nexcepted: {excepted}\nshare of the others: {100 * equal / rest:.2f} %")
    unused = exceptions.unused() if is_all else []
    for row in unused:
        print(f"a row of exceptions.tbl made no line equal: {row}")
    show(differences, examples, shown)
    return bool(differences or unused)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
