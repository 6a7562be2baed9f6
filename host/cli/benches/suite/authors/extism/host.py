"""Calls a plugin through Extism, and prints the times in seconds."""

import json
import sys
import time

import extism
from extism.extism import CompiledPlugin

TEXT = b"one two-three\nfour\n"
CALLS = 1000


def timed(work):
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


with open(sys.argv[1], "rb") as file:
    code = file.read()
begun = time.perf_counter()
compiled = CompiledPlugin(code, True, [])
answer = extism.Plugin(compiled).call("word_count", TEXT)
first = time.perf_counter() - begun
assert answer == b"3 words, 2 lines", answer
# Each call has an instance of its own, as each call of Palisade has a sandbox.
fresh = sorted(timed(lambda: extism.Plugin(compiled).call("word_count", TEXT)) for _ in range(CALLS))
print(json.dumps({"first": first, "fresh": fresh[CALLS // 2]}))
