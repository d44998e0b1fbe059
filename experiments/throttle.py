#!/usr/bin/env python3
"""Repeats Adam Leventhal's comparison of ZFS's write throttles (2014) under virtual time.

The simulations give the same figures on every machine. So the tables in docs/ must equal the results here, to
the byte. `throttle.py NAME` prints a table as it is in the page; `throttle.py --write` rewrites tables and
pictures.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

from beside import LABS as BESIDE
from beside import summary
from lab import DASHPOT, Claims, title

ROOT = pathlib.Path(__file__).resolve().parent.parent
LABS = ROOT / "labs"
DOCS = ROOT / "docs"
MS, S = 10**6, 10**9
POLICIES = ("legacy", "openzfs", "none")
PER = 64_000


def simulate(lab):
    """The results of a lab in `labs/`."""
    return outcome_of(LABS / f"{lab}.toml")


def tuned(lab, tunable, value):
    """The results of a lab in `labs/`, with one tunable changed."""
    line = f"{tunable} = {value}"
    text, count = re.subn(rf"^{tunable} *=.*$", line, (LABS / f"{lab}.toml").read_text(), flags=re.M)
    if count == 0:
        text = re.sub(r"^(\[pool\..*)$", rf"\1\n{line}", text, count=1, flags=re.M)
    return outcome_of_text(text)


def outcome_of_text(text):
    with tempfile.TemporaryDirectory(prefix="dashpot.") as directory:
        path = pathlib.Path(directory) / "lab.toml"
        path.write_text(text)
        return outcome_of(path)


BARE = "openzfs, no overhead"


def of_row(name, lab):
    """The results of a lab, without the overhead of txgs if the name of the row says so."""
    return tuned(lab, "txg_overhead", '"off"') if name == BARE else simulate(lab)


def outcome_of(path):
    done = subprocess.run(
        [DASHPOT, "sim", path, "--json", "--report", "txgs"], stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(done.stdout)[0]


def op(outcome, workload, name):
    [client] = [one for one in outcome["workloads"] if one["workload"] == workload]
    [found] = [one for one in client["ops"] if one["op"] == name]
    return found


def between(latency, low_ns, high_ns):
    """How many of each 64,000 writes took at least `low_ns` and less than `high_ns`."""
    within = sum(bucket["count"] for bucket in latency["histogram"] if low_ns <= bucket["upto_ns"] < high_ns)
    return round(within * PER / latency["n"])


def span(ns):
    """A time with three digits, as dashpot prints it, with a blank before its unit."""
    if ns is None:
        return "–"
    for size, unit in ((S, "s"), (MS, "ms"), (1_000, "µs")):
        if ns >= size:
            value = ns / size
            return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f} {unit}"
    return f"{ns} ns"


def shape(latency):
    return [span(latency[f"{name}_ns"]) for name in ("mean", "stddev", "p50", "p99", "p99_9", "max")]


SHAPE = ["mean", "std. dev.", "p50", "p99", "p99.9", "max"]


class Table:
    """A table in a page of docs/, where two marks with the table's name enclose it."""

    def __init__(self, page, name, columns):
        self.page, self.name = DOCS / page, name
        self.lines = [self.line(columns), self.line(["---"] + ["---:"] * (len(columns) - 1))]

    @staticmethod
    def line(cells):
        return f"| {' | '.join(str(cell) for cell in cells)} |"

    def add(self, *cells):
        self.lines.append(self.line(cells))

    def text(self):
        return "".join(f"{line}\n" for line in self.lines)

    def in_page(self):
        """The page with this table in its place."""
        marks = rf"(<!-- {self.name} -->\n).*?(<!-- end -->)"
        return re.sub(
            marks, lambda found: found[1] + self.text() + found[2], self.page.read_text(), count=1, flags=re.S
        )

    def write(self):
        self.page.write_text(self.in_page())

    def publish(self, claims, write):
        print(self.text(), flush=True)
        if write:
            self.write()
        claims(
            f"docs/{self.page.name} has the table '{self.name}' of this run", self.in_page() == self.page.read_text()
        )


