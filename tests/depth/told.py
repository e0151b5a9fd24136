"""Compares what a program printed about its own calls with what rtrace says about them.

told_calls.py compares the calls that the program describes in lines of numbers and bytes. Everything else that it
printed must be what rtrace shows of its writes. Lines of some scenes have values that are in no memory of a call: of
signals, and the names of open files.
"""

import re
from itertools import zip_longest

from told_calls import split, told_calls

SIGNAL = re.compile(r"given (\d+) code (-?\d+) pid (\d+) uid (\d+)")
KILLED = re.compile(r"killed (\d+) code (-?\d+) (?:address (\d+)|pid (\d+) uid (\d+))")
# The names of the numbers of a value, one of which it has if it is no plain number.
NUMBERS = ("value", "fd", "pid", "signal")
MARK = 7777


def told(output, run, layouts):
    """Yields a verdict for each thing that the program told: `equal`, `different` or `unchecked`, the syscall and its
    argument, and a sentence that has both sides."""
    calls = sorted((call for calls in run.calls.values() for call in calls), key=time_of)
    described, lines = split(output)
    yield from told_calls(described, calls, layouts)
    facts = [writes(output.encode("utf-8", "surrogateescape"), calls), signals(lines, run.events), files(lines, calls)]
    for is_same, what, sentence in (fact for some in facts for fact in some):
        yield "equal" if is_same else "different", *what.split(), sentence


def agrees(what, said, known):
    return said == known, what, f"the program says {said}, and rtrace {known}"


def time_of(call):
    return int(call["time"]["monotonic"])


def at(call, place):
    """Returns what a call has at `return` or at a side of an argument, or None."""
    if place == "return":
        return call.get("return", {}).get("value")
    name, side = place.split(".")
    return next((argument.get(side) for argument in call["arguments"] or [] if argument["name"] == name), None)


def number_of(value):
    """Returns the number that a value is, or None."""
    if isinstance(value, str) and value.startswith("0x"):
        return int(value, 16)
    if isinstance(value, dict):
        value = next((value[name] for name in NUMBERS if name in value), None)
    return value if isinstance(value, int) else None


def bytes_of(text):
    return bytes.fromhex(text["bytes"]) if isinstance(text, dict) else text.encode("utf-8", "surrogateescape")


def writes(output, calls):
    """The memory that the program wrote to its stdout; rtrace may show the beginning of a long text."""
    begin = 0
    for call in calls:
        if call["name"] == "write" and number_of(at(call, "fd.entry")) == 1:
            value = at(call, "buf.entry") or {}
            shown = bytes_of(value["text"]) if "text" in value else None
            end = begin + (number_of(at(call, "return")) or 0)
            wanted = output[begin : begin + len(shown or b"")] if value.get("cut") else output[begin:end]
            yield agrees("write buf", wanted, shown)
            begin = end
    if begin != len(output):
        yield agrees("write buf", output[begin:], None)


def signals(lines, events):
    """The siginfo that a handler got, and that of the signal that killed the program."""
    known = [event for event in events if event.get("type") == "signal"]
    caught = [event for event in known if event["fate"] == "handled"]
    yield from infos(SIGNAL, lines, caught, ("si_signo", "si_code", "si_pid", "si_uid"))
    fatal = [event for event in known if event["fate"] == "kills"]
    # Nothing is known in advance of a signal that another program sends.
    if any(map(KILLED.fullmatch, lines)):
        yield from infos(KILLED, lines, fatal, ("si_signo", "si_code", "si_addr", "si_pid", "si_uid"))
    for line in lines:
        if line.startswith("sender "):
            senders = [event.get("sender", {}).get("tid") for event in caught]
            yield agrees("signal sender", [int(line.split()[1])], senders)


def infos(pattern, lines, events, names):
    """Compares the members of the siginfo of each event with the numbers of a line; some lines have fewer numbers."""
    given = [found.groups() for line in lines if (found := pattern.fullmatch(line))]
    for numbers, event in zip_longest(given, events if given else ()):
        info = event.get("siginfo", {}) if event else {}
        told = {name: int(text) for name, text in zip(names, numbers or ()) if text is not None}
        # A signal of a timer has other members in the place of the sender.
        yield agrees("signal siginfo", told, {name: number_of(info.get(name, 0)) for name in told or names})


def files(lines, calls):
    """The names of open files in hexadecimal digits, one for each lseek(fd, MARK)."""
    marked = [call for call in calls if call["name"] == "lseek" and number_of(at(call, "offset.entry")) == MARK]
    names = [bytes.fromhex(line) for line in lines] if marked else []
    for name, call in zip_longest(names, marked):
        value = at(call, "fd.entry") if call else None
        yield agrees("lseek fd", name, name_of(value["file"]) if value and "file" in value else None)


def name_of(file):
    """Returns the name that /proc has for a file. Sockets have their addresses in it, and pidfds their task."""
    if "path" in file:
        return bytes_of(file["path"]) + (b" (deleted)" if file.get("deleted") else b"")
    if "memfd" in file:
        return b"/memfd:" + bytes_of(file["memfd"]) + b" (deleted)"
    if "socket" in file:
        return name_of_socket(file["socket"])
    if "anonymous" in file:
        return b"anon_inode:" + bytes_of(file["anonymous"])
    if "namespace" in file:
        return b"%s:[%d]" % (bytes_of(file["namespace"]), file["inode"])
    return b"pid:%d" % file["pidfd"] if "pidfd" in file else b"pipe:[%d]" % file["pipe"]


def name_of_socket(socket):
    family, protocol = socket["family"]["constant"], socket["protocol"]
    inside = str(socket["inode"])
    if family in ("AF_NETLINK", "AF_PACKET"):
        kind = socket["number"]["constant"].removeprefix("NETLINK_").removeprefix("ETH_P_")
        inside = f"{kind}:{socket['port']}" if "port" in socket else f"{kind}@{socket['interface']}"
    elif "local" in socket and (socket["local"]["port"] != 0xFFFF_FFFF or "remote" not in socket):
        inside = "->".join(end(socket[name]) for name in ("local", "remote") if is_bound(socket.get(name)))
    elif "peer" in socket:
        inside += f"->{socket['peer']}"
    named = b""
    for key, before in (("path", b""), ("abstract", b"@")):
        if key in socket:
            named = b"," + before + b'"' + bytes_of(socket[key]) + b'"'
    return f"{protocol}:[{inside}".encode() + named + b"]"


def is_bound(end):
    """Whether a socket has this end: VSOCK has -1 for those that are not there."""
    return end is not None and end["port"] != 0xFFFF_FFFF


def end(end):
    ip = end.get("ip", "*")
    return f"[{ip}]:{end['port']}" if ":" in ip else f"{ip}:{end['port']}"
