"""Runs `dashpot load` against a server, and measures the cost on the server."""

import json
import subprocess

import process
from servers import DASHPOT

# The load may take this many seconds more than the requested time, because it waits up to 5 s for the last replies.
GRACE_SECONDS = 20


def words(uri, seconds, depth, *options):
    time = f"{round(seconds * 1000)}ms"
    return [DASHPOT, "load", uri, "--time", time, "--depth", str(depth), "--json", *map(str, options)]


def load(server, seconds, depth, *options, export=None):
    """IOPS, the least latency, p50 and p99 in ns (None where n is too small), and the server's CPU time and
    instructions per I/O (None where they cannot be counted)."""
    argv = words(server.uri(export), seconds, depth, *options)
    with process.Instructions(server.pid) as instructions:
        before = process.cpu_ns(server.pid)
        done = subprocess.run(instructions.under(argv), capture_output=True, text=True, timeout=seconds + GRACE_SECONDS)
        cpu = process.cpu_ns(server.pid) - before
        count = instructions.count()
    if done.returncode:
        raise RuntimeError(f"dashpot load: {process.complaint(done.stderr)}")
    figures = read(done.stdout)
    return {**figures, "cpu_ns": cpu / figures["n"], "instructions": count and count / figures["n"]}


def read(text):
    """Parses the output of a load. Every load of this bench has one kind of operation."""
    (op,) = json.loads(text)["ops"]
    if op["errors"]:
        raise RuntimeError(f"{op['errors']} of {op['latency']['n']} requests failed")
    latency = op["latency"]
    return {
        "n": latency["n"],
        "iops": op["iops"],
        "min_ns": op["min_ns"],
        "p50_ns": latency["p50_ns"],
        "p99_ns": latency["p99_ns"],
    }
