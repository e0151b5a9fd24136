#!/usr/bin/env python3
"""Compares the lines of `rtrace strace` with those of strace 7.2 about two runs of one program, each under one of them.

usage: tests/strace/alone [-k DIR] [-n N] STRACE RTRACE WORKLOAD [SCENE...]

tests/strace/run compares two texts about one run, in which strace stops the program. This script shows what rtrace says
if nobody stops it: about signals that the program ignores, calls that signals interrupt, and ends of threads. A scene is
a line of tests/depth/scenes.txt or one of OWN; without a SCENE, all are run. Needs root.

  -k DIR   keep the traces in DIR
  -n N     show N examples of each difference (default: 1)

What differs from run to run is replaced first: the numbers of tasks, by how the tasks came into being, addresses, times,
and random bytes. exceptions.tbl excepts differences here too. Prints the counts of equal and different lines, and the
differences, the most frequent first. The exit status is 0 if at least 98 % of the lines are equal that are not excepted.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

import compare

HERE = Path(__file__).resolve().parent
# Scenes whose signals, threads and personalities a stopping tracer sees in another way.
OWN = ["signals ignored", "signals interrupted", "signals killed", "signals pipe", "exec leader", "exec thread", "forks 3"]
OWN += ["threads 3", "int80 2", "unknown", "exit 3"]
# What is wanted of the scenes.
LEAST = 98.0
# Lines about personalities are shown, too.
OPTIONS = ["-f", "-e", "quiet=attach"]
# The shell that starts strace sets these variables.
OPTIONS += [word for name in ("PWD", "OLDPWD", "SHLVL", "_") for word in ("-E", name)]
CREATION = re.compile(r"(?:clone|clone3|fork|vfork)\(.*\) += (\d+)$")
# What differs from run to run.
CHANGING = [
    (re.compile(r"0x[0-9a-f]{5,}"), "ADDRESS"),
    (re.compile(r"(getrandom\()\"[^\"]*\""), r"\1RANDOM"),
    (re.compile(r"((?:si_utime|si_stime|tv_sec|tv_nsec|tv_usec|ru_\w+)=)\w+(?: /\* [^*]* \*/)?"), r"\1TIME"),
    (re.compile(r"port=htons\(\d{5}\)"), "port=PORT"),
    (re.compile(r"(:\[|#)\d+"), r"\1INODE"),
    (re.compile(r"getppid\(\) += \d+"), "getppid() = PARENT"),
    # What the program tells contains numbers of tasks.
    (re.compile(r"write\(1, .*"), "write(1, TOLD)"),
]


def scenes():
    lines = (HERE.parent / "depth" / "scenes.txt").read_text(encoding="utf-8").splitlines()
    # One scene waits for a signal of another process.
    return [line for line in lines if line and not line.startswith("#") and line != "signals wait"] + OWN


def trace(program, output, directory, workload, scene):
    shutil.rmtree(directory, ignore_errors=True)
    os.mkdir(directory)
    words = [word.replace("DIR", directory) for word in scene.split()]
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C", "HOME": directory}
    # Addresses are not random, so that texts with addresses, as in /proc, are the same.
    subprocess.run(
        ["setarch", "-R", *program, *OPTIONS, "-o", output, workload, *words],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment, cwd=directory, timeout=120,
        check=False,
    )  # fmt: skip
    return compare.tasks(Path(output).read_text(encoding="utf-8", errors="backslashreplace"))


def named(tasks):
    """Returns the lines of tasks by names that say how the tasks came into being, without what changes."""
    first = next(iter(tasks), "")
    names, todo = {first: "TASK"}, [first]
    while todo:
        task = todo.pop()
        created = (match[1] for line, _ in tasks.get(task, []) if (match := CREATION.match(line)))
        for count, child in enumerate((child for child in created if child not in names), 1):
            names[child] = f"{names[task]}_{count}"
            todo.append(child)
    named = defaultdict(list)
    for task, lines in tasks.items():
        for line, is_joined in lines:
            for pattern, to in CHANGING:
                line = pattern.sub(to, line)
            line = re.sub(r"\d{3,}", lambda match: names.get(match[0], match[0]), line)
            named[names.get(task, task)].append((line, is_joined))
    return named


def main(words):
    kept, shown = None, 1
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option == "-k" and words:
            kept = words.pop(0)
        elif option == "-n" and words:
            shown = int(words.pop(0))
        else:
            sys.exit(__doc__)
    if len(words) < 3:
        sys.exit(__doc__)
    strace, rtrace, workload = (os.path.abspath(word) for word in words[:3])
    exceptions = compare.Exceptions((HERE / "exceptions.tbl").read_text(encoding="utf-8"))
    differences, examples = Counter(), defaultdict(list)
    equal = excepted = total = 0
    with tempfile.TemporaryDirectory() as directory:
        directory = kept or directory
        os.makedirs(directory, exist_ok=True)
        for scene in words[3:] or scenes():
            output = os.path.join(directory, re.sub(r"\W+", "-", scene))
            empty = os.path.join(directory, "empty")
            wanted = named(trace([strace], output + ".strace", empty, workload, scene))
            found = named(trace([rtrace, "strace"], output + ".rtrace", empty, workload, scene))
            counts = compare.compare(wanted, found, differences, examples, exceptions)
            equal, excepted, total = equal + counts[0], excepted + counts[1], total + counts[2]
    share = 100 * equal / max(total - excepted, 1)
    print(f"lines: {total}\nequal: {equal} ({100 * equal / max(total, 1):.2f} %)\nexcepted: {excepted}\nshare of the others: {share:.2f} %")
    compare.show(differences, examples, shown)
    return share < LEAST


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
