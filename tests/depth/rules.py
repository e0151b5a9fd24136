"""The rules by which an argument of strace and one of rtrace are equal.

What equal means, for each kind of value of strace:

  number      rtrace has this number as the value of this member. The two are also equal if both fit 32 bits and differ
              by 2^32 (-1 is 0xffffffff). Flags, constants and numbers of parts are equal to the number that they make.
  constant    rtrace has this name. A signal may lack its SIG. Flags are equal if rtrace has the same names and the same
              rest; it may have one name for several of them, or names for the rest, if these make the same number.
  string      rtrace has these bytes. It may leave out zeros after a string that ends at the first one. If strace cuts
              the string, rtrace has the bytes before the cut. A decoded struct, array or address is equal if it makes
              the same bytes, and all of them but zeros.
  struct      each member is equal to that of the same name in the struct that rtrace has in this place. Names that
              differ by intent are in ALIASES. A member that rtrace does not have by name is different, except
                * a bit (`disabled=1`) or a field of bits of the member `flags`, which rtrace shows as a flag;
                * a member of a union (`info={...}`), for which rtrace may have the struct in place of the union;
                * 0, or something empty, in a member that rtrace leaves out because its row says that the kernel does
                  not use it in this call, or in one named __reserved.
  array       the elements are equal one by one, and there are as many, unless strace cuts the array. A set has the same
              elements. Words of a set of bits are equal to the numbers of the bits. 0 is an empty set only if rtrace
              made the set of a number. An array that strace shows as empty is equal to an argument that is not used.
  a => b      a is equal to what rtrace read when the call was entered, and b to what it read when the call returned.
"""

import re
import socket
from functools import reduce
from operator import or_

import reencode
from strace_text import Array, Change, Either, Function, Name, Number, Struct, Text

HARDWARE_ADDRESS = re.compile("[0-9a-f]{2}(?::[0-9a-f]{2})+")
REAL_TIME = {"RTMIN": "SIGRT_0", "SIGRTMIN": "SIGRT_0"}
# The members of rtrace for those of strace that have another name, by the struct of rtrace.
ALIASES = {
    ("sockaddr_in", "sa_family"): "sin_family",
    ("sockaddr_in6", "sa_family"): "sin6_family",
    ("sockaddr_un", "sa_family"): "sun_family",
    ("sockaddr_nl", "sa_family"): "nl_family",
    ("sockaddr_ll", "sa_family"): "sll_family",
    ("sockaddr_vm", "sa_family"): "svm_family",
    ("sockaddr_alg", "sa_family"): "salg_family",
    ("ip_mreqn", "imr_interface"): "imr_address",  # the member of ip_mreq in the same place
    ("keyctl_dh_params", "private"): "priv",  # the name for C++
    ("sigset_argpack", "sigmask"): "p",
    ("sigset_argpack", "sigsetsize"): "size",
    ("bpf_attr_map", "extra_data"): "tail",
}
# The members of unions of an int and a pointer, by the names of strace: the union, and its bits that the member has.
UNIONS = {"si_int": ("si_value", 32), "si_ptr": ("si_value", 64), "sival_int": (None, 32), "sival_ptr": (None, 64)}
# Members of several bits in `flags`, and their places in linux/perf_event.h and asm/ldt.h: the first bit, and how many.
FIELDS = {("perf_event_attr", "precise_ip"): (15, 2), ("user_desc", "contents"): (1, 2)}
# The members for the values of a macro of C, in their order.
MACROS = {
    "makedev": ("major", "minor"),
    "BPF_STMT": ("code", "k"),
    "BPF_JUMP": ("code", "k", "jt", "jf"),
    "IOPRIO_PRIO_VALUE": ("class", "level"),
    "QCMD": ("cmd", "type"),
}
# What the macros of wait(2) say, by the members of rtrace.
WAIT_STATUS = {
    "WIFEXITED": "exited",
    "WEXITSTATUS": "exited",
    "WIFSIGNALED": "killed",
    "WTERMSIG": "killed",
    "WCOREDUMP": "dumped",
    "WIFSTOPPED": "stopped",
    "WSTOPSIG": "stopped",
    "WIFCONTINUED": "continued",
}
# The arguments whose words strace shows, and of which rtrace shows the numbers of the bits that are set.
SETS_OF_BITS = ("nmask", "new_nodes", "old_nodes")
# The members of rtrace that have what follows the header of a message or of an attribute.
CONTENTS = ("payload", "data", "attributes")


