"""Compares achieved latencies with requested ones, for bursts and for evenly spaced requests, beside nbdkit's
delay filter."""

import collections
import contextlib
import itertools
import statistics

import servers
from load import load
from servers import Dashpot
from sleeps import control
from table import micros, print_table, spread

from bench import directory

OURS = ["spin auto", "spin never"]
PEERS = ["nbdkit-16", "nbdkit-256"]
CONTROL = "sleep loop"
DELAYS_NS = [200_000, 1_000_000, 10_000_000]
OPEN_DEPTH = 100_000
DEPTHS = [1, 16, 64, 256, 1024]


class Cell(collections.namedtuple("Cell", "delay_ns depth pace")):
    def __str__(self):
        return f"{self.delay_ns / 1e6:g}ms x{self.depth} {self.pace}"

    @property
    def rate(self):
        return self.depth * 1_000_000_000 // self.delay_ns


def all_cells():
    return [Cell(*shape) for shape in itertools.product(DELAYS_NS, DEPTHS, ["bursts", "spread"])]


def run(bench):
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(directory())
        running = start(bench, stack, place)
        ceilings = {name: ceiling(bench, server) for name, server in running["zero"].items() if server}
        feasible = [cell for cell in all_cells() if cell.rate <= ceilings["spin auto"] / 2]
        unit = lambda cell, name: measure(bench, running, ceilings, cell, name)
        samples = bench.measure("accuracy", feasible, [*OURS, *PEERS, CONTROL], unit)
    bench.figures["accuracy"]["zero-delay IOPS"] = {name: round(iops) for name, iops in ceilings.items()}
    report(samples, ceilings)
    promise(bench, samples, feasible)


