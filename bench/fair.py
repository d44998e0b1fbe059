"""The effect of one client on another on the same shard: a client that does not read, and a client that floods."""

import contextlib
import subprocess
import time

import process
import servers
import wire
from bench import directory
from load import load, words
from scale import begin, quiet
from servers import Dashpot
from table import count, micros, print_table, spread

SERVERS = ["dashpot", "nbdkit", "qemu-nbd"]
STALLED, ALONE, FLOODED = "a reader that reads nothing", "alone", "beside a flood at depth 1024"
FLOOD_DEPTH = 1024


def run(bench):
    stalled(bench)
    flooded(bench)


def stalled(bench):
    samples = bench.measure("fair", [STALLED], SERVERS, lambda _, name: stall(bench, name))
    rows = []
    for name in SERVERS:
        of = lambda figure: spread(samples.spread(STALLED, name, figure), count)
        rows.append([name, of("cpu_us"), of("wake_ups")])
    print_table("fair: 64 reads of 1M are asked for and never taken", ["server", "CPU us/s", "wake-ups/s"], rows)
    cpu = samples.spread(STALLED, "dashpot", "cpu_us")
    if cpu:
        bench.at_most("a stalled reader: CPU us per second", STALLED, cpu.median, 1_000)


def stall(bench, name):
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(directory())
        server = bench.start(stack, name, lambda: begin(place, name))
        if server is None:
            return None
        connection = server.connect()
        stack.callback(connection.close)
        for cookie in range(64):
            connection.request(wire.CMD_READ, 0, 1 << 20, cookie=cookie)
        # This takes until the sockets' buffers are full.
        time.sleep(0.5)
        return quiet(server.pid, bench.seconds(3, 1))


def flooded(bench):
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(directory())
        disks = [f"{name}=ram,size={servers.SIZE}" for name in ("slow", "flooded")]
        server = stack.enter_context(Dashpot(place, disks, ["--shards", "1"]))
        server.ask("inject", "slow", "-D", "10ms")
        samples = bench.measure("fair", [ALONE, FLOODED], ["dashpot"], lambda cell, _: beside(bench, server, cell))
    rows = []
    for cell in (ALONE, FLOODED):
        of = lambda figure, form: spread(samples.spread(cell, "dashpot", figure), form)
        rows.append([cell, of("p50_ns", micros), of("p99_ns", micros), of("late_p50_ns", micros), of("late_p99_ns", micros),
                     of("flood_iops", count)])
    columns = ["a disk of 10 ms at depth 1", "p50 us", "p99 us", "lateness p50 us", "p99 us", "flood IOPS"]
    print_table("fair: two disks on one shard", columns, rows)
    p50 = samples.spread(FLOODED, "dashpot", "p50_ns")
    if p50:
        bench.at_most("a 10 ms disk beside a flood: p50 in ms", FLOODED, p50.median / 1e6, 11)


def beside(bench, server, cell):
    """Both clients sleep while they wait: three polling processes would not fit two CPUs."""
    seconds, figures = bench.seconds(3, 1.5), {}
    # A rule's lateness counts from its last update.
    server.ask("clear", "all")
    server.ask("inject", "slow", "-D", "10ms")
    with contextlib.ExitStack() as stack:
        if cell == FLOODED:
            flood = process.start(words(server.uri("flooded"), 3600, FLOOD_DEPTH), stdout=subprocess.PIPE)
            stack.callback(process.stop, flood)
            time.sleep(0.2)
        done, began = completed(server), time.monotonic()
        figures = load(server, seconds, 1, export="slow")
        if cell == FLOODED:
            if flood.poll() is not None:
                raise RuntimeError(f"the flood ended: {process.complaint(flood.stderr.read())}")
            figures["flood_iops"] = (completed(server) - done) / (time.monotonic() - began)
    if figures["min_ns"] < 10_000_000:
        raise RuntimeError("a zio completed before its target")
    (rule,) = server.json("list")
    late = rule["lateness"]
    return {**figures, "late_p50_ns": late["p50_ns"], "late_p99_ns": late["p99_ns"]}


def completed(server):
    (disk,) = [disk for disk in server.json("status")["disks"] if disk["name"] == "flooded"]
    return sum(op["completed"] for op in disk["ops"])
