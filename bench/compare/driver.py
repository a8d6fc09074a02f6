"""Measures one pool of Python: driver.py POOL MODE ARGUMENTS, with the lab in the variable LAB.

version         prints the version of the pool
serve           runs what the lines of standard input say: "jobs FILE" the shell commands of a file,
                "calls KIND N" N calls of a function
once FILE DIR   runs the commands of a file; in DIR, the pool may keep what a second start needs
queue FILE      submits the commands of a file and waits to be killed

Each event is a line of JSON on standard output.
"""
import json
import os
import sys
import time
import traceback

import pools


def say(event, **fields):
    OUT.write(json.dumps(dict(fields, event=event)) + "\n")
    OUT.flush()


# The functions that are sent import what they use, because Parsl does not send their globals.

def command(line):
    import subprocess
    return subprocess.call(["/bin/sh", "-c", line])


def nothing(i):
    return i


def ten_milliseconds(i):
    import time
    time.sleep(0.01)
    return i


def one_second(i):
    import time
    time.sleep(1)
    return i


def array(i):
    import numpy
    return numpy.full(1250000, i, dtype="float64")


CALLS = {"nothing": nothing, "10ms": ten_milliseconds, "1s": one_second, "array": array}


def check(kind, n, results):
    """Compare the results of calls with what they must be."""
    got = [int(r[-1]) for r in results] if kind == "array" else list(results)
    if got != list(range(n)):
        raise ValueError("%s: %d results are not those of %d calls" % (kind, len(got), n))


def main():
    name, mode, arguments = sys.argv[1], sys.argv[2], sys.argv[3:]
    if mode == "version":
        return say("version", version=pools.POOLS[name].version())
    lab = json.loads(os.environ["LAB"])
    pool = pools.POOLS[name](lab, arguments[1] if mode == "once" else "")
    if mode == "serve":
        if hasattr(pool, "call"):
            check("nothing", 1, pool.call(nothing, [0])())
        else:
            pool.commands(command, ["true"])()
        say("first", seconds=time.time() - lab["started"])
        for line in sys.stdin:
            words = line.split()
            start = time.monotonic()
            if words[0] == "jobs":
                pool.commands(command, lines(words[1]))()
            else:
                check(words[1], int(words[2]), pool.call(CALLS[words[1]], range(int(words[2])))())
            say("round", seconds=time.monotonic() - start)
    else:
        wait = pool.commands(command, lines(arguments[0]))
        say("queued", pids=pool.pids())
        wait()
    say("end")
    pool.close()


def lines(file):
    with open(file, encoding="utf-8") as f:
        return f.read().splitlines()


if __name__ == "__main__":
    OUT = os.fdopen(os.dup(1), "w")  # what pools print, and their processes, does not get into it
    os.dup2(2, 1)
    try:
        main()
    except Exception as e:
        traceback.print_exc()
        say("failed", reason="%s: %s" % (type(e).__name__, e))
        raise SystemExit(1)
