#!/usr/bin/env python3
"""Runs programs that read the output of strace on strace's output and on that of `rtrace strace`, and compares what they say.

usage: tests/strace/parsers [-v] [-k DIR] STRACE RTRACE [READER...]

Both tracers follow the same run: a shell waits until both are attached to it (-p), and executes the program then. Each
reader gets the two logs, from that execve on, and must print the same for both. The times in what it prints are replaced
first, because each tracer has its own. pystrace starts strace itself, under that name, so it runs twice.

  -v      print the whole difference
  -k DIR  keep the logs in DIR
  READER  a name below; without one, all are run

The readers from PyPI are installed in target/strace-parsers, in the versions below. strace-log-merge and strace-graph
belong to strace, and are beside STRACE in the directory that benches/fetch-peers fills. Needs root.

The exit status is 0 if all readers say the same about both.
"""

import difflib
import os
import re
import subprocess
import sys
import tempfile
import threading
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
PLACE = HERE.parent.parent / "target" / "strace-parsers"
PYTHON = PLACE / "bin" / "python3"
PACKAGES = (
    "strace-process-tree==1.5.3",
    "strace-parser==0.2.0",
    "lark-parser==0.12.0",
    "straceexec==1.1.1",
    "six==1.17.0",
    "stracetools==1.0.0",
    "pystrace==0.1.0",
)

# Lines that are left out of both logs, with the reason.
LEFT_OUT = {
    r"\brseq\(": "strace 7.2 shows a member of the struct that is behind the length of the call",
}

# The order of what tasks do at the same time depends on the tracer, which is why some readers get one after the other.
SEQUENCE = "cat /etc/hostname; cat /nonexistent; sh -c 'exit 3'; trap : USR1; kill -USR1 $$; exit 4"
ALONE = "exec sh -c 'exec cat /etc/hostname'"
PARALLEL = "cat /etc/hostname; cat /nonexistent; sh -c 'exit 3'; (trap : USR1; kill -USR1 $$) & wait; sleep 0.2 | cat; exit 4"
COMMANDS = """
import json, sys, straceexec
print(json.dumps(straceexec.collect_commands(open(sys.argv[1])), indent=1))
"""
TREE = """
import sys
from strace_parser.parser import get_parser
print(get_parser().parse(open(sys.argv[1]).read()).pretty())
"""
# The package itself imports the libraries with which it draws.
EVENTS = """
import importlib.util, sys
from pathlib import Path
found = importlib.util.find_spec("stracetools").submodule_search_locations[0]
spec = importlib.util.spec_from_file_location("parser", Path(found, "parser.py"))
sys.modules["parser"] = module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
events = module.StraceParser().parse_file(sys.argv[1])
# A call that something interrupts has an empty argument there.
for event in sorted(events, key=lambda event: event.pid):
    print(event.pid, event.event_type.value, event.name, [text for text in event.args if text], event.return_value, event.error_msg)
print(len(events), "events")
"""

# Name: the options of strace, the script of the shell, and the command that reads the log ($LOG) or logs.
READERS = {
    "strace-process-tree": ("-f -e trace=process -s 1024", PARALLEL, [str(PLACE / "bin/strace-process-tree"), "$LOG"]),
    "strace-process-tree-times": ("-f -ttt", PARALLEL, [str(PLACE / "bin/strace-process-tree"), "-v", "$LOG"]),
    "strace-graph": ("-f -tt -s 100 -e trace=process", ALONE, ["perl", "$PEERS/usr/share/doc/strace/examples/strace-graph", "$LOG"]),
    "strace-log-merge": ("-ff -ttt", SEQUENCE, ["sh", "-c", "$PEERS/usr/bin/strace-log-merge $LOG | sort -s -n -k1,1"]),
    "straceexec": ("-f -v -s 10000 -e trace=execve", PARALLEL, [str(PYTHON), "-c", COMMANDS, "$LOG"]),
    "strace-parser": ("-ttt -T -e trace=!rseq", "exec cat /etc/hostname", [str(PYTHON), "-c", TREE, "$LOG"]),
    "stracetools": ("-f -tt -T", SEQUENCE, [str(PYTHON), "-c", EVENTS, "$LOG"]),
}


def install():
    """Installs the readers, unless that was done."""
    done = PLACE / "installed"
    if done.exists() and done.read_text() == "\n".join(PACKAGES):
        return
    venv.create(PLACE, clear=True, with_pip=True)
    subprocess.run([PYTHON, "-m", "pip", "install", "--quiet", "--no-deps", *PACKAGES], check=True)
    done.write_text("\n".join(PACKAGES))


