#!/usr/bin/env python3
"""Writes the lines of `rtrace --full` from the objects of `rtrace --json`.

usage: perf_lines.py SCHEMA < OBJECTS > LINES

The script knows the schema (schema/rtrace-1.json) and the rules of perf style: which arguments are left out, how text
is escaped, how times and durations are written. It has no table of syscalls, structs or constants. If its lines equal
those of rtrace byte for byte, the objects have every fact that the lines show.
"""

import json
import sys
import unicodedata

# The column at which results begin, and the indentation of stacks.
RESULT_COLUMN = 70
STACK_INDENT = 38
# The number in a vsock address that means any context ID, or any port.
VSOCK_ANY = 0xFFFFFFFF

STACK_ENDS = {
    "limit": None,
    "truncated": "[only {stack_copied} bytes of stack were copied; --call-graph dwarf,SIZE copies more of a deeper stack]",
    "other_stack": "[the callers are on another stack, which was not copied]",
    "stack_not_read": "[the callers are unknown: only {stack_copied} bytes of this stack could be read]",
    "no_unwind_rule": "[the callers are unknown: this address has no unwind table and no frame pointer]",
    "file_not_read": "[the callers are unknown: this file could not be read]",
    "no_register": "[the callers are unknown: without BPF, only the stack pointer of a sleeping task is known (--engine bpf)]",
    "no_registers": "[the kernel recorded no registers]",
    "unmapped": "[no code is mapped at this address]",
    "no_code": "[the chain of frame pointers ends here; --call-graph dwarf needs none]",
    "no_progress": "[the unwind tables do not match this stack]",
    "return_probe": "[the callers are unknown: a return probe has replaced the return address of this function]",
}


# Bytes and numbers


def foreign(value):
    """Returns foreign bytes: a string, or an object with hexadecimal digits."""
    return value.encode() if isinstance(value, str) else bytes.fromhex(value["bytes"])


def number(value):
    """Returns an integer, which is a string of digits if a reader might round it."""
    return int(value, 16) if isinstance(value, str) and value.startswith("0x") else int(value)


def hexadecimal(value):
    return f"{value:#x}" if value else "0"


def octal(value):
    return f"0{value:o}" if value else "0"


def is_deceptive(char):
    """Returns whether a character moves the cursor, ends the line, changes the direction of text, or is invisible."""
    code = ord(char)
    ranges = [
        (0xAD, 0xAD), (0x61C, 0x61C), (0x200B, 0x200F), (0x2028, 0x202E), (0x2060, 0x206F), (0xFEFF, 0xFEFF),
        (0xFFF9, 0xFFFB), (0xE0000, 0xE007F),
    ]  # fmt: skip
    return unicodedata.category(char) == "Cc" or any(first <= code <= last for first, last in ranges)


def escaped(data, special=""):
    """Returns text with escapes for backslashes, invisible characters, bytes that are not UTF-8, and `special`."""
    plain = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\", '"': '\\"'}
    out = []
    # Bytes that are not UTF-8 become lone surrogates, each of which stands for one byte.
    for char in data.decode(errors="surrogateescape"):
        code = ord(char)
        if 0xDC80 <= code <= 0xDCFF:
            out.append(f"\\x{code - 0xDC00:02x}")
        elif code < 0x80 and (char in special or char == "\\" or not " " <= char <= "~"):
            out.append(plain.get(char, f"\\x{code:02x}"))
        elif is_deceptive(char):
            out.append(f"\\u{{{code:x}}}")
        else:
            out.append(char)
    return "".join(out)


def bracketed(data):
    """Returns the name of a file in angle brackets. The arrow between the ends of a socket is kept."""
    if data.startswith(b"/"):
        return f"<{escaped(data, '<>')}>"
    return "<" + "->".join(escaped(part, "<>") for part in data.split(b"->")) + ">"


def without_prefix(name, prefixes):
    """Returns the name of a constant without the prefix of its table, if something is left."""
    for prefix in prefixes:
        if name.startswith(prefix) and len(name) > len(prefix):
            return name[len(prefix) :]
    return name


# Values


def flags(value):
    parts = [without_prefix(name, value.get("prefixes", [])) for name in value["flags"]]
    if "rest" in value:
        parts.append(value["rest"])
    return "|".join(parts) or "0"