class Verdict:
    """What strace says and rtrace does not, and what cannot be checked, both as words."""

    def __init__(self, gaps=(), unchecked=()):
        self.gaps, self.unchecked = list(gaps), list(unchecked)

    def __add__(self, other):
        return Verdict(self.gaps + other.gaps, self.unchecked + other.unchecked)

    def under(self, name):
        return Verdict([f"{name}={gap}" for gap in self.gaps], [f"{name}={note}" for note in self.unchecked])


EQUAL = Verdict()


def lacks(what):
    return Verdict([what])


def best(verdicts):
    """Returns the verdict with the least that differs, which is written with the fewest characters."""
    return min(verdicts, key=lambda verdict: (sum(len(gap) + 1 for gap in verdict.gaps), len(verdict.unchecked)))


def total(verdicts):
    return sum(verdicts, EQUAL)


def index_here(name):
    """Returns the index of an interface of this network namespace; None if it has none of this name."""
    try:
        return socket.if_nametoindex(name)
    except OSError:
        return None


def same_number(one, other):
    """Whether two writings of a number are the same: of 64 bits, or of 32 if both fit these."""
    if (one - other) % (1 << 64) == 0:
        return True
    return (one - other) % (1 << 32) == 0 and all(-(1 << 31) <= number < 1 << 32 for number in (one, other))


def words_of(wanted):
    """Returns how strace's value is written in a list of differences."""
    if isinstance(wanted, Number):
        return str(wanted.value)
    if isinstance(wanted, Name):
        return wanted.text
    if isinstance(wanted, Text):
        return repr(wanted.bytes[:40])
    if isinstance(wanted, Either):
        return "|".join(words_of(value) for value in wanted.values)
    if isinstance(wanted, Function):
        return f"{wanted.name}({','.join(words_of(value) for value in wanted.values)})"
    if isinstance(wanted, Array):
        return f"[{','.join(words_of(value) for _, value in wanted.values)}]"
    if isinstance(wanted, Struct):
        return "{" + ",".join(f"{name}={words_of(value)}" for name, value in wanted.members) + "}"
    return "=>"


def command_number(values):
    """Returns the number of an ioctl command that has no name: _IOC(direction, type, number, size), asm-generic/ioctl.h."""
    directions = {"_IOC_NONE": 0, "_IOC_WRITE": 1, "_IOC_READ": 2}
    parts = values[0].values if isinstance(values[0], Either) else values[:1]
    direction = sum(directions[part.text] if isinstance(part, Name) else part.value for part in parts)
    kind, number, size = (value.value for value in values[1:])
    return direction << 30 | size << 16 | kind << 8 | number


def names_of(value):
    """Returns the names of constants that a value of rtrace has."""
    if not isinstance(value, dict):
        return set()
    if "flags" in value:
        return set(value["flags"])
    if "permissions" in value:
        return {value["type"]} if "type" in value else set()
    return {value[key] for key in ("constant", "name") if isinstance(value.get(key), str)}