def first_cycle(claims):
    table = Table(
        "write-throttle.md",
        "first-cycle",
        ["delay", "at once", "delayed", "of these, KiB", "MiB/s then", "the article"],
    )
    # The txg of 500 MiB is 7/8 full after 4.375 s, when the delays begin; they end with the sync, after 5 s.
    for name, lab, there, expected in [
        ("one at a time", "first-cycle-serial", "500 KB, less than 1 MB/s", 62),
        ("each by itself", "first-cycle", "–", 570),
    ]:
        [pool] = simulate(lab)["pools"]
        admitted = pool["admissions"]
        delayed = admitted["delay"]
        kib = (admitted["assigned"] - 56_000) * 8
        table.add(name, f"{admitted['assigned'] - delayed:,}", delayed, f"{kib:,}", f"{kib / 1024 / 0.625:.2f}", there)
        claims.near(f"first cycle, delayed {name}: KiB in the last 0.625 s", kib, expected * 8, 0.02)
    return [table]


def clients_of_one_speed(claims):
    table = Table(
        "write-throttle.md",
        "one-speed",
        ["throttle", "client", "below 1 µs", "to 12 ms", "to 200 ms", "longer", *SHAPE],
    )
    for name, lab, speed, delayed in [
        ("legacy, each by itself", "legacy", "781 µs", 0),
        ("legacy, one at a time", "legacy-serial", "781 µs", 0),
        ("openzfs", "openzfs", "781 µs", 0),
        (BARE, "openzfs", "781 µs", 0),
        ("none", "none", "781 µs", 0),
        ("legacy, each by itself", "fast-legacy", "700 µs", 520),
        ("legacy, one at a time", "fast-legacy-serial", "700 µs", 61),
        ("openzfs", "fast-openzfs", "700 µs", None),
        (BARE, "fast-openzfs", "700 µs", None),
        ("none", "fast-none", "700 µs", None),
    ]:
        latency = op(of_row(name, f"scenario1-{lab}"), "client", "write")["device"]
        counts = classes(latency)
        table.add(name, speed, *(f"{count:,}" for count in counts), *shape(latency))
        if delayed is not None:
            claims.near(
                f"{name}, client at {speed}: 1 ms and more, of 64,000", between(latency, MS, 2**64), delayed, 0.02
            )
    return [table]


def classes(latency):
    edges = [0, 1_000, 12 * MS, 200 * MS, 2**64]
    return [between(latency, low, high) for low, high in zip(edges, edges[1:])]


def flood(claims):
    at_volume = Table(
        "write-throttle.md", "flood-volume", ["throttle", "below 1 µs", "to 12 ms", "to 200 ms", "longer", *SHAPE]
    )
    at_client = Table("write-throttle.md", "flood-client", ["throttle", *SHAPE])
    expected = {
        "legacy, each by itself": (54_574, 8_433, 0, 992),
        "legacy, one at a time": (62_550, 0, 0, 0),
        "legacy, syncs of 1 s": (49_088, 10_101, 0, 4_810),
    }
    outcomes = {}
    for name, lab in [
        ("legacy, each by itself", "legacy"),
        ("legacy, one at a time", "legacy-serial"),
        ("legacy, syncs of 1 s", "legacy-1s"),
        ("openzfs", "openzfs"),
        (BARE, "openzfs"),
        ("none", "none"),
    ]:
        write_op = op(of_row(name, f"scenario2-{lab}"), "client", "write")
        volume, client = write_op["device"], write_op["client"]
        outcomes[name] = write_op
        counts = classes(volume)
        at_volume.add(name, *(f"{count:,}" for count in counts), *shape(volume))
        at_client.add(name, *shape(client))
        for what, count, there in zip(("fast", "at 10 ms", "between", "blocked"), counts, expected.get(name, ())):
            if there:
                claims.near(f"flood, {name}: {what} of 64,000", count, there, 0.02)
        claims.near(
            f"flood, {name}: the mean at the client is N ÷ X",
            client["mean_ns"] / MS,
            1_000 / write_op["iops"] * 1_000,
            0.02,
        )
    bare, legacy = outcomes[BARE]["client"], outcomes["legacy, each by itself"]["client"]
    claims.near(f"flood, {BARE}: p99 in ms", bare["p99_ns"] / MS, 78.1, 0.02)
    claims(
        f"flood, {BARE}: its standard deviation is below a thousandth of legacy's",
        bare["stddev_ns"] * 1_000 < legacy["stddev_ns"],
    )
    openzfs = outcomes["openzfs"]["client"]
    claims(
        "flood, openzfs: its standard deviation is below a hundredth of legacy's, and above that without overhead",
        bare["stddev_ns"] < openzfs["stddev_ns"] < legacy["stddev_ns"] / 100,
    )
    return [at_volume, at_client]