def constant(value):
    if "parameters" in value:
        return f"{value['constant']}({', '.join(map(shown, value['parameters']))})"
    if value["constant"] is not None:
        return without_prefix(value["constant"], value.get("prefixes", []))
    return str(number(value["value"])) if "decimal" in value else hexadecimal(number(value["value"]))


def named_number(value):
    separators = ["", *map(foreign, value.get("separators", ["|"] * (len(value["names"]) - 1)))]
    separators = [separator or b"" for separator in separators]
    text = b"".join(separator + name for separator, name in zip(separators, map(foreign, value["names"])))
    return escaped(text) + (f"|{value['rest']}" if "rest" in value else "")


def signal(value, prefix=""):
    """Returns the name of a signal, without `prefix`."""
    name = value.get("name", str(value["signal"]))
    return name.removeprefix(prefix)


def descriptor(value):
    fd = "CWD" if "constant" in value else str(value["fd"])
    return fd + (bracketed(file_name(value["file"])) if "file" in value else "")


def task(value):
    known = [escaped(foreign(value["comm"]))] if "comm" in value else []
    known += [f"here {value['here']}"] if "here" in value else []
    return str(value["pid"]) + (f" ({', '.join(known)})" if known else "")


def text(value):
    quoted = '"' + escaped(foreign(value["text"]), '"') + '"'
    return ("~" if "altered" in value else "") + quoted + ("..." if "cut" in value else "")


def permissions(value):
    parts = [value["type"].removeprefix("S_")] if "type" in value else []
    return "|".join([*parts, octal(number(value["permissions"]))])


def wait_status(status):
    if "continued" in status:
        parts = [".continued: 1"]
    elif "exited" in status:
        parts = [f".exited: {status['exited']}"]
    elif "stopped" in status:
        parts = [f".stopped: {signal(status['stopped'], 'SIG')}"]
        parts += [f".event: {constant(status['event'])}"] if "event" in status else []
    else:
        parts = [f".killed: {signal(status['killed'], 'SIG')}"]
        parts += [".dumped: 1"] if "dumped" in status else []
    return "{" + ", ".join(parts) + "}"


def socket_address(value):
    ip, scope = value["ip"], f"%{value['scope']}" if "scope" in value else ""
    return f"[{ip}{scope}]:{value['port']}" if ":" in ip else f"{ip}:{value['port']}"


def character(value):
    code = number(value["char"])
    return escaped(bytes([39, code, 39])) if code < 0x80 else hexadecimal(code)


def strings(value):
    count = number(value["strings"])
    return f"[{count}{' or more' if 'or_more' in value else ''} string{'' if count == 1 else 's'}]"


def code(value):
    return symbol(value) if "symbol" in value else hexadecimal(number(value["code"]))


def failure(value):
    """Returns the result of a call that returned no value."""
    if "timeout" in value:
        return "0 (Timeout)"
    first, errno = "?" if "restarts" in value else "-1", value["errno"]
    return f"{first} {value['name']} ({ERRORS[errno]})" if "name" in value else f"{first} (unknown error {errno})"


def more(value, parts):
    return [*parts, "..."] if "more" in value else parts


def struct(value):
    members = [f".{name}: {shown(member)}" for name, member in value["members"].items()]
    return "{" + ", ".join(more(value, members)) + "}"


def array(value, items):
    return "[" + ", ".join(more(value, [shown(item) for item in items])) + "]"


# The texts of errors, by their numbers: the schema has them.
ERRORS = {}

# The forms of values, each with a member by which it is recognized. A form that also has the member of another form
# stands before that form.
FORMS = [
    ("failure", lambda value: failure(value["failure"])),
    ("errno", lambda value: f"-{value.get('name', value['errno'])}"),
    ("hex", lambda value: hexadecimal(number(value["hex"]))),
    ("permissions", permissions),
    ("code", code),
    ("flags", flags),
    ("names", named_number),
    ("fd", descriptor),
    ("constant", constant),
    ("pid", task),
    ("id", lambda value: f"{value['id']} (here {value['here']})"),
    ("signal", lambda value: signal(value, "SIG")),
    ("major", lambda value: f"{value['major']}:{value['minor']}"),
    ("text", text),
    ("port", socket_address),
    ("ip", lambda value: value["ip"]),
    ("char", character),
    ("data", lambda value: value["data"] + ("..." if "more" in value else "")),
    ("mac", lambda value: value["mac"]),
    ("uuid", lambda value: value["uuid"]),
    ("wait_status", lambda value: wait_status(value["wait_status"])),
    ("strings", strings),
    ("members", struct),
    ("array", lambda value: array(value, value["array"])),
    ("all_but", lambda value: "~" + array(value, value["all_but"])),
    ("address", lambda value: hexadecimal(number(value["address"])) if number(value["address"]) else "NULL"),
    ("unread", lambda value: "(fault)"),
]


