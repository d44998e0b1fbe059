"""Repeats Adam Leventhal's comparison of ZFS's write throttles (2014) under virtual time.

The simulations give the same figures on every machine, so the pages in docs/ are held to them: a
table there is what comes out here, to the byte. `throttle.py --write` writes tables and pictures
anew.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

from lab import DASHPOT, Claims, title

ROOT = pathlib.Path(__file__).resolve().parent.parent
LABS = ROOT / "labs"
DOCS = ROOT / "docs"
MS, S = 10**6, 10**9
POLICIES = ("legacy", "openzfs", "none")
ONE_SLOT = {"delay_slots": "1"}
PER = 64_000


def simulate(lab, keys=None, words=()):
    """What came of a lab of the project, with some keys changed or added to its pool or client."""
    with tempfile.TemporaryDirectory(prefix="dashpot.") as directory:
        path = pathlib.Path(directory) / f"{lab}.toml"
        path.write_text(changed((LABS / f"{lab}.toml").read_text(), keys or {}))
        done = subprocess.run([DASHPOT, "sim", path, "--json", *words], stdout=subprocess.PIPE, text=True, check=True)
        return json.loads(done.stdout)[0]


def changed(text, keys):
    """Sets keys where the file has them; else they are the first pool's."""
    for key, value in keys.items():
        line = f"{key} = {value}"
        text, count = re.subn(rf"^{key} *=.*$", line, text, flags=re.M)
        if count == 0:
            text = re.sub(r"^(\[pool\..*)$", rf"\1\n{line}", text, count=1, flags=re.M)
    return text


def op(outcome, workload, name):
    [client] = [one for one in outcome["workloads"] if one["workload"] == workload]
    [found] = [one for one in client["ops"] if one["op"] == name]
    return found


def between(latency, low_ns, high_ns):
    """How many of 64,000 took from this long to less than that."""
    within = sum(bucket["count"] for bucket in latency["histogram"] if low_ns <= bucket["upto_ns"] < high_ns)
    return round(within * PER / latency["n"])


def span(ns):
    """A time in three digits, as dashpot prints it, with a blank before its unit."""
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
    """A table of a page, between two marks that name it."""

    def __init__(self, page, name, columns):
        self.page, self.name = DOCS / page, name
        self.lines = [self.line(columns), self.line(["---"] + ["---:"] * (len(columns) - 1))]

    @staticmethod
    def line(cells):
        return f"| {' | '.join(str(cell) for cell in cells)} |"

    def add(self, *cells):
        self.lines.append(self.line(cells))
        print("  " + "  ".join(str(cell) for cell in cells), flush=True)

    def publish(self, claims, write):
        text = self.page.read_text()
        marks = rf"(<!-- {self.name} -->\n).*?(<!-- end -->)"
        lines = "".join(f"{line}\n" for line in self.lines)
        new = re.sub(marks, lambda found: found[1] + lines + found[2], text, count=1, flags=re.S)
        if write:
            self.page.write_text(new)
        claims(f"docs/{self.page.name} has the table '{self.name}' of this run", write or new == text)


def first_cycle(claims, write):
    table = Table("write-throttle.md", "first-cycle",
                  ["delay", "at once", "delayed", "of these, KiB", "MiB/s then", "the article"])
    # The seven eighths of 500 MiB are in after 4.375 s; the sync ends after 5 s.
    for name, keys, there, expected in [
        ("one at a time", ONE_SLOT, "500 KB, less than 1 MB/s", 62),
        ("each by itself", {}, "–", 570),
    ]:
        [pool] = simulate("scenario1-legacy", keys, ("--for", "4999ms"))["pools"]
        admitted = pool["admissions"]
        delayed = admitted["delay"]
        kib = (admitted["assigned"] - 56_000) * 8
        table.add(name, f"{admitted['assigned'] - delayed:,}", delayed, f"{kib:,}", f"{kib / 1024 / 0.625:.2f}", there)
        claims.near(f"first cycle, delayed {name}: KiB in the last 0.625 s", kib, expected * 8, 0.02)
    table.publish(claims, write)


