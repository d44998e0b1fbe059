"""Zero delay: Measures the server's CPU time per I/O of a volume under each policy, beside that of a disk
outside of pools."""

import contextlib
import pathlib

import servers
from load import load
from servers import Dashpot
from table import count, micros, print_table, spread

from bench import directory

LONE = "lone disk"
POLICIES = ["through", "none", "openzfs", "legacy"]
WAYS = [LONE, *POLICIES]
EXPORTS = {LONE: "d", **{policy: f"{policy}/v" for policy in POLICIES}}
# The volumes' blocks are as large as a request, so that no write needs the old content of a block.
BLOCK = "8K"
CELLS = [(op, depth) for op in ("read", "write") for depth in (1, 32, 128)]


def pool(policy):
    return f"""
[disk.{policy}0]
store = "ram"
size = "{servers.SIZE}"
[pool.{policy}]
disks = ["{policy}0"]
[volume."{policy}/v"]
size = "{servers.SIZE}"
block_size = "{BLOCK}"
write = "{policy}"
"""


def run(bench):
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(directory())
        lab = pathlib.Path(place) / "lab.toml"
        lab.write_text("".join(pool(policy) for policy in POLICIES))
        server = stack.enter_context(
            Dashpot(place, [f"{EXPORTS[LONE]}=ram,size={servers.SIZE}"], ["--shards", "1", lab])
        )
        for export in EXPORTS.values():
            server.fill(export)
        samples = bench.measure("volumes", CELLS, WAYS, lambda cell, way: unit(bench, server, cell, way))
    report(samples)
    promise(bench, samples)


def unit(bench, server, cell, way):
    op, depth = cell
    write = ["--write", "100%"] if op == "write" else []
    figures = load(server, bench.seconds(1.5, 0.3), depth, "--block", BLOCK, *write, export=EXPORTS[way])
    return {key: figures[key] for key in ("iops", "cpu_ns")}


def report(samples):
    for figure, form, title in [("iops", count, "IOPS"), ("cpu_ns", micros, "CPU time of the server per I/O in us")]:
        rows = [[name(cell), *(spread(samples.spread(cell, way, figure), form) for way in WAYS)] for cell in CELLS]
        print_table(f"volumes of one disk: {title}, requests of {BLOCK}", ["cell", *WAYS], rows)


def name(cell):
    return f"{cell[0]} x{cell[1]}"


def promise(bench, samples):
    """Checks the promises, except at depth 1, where the cost of wake-ups hides that of an I/O."""
    for cell in CELLS:
        if cell[1] == 1:
            continue
        held = lambda one, other: samples.ratio(cell, "cpu_ns", one, other)
        through = held("through", LONE)
        if through:
            bench.at_most(
                "a volume of one disk under through: CPU per I/O over a lone disk's", name(cell), through.median, 1.5
            )
        if cell[0] == "read":
            continue
        for policy in POLICIES[1:]:
            back = held(policy, "through")
            if back:
                bench.at_most("write-back: CPU per I/O over through's", f"{name(cell)} {policy}", back.median, 2)
