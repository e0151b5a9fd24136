"""Reads the text that strace prints, and turns each call into a tree of values.

A value is one of
  Number(value)             a number, a signal mask's bit, or the result of htons(...)
  Name(text)                a constant, or any other bare word
  Text(bytes, is_cut)       a string in quotes; is_cut if `...` follows it
  Struct(members, is_cut)   {name=value, ...}; a member without a name has the name None
  Array(values, is_cut)     [value, ...]; also a set, whose values have blanks between them
  Function(name, values)    makedev(8, 1), inet_addr("127.0.0.1")
  Function("<<", [1, name])  1<<CAP_SYS_ADMIN
  Either(values, operators) the operands of |, ||, ==, &&, or, and of other operators
  Change(before, after)     before => after
"""

import re
from collections import namedtuple

Number = namedtuple("Number", "value")
Name = namedtuple("Name", "text")
Text = namedtuple("Text", "bytes is_cut")
Struct = namedtuple("Struct", "members is_cut")
Array = namedtuple("Array", "values is_cut is_negated")
Function = namedtuple("Function", "name values")
Either = namedtuple("Either", "values operators")
Change = namedtuple("Change", "before after")
# A call of one task. `returned` is the text after the `=`, `error` the name of the errno.
Call = namedtuple("Call", "tid name arguments returned error extra line")

TOKEN = re.compile(
    r"""\s*(?:
    (?P<comment>/\*.*?\*/)
  | (?P<text>@?"(?:[^"\\]|\\.)*")
  | (?P<unfinished><unfinished[ ]\.\.\.>)
  | (?P<cut>\.\.\.)
  | (?P<change>=>)
  | (?P<mac>[0-9a-f]{2}(?::[0-9a-f]{2})+(?![0-9A-Za-z]))
  | (?P<uuid>[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})
  | (?P<number>-?(?:0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?![A-Za-z_]))
  | (?P<char>'(?:[^'\\]|\\x[0-9a-f]{2}|\\.)')
  | (?P<word>[A-Za-z_?][A-Za-z0-9_?.:]*(?:-\d+)?)
  | (?P<operator><<|>>|\|\||&&|==|[|*&+])
  | (?P<mark>[][(){},=~!@<>;%$/-])
)""",
    re.X | re.S,
)
BLANK, ASSIGNS = re.compile(r"\s*\Z"), re.compile(r"\s*=(?![>=])")
INDEX, CHAR = re.compile(r"([^][{}\"]+)\]=(?!=)"), re.compile(r"'(?:[^'\\]|\\x[0-9a-f]{2}|\\.)'")
OCTAL = re.compile(r"[0-7]{1,3}")
COMPUTED = {"*": int.__mul__, "<<": int.__lshift__, "+": int.__add__}
ESCAPES = {"n": 10, "t": 9, "r": 13, "v": 11, "f": 12, "a": 7, "b": 8, "e": 27, '"': 34, "\\": 92, "'": 39}


class Unreadable(Exception):
    """The text is not what strace prints."""


def unescape(quoted):
    """Returns the bytes of a string in quotes."""
    text, out, at = quoted, bytearray(), 0
    while at < len(text):
        if text[at] != "\\":
            out += text[at].encode("utf-8", "surrogateescape")
            at += 1
        elif text[at + 1] == "x":
            out.append(int(text[at + 2 : at + 4], 16))
            at += 4
        elif text[at + 1] in "01234567":
            digits = OCTAL.match(text, at + 1).group()
            out.append(int(digits, 8) & 0xFF)
            at += 1 + len(digits)
        else:
            out.append(ESCAPES[text[at + 1]])
            at += 2
    return bytes(out)


