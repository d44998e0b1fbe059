"""Measures the effect of one client on another on the same shard: a client that does not read, a flood, and
busy pools."""

import contextlib
import os
import pathlib
import time

import neighbours
import wire
from load import load
from scale import begin, quiet
from servers import Dashpot
from table import count, micros, print_table, spread

from bench import directory

SERVERS = ["dashpot", "nbdkit", "qemu-nbd"]
STALLED = "a reader that reads nothing"


def run(bench):
    stalled(bench)
    crowded(bench)
    volatile(bench)


def volatile(bench):
    """Pings of a RAM disk beside writes and flushes of a file, with and without a volatile cache above the file. At the
    same time a control, a server of its own, gets only pings.
    """
    cells = {store: f"beside a flood to {store}:" for store in ("file", "lossy:file")}
    with contextlib.ExitStack() as stack:
        place = pathlib.Path(stack.enter_context(directory()))
        disks = ["near=ram,size=64M"]
        for number, store in enumerate(cells):
            image = place / f"{number}.img"
            with open(image, "wb") as file:
                file.truncate(256 << 20)
            disks.append(f"d{number}={store}:{image}")
        server = stack.enter_context(Dashpot(place, disks, ["--shards", "1"]))
        control = stack.enter_context(Dashpot(stack.enter_context(directory()), disks[:1], ["--shards", "1"]))
        exports = {cell: f"d{number}" for number, cell in enumerate(cells.values())}
        samples = bench.measure(
            "fair", list(exports), ["dashpot"], lambda cell, _: pings(bench, server, control, exports[cell])
        )
    of = lambda cell, figure: spread(samples.spread(cell, "dashpot", figure), micros)
    figures = ("p50_ns", "p99_ns", "stops_ns", "control_ns", "steal_ns")
    rows = [[cell, *(of(cell, figure) for figure in figures)] for cell in exports]
    columns = ["pings", "p50 us", "p99 us", "stops us", "control's", "steal us"]
    print_table("fair: a RAM disk beside writes of 1M and flushes", columns, rows)
    plain, lossy = (samples.spread(cell, "dashpot", "p99_ns") for cell in exports)
    if plain and lossy:
        bench.at_most("pings beside lossy:file: p99 / p99 beside file:", "lossy:file", lossy.median / plain.median, 2)
    over = samples.spread(list(exports)[1], "dashpot", "over_ns")
    if over:
        bench.at_most(
            "stops beside lossy:file: beyond the control's and the steal, ms", "lossy:file", over.median / 1e6, 0
        )


def pings(bench, server, control, flooded):
    stopped = lambda of: next(disk["shard_stops"]["all"]["total_ns"] for disk in of.json("status")["disks"])
    lost = lambda: [stopped(server), stopped(control), stolen_ns()]
    flood = neighbours.flood(server, flooded, 16, "--write", "94%", "--flush", "6%", "--block", "1M")
    with flood, neighbours.flood(control, "near", 1, "--rate", 200):
        time.sleep(0.2)
        before = lost()
        figures = load(server, bench.seconds(5, 2), 1, "--rate", 200, export="near")
        own, control_ns, steal = (after - one for after, one in zip(lost(), before))
    over = max(0, own - control_ns - steal)
    return {**figures, "stops_ns": own, "control_ns": control_ns, "steal_ns": steal, "over_ns": over}


def stolen_ns():
    """The time that the host has taken from all CPUs."""
    return int(pathlib.Path("/proc/stat").read_text().split()[8]) * 10**9 // os.sysconf("SC_CLK_TCK")


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
        # Wait until the sockets' buffers are full, and the last request is more than a second old: until then,
        # dashpot's shard wakes up 50 times a second.
        time.sleep(2)
        return quiet(server.pid, bench.seconds(3, 1))


def neighbours_of(server):
    """For each cell, a context manager: while its `with` block runs, the cell's load runs beside the slow disk."""
    again = lambda once: neighbours.again_and_again(once, server)
    return {
        "alone": contextlib.nullcontext,
        "beside a flood at depth 1024": lambda: neighbours.flood(server),
        "beside a sync of 256 MiB": lambda: again(neighbours.sync),
        "beside the repair of a mirror": lambda: again(neighbours.repair),
        "beside a trim of 1 TiB": lambda: again(neighbours.trim),
    }


def crowded(bench):
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(directory())
        lab = pathlib.Path(place) / "lab.toml"
        lab.write_text(neighbours.POOLS)
        server = stack.enter_context(Dashpot(place, neighbours.DISKS, ["--shards", "1", lab]))
        cells = neighbours_of(server)
        samples = bench.measure("fair", list(cells), ["dashpot"], lambda cell, _: beside(bench, server, cells[cell]))
    rows = []
    for cell in cells:
        of = lambda figure: spread(samples.spread(cell, "dashpot", figure), micros)
        rows.append([cell, of("p50_ns"), of("p99_ns"), of("late_p50_ns"), of("late_p99_ns")])
    columns = ["a disk of 10 ms at depth 1", "p50 us", "p99 us", "lateness p50 us", "p99 us"]
    print_table("fair: disks and pools on one shard", columns, rows)
    for cell in list(cells)[1:]:
        p50 = samples.spread(cell, "dashpot", "p50_ns")
        if p50:
            bench.at_most("a 10 ms disk beside a busy neighbour: p50 in ms", cell, p50.median / 1e6, 11)


def beside(bench, server, neighbour):
    """Both clients sleep while they wait, because three polling processes would not fit on two CPUs."""
    # The lateness of a new rule covers only the zios of this cell.
    server.ask("clear", "all")
    server.ask("inject", "slow", "-D", "10ms")
    with neighbour():
        time.sleep(0.2)
        figures = load(server, bench.seconds(3, 1.5), 1, export="slow")
        [late] = [rule["lateness"] for rule in server.json("list") if rule["disk"] == "slow"]
    if figures["min_ns"] < 10_000_000:
        raise RuntimeError("a zio completed before its target")
    return {**figures, "late_p50_ns": late["p50_ns"], "late_p99_ns": late["p99_ns"]}
