"""Makes bytes again of what rtrace decodes, by the layouts and constants that `rtrace list --json` prints.

A value of rtrace that is an address in the same memory (`address`) is put at this address, and a member of a struct at
its offset. This shows whether a decoded struct agrees with the bytes that strace shows, and whether it shows all of
them.
"""

import json
import socket
from collections import defaultdict

ABI = "x86_64"
# The members of headers that have the length of the header and what follows it.
LENGTHS = ("nlmsg_len", "nla_len", "cmsg_len")

# The structs whose bits are the members of a set.
SETS = ("fd_set", "nodemask", "cpumask", "sigset")
# Where the members of structs are for which the tables have none: the siginfo of a signal that a process sent
# (asm-generic/siginfo.h), and the error that netlink returns (linux/netlink.h).
INT, LONG = {"number": {"bits": 32}}, {"number": {"bits": 64}}
MEMBERS = {
    "nlmsgerr": {"error": {"offset": 0, **INT}},
    "siginfo": {
        "si_signo": {"offset": 0, **INT},
        "si_errno": {"offset": 4, **INT},
        "si_code": {"offset": 8, **INT},
        "si_pid": {"offset": 16, **INT},
        "si_uid": {"offset": 20, **INT},
        "si_value": {"offset": 24, **LONG},
    },
}


class Layouts:
    """The structs and tables of rtrace."""

    def __init__(self, lines=()):
        self.structs, self.tables, self.values = {}, {}, defaultdict(set)
        # The sets that arguments point to, by syscall and argument.
        self.sets = {}
        for line in lines:
            row = json.loads(line)
            if row.get("type") == "struct":
                self.structs[row["name"]] = row
            elif row.get("type") == "syscall":
                for argument in row["arguments"]:
                    if argument.get("struct") in SETS:
                        self.sets[row["name"], argument["name"]] = argument["struct"]
            elif row.get("type") == "table":
                constants = {constant["name"]: constant["value"] for constant in row["constants"]}
                for field in row.get("fields", []):
                    constants.update({constant["name"]: constant["value"] for constant in field["constants"]})
                self.tables[row["name"]] = constants
                for name, value in constants.items():
                    self.values[name].add(int(value))

    def value_of_names(self, names, table=None):
        """Returns the number of these flags, or None if it is not known for certain."""
        number = 0
        for name in names:
            known = (
                {int(self.tables[table][name])} if name in self.tables.get(table, {}) else self.values.get(name, set())
            )
            if len(known) != 1:
                return None
            number |= next(iter(known))
        return number

    def members(self, name):
        return {member["name"]: member for member in self.structs.get(name, {}).get("members", {}).get(ABI, [])}

    def size(self, kind):
        """Returns the number of bytes of a value of this kind, or None if it varies."""
        if "number" in kind:
            return kind["number"]["bits"] // 8
        if "struct" in kind:
            return self.structs.get(kind["struct"]["name"], {}).get("sizes", {}).get(ABI)
        if "array" in kind:
            count, size = kind["array"]["count"], self.size(kind["array"]["element"])
            return None if count is None or size is None else count * size
        return kind.get("text", kind.get("bytes", {})).get("bytes")

    def number_of(self, value, table=None):
        """Returns the number of which rtrace made this value, or None if it is not known."""
        if isinstance(value, bool) or value is None:
            return None
        if isinstance(value, (int, str)):
            return int(value)
        if "flags" in value:
            number = self.value_of_names(value["flags"], table)
            return None if number is None else number | int(value.get("rest", "0"), 16)
        if "permissions" in value:
            kind = self.value_of_names([value["type"]]) if "type" in value else 0
            return None if kind is None else kind | value["permissions"]
        if "errno" in value:
            return -value["errno"]
        if "major" in value and "minor" in value:
            return value["minor"] & 0xFF | value["major"] << 8 | (value["minor"] & ~0xFF) << 12
        if "packed" in value and not self.is_sum(int(value["raw"], 16), list(value["members"].values())):
            return None
        for key in ("hex", "value", "raw", "fd", "pid", "signal", "id"):
            if key in value:
                return int(str(value[key]), 0)
        if "wait_status" in value:
            return int(value["wait_status"]["raw"], 0)
        if "address" in value and not {"struct", "array", "text"} & set(value):
            return int(value["address"], 0)
        return None

    def is_sum(self, number, parts):
        """Whether a number has the bits of its parts, each of them at some place, and no others."""
        parts = [self.number_of(part) for part in parts]
        if None in parts or min(parts, default=0) < 0:
            return True
        return has_parts(number, [part for part in parts if part])