def shown(value):
    """Returns a value as perf style writes it."""
    if value is None:
        return "?"
    if not isinstance(value, dict):
        return str(value)
    for member, write in FORMS:
        if member in value:
            return write(value)
    raise ValueError(f"a value of no known form: {value}")


def changed(old, new):
    """Returns memory that a call read and wrote, with `old => new` for the innermost values that changed."""
    if old == new or is_unread(old):
        return shown(new)
    if is_unread(new):
        return shown(old)
    if is_form("struct", old, new) and (is_part(old["members"], new["members"]) or is_part(new["members"], old["members"])):
        before, after = old["members"], new["members"]
        whole = after if is_part(before, after) else before
        both = lambda name: name in before and name in after
        texts = {name: changed(before[name], after[name]) if both(name) else shown(value) for name, value in whole.items()}
        return "{" + ", ".join(more(new, [f".{name}: {text}" for name, text in texts.items()])) + "}"
    if is_form("array", old, new) and len(old["array"]) == len(new["array"]):
        return "[" + ", ".join(more(new, list(map(changed, old["array"], new["array"])))) + "]"
    return f"{shown(old)} => {shown(new)}"


def is_part(part, whole):
    """Whether the members of a struct are members of the other one, in the same order."""
    rest = iter(whole)
    return all(name in rest for name in part)


def is_unread(value):
    return is_form("unread", value) and "address" in value


def is_form(member, *values):
    return all(isinstance(value, dict) and member in value for value in values)


# Files


def file_name(file):
    """Returns the name of an open file, as readlink(2) of /proc/PID/fd/N has it, or with the addresses of a socket."""
    if "socket" in file:
        return socket_name(file["socket"])
    if "path" in file:
        cut, deleted = b"..." if "cut" in file else b"", b" (deleted)" if "deleted" in file else b""
        return cut + foreign(file["path"]) + deleted
    if "pipe" in file:
        return f"pipe:[{file['pipe']}]".encode()
    if "memfd" in file:
        return b"/memfd:" + foreign(file["memfd"]) + b" (deleted)"
    if "anonymous" in file:
        return b"anon_inode:" + foreign(file["anonymous"])
    if "namespace" in file:
        return foreign(file["namespace"]) + f":[{file['inode']}]".encode()
    return f"pid:{file['pidfd']}".encode()


def socket_name(socket):
    return foreign(socket.get("protocol", "socket")) + b":[" + socket_addresses(socket) + b"]"


def socket_addresses(socket):
    """Returns the addresses of a socket that are set, or its inode."""
    ends = [socket.get(name) for name in ("local", "remote")]
    if "interface" in socket:
        protocol = socket["number"]
        name = constant(protocol) if protocol["constant"] is not None else f"{number(protocol['value']):#x}"
        return f"{name}@{socket['interface']}".encode()
    if "number" in socket:
        protocol = socket["number"]
        name = constant(protocol) if protocol["constant"] is not None else str(protocol["value"])
        return f"{name}:{socket['port']}".encode()
    if any(end and "context" in end for end in ends):
        shown_ends = [":".join("*" if number(end[part]) == VSOCK_ANY else str(end[part]) for part in ("context", "port")) for end in ends]
        unset = ("0:0", "*:*")
        if shown_ends[1] not in unset:
            return "->".join(shown_ends).encode()
        return str(socket["inode"] if shown_ends[0] in unset else shown_ends[0]).encode()
    if any(ends):
        local, remote = ends
        if not remote:
            return socket_address(local).encode()
        unset = "[::]:0" if ":" in remote["ip"] else "0.0.0.0:0"
        return f"{socket_address(local) if local else unset}->{socket_address(remote)}".encode()
    name = str(socket["inode"]).encode()
    if "peer" in socket:
        name += f"->{socket['peer']}".encode()
    if "path" in socket:
        name += b',"' + foreign(socket["path"]) + b'"'
    if "abstract" in socket:
        name += b',@"' + foreign(socket["abstract"]) + b'"'
    return name


