"""Compares the calls that a program told (tests/programs/told.rs) with what rtrace says about them.

The program's line has only numbers and bytes. Of each told call,

  the call    is the one of this task and number that began between the two times of the line
  return      is the same number
  registers   are the same numbers, and the value of each argument is made of the number of its register
  memory      has the same bytes that rtrace's values have, each at the address that rtrace gives for it. reencode.py
              makes the bytes. Bytes that rtrace does not show must be 0 if the kernel read them, and must be as
              before the call if the kernel wrote them.

The verdict is `equal`, `different`, or `unchecked` where rtrace's value cannot be made a number or bytes again, or
where rtrace says that it shows a part only.
"""

import json
from collections import defaultdict

from reencode import SETS, Memory

BEGIN = '{"told":'
LOW = (1 << 32) - 1
ALL = (1 << 64) - 1


def split(output):
    """Returns the calls that are told in the output of a program, and its other lines."""
    calls, lines = [], []
    for line in output.splitlines():
        if line.startswith(BEGIN):
            calls.append(json.loads(line)["told"])
        else:
            lines.append(line)
    return calls, lines


def told_calls(told, calls, layouts):
    """Yields the verdict, the syscall, the argument and a sentence for each value that the program told."""
    of = defaultdict(list)
    for call in calls:
        of[call["number"]].append(call)
    for line in told:
        number = line["number"]
        found = [call for call in of[number] if is_meant(line, call)]
        if len(found) == 1:
            yield from compare(line, found[0], layouts)
        else:
            text = f"the program made this call with {line['registers']}, and rtrace has {len(found)} such calls"
            yield "different", f"number {number}", "-", text


def is_meant(line, call):
    """Whether this is the call that a line describes."""
    if (line["tid"], line["number"]) != (call["tid"], call["number"]):
        return False
    start = int(call.get("start", call["time"])["monotonic"])
    return line["begin"] <= start <= line.get("end", start)


def compare(line, call, layouts):
    """Compares what the program told of a call with what rtrace has of it."""
    if "return" in line:
        returned = call.get("return", {})
        yield agrees(call, "return", line["return"], returned.get("raw"))
        if "errno" not in returned and "value" in returned:
            yield number(call, "return", line["return"] & ALL, returned["value"], layouts, 64)
    told = [int(register, 16) for register in line["registers"]] + [0] * 6
    bits = line["bits"] + [64] * 6
    at = 0
    for argument in call["arguments"] or []:
        count = len(argument["registers"])
        yield agrees(call, argument["name"], [*map(hex, told[at : at + count])], argument["registers"])
        if count == 1 and not argument.get("unused"):
            value = argument.get("entry", argument.get("exit"))
            yield number(call, argument["name"], told[at], value, layouts, bits[at])
        elif any(told[at : at + count]) and bits[at]:
            yield "unchecked", call["name"], argument["name"], f"{json.dumps(argument)} has no single register"
        at += count
    rest = [place for place in range(at, len(told)) if told[place] and bits[place]]
    if rest:
        text = f"the kernel reads the registers {spans(rest)}, which rtrace does not show"
        yield "different", call["name"], "-", text
    yield from memory(line, call, layouts)


def agrees(call, name, said, known):
    verdict = "equal" if said == known else "different"
    return verdict, call["name"], name, f"the program says {said}, and rtrace {known}"


def number(call, name, register, value, layouts, bits):
    """Compares a value with the number of its register, of which the kernel reads so many bits."""
    if isinstance(value, dict) and "address" in value:
        found = int(value["address"], 16)
    else:
        found = layouts.number_of(value)
    if found is None:
        text = f"{json.dumps(value)[:300]} is no number, and the register is {register:#x}"
        return "unchecked", call["name"], name, text
    # A number of 32 bits may have a sign, and its register too.
    if bits == 64 and (register <= LOW or register >> 31 == ALL >> 31) and -(1 << 31) <= found <= LOW:
        bits = 32
    same = (found - register) & (1 << bits) - 1 == 0 and found < 1 << bits
    text = f"the register is {register:#x}, and rtrace says {found:#x}"
    return "equal" if same else "different", call["name"], name, text


