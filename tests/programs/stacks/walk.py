"""walk.py COUNT: makes the calls lseek(-1, 1, 9) to lseek(-1, COUNT, 9) from what C code of the interpreter calls. The paths look random and are the same in every run."""
import functools
import json
import os
import random
import re
import sys


class Thing:
    def __init__(self, go):
        self.go = go

    def __lt__(self, other):
        self.go()
        return True

    def __iter__(self):
        self.go()
        return iter(())

    def __hash__(self):
        self.go()
        return 1

    def __getattr__(self, name):
        self.go()
        return name

    def __enter__(self):
        self.go()

    def __exit__(self, *_):
        return False

    def __del__(self):
        self.go()


def managed(go):
    with Thing(first(go)):
        pass


def first(go):
    """The first time only."""
    gos = [go]
    return lambda *_: (gos.pop()() if gos else None) or 1


WAYS = [
    lambda go: go(),
    lambda go: list(map(lambda _: go(), [1])),
    lambda go: sorted([Thing(first(go)), Thing(first(go))]) and None,
    lambda go: max([1, 2], key=first(go)),
    lambda go: functools.reduce(first(go), [1, 2]),
    lambda go: re.sub("a", lambda match: go() or "", "a"),
    lambda go: json.loads("{}", object_hook=lambda _: go()),
    lambda go: json.dumps(object(), default=lambda _: go()),
    lambda go: [*(go() for _ in range(1))],
    lambda go: hash(Thing(first(go))),
    lambda go: Thing(first(go)).attribute,
    lambda go: sum(Thing(first(go))),
    managed,
    lambda go: exec("go()", {"go": go}),
    lambda go: functools.partial(go)(),
    lambda go: property(lambda self: go()).__get__(1),
]


def walk(left):
    if left:
        RANDOM.choice(WAYS)(functools.partial(walk, left - 1))
        return
    try:
        os.lseek(-1, next(TAGS, 0), 9)
    except OSError:
        pass


RANDOM = random.Random(1)
TAGS = iter(range(1, int(sys.argv[1]) + 1))
while TAGS.__length_hint__():
    walk(RANDOM.randrange(12))