def clients_of_one_speed(claims, write):
    table = Table("write-throttle.md", "one-speed",
                  ["throttle", "client", "below 1 µs", "to 12 ms", "to 200 ms", "longer", *SHAPE])
    words = ("--for", "130s")
    fast = {"inside": '"700us"', "lasts": '"130s"\nwarmup = "30s"'}
    same = {"lasts": '"130s"\nwarmup = "30s"'}
    for name, lab, keys, speed, delayed in [
        ("legacy, each by itself", "legacy", same, "781 µs", 0),
        ("legacy, one at a time", "legacy", {**same, **ONE_SLOT}, "781 µs", 0),
        ("openzfs", "openzfs", same, "781 µs", 0),
        ("none", "none", same, "781 µs", 0),
        ("legacy, each by itself", "legacy", fast, "700 µs", 520),
        ("legacy, one at a time", "legacy", {**fast, **ONE_SLOT}, "700 µs", 61),
        ("openzfs", "openzfs", fast, "700 µs", None),
        ("none", "none", fast, "700 µs", None),
    ]:
        latency = op(simulate(f"scenario1-{lab}", keys, words), "client", "write")["device"]
        counts = classes(latency)
        table.add(name, speed, *(f"{count:,}" for count in counts), *shape(latency))
        if delayed is not None:
            claims.near(f"{name}, client at {speed}: 1 ms and more, of 64,000", between(latency, MS, 2**64), delayed, 0.02)
    table.publish(claims, write)


def classes(latency):
    edges = [0, 1_000, 12 * MS, 200 * MS, 2**64]
    return [between(latency, low, high) for low, high in zip(edges, edges[1:])]


def flood(claims, write):
    at_volume = Table("write-throttle.md", "flood-volume",
                      ["throttle", "below 1 µs", "to 12 ms", "to 200 ms", "longer", *SHAPE])
    at_client = Table("write-throttle.md", "flood-client", ["throttle", *SHAPE])
    expected = {
        "legacy, each by itself": (54_574, 8_433, 0, 992),
        "legacy, one at a time": (62_550, 0, 0, 0),
        "legacy, syncs of 1 s": (49_088, 10_101, 0, 4_810),
    }
    outcomes = {}
    for name, lab, keys in [
        ("legacy, each by itself", "legacy", {}),
        ("legacy, one at a time", "legacy", ONE_SLOT),
        ("legacy, syncs of 1 s", "legacy", {"zfs_txg_synctime_ms": '"1s"'}),
        ("openzfs", "openzfs", {}),
        ("none", "none", {}),
    ]:
        # Long enough for the thousand that are blocked at either end to be few.
        write_op = op(simulate(f"scenario2-{lab}", keys, ("--for", "630s")), "client", "write")
        volume, client = write_op["device"], write_op["client"]
        outcomes[name] = write_op
        counts = classes(volume)
        at_volume.add(name, *(f"{count:,}" for count in counts), *shape(volume))
        at_client.add(name, *shape(client))
        for what, count, there in zip(("fast", "at 10 ms", "between", "blocked"), counts, expected.get(name, ())):
            if there:
                claims.near(f"flood, {name}: {what} of 64,000", count, there, 0.02)
        claims.near(f"flood, {name}: the mean at the client is N ÷ X", client["mean_ns"] / MS,
                    1_000 / write_op["iops"] * 1_000, 0.02)
    openzfs = outcomes["openzfs"]["client"]
    claims.near("flood, openzfs: p99 in ms", openzfs["p99_ns"] / MS, 78.1, 0.02)
    claims("flood, openzfs: its standard deviation is below a thousandth of legacy's",
           openzfs["stddev_ns"] * 1_000 < outcomes["legacy, each by itself"]["client"]["stddev_ns"])
    at_volume.publish(claims, write)
    at_client.publish(claims, write)


def second_client(claims, write):
    table = Table("write-throttle.md", "second-client", ["throttle", "of the second client", "n", *SHAPE])
    for policy in POLICIES:
        outcome = simulate(f"scenario3-{policy}")
        for name in ("read", "write"):
            found = op(outcome, "db", name)
            label = "reads" if name == "read" else "sync writes"
            table.add(policy, label, f"{found['client']['n']:,}", *shape(found["client"]))
    table.publish(claims, write)


