"""Compares what a program printed about its own calls with what rtrace says about them.

Everything that a program printed must be what rtrace shows of its writes. Lines of some scenes (TOLD, and the functions
below it) have values that the program passed or got, which must be those of the call that the line is about.
"""

import json
import re
from itertools import zip_longest

# The lines, the syscall that they are about with a name among its arguments and how many such calls are before it, and
# where rtrace has the value of each group of the line. ARGUMENT.SIDE is followed by members and indices.
TOLD = (
    (r"loaded (\d+)", "bpf", "BPF_PROG_LOAD", 0, ("return",)),
    (r"loaded (\d+)", "bpf", "BPF_OBJ_GET_INFO_BY_FD", 0, ("uattr.exit.bpf_fd",)),
    (r"map (\d+) (\d+)", "bpf", "BPF_OBJ_GET_INFO_BY_FD", 0, ("uattr.exit.bpf_fd", "uattr.exit.info.id")),
    (r"program (\d+) (\d+)", "bpf", "BPF_OBJ_GET_INFO_BY_FD", 1, ("uattr.exit.bpf_fd", "uattr.exit.info.id")),
    (r"none (-\d+) 0", "bpf", "BPF_OBJ_GET_INFO_BY_FD", 2, ("uattr.entry.bpf_fd",)),
    (r"sizes (\d+) (\d+) (\d+)", "seccomp", "SECCOMP_GET_NOTIF_SIZES", 0,
     ("uargs.exit.seccomp_notif", "uargs.exit.seccomp_notif_resp", "uargs.exit.seccomp_data")),
    (r"probe (\d+) (\d+)", "io_uring_register", "IORING_REGISTER_PROBE", 0, ("return", "arg.exit.last_op")),
    (r"handle (\d+) (\d+)", "name_to_handle_at", "", 0, ("handle.exit.handle_bytes", "handle.exit.handle_type")),
    (r"mount (\d+)", "name_to_handle_at", "", 0, ("mnt_id.exit.0",)),
    (r"attributes (\d+)", "sched_setattr", "", 0, ("uattr.exit.size",)),
    (r"modules (\d+)", "lsm_list_modules", "", 0, ("size.exit.0",)),
    (r"own (\d+) (\d+) (\d+)", "sendmsg", "SCM_CREDENTIALS", 0,
     tuple(f"msg.entry.msg_control.1.cmsg_data.{name}" for name in ("pid", "uid", "gid"))),
    (r"own (\d+) (\d+) (\d+)", "recvmsg", "SCM_CREDENTIALS", 0,
     tuple(f"msg.exit.msg_control.0.cmsg_data.{name}" for name in ("pid", "uid", "gid"))),
)  # fmt: skip
SIGNAL = re.compile(r"given (\d+) code (-?\d+) pid (\d+) uid (\d+)")
# The names of the numbers of a value, one of which it has if it is no plain number.
NUMBERS = ("value", "fd", "pid", "signal")
MARK = 7777
PATHS = ("filename", "oldname", "newname")


def told(output, run):
    """Yields whether rtrace agrees with each value that the program told, and a sentence that has both."""
    calls = sorted((call for calls in run.calls.values() for call in calls), key=time_of)
    yield from writes(output.encode("utf-8", "surrogateescape"), calls)
    lines = output.splitlines()
    for line in lines:
        for pattern, syscall, name, before, places in TOLD:
            if found := re.fullmatch(pattern, line):
                of = [call for call in calls if call["name"] == syscall and name in names_in(call["arguments"])]
                known = [number_of(at(of[before], place)) if before < len(of) else None for place in places]
                yield agrees(f"{syscall} {' '.join(places)}", [int(text) for text in found.groups()], known)
    yield from signals(lines, run.events)
    yield from directories(lines, calls)
    yield from paths(lines, calls)
    yield from files(lines, calls)


def agrees(what, said, known):
    return said == known, f"{what}: the program says {said}, and rtrace {known}"


def time_of(call):
    return int(call["time"]["monotonic"])


def names_in(arguments):
    """Returns the names of constants that arguments have, and the empty name."""
    return {"", *re.findall(r'"([A-Z][A-Z0-9_]+)"', json.dumps(arguments))}


def at(call, place):
    """Returns what a call has at a place, or None."""
    if place == "return":
        return call.get("return", {}).get("value")
    first, side, *rest = place.split(".")
    value = next((argument.get(side) for argument in call["arguments"] or [] if argument["name"] == first), None)
    for step in rest:
        if not isinstance(value, dict):
            return None
        if step.isdigit():
            items = value.get("array", [])
            value = items[int(step)] if int(step) < len(items) else None
        else:
            value = value.get("members", {}).get(step)
    return value


def number_of(value):
    """Returns the number that a value is, or None."""
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
    """The siginfo that a handler got."""
    caught = [event for event in events if event.get("type") == "signal" and event.get("fate") == "handled"]
    given = [found for line in lines if (found := SIGNAL.fullmatch(line))]
    for found, event in zip_longest(given, caught if given else ()):
        info = event.get("siginfo", {}) if event else {}
        known = [number_of(info.get(name, 0)) for name in ("si_signo", "si_code", "si_pid", "si_uid")]
        said = [int(text) for text in found.groups()] if found else None
        # A signal of a timer has other members in the place of the sender.
        yield agrees("siginfo", said, known)
    for line in lines:
        if line.startswith("sender "):
            yield agrees("sender", [int(line.split()[1])], [event.get("sender", {}).get("tid") for event in caught])


def directories(lines, calls):
    """`entries BYTES NAME...`: the entries of a directory."""
    listed = [call for call in calls if call["name"] == "getdents64"]
    for line in lines:
        if line.startswith("entries "):
            array = (at(listed[0], "dirent.exit") or {}).get("array", []) if listed else []
            names = [item["members"]["d_name"].get("text") for item in array]
            known = [str(number_of(at(listed[0], "return")) if listed else None), *map(str, names)]
            yield agrees("getdents64 dirent", line.split()[1:], known)


def paths(lines, calls):
    """`named NUMBER HEX...`: the paths of the call whose directory is the descriptor of this number."""
    of = {number_of(at(call, "dfd.entry") or at(call, "olddfd.entry")): call for call in calls}
    for line in lines:
        if line.startswith("named "):
            _, number, *digits = line.split()
            arguments = (of.get(int(number)) or {}).get("arguments") or []
            values = [argument["entry"] for argument in arguments if argument["name"] in PATHS]
            known = [bytes_of(value["text"]) if "text" in value else None for value in values]
            yield agrees("paths", [bytes.fromhex(text) for text in digits], known)


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
