#!/usr/bin/env python3
"""Compares what `rtrace strace` does with what strace 7.2 does, for each command line of options.tbl.

usage: tests/strace/options [-k FILE] [-v] STRACE RTRACE [NAME...]

Runs each command line under both programs, one after the other, and compares their stderr, their stdout, the output file
and the exit status. Numbers that differ from run to run are replaced first: addresses, numbers of tasks, times. The
lines must be in the same order. NAME is a name of options.tbl; without one, all are run. Needs root.

  -v        print the whole texts of those that differ
  -k FILE   write the texts to FILE

The exit status is 0 if all do the same but those that have a reason in options.tbl.
"""

import difflib
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def rows():
    for line in (HERE / "options.tbl").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, words, *reason = line.split("\t")
            yield name, words, reason


def run(program, words, directory):
    output = Path(directory, "output")
    output.write_bytes(b"old\n" if "-A" in words.split() else b"")
    command = words.replace("$O", str(output))
    sleeper = None
    if "$P" in command:
        sleeper = subprocess.Popen(["sleep", "1"])
        command = command.replace("$P", str(sleeper.pid))
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C", "HOME": directory, "TZ": "UTC"}
    ended = subprocess.run(
        ["sh", "-c", f'exec "$@" {command}', "sh", *program],
        stdin=subprocess.DEVNULL, capture_output=True, cwd=directory, env=environment, timeout=60, check=False,
    )  # fmt: skip
    if sleeper:
        sleeper.wait()
    text = lambda data: data.decode("utf-8", "backslashreplace")
    return normal(text(ended.stderr)) + ["-- stdout"] + normal(text(ended.stdout)) + ["-- output"] + normal(
        text(output.read_bytes())
    ) + [f"-- exit status {ended.returncode}"]


def normal(text):
    tasks = {}

    def task(match):
        return match[1] + tasks.setdefault(match[2], f"TASK{len(tasks)}")

    text = re.sub(r"(^cat: .*\n|rseq\(.*\n|getrandom\(.*\n)", "", text, flags=re.M)
    text = re.sub(r"(?m)^ *(Blocks|Inodes): .*\n", "", text)
    text = re.sub(r"\b1[78]\d{8}\b", "EPOCH", text)
    text = re.sub(r"\[pid +", "[pid ", text)
    text = re.sub(r"((?:^|\n|\[pid |Process |pid=|kill\(|\bwait4\(|tid=|process |(?:set_tid_address|get(?:t|p|pp)id)\(.*= |wait4 resumed>.*= )) *(\d{3,})\b(?!\.)", task, text)
    text = re.sub(r"pipe:\[\d+\]", "pipe:[INODE]", text)
    text = re.sub(r"0x[0-9a-f]{6,}", "ADDRESS", text)
    text = re.sub(r"\b0*[0-9a-f]{12,16}\b", "ADDRESS", text)
    text = re.sub(r"\d\d:\d\d:\d\d", "TIME", text)
    text = re.sub(r"(TIME|EPOCH)\.\d+", lambda match: match[1] + re.sub(r"\d", "9", match[0][len(match[1]) :]), text)
    text = re.sub(r"(?m)^( +\d+\.\d+|TIME.*\(\+ +\d+\.\d+\))", lambda match: re.sub(r"\d", "9", match[0]), text)
    text = re.sub(r"<\d+(\.\d+)?>", lambda match: re.sub(r"\d", "9", match[0]), text)
    # Several names of one address.
    text = re.sub(r"(?m)^( > [^(\n]*)\([^)]*\)", r"\1", text)
    # The table of -c: its times are those of the run, and so is the share of each.
    if re.search(r"(?m)^[% \w/-]*syscall", text):
        text = re.sub(r"\d+\.\d+( +\d+(?= +\d))?", lambda match: re.sub(r"[\d ]+", "9", match[0]), text)
        text = re.sub(r"(?m)^ +| +(?= )", "", text)
    return text.splitlines()


def main(words):
    verbose, kept = False, None
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option == "-v":
            verbose = True
        elif option == "-k":
            kept = words.pop(0)
        else:
            sys.exit(__doc__)
    strace, rtrace, *names = words
    strace, rtrace = os.path.abspath(strace), os.path.abspath(rtrace)
    different, kept = [], open(kept, "w", encoding="utf-8") if kept else None
    count = excused = 0
    with tempfile.TemporaryDirectory() as directory:
        for name, line, reason in rows():
            if names and name not in names:
                continue
            count += 1
            wanted = run([strace], line, directory)
            found = run([rtrace, "strace"], line, directory)
            if wanted == found:
                if reason:
                    different.append(name)
                    print(f"== {name}: does the same, although options.tbl has a reason why not")
                continue
            if reason:
                excused += 1
                continue
            different.append(name)
            lines = list(difflib.unified_diff(wanted, found, "strace", "rtrace", lineterm="", n=99 if verbose else 0))[2:]
            text = f"== {name}: {line}\n" + "\n".join(f"   {part}" for part in lines if not part.startswith("@@"))
            print(text if verbose else "\n".join(text.splitlines()[:9]))
            if kept:
                kept.write(text + "\n")
    print(f"{count} command lines: {count - excused - len(different)} do the same, {excused} excused, {len(different)} differ")
    return bool(different)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