def amplification(claims, write):
    table = Table("write-throttle.md", "amplification",
                  ["blocks of the volume", "client", "writes of the client", "in the queues, each", "at the disks, each",
                   "bytes, each"])
    for lab, block in [("amplification", "8 KiB"), ("amplification-aligned", "128 KiB")]:
        for pattern in ("random", "sequential"):
            [pool] = simulate(lab, {"block ": f'"128K"\npattern = "{pattern}"'})["pools"]
            times, queued = pool["amplification"], pool["amplification_queued"]
            table.add(block, pattern, f"{pool['volumes']['writes']:,}", f"{queued['writes']:.1f}",
                      f"{times['writes']:.1f}", f"{times['written_bytes']:.2f}")
            blocks = 16 if block == "8 KiB" else 1
            claims.near(f"{block}, {pattern}: zios in the queues for each write", queued["writes"], 2 * blocks, 0.02)
    table.publish(claims, write)


TUNINGS = [
    ("zfs_dirty_data_max", ['"32M"', '"128M"', '"512M"', '"1G"']),
    ("zfs_delay_scale", ['"50us"', '"500us"', '"5ms"']),
    ("zfs_delay_min_dirty_percent", ["40", "60", "80"]),
    ("zfs_vdev_async_write_max_active", ["5", "10", "20"]),
]


def tuning(claims, write):
    table = Table("tuning.md", "tuning",
                  ["tunable", "value", "written in the burst", "mean", "std. dev.", "p50", "p99", "max",
                   "reads: p50", "p99", "max"])
    written, slowest_read, mean = {}, {}, {}
    for name, values in TUNINGS:
        for value in values:
            outcome = simulate("tuning", {name: value})
            writes, reads = op(outcome, "writer", "write")["client"], op(outcome, "reader", "read")["client"]
            written[name, value] = writes["n"]
            mean[name, value] = writes["mean_ns"]
            slowest_read[name, value] = reads["p99_ns"]
            table.add(f"`{name}`", value.strip('"'), f"{writes['n'] / 128:,.0f} MiB",
                      *(span(writes[f"{figure}_ns"]) for figure in ("mean", "stddev", "p50", "p99", "max")),
                      *(span(reads[f"{figure}_ns"]) for figure in ("p50", "p99", "max")))
    for name, values in TUNINGS:
        amounts = [written[name, value] for value in values]
        order = sorted(amounts, reverse=name == "zfs_delay_scale")
        claims(f"what is written in a burst {'falls' if name == 'zfs_delay_scale' else 'grows'} with {name}",
               amounts == order and amounts[0] != amounts[-1])
    name = "zfs_vdev_async_write_max_active"
    claims("more writes at the disk make reads wait", slowest_read[name, "20"] > slowest_read[name, "10"])
    table.publish(claims, write)


def pictures(claims, write):
    """Of the pages; whether they are those of this run."""
    for scenario, picture, words in [
        ("scenario1", "series", ["--for", "30s"]),
        ("scenario2", "latency", ["--for", "630s"]),
        ("scenario2", "series", ["--for", "60s"]),
        ("scenario3", "latency-db-write", []),
        ("trickle", "series", []),
    ]:
        labs = [LABS / f"{scenario}-{policy}.toml" for policy in POLICIES]
        labs = [lab for lab in labs if lab.exists()]
        with tempfile.TemporaryDirectory(prefix="dashpot.") as directory:
            subprocess.run([DASHPOT, "sim", *labs, *words, "--chart", directory], stdout=subprocess.DEVNULL, check=True)
            drawn = (pathlib.Path(directory) / f"{picture}.svg").read_text()
        place = DOCS / "pictures" / f"{scenario}-{picture}.svg"
        if write:
            place.parent.mkdir(exist_ok=True)
            place.write_text(drawn)
        claims(f"docs/pictures/{place.name} is the picture of this run", place.read_text() == drawn)


def run(claims, write=False):
    for heading, part in [
        ("The first cycle of the old throttle", first_cycle),
        ("Clients of one speed", clients_of_one_speed),
        ("A flood", flood),
        ("A second client beside the flood", second_client),
        ("Amplification by small blocks", amplification),
        ("What tunables change", tuning),
        ("Pictures", pictures),
    ]:
        title(heading)
        part(claims, write)


if __name__ == "__main__":
    CLAIMS = Claims()
    run(CLAIMS, write="--write" in sys.argv)
    sys.exit(CLAIMS.verdict())
