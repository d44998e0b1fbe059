"""Measures the first seconds of a disk in memory whose bytes nobody has touched, beside nbdkit's memory plugin, and
the steps of its shard."""

import contextlib
import json
import os
import pathlib
import re
import subprocess

import servers
from load import load
from servers import Dashpot
from table import count, micros, print_table, spread

from bench import directory

SERVERS = ["dashpot", "nbdkit"]
SECONDS = range(1, 4)
CELL = "random writes of 4K x32"
SIZE = 1 << 30
ROOT = pathlib.Path(__file__).parent.parent
STEPS = "cargo test --release -p dashpot-export --lib store::steps -- --ignored --nocapture"
# As the test calls them.
NAMES = {
    "touches": "first touch of a small page",
    "writes": "first write of a page",
    "moves": "write that moves a chunk",
    "again": "write of a warm page",
}
QUANTILES = ["p50_ns", "p99_ns", "p999_ns", "max_ns"]


def run(bench):
    first_seconds(bench)
    with bench.guard("fresh: steps"):
        steps(bench)


def steps(bench):
    """The steps of the store's code alone, in one process with the faults that they are compared with. Their CPU time
    has no waits for a CPU, but all that the host takes to provide the memory.
    """
    gib = 1 if bench.quick else 3
    done = subprocess.run(
        STEPS.split(), cwd=ROOT, env={**os.environ, "STEPS_GIB": str(gib)}, capture_output=True, text=True
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or len(lines) != gib:
        raise RuntimeError(f"{STEPS}: {done.stderr.strip()[-300:]}")
    bench.figures["fresh steps"] = lines
    for number, line in enumerate(lines, 1):
        rows = [
            [name, kind, *(micros(line[word][clock][quantile]) for quantile in QUANTILES)]
            for word, name in NAMES.items()
            for kind, clock in (("CPU", "cpu"), ("clock", "passed"))
        ]
        print_table(f"fresh: GiB {number}", ["step", "time", "p50 us", "p99 us", "p99.9 us", "max us"], rows)
        touch = line["touches"]["cpu"]
        for word in ("writes", "moves"):
            for quantile in QUANTILES:
                bench.at_most(
                    f"a fresh RAM disk: CPU time of a {NAMES[word]} over a small page's first touch",
                    f"GiB {number}, {quantile[:-3]}",
                    line[word]["cpu"][quantile] / touch[quantile],
                    2,
                )


def first_seconds(bench):
    samples = bench.measure("fresh", [CELL], SERVERS, lambda _, name: unit(bench, name))
    rows = []
    for name in SERVERS:
        of = lambda figure, form: spread(samples.spread(CELL, name, figure), form)
        figures = [
            (f"{kind}_{second}", form) for second in SECONDS for kind, form in [("iops", count), ("p99_ns", micros)]
        ]
        rows.append([name, *(of(*figure) for figure in figures), of("memory", count)])
    columns = [f"{word} {second}" for second in SECONDS for word in ("IOPS in second", "p99 us")]
    print_table(f"fresh: {CELL} to a new disk of 1 GiB", ["server", *columns, "KiB per KiB written"], rows)
    for second in SECONDS:
        ratio = samples.ratio(CELL, f"iops_{second}", *SERVERS)
        if ratio:
            bench.at_least(
                "a fresh RAM disk: IOPS over nbdkit's in the same second", f"second {second}", ratio.median, 1
            )


def unit(bench, name):
    """Each second has other offsets. The last figure is the memory after the first second over the bytes that were
    written in it.
    """
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(directory())
        begin = {
            "dashpot": lambda: Dashpot(
                place, [f"d=ram,size={SIZE}"], ["--shards", "1", "--overcommit", "--events", "0"]
            ),
            "nbdkit": lambda: servers.nbdkit(place, size=SIZE),
        }
        server = bench.start(stack, name, begin[name])
        if server is None:
            return None
        figures, before = {}, resident(server)
        for second in SECONDS:
            figure = load(server, 1, 32, "--write", "100%", "--seed", second)
            figures |= {f"iops_{second}": figure["iops"], f"p99_ns_{second}": figure["p99_ns"]}
            figures.setdefault("memory", (resident(server) - before) / (figure["n"] * 4096))
        return figures


def resident(server):
    with open(f"/proc/{server.pid}/status") as status:
        return int(re.search(r"RssAnon:\s+(\d+) kB", status.read())[1]) << 10