class Region:
    """Memory that the program told, and what rtrace shows of it."""

    def __init__(self, told, layouts):
        self.address, self.size, self.flow = int(told["address"], 16), told["size"], told["flow"]
        entry = bytes.fromhex(told["entry"]).ljust(self.size, b"\0")
        self.bytes = {"entry": entry, "exit": bytes.fromhex(told.get("exit", told["entry"])).ljust(self.size, b"\0")}
        self.shown = {side: Memory(layouts, self.address, self.size, known) for side, known in self.bytes.items()}
        self.names, self.is_part = [], {side: False for side in self.bytes}

    def has(self, address):
        return self.address <= address < self.address + max(self.size, 1)

    def add(self, side, name, value, kind):
        """Adds a value whose address is in this memory."""
        self.shown[side].add(value, int(value["address"], 16) - self.address, kind, name)
        if name not in self.names:
            self.names.append(name)

    def verdicts(self, call):
        """Compares the bytes at the entry and at the exit."""
        name = self.names[0].split(".")[0].split("[")[0] if self.names else "-"
        for side, wanted in self.bytes.items():
            shown, where = self.shown[side], f"{side} of the {self.size} bytes at {self.address:#x}"
            wrong = [f"byte {at} is {wanted[at]}, and not {byte}" for at, byte in sorted(shown.wrong.items())]
            known = shown.bytes.keys() | shown.blank
            if self.flow == "in" and not known:
                # Some messages are read when the call returns.
                known = self.shown["exit"].bytes.keys()
            hidden = [at for at in self.needed(side) if at not in known]
            if hidden and not self.is_part[side]:
                wrong.append(f"rtrace does not show the bytes {spans(hidden)} of {wanted.hex()[:400]}")
            if wrong:
                yield "different", call, name, f"{where}: {'; '.join(wrong[:8])}"
            elif shown.bytes:
                yield "equal", call, name, where
            if hidden and self.is_part[side]:
                yield "unchecked", call, name, f"{where}: rtrace shows a part, without the bytes {spans(hidden)}"
            if shown.unknown:
                unknown = ", ".join(sorted(set(shown.unknown)))
                yield "unchecked", call, name, f"{where}: there are no bytes for {unknown}"
            if shown.outside:
                count = len(set(shown.outside))
                yield "unchecked", call, name, f"{where}: rtrace shows {count} bytes that were not told"

    def needed(self, side):
        """Returns the bytes that rtrace must show."""
        entry, now = self.bytes["entry"], self.bytes[side]
        if self.flow != "out" and (side == "entry" or self.shown[side].bytes):
            return [at for at in range(self.size) if now[at] or now[at] != entry[at]]
        return [at for at in range(self.size) if now[at] != entry[at]]


def spans(numbers):
    """Returns ascending numbers as text, with a dash for those that follow each other."""
    parts = []
    for at in numbers:
        if parts and parts[-1][1] == at - 1:
            parts[-1][1] = at
        else:
            parts.append([at, at])
    return ", ".join(str(one) if one == last else f"{one}-{last}" for one, last in parts)


def memory(line, call, layouts):
    """Compares the memory that the program told with the values that rtrace shows at its addresses."""
    regions = [Region(told, layouts) for told in line["memory"]]
    elsewhere = []
    for argument in call["arguments"] or []:
        for side in ("entry", "exit"):
            if side in argument:
                known = layouts.sets.get((call["name"], argument["name"]))
                kind = {"set": known} if known else {}
                place(argument[side], kind, argument["name"], side, None, regions, elsewhere, layouts)
    for region in regions:
        yield from region.verdicts(call["name"])
    for name in elsewhere:
        yield "unchecked", call["name"], name.split(".")[0], f"the program did not tell the memory of {name}"


def pointed(kind):
    """Returns what is known of the memory that a pointer of this kind points to."""
    known = kind.get("number", {}).get("meaning", {}).get("struct")
    return {"set": known} if known in SETS else kind if "set" in kind else {}


def place(value, kind, name, side, parent, regions, elsewhere, layouts):
    """Puts a value, and what is in it, in the regions of its addresses."""
    if isinstance(value, list):
        for at, item in enumerate(value):
            place(item, kind, f"{name}[{at}]", side, parent, regions, elsewhere, layouts)
        return
    if not isinstance(value, dict):
        return
    region = parent
    if "address" in value:
        address = int(value["address"], 16)
        region = next((region for region in regions if region.has(address)), None)
        if {"struct", "array", "text"} & set(value):
            if region is None and value.get("text") != "" and value.get("array") != []:
                elsewhere.append(name)
            elif region is not None and region is not parent:
                region.add(side, name, value, pointed(kind))
        elif region is not None and name not in region.names:
            region.names.append(name)
    if region is not None and (value.get("cut") or value.get("more")):
        region.is_part[side] = True
    if "array" in value:
        element = kind.get("array", {}).get("element", {})
        place(value["array"], element, name, side, region, regions, elsewhere, layouts)
    layout = layouts.members(value["struct"]) if "struct" in value else {}
    for member, inner in value.get("members", {}).items():
        place(inner, layout.get(member, {}), f"{name}.{member}", side, region, regions, elsewhere, layouts)