class Comparer:
    """Compares values. Sides are pairs of `entry` or `exit` and a value of rtrace."""

    def __init__(self, layouts):
        self.layouts, self.argument = layouts, None

    def compare_argument(self, wanted, known):
        """Compares an argument, of which `known` is what rtrace says."""
        self.argument = known.get("name")
        sides = [(side, known[side]) for side in ("entry", "exit") if side in known]
        if not sides and known.get("unused"):
            sides = [("unused", {"hex": known["registers"][0]})]
        return self.compare(wanted, sides)

    def compare(self, wanted, sides):
        """Compares a value of strace with one of rtrace, which it may have read twice."""
        if not sides:
            return lacks(words_of(wanted))
        if isinstance(wanted, Change):
            return self.compare_change(wanted, sides)
        if isinstance(wanted, (Struct, Array)):
            sides = [side for side in sides if not is_address(side[1])] or sides
        if isinstance(wanted, Struct):
            return self.compare_struct(wanted, sides)
        if isinstance(wanted, Array):
            return best(
                [self.compare_array(wanted, [side]) for side in sides]
                + ([self.compare_array(wanted, sides)] if len(sides) > 1 else [])
            )
        return best([self.compare_leaf(wanted, value) for _, value in sides])

    def compare_change(self, wanted, sides):
        before = [side for side in sides if side[0] != "exit"]
        after = [side for side in sides if side[0] != "entry"]
        if not after and wanted.before == wanted.after:
            after = sides  # the call did not write there
        return self.compare(wanted.before, before) + self.compare(wanted.after, after)

    def compare_struct(self, wanted, sides):
        statuses = [value["wait_status"] for _, value in sides if isinstance(value, dict) and "wait_status" in value]
        if statuses:
            return best([self.compare_status(wanted, status) for status in statuses])
        structs = [
            (side, value) for side, value in sides if isinstance(value, dict) and isinstance(value.get("members"), dict)
        ]
        out = []
        if not wanted.members and not wanted.is_cut and not structs:
            return best([self.compare_number(0, value) for _, value in sides])  # flags of which none is set: c_iflag=
        if wanted.members and all(name in UNIONS and not UNIONS[name][0] for name, _ in wanted.members):
            # A union, which rtrace has as one number: sigev_value={sival_int=7, sival_ptr=0x7}.
            return total(
                best([self.compare_union(part, value, UNIONS[name][1]) for _, value in sides])
                for name, part in wanted.members
            )
        if wanted.members and not structs:
            return lacks(words_of(wanted))
        for name, value in wanted.members:
            if name is None:
                out.append(self.compare_unnamed(value, structs))
            else:
                out.append(self.compare_member(name, value, structs).under(name))
        return total(out)

    def compare_member(self, name, wanted, structs):
        found = [(side, member) for side, value in structs for member in members_named(value, name)]
        verdicts = [self.compare(wanted, found)] if found else []
        if isinstance(wanted, Struct) and wanted.members and (not found or name in dict(wanted.members)):
            # strace shows the member of a union, and rtrace has its struct in place of the union. The struct may have a
            # member of the same name (`info` of bpf_attr).
            verdicts.append(self.compare_struct(wanted, structs))
        if (
            not found
            and isinstance(wanted, Number)
            and any(self.is_bit(name, wanted.value, value) for _, value in structs)
        ):
            return EQUAL
        if not found and name in UNIONS and UNIONS[name][0]:
            union, bits = UNIONS[name]
            return best(
                [lacks(words_of(wanted))]
                + [
                    self.compare_union(wanted, member, bits)
                    for _, value in structs
                    for member in members_named(value, union)
                ]
            )
        if (
            not found
            and is_nothing(wanted)
            and (name == "__reserved" or any(self.is_left_out(name, value) for _, value in structs))
        ):
            return EQUAL
        return best(verdicts) if verdicts else lacks(words_of(wanted))

    def is_bit(self, name, number, value):
        """Whether this member is a bit (`disabled=1`) or a field of bits of `flags`, and rtrace has it there as a flag."""
        flags, layout = value["members"].get("flags"), self.layouts.members(value.get("struct")).get("flags", {})
        table = layout.get("number", {}).get("meaning", {}).get("table")
        whole = self.layouts.number_of(flags, table) if isinstance(flags, dict) and "flags" in flags else None
        if whole is None:
            return False
        if (value["struct"], name) in FIELDS:
            first, count = FIELDS[value["struct"], name]
            return whole >> first & (1 << count) - 1 == number
        constants = [known for known in self.layouts.tables.get(table, {}) if known.endswith("_" + name)]
        shortest = min(constants, key=len, default=None)
        return shortest is not None and number == (shortest in flags["flags"])

    def is_left_out(self, name, value):
        """Whether the struct has this member, which rtrace leaves out as the kernel does not use it in this call."""
        return "used_if" in self.layouts.members(value.get("struct")).get(name, {})

    def compare_union(self, wanted, value, bits):
        number = self.layouts.number_of(value)
        return lacks(words_of(wanted)) if number is None else self.compare_leaf(wanted, number & (1 << bits) - 1)

    def compare_unnamed(self, wanted, structs):
        if isinstance(wanted, Function) and wanted.name == "inet_pton" and isinstance(wanted.values[-1], Name):
            # The last value is the member: inet_pton(AF_INET6, "::1", &sin6_addr).
            return self.compare_member(wanted.values[-1].text, wanted, structs).under(wanted.values[-1].text)
        if isinstance(wanted, Text):
            return self.compare_member("tail", wanted, structs)  # the bytes after the struct that both know
        return lacks(words_of(wanted))

    def compare_status(self, wanted, status):
        """Compares {WIFEXITED(s) && WEXITSTATUS(s) == 3}."""
        out = []
        for _, value in wanted.members:
            macro = None
            for part in value.values if isinstance(value, Either) else [value]:
                if isinstance(part, Function):
                    macro = WAIT_STATUS.get(part.name)
                    out.append(EQUAL if macro in status else lacks(part.name))
                elif macro:
                    out.append(self.compare_leaf(part, status.get(macro)))
                else:
                    out.append(lacks(words_of(part)))
        return total(out)

    def compare_array(self, wanted, sides):
        values = [value for _, value in wanted.values]
        if values and isinstance(values[0], Struct) and is_header(values[0]):
            # rtrace has one message as an array of one.
            messages = [
                (side, value["array"][0])
                for side, value in sides
                if isinstance(value, dict) and len(value.get("array", [])) == 1
            ]
            return self.compare_contents(values, messages or sides)
        if any(name for name, _ in wanted.values):
            return self.compare_indexed(wanted, sides)
        if not values and all(side == "unused" for side, _ in sides):
            return EQUAL
        key = "all_but" if wanted.is_negated else "array"
        lists = [(side, value) for side, value in sides if isinstance(value, dict) and isinstance(value.get(key), list)]
        if not lists and len(values) == 1 and not wanted.is_negated:
            # strace shows the number or the struct that an argument points to as an array of one.
            return self.compare_pointed(values[0], sides)
        if not lists:
            return lacks(words_of(wanted))
        if self.argument in SETS_OF_BITS and all(isinstance(value, Number) for value in values):
            same = any(is_set_of_bits(values, value[key]) for _, value in lists)
            return EQUAL if same else lacks(words_of(wanted))
        lengths = {len(value[key]) for _, value in lists}
        if min(lengths) < len(values):
            shortest = min(lengths)
            return lacks(
                f"{len(values)} elements, not {shortest}: {','.join(words_of(value) for value in values[shortest:])[:200]}"
            )
        out = [
            self.compare(wanted_item, [(side, value[key][at]) for side, value in lists])
            for at, wanted_item in enumerate(values)
        ]
        if max(lengths) > len(values) and not wanted.is_cut:
            out.append(lacks(f"the end after {len(values)} elements, not {max(lengths)}"))
        return total(out)

    def compare_indexed(self, wanted, sides):
        """Compares [[VINTR]=0x3, [VQUIT]=0x1c], whose indices have names in C, with the members of a struct. Constants
        that begin at 1 are the names of the indices from 0 on ([NAME-1]=0)."""
        structs = [
            (side, value) for side, value in sides if isinstance(value, dict) and isinstance(value.get("members"), dict)
        ]
        if structs:
            # strace shows the number of an index that is newer than its names.
            known = list(structs[0][1]["members"])
            at = [known[int(name)] if name.isdigit() and int(name) < len(known) else name for name, _ in wanted.values]
            names = [(name.removesuffix("-1"), value) for name, (_, value) in zip(at, wanted.values)]
            return total(self.compare_member(name, value, structs).under(name) for name, value in names)
        plain = wanted._replace(values=[(None, value) for _, value in wanted.values])
        names = [name for name, _ in wanted.values if not name.isdigit()]
        return self.compare_array(plain, sides) + (
            lacks(f"the names of the elements: {','.join(names)[:200]}") if names else EQUAL
        )

    def compare_pointed(self, wanted, sides):
        verdict = self.compare(wanted, sides)
        if verdict.gaps and isinstance(wanted, Number):
            # The kernel's int of an option, which rtrace has as a struct or a string.
            data = (wanted.value & 0xFFFFFFFF).to_bytes(4, "little")
            return best(
                [verdict] + [self.compare_bytes(Text(data, True), value) for _, value in sides if decodes_memory(value)]
            )
        return verdict

    def compare_contents(self, values, sides):
        """Compares [{nlmsg_len=...}, payload, attributes]: rtrace has the rest in members of the header."""
        out = [self.compare_struct(values[0], sides)]
        structs = [
            (side, value) for side, value in sides if isinstance(value, dict) and isinstance(value.get("members"), dict)
        ]
        rest = values[1:]
        if (
            rest
            and isinstance(rest[0], Array)
            and rest[0].values
            and isinstance(rest[0].values[0][1], Struct)
            and not is_header(rest[0].values[0][1])
        ):
            rest = [value for _, value in rest[0].values] + rest[1:]  # strace has the parts of NLMSG_ERROR in an array
        for wanted in rest:
            places = [name for name in CONTENTS if any(name in value["members"] for _, value in structs)]
            found = [
                self.compare(
                    wanted, [(side, value["members"][name]) for side, value in structs if name in value["members"]]
                )
                for name in places
            ]
            if isinstance(wanted, Text):
                found += [self.compare_text_after(wanted, value) for _, value in structs]
            out.append(best(found) if found else lacks(words_of(wanted)))
        return total(out)

    def compare_text_after(self, wanted, value):
        """Compares the bytes after a header with the members that have its contents."""
        contents = {name: value["members"][name] for name in CONTENTS if name in value["members"]}
        size = self.layouts.structs.get(value["struct"], {}).get("sizes", {}).get(reencode.ABI)
        if not contents or size is None or "address" not in value:
            return lacks(words_of(wanted))
        place = {"struct": value["struct"], "members": contents, "address": hex(int(value["address"], 16))}
        differs, unknown = reencode.disagreements(place, bytes(size) + wanted.bytes, wanted.is_cut, self.layouts)
        return Verdict(differs, [f"{what} has bytes that are not known" for what in unknown])

    def compare_bytes(self, wanted, value):
        number = self.layouts.number_of(value)
        if number is not None and len(wanted.bytes) in (1, 2, 4, 8):
            same = int.from_bytes(wanted.bytes, "little") == number & (1 << 8 * len(wanted.bytes)) - 1
            return EQUAL if same else lacks(words_of(wanted))
        differs, unknown = reencode.disagreements(value, wanted.bytes, wanted.is_cut, self.layouts)
        return Verdict(differs, [f"{what} has bytes that are not known" for what in unknown])

    def compare_leaf(self, wanted, value):
        if isinstance(wanted, Number):
            return self.compare_number(wanted.value, value)
        if isinstance(wanted, Text):
            return self.compare_text(wanted, value)
        if isinstance(wanted, Function):
            return self.compare_function(wanted, value)
        if isinstance(wanted, Either) and wanted.operators == {"or"}:
            return best([self.compare_leaf(part, value) for part in wanted.values])
        if isinstance(wanted, (Name, Either)):
            return self.compare_flags(wanted.values if isinstance(wanted, Either) else [wanted], value)
        raise TypeError(wanted)

    def compare_number(self, number, value):
        if isinstance(value, dict) and "address" in value and same_number(number, int(value["address"], 16)):
            return EQUAL
        known = self.layouts.number_of(value)
        if isinstance(value, dict) and "array" in value and "address" not in value:
            known = self.number_of_set(value["array"])
        if isinstance(value, dict) and set(value) == {"ip"} and len(reencode.raw_bytes(value)) == 4:
            known = int.from_bytes(reencode.raw_bytes(value), "little")  # strace shows the int of an option
        if known is None and names_of(value):
            return Verdict([], [f"{number} is {'|'.join(sorted(names_of(value)))}"])
        return EQUAL if known is not None and same_number(number, known) else lacks(str(number))

    def number_of_set(self, items):
        """Returns the number whose bits are these elements; a set that has no address was made of a number."""
        numbers = [self.layouts.number_of(item) for item in items]
        return None if None in numbers else reduce(or_, (1 << number for number in numbers), 0)

    def compare_text(self, wanted, value):
        known = reencode.raw_bytes(value)
        if known is not None:
            if known == wanted.bytes or wanted.is_cut and known.startswith(wanted.bytes):
                return EQUAL
            # rtrace leaves out the zeros after a string that ends at the first one.
            is_string = "text" in value and "wanted" not in value and "cut" not in value and b"\0" not in known
            if is_string and wanted.bytes[len(known) :].strip(b"\0") == b"" and wanted.bytes.startswith(known):
                return EQUAL
            return lacks(words_of(wanted))
        if decodes_memory(value) or isinstance(value, int):
            return self.compare_bytes(wanted, value)
        return lacks(words_of(wanted))

    def compare_function(self, wanted, value):
        arguments = wanted.values
        if wanted.name in ("htons", "htonl", "ntohs", "ntohl") and len(arguments) == 1:
            return self.compare_leaf(arguments[0], value)
        if wanted.name == "inet_addr" or wanted.name == "inet_pton":
            text = next((part.bytes for part in arguments if isinstance(part, Text)), b"").decode()
            same = (
                isinstance(value, dict)
                and value.get("ip") is not None
                and reencode.raw_bytes({"ip": text}) == reencode.raw_bytes({"ip": value["ip"]})
            )
            return EQUAL if same else lacks(text)
        if wanted.name == "if_nametoindex":
            name = arguments[0].bytes.decode()
            number = self.layouts.number_of(value)
            if name == "lo":  # its index is 1 in every network namespace
                return EQUAL if number == 1 else lacks(words_of(wanted))
            if number and number == index_here(name):
                return EQUAL
            # The program may have been in another network namespace.
            return Verdict([], [f"{number} is the index of {name}"]) if number else lacks(words_of(wanted))
        if wanted.name == "<<":
            return self.compare_flags([wanted], value)
        if wanted.name == "_IOC":
            return self.compare_number(command_number(arguments), value)
        if wanted.name == "KERNEL_VERSION":
            major, minor, patch = (part.value for part in arguments)
            return self.compare_number(major << 16 | minor << 8 | patch, value)
        if wanted.name in MACROS and isinstance(value, dict):
            members = value.get("members", value)
            return total(
                self.compare(part, [("", members[name])] if name in members else [])
                for name, part in zip(MACROS[wanted.name], arguments)
            )
        if (
            isinstance(value, dict)
            and value.get("constant") == wanted.name
            and len(value.get("parameters", [])) == len(arguments)
        ):
            parts = zip(arguments, value["parameters"])
            return total(self.compare(part, [("", known)]) for part, known in parts).under(wanted.name)
        return lacks(words_of(wanted))

    def compare_flags(self, parts, value):
        """Compares names and numbers joined by |, or one name, with a value of rtrace."""
        if isinstance(value, dict) and "packed" in value:
            return self.compare_packed(parts, value)
        shifts = [part for part in parts if isinstance(part, Function) and part.name == "<<"]
        if shifts and isinstance(value, dict) and "array" in value:
            # A set of bits, in which 1<<CAP_SYS_ADMIN is the element with this name.
            return self.compare_set(parts, value["array"])
        if not all(isinstance(part, (Name, Number)) for part in parts):
            return lacks("|".join(words_of(part) for part in parts))
        wanted = {part.text for part in parts if isinstance(part, Name)}
        rest = reduce(or_, (part.value for part in parts if isinstance(part, Number)), 0)
        if len(parts) == 1 and HARDWARE_ADDRESS.fullmatch(parts[0].text if isinstance(parts[0], Name) else ""):
            known = reencode.raw_bytes(value)
            return EQUAL if known == bytes.fromhex(parts[0].text.replace(":", "")) else lacks(parts[0].text)
        known = names_of(value)
        wanted -= {name for name in wanted if name in known}
        left = known - {part.text for part in parts if isinstance(part, Name)}
        for name in sorted(wanted):
            for other in (REAL_TIME.get(name), "SIG" + name):
                if other in left:
                    wanted.discard(name)
                    left.discard(other)
        # strace has one name for a futex operation and its flag.
        for name in sorted(wanted):
            if (
                name.startswith("FUTEX_")
                and name.endswith("_PRIVATE")
                and {name[: -len("_PRIVATE")], "FUTEX_PRIVATE_FLAG"} <= left
            ):
                wanted.discard(name)
                left -= {name[: -len("_PRIVATE")], "FUTEX_PRIVATE_FLAG"}
        # One name of rtrace may stand for several flags.
        for name in sorted(left):
            number = self.layouts.value_of_names([name])
            parts_of_it = {
                part
                for part in wanted
                if number and (bit := self.layouts.value_of_names([part])) and bit & number == bit
            }
            if len(parts_of_it) > 1 and self.layouts.value_of_names(parts_of_it) == number:
                wanted -= parts_of_it
                left.discard(name)
        if wanted:
            return lacks("|".join(sorted(wanted)))
        known_rest = rest_of(value)
        number = self.layouts.value_of_names(left)
        if number is None:
            return Verdict([], [f"{rest:#x} is {'|'.join(sorted(left))}"])
        if isinstance(value, dict) and ("constant" in value or "signal" in value):
            return EQUAL if not left and not rest else lacks(hex(rest))
        return EQUAL if same_number(rest, number | known_rest) else lacks(f"{rest:#x}, not {number | known_rest:#x}")

    def compare_set(self, parts, items):
        names = {name for item in items for name in names_of(item)}
        wanted = {part.values[1].text for part in parts if isinstance(part, Function)}
        others = [part for part in parts if not isinstance(part, Function)]
        gaps = sorted(wanted ^ names) + [words_of(part) for part in others]
        return Verdict(gaps)

    def compare_packed(self, parts, value):
        """Compares parts of a number with the values of which rtrace says that it is composed."""
        members, raw = list(value["members"].values()), int(value["raw"], 16)
        names = {name for part in parts for name in names_in(part)}
        numbers = [self.evaluate(part) for part in parts]
        if None not in numbers:
            missing = sorted(names - {name for member in members for name in names_of(member)})
            return (
                Verdict(missing)
                if missing or same_number(reduce(or_, numbers, 0), raw)
                else lacks(hex(reduce(or_, numbers, 0)))
            )
        out = []
        for part in parts:
            if isinstance(part, Function) and part.name == "<<" and words_of(part.values[1]).endswith("_SHIFT"):
                part = part.values[0]  # the shift says which member has the value
            found = next((member for member in members if part_is_in(part, member, self)), None)
            if found is None:
                out.append(lacks(words_of(part)))
            elif not isinstance(part, Name):
                members.remove(found)
        return total(out)

    def evaluate(self, part):
        """Returns the number that a part of an expression of strace is, or None if a name in it is not known."""
        if isinstance(part, Number):
            return part.value
        if isinstance(part, Name):
            return self.layouts.value_of_names([part.text])
        if isinstance(part, Function) and part.name == "<<":
            left, right = (self.evaluate(value) for value in part.values)
            return None if left is None or right is None else left << right
        return None