class Parser:
    def __init__(self, text):
        self.text, self.at = text, 0
        self.kind = self.token = None
        self.next()

    def next(self):
        while True:
            if BLANK.match(self.text, self.at):
                self.kind, self.token, self.at = "end", "", len(self.text)
                return
            match = TOKEN.match(self.text, self.at)
            if not match:
                raise Unreadable(f"at {self.text[self.at : self.at + 40]!r}")
            self.start, self.at = match.start(match.lastgroup), match.end()
            self.kind, self.token = match.lastgroup, match.group(match.lastgroup)
            if self.kind not in ("comment", "unfinished"):
                return

    def eat(self, token):
        if self.token != token:
            return False
        self.next()
        return True

    def items(self, close):
        """Reads values up to the closing bracket, and returns them as pairs of name and value, and whether `...` follows."""
        items, is_cut = [], False
        while not self.eat(close):
            if self.kind == "end":
                raise Unreadable(f"no {close}")
            if self.kind == "cut":
                is_cut = True
                self.next()
            else:
                items.append(self.named())
            self.eat(",")
        return items, is_cut

    def named(self):
        """Reads `name=value` or a value."""
        if self.kind == "word":
            if ASSIGNS.match(self.text, self.at):
                name = self.token
                self.next()
                self.next()
                # strace writes nothing for a set of flags that is empty: {c_iflag=, c_oflag=NL0|CR0|}
                return name, Struct([], False) if self.token in (",", "}") else self.value()
        if self.token == "[" and (index := INDEX.match(self.text, self.at)):
            self.at = index.end()
            self.next()
            return index.group(1), self.value()
        return None, self.value()

    def value(self):
        before = self.alternatives()
        if self.kind == "change":
            self.next()
            # The name may stand before both: {features=0 => features=UFFD_FEATURE_THREAD_ID}.
            if self.kind == "word" and ASSIGNS.match(self.text, self.at):
                self.next()
                self.next()
            return Change(before, self.alternatives())
        return before

    def alternatives(self):
        values, operators = [self.single()], set()
        while self.kind == "operator" or (self.kind == "word" and self.token == "or"):
            operator = self.token
            self.next()
            if self.token in (",", "}"):
                break
            values.append(self.single())
            if operator in COMPUTED and all(isinstance(value, Number) for value in values[-2:]):
                right, left = values.pop(), values.pop()
                values.append(Number(COMPUTED[operator](left.value, right.value)))
            elif operator == "<<":
                right, left = values.pop(), values.pop()
                values.append(Function("<<", [left, right]))
            else:
                operators.add(operator)
        return values[0] if len(values) == 1 else Either(values, operators)

    def single(self):
        kind, token = self.kind, self.token
        if kind == "number":
            self.next()
            if "." in token or "e" in token and not token.startswith(("0x", "-0x")):
                return Number(int(float(token)))
            negative, digits = token.startswith("-"), token.lstrip("-")
            number = int(digits, 16 if digits.startswith("0x") else 8 if digits.startswith("0") and len(digits) > 1 else 10)
            return Number(-number if negative else number)
        if kind == "text":
            self.next()
            is_cut = self.kind == "cut"
            if is_cut:
                self.next()
            if token.startswith("@"):
                return Text(b"\0" + unescape(token[2:-1]), is_cut)
            return Text(unescape(token[1:-1]), is_cut)
        if kind == "mac":
            self.next()
            return Name(token)
        if token == "-":
            self.next()
            return self.single()
        if token == "*":
            self.next()
            return Name("?*")  # any
        if kind == "uuid":
            self.next()
            return Text(bytes.fromhex(token.replace("-", "")), False)
        if kind == "char":
            self.next()
            return Number(unescape(token[1:-1])[0])
        if kind == "word":
            self.next()
            if self.token == "(" and self.text[self.start - 1] != " ":
                self.next()
                return Function(token, [value for _, value in self.items(")")[0]])
            return Number(0) if token == "NULL" else Name(token)
        if token == "{":
            self.next()
            members, is_cut = self.items("}")
            return Struct(members, is_cut)
        if token == "[":
            self.next()
            values, is_cut = self.items("]")
            return Array(values, is_cut, False)
        if token == "&":
            self.next()
            return self.single()
        if token in ("~", "!"):
            self.next()
            value = self.single()
            return Array(value.values, value.is_cut, True) if isinstance(value, Array) else value
        if token == "(":
            self.next()
            values, _ = self.items(")")
            return Either([value for _, value in values], set())
        if kind == "cut":
            self.next()
            return Struct([], True)
        raise Unreadable(f"a value at {self.text[self.start : self.start + 40]!r}")


LINE = re.compile(r"^(?:\[pid +(\d+)\] |(\d+) +)?(.*)$", re.S)
RESUMED = re.compile(r"<\.\.\. (\w+) resumed>")


def whole_lines(lines):
    """Joins `<unfinished ...>` with `<... resumed>`, and returns pairs of task and line in the order of the calls' ends."""
    waiting = {}
    for line in lines:
        tid, other, text = LINE.match(line.rstrip("\n")).groups()
        tid = int(tid or other or 0)
        if text.endswith("<unfinished ...>"):
            waiting[tid] = text[: -len("<unfinished ...>")].rstrip()
        elif resumed := RESUMED.match(text):
            yield tid, waiting.pop(tid, "") + " " + text[resumed.end() :]
        else:
            yield tid, text


def split_call(text):
    """Returns the name of the call, the text of its arguments, and the text after them."""
    match = re.match(r"(\w+(?:#\w+)?)\(", text)
    if not match:
        return None
    depth, at, quoted = 0, match.end() - 1, False
    while at < len(text):
        char = text[at]
        if quoted:
            if char == "\\":
                at += 1
            elif char == '"':
                quoted = False
        elif char == '"':
            quoted = True
        elif char == "'" and (in_quotes := CHAR.match(text, at)):
            at = in_quotes.end() - 1
        elif text.startswith("/*", at):
            at = text.index("*/", at) + 1
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
            if depth == 0:
                return match.group(1), text[match.end() : at], text[at + 1 :]
        at += 1
    return None


def calls(lines):
    """Returns the calls of strace's output, and the lines that are calls but cannot be read."""
    found, unreadable = [], []
    for tid, text in whole_lines(lines):
        parts = split_call(text)
        if not parts:
            if re.match(r"\w+\(", text):
                unreadable.append((text, "no end of its arguments"))
            continue
        name, arguments, rest = parts
        returned = re.match(r"\s*= (\S+)(?: (E[A-Z0-9]+)\b)?(.*)$", rest, re.S)
        try:
            parser = Parser(arguments)
            values = []
            while parser.kind != "end":
                if parser.kind == "cut":
                    parser.next()
                    values.append((None, Struct([], True)))
                else:
                    values.append(parser.named())
                if parser.kind != "end" and not parser.eat(","):
                    raise Unreadable(f"no comma at {parser.token!r}")
        except (Unreadable, KeyError, ValueError) as error:
            unreadable.append((text, str(error)))
            continue
        value, error, extra = returned.groups() if returned else ("?", None, "")
        found.append(Call(tid, name, values, value, error, extra, text))
    return found, unreadable
