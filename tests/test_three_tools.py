"""Three tools must agree about an attached disk: sysstat's iostat, and dashpot's iostat and iolatency."""

import json
import os
import subprocess

import pytest
from attached import attach, can_attach  # noqa: F401 (a fixture)
from conftest import requires
from kernel import takes_a_kernel
from test_kernel_reports import Watching

pytestmark = [*can_attach, takes_a_kernel, requires("fio"), requires("iostat"), requires("stdbuf")]
COUNT = 400
READ_MS, WRITE_MS = 20, 30


def fio(node):
    """Reads and writes the node, and returns the number of each."""
    done = subprocess.run(
        [
            "fio",
            "--name=job",
            f"--filename={node}",
            "--ioengine=libaio",
            "--direct=1",
            "--bs=4k",
            "--rw=randrw",
            "--iodepth=8",
            f"--number_ios={COUNT}",
            "--output-format=json",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    (job,) = json.loads(done.stdout)["jobs"]
    return {kind: job[kind]["total_ios"] for kind in ("read", "write")}


class Sysstat:
    """sysstat's iostat over one interval, which has begun."""

    def __init__(self, node, seconds):
        self.name, self.seconds = os.path.basename(node), seconds
        self.process = subprocess.Popen(
            ["stdbuf", "-oL", "iostat", "-dxk", node, str(seconds), "2"],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "LC_ALL": "C", "S_COLORS": "never"},
        )
        # iostat's first table covers the time since the boot. The measured interval begins when iostat prints
        # that table.
        self.row()

    def row(self):
        """The figures of the next table, by their titles."""
        titles = []
        for line in self.process.stdout:
            words = line.split()
            if words[:1] == ["Device"]:
                titles = words
            if words[:1] == [self.name]:
                return {title: float(word) for title, word in zip(titles[1:], words[1:])}
        raise AssertionError("no table of sysstat's iostat")

    def is_over(self):
        return self.process.poll() is not None

    def interval(self):
        row = self.row()
        assert self.process.wait() == 0
        return row


def sysstat_of(node, work):
    """Does the work within one interval of a report. Returns the figures of that interval, its length, and the result
    of the work.
    """
    for seconds in (5, 10, 20, 40):
        tool = Sysstat(node, seconds)
        result = work()
        # On a busy host the work may last longer than the interval.
        in_time = not tool.is_over()
        row = tool.interval()
        if in_time:
            return row, seconds, result
    pytest.skip("the host is too busy for 400 I/Os in 40 s")


def of_type(values, letter):
    """The rows of iolatency for all types that contain this letter."""
    return [row for value in values if letter in value["value"] for row in value["rows"]]


def test_iostat_and_iolatency_agree_on_an_attached_disk(serve, attach):
    daemon = serve("-d", "d=ram,size=64M")
    node = attach(daemon)
    daemon.cli("inject", "d", "-D", f"{READ_MS}ms", "-T", "read")
    daemon.cli("inject", "d", "-D", f"{WRITE_MS}ms", "-T", "write")

    def watched():
        """fio's counts, and what both of dashpot's reports say."""
        counters = Watching("iostat", "-x", "--json", "-d", node, 600)
        events = Watching.quiet("iolatency", "--by", "type", "--json", "-d", node, 600)
        counts = fio(node)
        (interval,) = json.loads(counters.end().splitlines()[1])
        return counts, interval, json.loads(events.end())

    stock, seconds, (counts, ours, latency) = sysstat_of(node, watched)
    assert sum(counts.values()) == COUNT and latency["missed"] == 0
    for kind, letter, least in [("read", "R", READ_MS), ("write", "W", WRITE_MS)]:
        count, short = counts[kind], kind[0]
        rows, mean = of_type(latency["values"], letter), ours[f"{kind}s"]["mean_ns"]
        assert ours[f"{kind}s"]["n"] == sum(row["count"] for row in rows) == count
        # The interval of iostat may last a few milliseconds longer than requested.
        assert stock[f"{short}/s"] * seconds == pytest.approx(count, rel=0.02)
        # The kernel counts whole milliseconds, and iostat prints two digits.
        assert stock[f"{short}_await"] * 1e6 == pytest.approx(mean, abs=0.005e6 + 1e6 / count)
        assert mean >= least * 1e6
        # The latency of iolatency begins when the driver gets an I/O, and that of iostat a little earlier; the edges
        # of iolatency's rows bound the mean.
        lowest = sum(row["from_ns"] * row["count"] for row in rows) / count
        highest = sum((row["to_ns"] + 1) * row["count"] for row in rows) / count
        assert lowest <= mean <= highest * 1.05, (lowest, mean, highest)
    daemon.cli("detach", "d")
