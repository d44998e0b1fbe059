"""Zero delay: Measures IOPS, and the server's CPU time and instructions per I/O."""

import collections
import contextlib
import itertools
import os
import tempfile

import servers
from load import load
from servers import Dashpot
from table import count, micros, print_table, spread

from bench import directory

PEERS = ["nbdkit", "qemu-nbd null", "qemu-nbd raw", "qsd null", "qsd raw"]
SERVERS = ["dashpot", *PEERS]
TMPFS = "/dev/shm"


class Cell(collections.namedtuple("Cell", "kind op block depth connections")):
    def __str__(self):
        return f"{self.kind} {self.op} {self.block} x{self.depth} {self.connections}c"


def cells():
    """The cells. Four connections have at least four requests in flight, so at depth 1 there is only a cell with one
    connection.
    """
    shapes = [("4K", 1, 1), ("4K", 32, 1), ("4K", 128, 1), ("1M", 8, 1), ("4K", 32, 4), ("4K", 128, 4), ("1M", 8, 4)]
    for kind, op, shape in itertools.product(["unix", "tcp"], ["read", "write"], shapes):
        yield Cell(kind, op, *shape)


def run(bench):
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(directory())
        files = stack.enter_context(tempfile.TemporaryDirectory(prefix="dashpot-bench.", dir=files_in(bench)))
        running = {kind: start(bench, stack, kind, place, files) for kind in ("unix", "tcp")}
        samples = bench.measure("speed", list(cells()), SERVERS, lambda cell, name: unit(bench, running, cell, name))
    report(samples)
    promise(bench, samples)


def files_in(bench):
    if os.path.ismount(TMPFS):
        return TMPFS
    bench.skipped.append(f"{TMPFS} is not a tmpfs here: the raw files are on the disk of the temporary directory")
    return None


def start(bench, stack, kind, place, files):
    """The available servers, by name."""
    raw = lambda name: servers.raw_image(files, f"{name}.{kind}")
    begin = {
        "dashpot": lambda: Dashpot(place, [f"d=ram,size={servers.SIZE}"], kind=kind),
        "nbdkit": lambda: servers.nbdkit(place, kind),
        "qemu-nbd null": lambda: servers.qemu_nbd(place, kind, servers.null_image(), "qemu-nbd null"),
        "qemu-nbd raw": lambda: servers.qemu_nbd(place, kind, raw("nbd"), "qemu-nbd raw"),
        "qsd null": lambda: servers.qemu_storage_daemon(place, kind, servers.null_image(), "qsd null"),
        "qsd raw": lambda: servers.qemu_storage_daemon(place, kind, raw("qsd"), "qsd raw"),
    }
    running = {name: bench.start(stack, name, begin[name]) for name in SERVERS}
    for server in filter(None, running.values()):
        server.fill()
    return running


def unit(bench, running, cell, name):
    """Runs one load. The client sleeps while it waits: a polling client would take one of two CPUs from
    servers with many threads.
    """
    server = running[cell.kind][name]
    if server is None:
        return None
    write = ["--write", "100%"] if cell.op == "write" else []
    options = ["--block", cell.block, "--connections", cell.connections, *write]
    figures = load(server, bench.seconds(0.5, 0.15), cell.depth, *options)
    return {key: figures[key] for key in ("iops", "cpu_ns", "instructions")}


def report(samples):
    for figure, form, title, more in [
        ("iops", count, "speed: IOPS at no delay (ratio to the best peer; above 1 dashpot is faster)", []),
        (
            "cpu_ns",
            micros,
            "speed: CPU time of the server per I/O in us, and dashpot's instructions (ratio to the peer with the most IOPS; below 1 dashpot is cheaper)",
            ["instructions", "ratio"],
        ),
    ]:
        rows = []
        for cell in cells():
            best = samples.best(cell, "iops", PEERS)
            shown = [spread(samples.spread(cell, name, figure), form) for name in SERVERS]
            rows.append([cell, *shown, ratio(samples, cell, figure, best), best or "-"])
            if figure == "cpu_ns":
                rows[-1] += [
                    spread(samples.spread(cell, "dashpot", "instructions"), count),
                    ratio(samples, cell, "instructions", best),
                ]
        print_table(title, ["cell", *SERVERS, "ratio", "best peer", *more], rows)


def ratio(samples, cell, figure, best):
    return spread(samples.ratio(cell, figure, "dashpot", best), lambda value: f"{value:.2f}")


def promise(bench, samples):
    for cell in cells():
        best = samples.best(cell, "iops", PEERS)
        iops, cpu = (samples.ratio(cell, figure, "dashpot", best) for figure in ("iops", "cpu_ns"))
        if not iops or not cpu or cell.kind != "unix":
            continue
        if cell.depth in (32, 128):
            bench.at_least("zero delay, 4K, depth 32 and 128: IOPS over the best peer's", cell, iops.median, 3)
            bench.at_most("zero delay, 4K, depth 32 and 128: CPU per I/O over the best peer's", cell, cpu.median, 1 / 3)
        else:
            bench.at_least("zero delay, depth 1 and 1M: IOPS over the best peer's", cell, iops.median, 1)
