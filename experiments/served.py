#!/usr/bin/env python3
"""Serves the pool of a lab to a real client, simulates the same lab, and puts the two side by side.

So it tests whether a simulation shows what a served pool really does. Here `dashpot serve` runs the pool, `dashpot
load` writes to its volume over NBD with as many threads as the lab's workload, and the daemon reports what it saw.
`served.py --write` rewrites the table and the picture of docs/write-throttle.md.
"""

import sys
import time

from lab import Claims, serving, title
from throttle import DOCS, LABS, MS, POLICIES, Table, op, simulate, span

VOLUME = "tank/foo"
THREADS, BLOCK = 256, "8K"
WARM_UP_SECONDS, SECONDS = 30, 60
# The client runs this much longer than the daemon measures, so that it still runs when the daemon reports.
SPARE_SECONDS = 5
WAYS = ("simulated", "served")
# The vertical axis goes from less than one write to more than all writes.
BASE, TOP = 0.5, 1_000_000
PICTURE = DOCS / "pictures" / "served-latency-at-volume.svg"


class Seen:
    """The IOPS and the p50 of one run, served or simulated, and how many of its writes are in each octave of latency.
    An octave is named by its lower bound: 1 us, 2 us, 4 us ...
    """

    # Bounds of octaves: 4.1 ms and 131 ms.
    FAST_NS, DELAYED_NS = 4_096_000, 131_072_000

    def __init__(self, iops, p50_ns, octaves):
        self.iops, self.p50_ns, self.octaves = iops, p50_ns, octaves
        self.n = sum(octaves.values())

    def shares(self):
        """The percentages of writes that are fast, that wait for about 10 ms, and that wait longer."""
        edges = (0, self.FAST_NS, self.DELAYED_NS, 1 << 64)
        return [
            100 * sum(count for start, count in self.octaves.items() if low <= start < high) / self.n
            for low, high in zip(edges, edges[1:])
        ]


def lab_of(policy):
    return f"served-{policy}"


def simulated(policy):
    write = op(simulate(lab_of(policy)), "client", "write")
    octaves = {}
    for bucket in write["device"]["histogram"]:
        start = octave_of(bucket["upto_ns"])
        octaves[start] = octaves.get(start, 0) + bucket["count"]
    return Seen(write["iops"], write["device"]["p50_ns"], octaves)


def octave_of(ns):
    """The lower bound of the octave in which `dashpot quantize` would count a latency."""
    return (1 << (ns // 1_000).bit_length() >> 1) * 1_000


def served(policy):
    with serving(LABS / f"{lab_of(policy)}.toml") as daemon:
        client = daemon.start(
            "load",
            daemon.uri(VOLUME),
            "--depth",
            str(THREADS),
            "--write",
            "100%",
            "--block",
            BLOCK,
            "--sequential",
            "--time",
            f"{WARM_UP_SECONDS + SECONDS + SPARE_SECONDS}s",
        )
        time.sleep(WARM_UP_SECONDS)
        total = daemon.json("quantize", "--layer", "volume", "--for", f"{SECONDS}s")["total"]
        client.terminate()
        client.communicate()
    octaves = {row["from_ns"]: row["count"] for row in total["rows"]}
    return Seen(total["ops_per_s"], total["latency"]["p50_ns"], octaves)


def compare(claims, policy, here, there):
    """Checks the claim that the served pool and the simulated pool gave about the same figures."""
    claims.near(f"{policy}: IOPS, served and simulated", here.iops, there.iops, 0.10)
    for band, ours, theirs in zip(("fast", "about 10 ms", "longer"), here.shares(), there.shares()):
        claims(
            f"{policy}: {band}: {ours:.1f} % served, {theirs:.1f} % simulated, within 2 points", abs(ours - theirs) <= 2
        )
    if there.p50_ns > 5 * MS:
        claims.near(f"{policy}: p50 in ms, served and simulated", here.p50_ns / MS, there.p50_ns / MS, 0.10)


def table_of(seen):
    table = Table("write-throttle.md", "served", ["throttle", "", "IOPS", "below 4.1 ms", "to 131 ms", "longer", "p50"])
    for (policy, way), counted in seen.items():
        table.add(
            policy, way, f"{counted.iops:,.0f}", *(f"{share:.1f}%" for share in counted.shares()), span(counted.p50_ns)
        )
    return table


def draw(seen):
    """Draws a panel for each throttle, with the served and the simulated pool; both axes are logarithmic."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    # With these settings, the same input makes the same file.
    matplotlib.rcParams.update({"svg.hashsalt": "dashpot", "svg.fonttype": "none", "font.size": 9})
    figure, panels = pyplot.subplots(len(POLICIES), 1, sharex=True, sharey=True, figsize=(9.2, 6), layout="constrained")
    for policy, panel in zip(POLICIES, panels):
        for way, style in zip(WAYS, ({"color": "#0b62a8"}, {"color": "#c2410c", "linestyle": "--"})):
            outline(panel, seen[policy, way], label=way, **style)
        panel.set(xscale="log", yscale="log", ylim=(BASE, TOP), ylabel="writes per minute", title=policy)
        panel.grid(alpha=0.3)
    panels[0].legend()
    panels[-1].set_xlabel("latency at the volume, ms")
    figure.savefig(PICTURE, metadata={"Date": None})


def outline(panel, counted, **style):
    """Draws the counts as steps, one for each octave; the first step has all that took less than 1 us."""
    starts = [0, *(1_000 << number for number in range(24))]
    edges = [500, *starts[1:], 1_000 << 24]
    panel.stairs(
        [counted.octaves.get(start, 0) for start in starts], [edge / MS for edge in edges], baseline=BASE, **style
    )


def run(claims, write=False):
    title("Pools that are served, and simulations of the same labs")
    seen = {}
    for policy in POLICIES:
        seen[policy, "simulated"], seen[policy, "served"] = simulated(policy), served(policy)
        compare(claims, policy, seen[policy, "served"], seen[policy, "simulated"])
    table = table_of(seen)
    print(table.text(), flush=True)
    if write:
        table.write()
        draw(seen)


if __name__ == "__main__":
    CLAIMS = Claims()
    run(CLAIMS, write="--write" in sys.argv)
    sys.exit(CLAIMS.verdict())