def second_client(claims):
    table = Table("write-throttle.md", "second-client", ["throttle", "of the second client", "n", *SHAPE])
    for policy in ("legacy", "openzfs", BARE, "none"):
        outcome = of_row(policy, f"scenario3-{policy.split(',')[0]}")
        for name in ("read", "write"):
            found = op(outcome, "db", name)
            label = "reads" if name == "read" else "sync writes"
            table.add(policy, label, f"{found['client']['n']:,}", *shape(found["client"]))
    return [table]


def two_modes(claims):
    table = Table(
        "write-throttle.md",
        "two-modes",
        ["`zfs_dirty_data_max`", "`zfs_delay_scale`", "below 1 µs", "above 200 ms", *SHAPE],
    )
    shares = {}
    for lab, most, scale in [
        ("bimodal-64m", "64M", "500us"),
        ("bimodal-12m", "12M", "500us"),
        ("bimodal-12m-3ms", "12M", "3ms"),
    ]:
        latency = op(simulate(lab), "client", "write")["device"]
        fast, slow = (between(latency, *edges) / PER for edges in ((0, 1_000), (200 * MS, 2**64)))
        shares[lab] = (fast, slow, latency["p99_ns"] / MS, latency["modes"])
        table.add(most, scale, f"{fast:.1%}", f"{slow:.1%}", *shape(latency))
    # These values come from an independent model of the same throttle.
    fast, slow, p99, modes = shares["bimodal-12m"]
    claims.near("12M: share of the writes below 1 µs", fast, 0.71, 0.02)
    claims.near("12M: share of the writes above 200 ms", slow, 0.19, 0.02)
    claims.near("12M: p99 in ms", p99, 746, 0.02)
    claims("12M: the summary says that the writes are of two kinds", modes is not None)
    claims("64M: it does not", shares["bimodal-64m"][3] is None)
    return [table]


def amplification(claims):
    table = Table(
        "write-throttle.md",
        "amplification",
        [
            "blocks of the volume",
            "client",
            "writes of the client",
            "in the queues, each",
            "overhead",
            "at the disks, each",
            "overhead",
            "bytes, each",
        ],
    )
    for lab, block in [("amplification", "8 KiB"), ("amplification-aligned", "128 KiB")]:
        for pattern in ("random", "sequential"):
            [pool] = simulate(lab + ("-sequential" if pattern == "sequential" else ""))["pools"]
            asked, at = pool["volumes"]["writes"], ("queued", "disks")
            overhead = {level: pool["overhead"][level]["writes"] for level in at}
            data = {level: (pool[level]["writes"] - overhead[level]) / asked for level in at}
            table.add(
                block,
                pattern,
                f"{asked:,}",
                *(cell for level in at for cell in (f"{data[level]:.1f}", f"{overhead[level] / asked:.1f}")),
                f"{pool['amplification']['written_bytes']:.2f}",
            )
            blocks = 16 if block == "8 KiB" else 1
            claims.near(
                f"{block}, {pattern}: zios of data in the queues for each write", data["queued"], 2 * blocks, 0.02
            )
    return [table]


def beside(claims):
    table = Table(
        "write-throttle.md",
        "beside",
        ["lab", "", "IOPS", "mean", "std. dev.", "p50", "p99", "dirty per txg, MB", "sync, s"],
    )
    for lab in BESIDE:
        table.add(lab.name(), "OpenZFS", *lab.measured())
        for name, overhead in (("dashpot", True), ("no overhead", False)):
            figures = summary(outcome_of_text(lab.text(overhead)))
            table.add("", name, *figures)
            if overhead:
                within_a_factor_of_two(claims, lab, figures)
    return [table]


def within_a_factor_of_two(claims, lab, figures):
    """Checks the spread of a simulation with overhead against the middle of what OpenZFS had in its runs."""
    for name, here, there in (("deviation", figures[2], lab.deviation), ("p99", figures[4], lab.p99)):
        here = float(here.removesuffix(" ms"))
        runs = [float(one) for one in there.split("–")]
        middle = (runs[0] + runs[-1]) / 2
        claims(f"{lab.name()}: {name} {here} ms here, {there} ms there", middle / 2 <= here <= middle * 2)


TUNINGS = [
    ("zfs_dirty_data_max", ['"32M"', '"128M"', '"512M"', '"1G"']),
    ("zfs_delay_scale", ['"50us"', '"500us"', '"5ms"']),
    ("zfs_delay_min_dirty_percent", ["40", "60", "80"]),
    ("zfs_vdev_async_write_max_active", ["5", "10", "20"]),
]