# Lines


def symbol(place):
    """Returns an address as a function and an offset."""
    offset = number(place["offset"])
    return escaped(foreign(place["symbol"])) + (f"+{offset:#x}" if offset else "")


def mapped(address, file, joint):
    """Formats an address as a file and an offset, or as a number if no file is mapped there."""
    if file is None:
        return f"{number(address):#x}"
    return f"{escaped(foreign(file['path']))}{joint}{number(file['offset']):#x}"


def milliseconds(nanoseconds, width=0):
    """Returns a time in milliseconds with three decimals, rounded to the nearest."""
    microseconds = (abs(nanoseconds) + 500) // 1000
    sign = "-" if nanoseconds < 0 and microseconds else ""
    return f"{sign}{microseconds // 1000}.{microseconds % 1000:03}".rjust(width)


class Lines:
    """The lines of one stream of objects."""

    def __init__(self):
        self.origin = None

    def line(self, event):
        """Returns the lines of an object, without the newline of the last one; `None` if it has none."""
        kind = event["type"]
        if kind == "trace":
            self.header = event
            return None
        if kind == "notice" or kind == "end" and not number(event["unplaced_losses"]):
            return None
        if self.origin is None:
            self.origin = self.first_time(event)
        lines = getattr(self, kind)(event)
        return "\n".join([lines, *map(self.frame, event.get("stack", [])), *self.stack_end(event)])

    def first_time(self, event):
        """Returns the time that stamps count from: the start of a command's execve if that is the first line."""
        is_command = self.header["scope"] == "command" and event["type"] == "call" and "executes" in event
        return monotonic(event["start"] if is_command and "start" in event else self.header["started"])

    def stamp(self, time):
        return milliseconds(monotonic(time) - self.origin)

    def columns(self, time, duration=None):
        stamp = "?" if time is None else self.stamp(time)
        taken = " " * 9 if duration is None else milliseconds(number(duration), 6) + " ms"
        return f"{stamp:>10} ({taken}): "

    def head(self, event, time, duration=None):
        comm = escaped(foreign(event["comm"])) if "comm" in event else "?"
        return f"{self.columns(time, duration)}{comm}/{event['tid']} "

    def call(self, event):
        head = self.head(event, event.get("start"), event.get("duration"))
        name = escaped(foreign(event["called"])) if "called" in event else event["name"]
        continued = " ... [continued]: " if "shown_pending" in event else ""
        body = f"{continued}{name}({self.arguments(event['arguments'])})"
        if event["exit"] == "pending":
            return f"{head}{body.ljust(RESULT_COLUMN - 4)} ..."
        return f"{head}{(body + ' ').ljust(RESULT_COLUMN)}= {self.result(event)}"

    pending = call

    def arguments(self, arguments):
        if arguments is None:
            return "?"
        used = [argument for argument in arguments if not ("unused" in argument or "default" in argument)]
        return ", ".join(map(self.argument, used))

    def argument(self, argument):
        name = f"{argument['name']}: " if "name" in argument else ""
        if "entry" in argument and "exit" in argument:
            return name + changed(argument["entry"], argument["exit"])
        return name + shown(argument["entry"] if "entry" in argument else argument["exit"])

    def result(self, event):
        if event["exit"] == "unseen":
            return "? (exit not seen)"
        if event["exit"] == "never" and event["abi"] == "io_uring":
            return "? (no completion asked)"
        returned = event.get("return")
        if returned is None:
            return "?"
        return failure(returned) if "timeout" in returned or "errno" in returned else shown(returned["value"])

    def event(self, event):
        fields = [self.returns(event)] if "function" in event else []
        for field in event.get("fields", []):
            if "default" not in field:
                fields.append(f"{escaped(foreign(field['name']))}: {shown(field['value'])}")
        name = escaped(foreign(event["called"] if "called" in event else event["name"]))
        return f"{self.head(event, event['time'])}{name}({', '.join(fields)})"

    def returns(self, event):
        function, caller = event["function"], event["returned_to"]
        places = [symbol(place) if "symbol" in place else mapped_code(place) for place in (caller, function)]
        return " <- ".join(places)

    def fault(self, event):
        ip = mapped(event["ip"], event.get("ip_file"), "+")
        address = mapped(event["address"], event.get("address_file"), "@")
        file = event.get("address_file")
        contents = "?" if file is None else "x" if "executable" in file else "d"
        level = "k" if number(event["address"]) >> 63 else "."
        return f"{self.head(event, event['time'])}{event['fault'][:3]}fault [{ip}] => {address} ({contents}{level})"

    def signal(self, event):
        name = signal(event["signal"])
        return f"{self.head(event, event['time'])}--- {name} {{{', '.join(self.siginfo(event, name))}}} ---"

    def siginfo(self, event, name):
        info = event["siginfo"]
        yield f"si_signo={name}"
        if info.get("si_errno"):
            yield f"si_errno={info['si_errno']}"
        if "si_code" in info:
            yield f"si_code={constant(info['si_code'])}"
        if "si_pid" in info:
            comms = [who["comm"] for who in (event.get("sender"), event.get("process")) if who and "comm" in who]
            yield f"si_pid={info['si_pid']}" + (f" ({escaped(foreign(comms[0]))})" if comms else "")
        if "si_uid" in info:
            yield f"si_uid={info['si_uid']}"
        if "si_status" in info:
            status = info["si_status"]
            yield f"si_status={signal(status) if isinstance(status, dict) else status}"
        for member in ("si_addr", "si_timerid", "si_overrun"):
            if member in info:
                yield f"{member}={info[member]}"
        if "si_value" in info:
            value = number(info["si_value"])
            yield f"si_int={(value & 0xFFFFFFFF ^ 1 << 31) - (1 << 31)}"
            yield f"si_ptr={value:#x}"
        for member in ("si_band", "si_fd", "si_call_addr", "si_syscall"):
            if member in info:
                yield f"{member}={info[member]}"
        if "si_arch" in info:
            yield f"si_arch={number(info['si_arch']):#x}"

    def exit(self, event):
        if "killed" in event:
            how = f"killed by {signal(event['killed'])}{' (core dumped)' if 'core_dumped' in event else ''}"
        elif "not_traced" in event:
            how = "not traced any more: a set-user-ID program"
        else:
            how = f"exited with {event.get('status', '?')}"
        return f"{self.head(event, event['time'])}+++ {how} +++"

    def lost(self, event):
        where = f"{self.lost_records(event.get('records'))} on CPU {event['cpu']}"
        after = f"between {self.stamp(event['after'])} and" if "after" in event else "before"
        return f"{self.columns(event['time'])}{where} {after} {self.stamp(event['time'])}"

    def end(self, event):
        also = ', including the lines "LOST some records"' if "losses_of_unknown_size" in event else ""
        return f"{self.columns(None)}{self.lost_records(event['unplaced_losses'])} at times that are not known{also}"

    def lost_records(self, records):
        count = "some" if records is None else records
        return f"LOST {count} record{'' if records is not None and number(records) == 1 else 's'}"

    def frame(self, frame):
        file = escaped(foreign(frame["file"])) if "file" in frame else None
        address = hexadecimal(number(frame["address"]))
        if "function" in frame:
            place = escaped(foreign(frame["function"])) + (f" ({file})" if file is not None else "")
        else:
            place = address if file is None else f"{file}+{address}"
        source = f" {escaped(foreign(frame['source']))}:{frame['line']}" if "source" in frame else ""
        return " " * STACK_INDENT + place + source

    def stack_end(self, event):
        reason = STACK_ENDS[event["stack_ends"]] if "stack_ends" in event else None
        return [" " * STACK_INDENT + reason.format_map(event)] if reason else []


def monotonic(time):
    return number(time["monotonic"])


def mapped_code(place):
    """Returns an address of code without a symbol: as a file and an offset, or as a number."""
    if "file" in place:
        return mapped(place["address"], place["file"], "+")
    return hexadecimal(number(place["address"]))


def unique(pairs):
    """Returns an object, and refuses one with two members of the same name, one of which a reader would lose."""
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError(f"two members have the same name: {[name for name, _ in pairs]}")
    return members


def main():
    with open(sys.argv[1], encoding="utf-8") as schema:
        known = json.load(schema)["$defs"]["error"]["oneOf"]
    ERRORS.update((error["const"], error["description"]) for error in known)
    lines = Lines()
    for row in sys.stdin.buffer:
        line = lines.line(json.loads(row, object_pairs_hook=unique))
        if line is not None:
            sys.stdout.buffer.write(line.encode() + b"\n")


if __name__ == "__main__":
    main()