def names_in(part):
    if isinstance(part, Function):
        return {name for value in part.values for name in names_in(value)}
    return {part.text} if isinstance(part, Name) else set()


def is_nothing(wanted):
    """Whether strace shows 0, NULL, or an empty string, array or set of flags."""
    if isinstance(wanted, Number):
        return wanted.value == 0
    if isinstance(wanted, Text):
        return wanted.bytes.strip(b"\0") == b""
    return isinstance(wanted, (Array, Struct)) and not (wanted.values if isinstance(wanted, Array) else wanted.members)


def part_is_in(part, member, comparer):
    return part.text in names_of(member) if isinstance(part, Name) else not comparer.compare_leaf(part, member).gaps


def rest_of(value):
    """Returns the bits of flags that have no name."""
    if isinstance(value, dict) and "permissions" in value:
        return value["permissions"]
    return int(value["rest"], 16) if isinstance(value, dict) and "rest" in value else 0


def decodes_memory(value):
    return isinstance(value, dict) and bool(
        {"struct", "array", "text", "ip", "mac", "uuid", "flags", "constant", "hex"} & set(value)
    )


def is_address(value):
    return isinstance(value, dict) and "address" in value and set(value) <= {"address", "unread"}


def is_header(wanted):
    return bool(wanted.members) and wanted.members[0][0] in ("nlmsg_len", "nla_len")


def is_set_of_bits(words, items):
    """Whether words of 64 bits have exactly the bits whose numbers are the items."""
    if not all(isinstance(item, int) and not isinstance(item, bool) for item in items):
        return False
    bits = sum((word.value & (1 << 64) - 1) << 64 * at for at, word in enumerate(words))
    return bits == sum(1 << item for item in set(items))


def members_named(value, name):
    """Returns the member of this name: of the struct, or of a number in it that is composed of members."""
    members = value["members"]
    for known in (name, ALIASES.get((value.get("struct"), name))):
        if known in members:
            return [members[known]]
    return [
        member["members"][name]
        for member in members.values()
        if isinstance(member, dict) and "packed" in member and name in member["members"]
    ]