def watch(strace, rtrace, options, script, directory):
    """Lets both tracers follow one run of a script. Returns their logs."""
    go = f"read go; exec sh -c {quoted(script)}"
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "HOME": str(directory), "TZ": "UTC"}
    program = subprocess.Popen(
        ["sh", "-c", go], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=directory, env=environment
    )
    logs, tracers = [directory / "strace", directory / "rtrace"], []
    for tracer, log in zip((strace, rtrace), logs):
        words = [*tracer, *options.split(), "-o", str(log), "-p", str(program.pid)]
        started = subprocess.Popen(words, stderr=subprocess.PIPE, env=environment, text=True)
        watchdog = threading.Timer(30, started.kill)
        watchdog.start()
        while "attached" not in (line := started.stderr.readline()):
            if not line:
                program.kill()
                sys.exit(f"{' '.join(words)} did not attach")
        watchdog.cancel()
        tracers.append(started)
    program.communicate(b"\n")
    for tracer in tracers:
        tracer.communicate()
    for log in logs:
        for part in [log, *directory.glob(log.name + ".*")]:
            if part.exists():
                part.write_text(from_execve(part.read_text(), part.suffix in ("", f".{program.pid}")))
    return logs


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def from_execve(text, has_execve):
    """Returns the lines from the execve of the script on, without those that are left out."""
    lines = text.splitlines(keepends=True)
    first = next((at for at, line in enumerate(lines) if "execve(" in line), len(lines)) if has_execve else 0
    return "".join(line for line in lines[first:] if not any(re.search(pattern, line) for pattern in LEFT_OUT))


def read(command, log, peers):
    words = [word.replace("$LOG", str(log)).replace("$PEERS", peers) for word in command]
    # strace-graph prints hashes, whose order is otherwise another one in each run.
    environment = {**os.environ, "PERL_HASH_SEED": "0", "PERL_PERTURB_KEYS": "0"}
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment, check=False, timeout=120
    )
    return normal(done.stdout + done.stderr).replace(str(log), "LOG") + f"exit status {done.returncode}\n"


def normal(text):
    text = re.sub(r"\b1[78]\d{8}\.\d{6}\b|\b\d\d:\d\d:\d\d\.\d{6}\b", "TIME", text)
    text = re.sub(r"<\d+\.\d{6}>", "<DURATION>", text)
    text = re.sub(r"(?m)^(\s*(?:duration|timestamp)\s+)\d+\.\d+$", r"\1TIME", text)
    text = re.sub(r"(?m)(?<=-)\d+\.\d+\b|(?<=\[)\d+\.\d\d(?=\])", "TIME", text)
    return re.sub(r"\d+\.\d+ ?(?=m?s\b)", "DURATION", text)


def by_pystrace(tracer, directory):
    """Returns what pystrace prints if its strace is this one. The numbers of tasks are replaced by their order."""
    (directory / "bin").mkdir(exist_ok=True)
    wrapper = directory / "bin" / "strace"
    wrapper.write_text("#!/bin/sh\nexec " + " ".join(map(quoted, tracer)) + ' "$@"\n')
    wrapper.chmod(0o755)
    environment = {"PATH": f"{directory}/bin:/usr/bin:/bin", "LC_ALL": "C", "HOME": str(directory)}
    script, log = "cat /etc/hostname; cat /nonexistent; exit 4", directory / "log"
    words = [PLACE / "bin/pystrace", "-s", "execve,openat,close,dup2,kill", "-j", "-o", log, "--", "sh", "-c", script]
    # pystrace waits for ever if it reads the exit status together with the last lines.
    for _ in range(5):
        try:
            done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, env=environment, check=False, timeout=10)
            break
        except subprocess.TimeoutExpired:
            continue
    else:
        return "pystrace does not end\n"
    numbers = {}
    text = re.sub(r'"pid": (\d+)', lambda match: f'"pid": {numbers.setdefault(match[1], len(numbers))}', log.read_text())
    return re.sub(r"0x[0-9a-f]{6,}", "ADDRESS", text).replace(str(directory), "DIRECTORY") + f"exit status {done.returncode}\n"


def main(words):
    verbose, kept = False, None
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option == "-v":
            verbose = True
        elif option == "-k":
            kept = Path(words.pop(0))
        else:
            sys.exit(__doc__)
    if len(words) < 2:
        sys.exit(__doc__)
    strace, rtrace, *names = words
    peers = str(Path(strace).resolve().parent.parent)
    tracers = [os.path.abspath(strace)], [os.path.abspath(rtrace), "strace"]
    install()
    same = different = 0
    for name in [*READERS, "pystrace"]:
        if names and name not in names:
            continue
        with tempfile.TemporaryDirectory() as temporary:
            directory = kept / name if kept else Path(temporary)
            directory.mkdir(parents=True, exist_ok=True)
            if name == "pystrace":
                texts = []
                for tracer, place in zip(tracers, ("strace", "rtrace")):
                    (directory / place).mkdir()
                    texts.append(by_pystrace(tracer, directory / place))
            else:
                options, script, command = READERS[name]
                texts = [read(command, log, peers) for log in watch(*tracers, options, script, directory)]
        lines = list(difflib.unified_diff(*(text.splitlines() for text in texts), "strace", "rtrace", lineterm="", n=0))
        print(f"{name}: {len(texts[0].splitlines())} lines, {'the same' if not lines else 'different'}")
        if lines:
            different += 1
            print("\n".join(f"   {line[:300]}" for line in (lines if verbose else lines[:12])))
        else:
            same += 1
    print(f"{same + different} readers: {same} say the same, {different} differ")
    return bool(different)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