def has_parts(number, parts):
    """Whether the bits of a number are those of these parts, each shifted to a place of its own."""
    if not parts:
        return number == 0
    shifted = (parts[0] << places for places in range(number.bit_length()))
    return any(part & ~number == 0 and has_parts(number ^ part, parts[1:]) for part in shifted)


def raw_bytes(value):
    """Returns the bytes of a value whose bytes do not depend on a layout."""
    if not isinstance(value, dict):
        return None
    if "ip" in value and "port" not in value:
        return socket.inet_pton(socket.AF_INET6 if ":" in value["ip"] else socket.AF_INET, value["ip"].split("%")[0])
    if "mac" in value:
        return bytes.fromhex(value["mac"].replace(":", ""))
    if "uuid" in value:
        return bytes.fromhex(value["uuid"].replace("-", ""))
    text = value.get("text", value if set(value) == {"bytes"} else None)
    if isinstance(text, str):
        return text.encode("utf-8", "surrogateescape")
    if isinstance(text, dict) and set(text) == {"bytes"}:
        return bytes.fromhex(text["bytes"])
    return None


def is_bare(value):
    """Whether a value is the address of something that is not shown."""
    return isinstance(value, dict) and "address" in value and set(value) <= {"address", "unread"}


class Memory:
    """The bytes of a decoded value, as far as they are known. `unknown` says what has bytes that are not known."""

    def __init__(self, layouts, base, length, wanted=None):
        self.layouts, self.base, self.length, self.wanted = layouts, base, length, wanted
        self.bytes, self.blank, self.unknown, self.outside = {}, set(), [], []
        # Values that are put twice may differ.
        self.wrong = {}

    def put(self, offset, data):
        for at, byte in enumerate(data, offset):
            if 0 <= at < self.length:
                self.bytes[at] = byte
                if self.wanted is not None and self.wanted[at] != byte:
                    self.wrong[at] = byte
            else:
                self.outside.append(at)

    def leave(self, offset, size, what):
        """Notes that the bytes of a value are not known."""
        self.unknown.append(what)
        self.blank.update(range(offset, self.length if size is None else offset + size))

    def here(self, value, offset):
        """Returns the offset of a value in this memory, or None if it is elsewhere."""
        address = value.get("address") if isinstance(value, dict) and {"struct", "array", "text"} & set(value) else None
        if address is None or self.base is None:
            return offset
        at = int(address, 16) - self.base
        return at if 0 <= at < max(self.length, 1) else None

    def add(self, value, offset, kind, what):
        """Puts a value of a kind of `rtrace list` at its place; `kind` is {} if it is not known."""
        place = self.here(value, offset)
        if place is None and not {"bytes", "array", "text"} & set(kind):
            # The memory that a pointer points to is elsewhere, and the pointer itself is the value's address.
            self.put(offset, int(value["address"], 16).to_bytes(8, "little"))
            return
        if is_bare(value) and "number" not in kind:
            # These are contents that are not shown, or a pointer whose kind is not known.
            if self.wanted is None or self.base <= int(value["address"], 16) < self.base + self.length:
                return
            self.put(offset, int(value["address"], 16).to_bytes(8, "little"))
            return
        place = offset if place is None else place
        raw = raw_bytes(value)
        number = kind.get("number", {})
        if isinstance(value, dict) and "struct" in value:
            self.add_struct(value, place, what)
        elif isinstance(value, dict) and "array" in value:
            self.add_array(value["array"], place, kind, what)
        elif raw is not None and not (isinstance(value, dict) and "text" in value and number):
            self.put(place, raw)
        elif number:
            found = self.layouts.number_of(value, number.get("meaning", {}).get("table"))
            size = number["bits"] // 8
            if found is None:
                self.leave(place, size, what)
            else:
                order = "big" if number.get("big_endian") else "little"
                self.put(place, (found & (1 << number["bits"]) - 1).to_bytes(size, order))
        else:
            self.leave(place, self.layouts.size(kind) if kind else None, what)

    def add_struct(self, value, offset, what):
        layout = MEMBERS.get(value["struct"]) or self.layouts.members(value["struct"])
        if value["struct"] == "capabilities":
            self.add_capabilities(value["members"], offset)
            return
        single = self.layouts.structs.get(value["struct"], {}).get("value", {}).get(ABI)
        for name, member in value["members"].items():
            if name in layout:
                self.add(member, offset + layout[name]["offset"], layout[name], f"{what}.{name}")
            elif isinstance(member, dict) and "address" in member and {"struct", "array", "text"} & set(member):
                self.add(member, offset, {}, f"{what}.{name}")
            else:
                size = self.layouts.structs.get(value["struct"], {}).get("sizes", {}).get(ABI, 0)
                length = next((value["members"][key] for key in LENGTHS if key in value["members"]), 0) - size
                number = self.layouts.number_of(member)
                if single and len(value["members"]) == 1:
                    self.add(member, offset, single, f"{what}.{name}")
                elif length > 0 and raw_bytes(member) is not None:
                    # The contents of a message or an attribute whose header has its length.
                    self.put(offset + size, raw_bytes(member)[:length])
                elif length in (1, 2, 4, 8) and number is not None:
                    self.put(offset + size, (number & (1 << 8 * length) - 1).to_bytes(length, "little"))
                elif isinstance(member, dict) and "array" in member and "address" not in member:
                    self.add_array(member["array"], offset + size, {}, f"{what}.{name}")
                else:
                    self.leave(offset + size, None, f"{what}.{name}")

    def add_capabilities(self, sets, offset):
        """Each set has one or two words of 32 bits, which are 12 bytes apart."""
        for at, name in enumerate(("effective", "permitted", "inheritable")):
            bits = sum(1 << self.layouts.number_of(item) for item in sets.get(name, {}).get("array", ()))
            for half in range(0, self.length, 12):
                self.put(offset + half + 4 * at, (bits >> half // 12 * 32 & 0xFFFFFFFF).to_bytes(4, "little"))

    def add_array(self, items, offset, kind, what):
        element = kind.get("array", {}).get("element", {})
        size = self.layouts.size(element) if element else None
        if size is None and self.wanted is not None and (known := self.numbers(items, offset, kind)) is not None:
            self.put(offset, known)
            return
        for at, item in enumerate(items):
            raw = raw_bytes(item)
            step = size if size is not None else len(raw) if raw is not None and "address" not in item else None
            has_place = isinstance(item, dict) and "address" in item and ("struct" in item or is_bare(item))
            if step is None and not has_place:
                self.leave(offset, None, f"{what}[{at}]")
                return
            self.add(item, offset + at * (step or 0), element, f"{what}[{at}]")

    def numbers(self, items, offset, kind):
        """Returns the bytes of the members of a set, of the pointers to texts, or of numbers, or None if these are none
        of all that. If the width of numbers is not known, it is one with which they agree with the memory."""
        if items and all(isinstance(item, dict) and "address" in item and "struct" not in item for item in items):
            return b"".join(int(item["address"], 16).to_bytes(8, "little") for item in items)
        numbers = [self.layouts.number_of(item) for item in items]
        wanted = self.wanted[offset:]
        if None in numbers or not numbers and "set" not in kind:
            return None
        if "set" in kind:
            # The lowest bit of a set of signals is that of the signal 1.
            bits = sum(1 << number for number in set(numbers)) >> (kind["set"] == "sigset")
            return bits.to_bytes(max(len(wanted), bits.bit_length() // 8 + 1), "little")
        kinds = [
            b"".join((number & (1 << 8 * size) - 1).to_bytes(size, "little") for number in numbers)
            for size in (4, 1, 2, 8)
        ]
        alike = next((kind for kind in kinds if wanted.startswith(kind)), None)
        # If none agrees, those that fill the memory show where they differ.
        return alike or next((kind for kind in kinds if len(kind) == len(wanted)), kinds[0])


def disagreements(value, wanted, is_cut, layouts):
    """Compares the bytes of a decoded value with those that strace shows.

    Returns what differs, and what cannot be checked because the value's bytes are not known.
    """
    base = int(value["address"], 16) if isinstance(value, dict) and "address" in value else None
    memory = Memory(layouts, base, len(wanted))
    memory.add(value, 0, {}, "value")
    differs = [
        f"byte {at} is {wanted[at]}, and not {byte}" for at, byte in sorted(memory.bytes.items()) if byte != wanted[at]
    ]
    hidden = [at for at in range(len(wanted)) if wanted[at] and at not in memory.bytes and at not in memory.blank]
    differs += [f"byte {at} is {wanted[at]}, and rtrace does not show it" for at in hidden]
    if memory.outside and not is_cut:
        differs.append(f"rtrace shows {len(memory.outside)} bytes after the {len(wanted)} that strace shows")
    # Bytes that are left out and are 0 may be padding, or belong to a member that is not shown as it is 0.
    return differs, memory.unknown
