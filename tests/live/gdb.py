"""Script for gdb: runs a program and prints the stack at the return of each marked call, lseek(-1, TAG, 9). Inlined
frames and tail-call frames, which gdb adds by debug information alone, are omitted.

    stop TAG
    frame PC MAPPING_START FILE_OFFSET FILE|-<tab>NAME|-
"""
import platform

import gdb

OFFSET, WHENCE = {"x86_64": ("rsi", "rdx"), "aarch64": ("x1", "x2")}[platform.machine()]
SETTINGS = (
    "pagination off", "confirm off", "startup-with-shell off", "backtrace past-main on", "backtrace past-entry on",
    "backtrace limit unlimited",
)


def mappings(pid):
    with open(f"/proc/{pid}/maps") as maps:
        for line in maps:
            words = line.rstrip("\n").split(maxsplit=5)
            start, end = (int(word, 16) for word in words[0].split("-"))
            yield start, end, int(words[2], 16), words[5] if len(words) > 5 else "-"


def print_frame(frame, areas, out):
    pc = frame.pc()
    start, offset, file = next(((start, offset, file) for start, end, offset, file in areas if start <= pc < end), (0, 0, "-"))
    print(f"frame {pc} {start} {offset} {file}\t{frame.name() or '-'}", file=out)


def register(name):
    return int(gdb.selected_frame().read_register(name))


def main(out):
    for setting in SETTINGS:
        gdb.execute(f"set {setting}")
    for signal in ("SIGUSR1", "SIGILL"):
        gdb.execute(f"handle {signal} nostop noprint pass", to_string=True)
    gdb.execute("catch syscall lseek", to_string=True)
    gdb.execute("run", to_string=True)
    inside = set()  # threads that are inside a call of lseek
    while gdb.selected_inferior().pid:
        thread = gdb.selected_thread().ptid
        inside ^= {thread}
        if thread not in inside and register(WHENCE) == 9:
            print(f"stop {register(OFFSET)}", file=out)
            areas = list(mappings(gdb.selected_inferior().pid))
            frame = gdb.newest_frame()
            while frame is not None:
                if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
                    print_frame(frame, areas, out)
                frame = frame.older()
        gdb.execute("continue", to_string=True)


with open(STACKS, "w") as out:
    main(out)
