"""Compares what programs see of a disk that `dashpot attach` has turned into a loop device: reads of 50 ms
and writes of 100 ms, 128 at a time. fio, sysstat's iostat, dashpot's iostat and iolatency look at the same
node at the same time.

fio's percentiles have buckets of 1 %, so fio's median is computed from its log. On a busy host fio and the tools have
to wait for a CPU, and the claims may not hold.
"""

import json
import os
import shutil
import statistics
import subprocess
import time

from lab import daemon, title

DEPTH = 128
ROUNDS = 3
# fio begins before the other tools begin to look at the device, and ends after them.
SECONDS, BEFORE, LOOK = 9, 1.5, 5
TOOLS = ["fio", "iostat", "losetup"]
NODES = ["/dev/fuse", "/dev/loop-control", "/sys/kernel/tracing/events/block"]
# Both kinds of iostat first report the time since the host was started; that first report is left out.
COLUMNS = ["fio p50", "rule p50", "iolat. p50", "fio mean", "iostat", "ours", "fio IOPS", "iostat", "ours", "iolat."]
# The width of a bucket of iolatency, as a share of the latency.
BUCKET = 0.022


def run(claims):
    title(f"a loop device of `dashpot attach`, at a depth of {DEPTH}")
    missing = [tool for tool in TOOLS if shutil.which(tool) is None] + [
        node for node in NODES if not os.path.exists(node)
    ]
    if missing or os.geteuid() != 0:
        print(f"\n  skipped: {', '.join(missing) or 'root'} is missing")
        return
    with daemon("d=ram,size=1G") as lab:
        node = lab.ask("attach", "d", "--with", "loop").strip()
        try:
            for direction, delay_ms in [("read", 50), ("write", 100)]:
                measure(claims, lab, node, direction, delay_ms)
        finally:
            lab.ask("detach", "d")


def measure(claims, lab, node, direction, delay_ms):
    lab.ask("reset")
    lab.ask("inject", "d", "-D", f"{delay_ms}ms", "-T", direction)
    rounds = [looked_at(lab, node, direction) for _ in range(ROUNDS)]
    print(
        f"\n  {direction}s of {delay_ms} ms: latencies in ms, then I/Os per second\n\n"
        + "".join(f"{it:>11}" for it in COLUMNS)
    )
    for figures in rounds:
        print("".join(f"{it:>11.3f}" for it in figures[:6]) + "".join(f"{it:>11.0f}" for it in figures[6:]))
    p50, rule, events, mean, stock, ours, iops, *rates = map(statistics.median, zip(*rounds))
    print()
    claims.near(f"fio's median of {direction}s in ms", p50, delay_ms, 0.01)
    claims.near(f"the rule's own median of {direction}s in ms", rule, delay_ms, 0.01)
    claims.near(f"fio's median of {direction}s beside iolatency's", p50, events, BUCKET)
    claims.near(f"IOPS of {direction}s", iops, DEPTH * 1000 / delay_ms, 0.02)
    claims.near(f"fio's mean of {direction}s beside iostat's", mean, stock, 0.02)
    claims.near(f"the mean of {direction}s of dashpot's iostat beside sysstat's", ours, stock, 0.01)
    for name, rate in zip(["sysstat's iostat", "dashpot's iostat", "iolatency"], rates, strict=True):
        claims.near(f"fio's IOPS of {direction}s beside {name}", iops, rate, 0.02)


def looked_at(lab, node, direction):
    """Runs fio once, and returns the figures in the order of the columns."""
    fio = started(
        "fio",
        "--name=job",
        f"--filename={node}",
        "--ioengine=libaio",
        "--direct=1",
        "--bs=4k",
        f"--rw=rand{direction}",
        f"--iodepth={DEPTH}",
        "--time_based",
        f"--runtime={SECONDS}",
        f"--write_lat_log={lab.directory}/job",
        "--output-format=json",
    )
    time.sleep(BEFORE)
    stock = started("iostat", "-dxyk", "-o", "JSON", node, str(LOOK), "1")
    counters = lab.start("iostat", "-x", "--json", "-d", node, str(LOOK), "2")
    events = lab.start("iolatency", "--percentiles", "--json", "-d", node, str(LOOK), "1")
    (row,) = last(stock)["sysstat"]["hosts"][0]["statistics"][-1]["disk"]
    (interval,) = last(counters)
    latencies = last(events)
    (job,) = last(fio)["jobs"]
    (rule,) = lab.json("list")
    fios, ours = job[direction], interval[f"{direction}s"]
    return (
        median_of(lab.directory / "job_lat.1.log"),
        rule["achieved"]["p50_ns"] / 1e6,
        latencies["latency"]["p50_ns"] / 1e6,
        fios["lat_ns"]["mean"] / 1e6,
        row[f"{direction[0]}_await"],
        ours["mean_ns"] / 1e6,
        fios["iops"],
        row[f"{direction[0]}/s"],
        ours["ops_per_s"],
        latencies["latency"]["n"] / latencies["elapsed_ns"] * 1e9,
    )


def median_of(log):
    """The median in milliseconds of the total latencies that fio logged."""
    return statistics.median(int(line.split(",")[1]) for line in log.read_text().splitlines()) / 1e6


def started(*words):
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def last(process):
    """The last JSON document that a program printed."""
    text, _ = process.communicate()
    assert process.returncode == 0
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return json.loads(text.splitlines()[-1])
