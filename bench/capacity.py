"""Measures lateness, and memory per zio, with many zios in flight on one disk."""

import subprocess
import time

import process
from load import read, words
from servers import Dashpot
from table import count, micros, print_table, spread

from bench import directory

IN_FLIGHT = [1_000, 10_000, 100_000]
SERVER = "dashpot"


def run(bench):
    samples = bench.measure("capacity", IN_FLIGHT, [SERVER], lambda n, _: unit(bench, n))
    columns = ["asked in flight", "in flight", "lateness p50 us", "p99 us", "bytes per zio", "p50 over that of 1000"]
    rows = []
    for n in IN_FLIGHT:
        of = lambda figure, form: spread(samples.spread(n, SERVER, figure), form)
        rows.append(
            [
                n,
                of("in_flight", count),
                of("late_p50_ns", micros),
                of("late_p99_ns", micros),
                of("zio_bytes", count),
                ratio(samples, n),
            ]
        )
    print_table("capacity: spread evenly over a delay of 1 s", columns, rows)
    most, least = (samples.spread(n, SERVER, "late_p50_ns") for n in (IN_FLIGHT[-1], IN_FLIGHT[0]))
    if most and least:
        bench.at_most(
            "100,000 in flight: p50 lateness over that of 1,000", IN_FLIGHT[-1], most.median / least.median, 2
        )


def ratio(samples, n):
    late = [samples.spread(at, SERVER, "late_p50_ns") for at in (n, IN_FLIGHT[0])]
    return f"{late[0].median / late[1].median:.2f}" if all(late) else "-"


def unit(bench, n):
    """Measures with a new daemon, because memory that a larger load left behind would hide the memory that
    this load takes.
    """
    seconds = bench.seconds(4, 2.5)
    with directory() as place, Dashpot(place, ["d=null,size=1G"]) as server:
        server.ask("inject", "d", "-D", "1s")
        before = process.memory_bytes(server.pid, "RssAnon")
        argv = words(server.uri(), seconds, 2 * n, "--busy", "--rate", n)
        loading = process.start(argv, stdout=subprocess.PIPE)
        try:
            # After the first second, the load issues requests as fast as the disk completes them.
            time.sleep(seconds - 0.7)
            in_flight, after = server.in_flight(), process.memory_bytes(server.pid, "RssAnon")
            text, _ = loading.communicate(timeout=30)
        finally:
            process.stop(loading)
        if read(text)["min_ns"] < 1_000_000_000:
            raise RuntimeError("a zio completed before its target")
        (rule,) = server.json("list")
        late = rule["lateness"]
    return {
        "in_flight": in_flight,
        "zio_bytes": (after - before) / max(in_flight, 1),
        "late_p50_ns": late["p50_ns"],
        "late_p99_ns": late["p99_ns"],
    }
