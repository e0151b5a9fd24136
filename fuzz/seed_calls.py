#!/usr/bin/env python3
"""Writes seeds of the target `calls` into a directory: each syscall of x86-64, and variants of those that have many."""

import os
import random
import struct
import sys

directory = sys.argv[1]
# The numbers of x86-64 of the calls with most variants, and how many there are about.
VARIANTS = {16: 1500, 72: 40, 101: 40, 157: 90, 54: 400, 55: 400, 321: 45, 250: 40, 202: 24, 179: 20, 427: 45, 66: 16, 31: 12, 71: 10,
            158: 16, 317: 6, 445: 6, 443: 20, 134: 2, 41: 4}


def put(number, variant):
    made = random.Random(number * 4096 + variant)
    style = made.randrange(3)
    head = struct.pack("<BHHB", style << 3 | made.randrange(2) << 2, number, variant, made.randrange(8))
    # Small numbers are lengths and counts.
    body = bytes(made.choice((made.randrange(16), made.randrange(256))) for _ in range(made.choice((24, 64, 160))))
    with open(os.path.join(directory, f"{number:03}.{variant}"), "wb") as file:
        file.write(head + body)


for number in range(472):
    put(number, 0)
    for variant in range(1, VARIANTS.get(number, 4)):
        put(number, variant)