def start(bench, stack, place):
    """Starts the servers, and returns them by delay. The servers under `zero` delay nothing, and show the ceilings.
    One dashpot process serves all delays.
    """
    disk = [f"d=ram,size={servers.SIZE}"]
    spins = {
        name: bench.start(stack, name, lambda: Dashpot(place, disk, ["--spin", name.split()[1]], name=name))
        for name in OURS
    }
    running = {"zero": dict(spins)}
    for name in PEERS:
        threads = threads_of(name)
        running["zero"][name] = bench.start(
            stack, name, lambda: servers.nbdkit(place, options=["-t", str(threads)], name=name)
        )
        for delay_ns in DELAYS_NS:
            peers = running.setdefault(delay_ns, dict(spins))
            # nbdkit's delay filter takes only whole milliseconds.
            peers[name] = (
                None
                if delay_ns % 1_000_000
                else bench.start(stack, name, lambda: servers.nbdkit_delay(place, delay_ns // 1_000_000, threads))
            )
    return running


def threads_of(name):
    """How many threads a filter has. Each thread sleeps for one request at a time. With too few threads the
    requests of an open loop queue up, and their errors only show how long the loop ran.
    """
    return int(name.split("-")[1])


def ceiling(bench, server):
    """The IOPS of each server without a delay, measured with the same client as the cells."""
    seconds = bench.seconds(0.5, 0.2)
    return statistics.median(load(server, seconds, 128, "--busy")["iops"] for _ in range(3))


def measure(bench, running, ceilings, cell, name):
    if name == CONTROL:
        # The control runs only at depth 1, because one thread sleeps as well as another.
        return control(cell.delay_ns, bench.seconds(1, 0.5)) if cell.depth == 1 and cell.pace == "spread" else None
    server = running[cell.delay_ns][name]
    if server is None or (name in PEERS and cell.pace == "spread" and cell.depth > threads_of(name)):
        return None
    if name in PEERS:
        figures = errors(bench, server, cell)
        return {**figures, "overloaded": int(cell.rate > ceilings[name] / 2)}
    server.ask("inject", "d", "-D", f"{cell.delay_ns}ns")
    try:
        figures = errors(bench, server, cell)
        (rule,) = server.json("list")
    finally:
        server.ask("clear", "all")
    if figures["min_error_ns"] < 0:
        # No zio may be early, on any machine.
        bench.fail(f"accuracy: {cell}, {name}: a zio completed {-figures['min_error_ns']} ns before its target")
    late = rule["lateness"]
    return {**figures, "late_p50_ns": late["p50_ns"], "late_p99_ns": late["p99_ns"]}


def errors(bench, server, cell):
    """The errors of the delays, as a polling client measures them. The time to wake a client that sleeps would hide
    the server's error, and is the same for all servers.
    """
    if cell.pace == "bursts":
        depth, pace = cell.depth, ["--burst", f"{cell.depth}..{cell.depth}"]
    else:
        # After a pause of the host, all held-up requests start at once. So the bound on the depth is far above the
        # usual depth: otherwise these requests would have to wait again.
        depth, pace = OPEN_DEPTH, ["--rate", cell.rate]
    figures = load(server, bench.seconds(1.2, 0.5), depth, "--busy", *pace)
    ask = cell.delay_ns
    error = lambda key: None if figures[key] is None else figures[key] - ask
    return {
        "p50_ns": error("p50_ns"),
        "p99_ns": error("p99_ns"),
        "min_error_ns": error("min_ns"),
        "iops": figures["iops"],
    }


def report(samples, ceilings):
    print(
        f"\naccuracy: a cell is feasible up to half of {ceilings['spin auto']:.0f} IOPS; others print -."
        "\nA peer has spread arrivals only if the depth is at most its number of threads; ! marks a load above half of its own IOPS."
    )
    for figure, title in [("p50_ns", "p50"), ("p99_ns", "p99")]:
        rows = [error_row(samples, cell, figure) for cell in all_cells()]
        print_table(
            f"accuracy: {title} of measured - requested in us (ratio of the best nbdkit to spin auto; above 1 dashpot is closer)",
            ["cell", *OURS, *PEERS, "ratio", "best peer"],
            rows,
        )
    rows = []
    for cell in all_cells():
        figures = [(name, figure) for name in OURS for figure in ("late_p50_ns", "late_p99_ns")]
        figures += [(CONTROL, figure) for figure in ("p50_ns", "p99_ns")]
        rows.append([cell, *(spread(samples.spread(cell, *of), micros) for of in figures)])
    names = [f"{name} {figure}" for name in [*OURS, CONTROL] for figure in ("p50", "p99")]
    print_table("accuracy: dashpot's own lateness, and what a sleep loop overshoots, in us", ["cell", *names], rows)


def error_row(samples, cell, figure):
    best = samples.best(cell, figure, PEERS, min)
    ratio = samples.ratio(cell, figure, best, "spin auto")
    shown = []
    for name in [*OURS, *PEERS]:
        overloaded = samples.spread(cell, name, "overloaded")
        mark = "!" if overloaded and overloaded.median else ""
        shown.append(spread(samples.spread(cell, name, figure), micros) + mark)
    return [cell, *shown, spread(ratio, lambda value: f"{value:.3g}"), best or "-"]


def promise(bench, samples, feasible):
    for cell in feasible:
        late, error = (samples.spread(cell, "spin auto", figure) for figure in ("late_p50_ns", "p50_ns"))
        if late is None or error is None:
            continue
        least = [found.least for name in OURS if (found := samples.spread(cell, name, "min_error_ns"))]
        bench.at_least("never early: the least of measured - requested in us", cell, min(least) / 1e3, 0)
        queue_ns = 500 * cell.depth if cell.pace == "bursts" else 0
        bench.at_most(f"p50 lateness with spin, {cell.pace}, in us", cell, late.median / 1e3, (30_000 + queue_ns) / 1e3)
        if cell.depth <= 256 and cell.delay_ns >= 1_000_000:
            bench.at_most("end to end, 1 to 10 ms, depth 1 to 256: p50 error in us", cell, error.median / 1e3, 100)
        elif cell.delay_ns == 10_000_000:
            bench.at_most("end to end, 10 ms, depth 1024: p50 error in us", cell, error.median / 1e3, 200)
        promise_beside(bench, samples, cell, error)


def promise_beside(bench, samples, cell, error):
    """Checks the promises that compare dashpot with the control and with the peers."""
    unspun = samples.spread(cell, "spin never", "late_p50_ns")
    slept = samples.spread(Cell(cell.delay_ns, 1, "spread"), CONTROL, "p50_ns")
    if unspun and slept and cell.pace == "spread":
        bench.at_most("without spin: p50 lateness over a sleep loop's", cell, unspun.median / slept.median, 1.2)
    best = samples.best(cell, "p50_ns", PEERS, min)
    if best and (cell.depth == 1 or cell.depth >= 64):
        closer = samples.spread(cell, best, "p50_ns").median / max(error.median, 1)
        name, bound = (
            ("depth 1: as close as nbdkit", 1)
            if cell.depth == 1
            else ("depth 64 and more: times closer than nbdkit", 4)
        )
        bench.at_least(name, cell, closer, bound)