def tuning(claims):
    table = Table(
        "tuning.md",
        "tuning",
        [
            "tunable",
            "value",
            "written in the burst",
            "mean",
            "std. dev.",
            "p50",
            "p99",
            "max",
            "reads: p50",
            "p99",
            "max",
        ],
    )
    written, slowest_read, mean = {}, {}, {}
    for name, values in TUNINGS:
        for value in values:
            outcome = tuned("tuning", name, value)
            writes, reads = op(outcome, "writer", "write")["client"], op(outcome, "reader", "read")["client"]
            written[name, value] = writes["n"]
            mean[name, value] = writes["mean_ns"]
            slowest_read[name, value] = reads["p99_ns"]
            table.add(
                f"`{name}`",
                value.strip('"'),
                f"{writes['n'] / 128:,.0f} MiB",
                *(span(writes[f"{figure}_ns"]) for figure in ("mean", "stddev", "p50", "p99", "max")),
                *(span(reads[f"{figure}_ns"]) for figure in ("p50", "p99", "max")),
            )
    for name, values in TUNINGS:
        amounts = [written[name, value] for value in values]
        order = sorted(amounts, reverse=name == "zfs_delay_scale")
        claims(
            f"what is written in a burst {'falls' if name == 'zfs_delay_scale' else 'grows'} with {name}",
            amounts == order and amounts[0] != amounts[-1],
        )
    name = "zfs_vdev_async_write_max_active"
    claims("more writes at the disk make reads wait", slowest_read[name, "20"] > slowest_read[name, "10"])
    return [table]


def pictures(claims, write):
    """Draws the pictures of the pages, and compares them with the committed ones."""
    for scenario, variants, drawn, words in [
        ("scenario1", POLICIES, ["series"], ["--for", "60s"]),
        ("scenario2", POLICIES, ["latency", "latency-at-volume"], []),
        ("scenario2", POLICIES, ["series"], ["--for", "60s"]),
        ("scenario3", POLICIES, ["latency-db-write"], []),
        ("bimodal", ("64m", "12m", "12m-3ms"), ["latency-at-volume"], []),
        ("trickle", ("legacy", "openzfs"), ["series"], []),
    ]:
        labs = [LABS / f"{scenario}-{variant}.toml" for variant in variants]
        with tempfile.TemporaryDirectory(prefix="dashpot.") as directory:
            subprocess.run([DASHPOT, "sim", *labs, *words, "--chart", directory], stdout=subprocess.DEVNULL, check=True)
            for picture in drawn:
                publish(claims, write, pathlib.Path(directory) / f"{picture}.svg", f"{scenario}-{picture}.svg")


def publish(claims, write, drawn, name):
    """Writes a picture into docs/pictures, or compares it with the picture that is there."""
    place = DOCS / "pictures" / name
    if write:
        place.parent.mkdir(exist_ok=True)
        place.write_text(drawn.read_text())
    claims(
        f"docs/pictures/{name} is the picture of this run", place.exists() and place.read_text() == drawn.read_text()
    )


PARTS = [
    ("The first cycle of the old throttle", first_cycle, ["first-cycle"]),
    ("Clients of one speed", clients_of_one_speed, ["one-speed"]),
    ("A flood", flood, ["flood-volume", "flood-client"]),
    ("A second client beside the flood", second_client, ["second-client"]),
    ("Two modes of the new throttle", two_modes, ["two-modes"]),
    ("Amplification by small blocks", amplification, ["amplification"]),
    ("Beside OpenZFS", beside, ["beside"]),
    ("The effect of tunables", tuning, ["tuning"]),
]


def run(claims, write=False):
    for heading, part, _ in PARTS:
        title(heading)
        for table in part(claims):
            table.publish(claims, write)
    title("Pictures")
    pictures(claims, write)


class NoClaims(Claims):
    """Takes the place of `Claims` if the user asked only for a table: it ignores all claims."""

    def __call__(self, claim, holds):
        pass


def print_table(name):
    parts = [part for _, part, names in PARTS if name in names]
    if not parts:
        known = ", ".join(name for _, _, names in PARTS for name in names)
        sys.exit(f"there is no table '{name}'; the tables are {known}")
    [table] = [table for table in parts[0](NoClaims()) if table.name == name]
    print(table.text(), end="")


if __name__ == "__main__":
    if sys.argv[1:] and sys.argv[1] != "--write":
        sys.exit(print_table(sys.argv[1]))
    CLAIMS = Claims()
    run(CLAIMS, write="--write" in sys.argv)
    sys.exit(CLAIMS.verdict())
