"""The latencies of the kernel's disks must agree with those that fio measures, and no slow I/O may be missed."""

import bisect
import json
import math
import os
import signal
import subprocess

import pytest
from conftest import BINARY, eventually, requires
from kernel import IN_FLIGHT, instances_of, is_watching, left_behind, takes_a_kernel
from scraping import layout
from slow import needs_nbdfuse, slow  # noqa: F401 (a fixture)
from test_reports import IOLATENCY_ROW, rows

pytestmark = [takes_a_kernel, needs_nbdfuse]
BUCKETS = layout()
SHARES = (50, 90, 99)
ATTEMPTS = 5


class Watching:
    """`dashpot iolatency` on a loop device, ready to see all events."""

    def __init__(self, loop, *words):
        environment = {name: value for name, value in os.environ.items() if name != "DASHPOT_API"}
        self.process = subprocess.Popen(
            [BINARY, "iolatency", "-d", loop.path, *map(str, words)],
            text=True,
            bufsize=1,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        eventually(lambda: is_watching(self.process.pid) or self.process.poll() is not None, "the watch")

    def end(self):
        """Ends the report as Ctrl-C does. Returns its stdout and stderr."""
        self.process.send_signal(signal.SIGINT)
        said = self.process.communicate(timeout=120)
        assert self.process.returncode == 0, said
        assert not instances_of(self.process.pid)
        return said

    def intervals(self):
        """The intervals of a report in JSON."""
        text, errors = self.end()
        assert "lost" not in errors, errors
        return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(autouse=True)
def nothing_left():
    before = left_behind()
    yield
    assert left_behind() <= before


def fio(loop, depth, number, directory):
    """Random reads without the page cache: the completion latency of each, in the order of fio's log."""
    done = subprocess.run(
        [
            # fio gets real-time priority. The kernel's clock stops when an I/O ends, but fio's stops when fio runs again.
            "chrt",
            "--fifo",
            "1",
            "fio",
            "--name=fio",
            f"--filename={loop.path}",
            "--direct=1",
            "--ioengine=libaio",
            "--rw=randread",
            "--bs=4k",
            f"--iodepth={depth}",
            f"--io_size={4 * number}k",
            "--readonly",
            "--output-format=json",
            "--write_lat_log=fio",
        ],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=directory,
    )
    assert done.returncode == 0, done.stderr
    (job,) = json.loads(done.stdout[done.stdout.index("{") :])["jobs"]
    latencies = [int(line.split(",")[1]) for line in (directory / "fio_clat.1.log").read_text().splitlines()]
    assert len(latencies) == job["read"]["total_ios"]
    return latencies


def read(loop):
    """Starts one read of 4 KiB."""
    return subprocess.Popen(
        ["dd", f"if={loop.path}", "of=/dev/null", "bs=4k", "count=1", "iflag=direct", "status=none"]
    )


def bucket(ns):
    return bisect.bisect_left(BUCKETS, ns)


# Comparisons with fio.


@requires("fio")
@pytest.mark.parametrize(
    "delay, depth, number",
    [
        ("uniform=10ms..40ms", 1, 300),
        ("uniform=2ms..6ms", 32, 4000),
        ("uniform=1ms..5ms", 128, 8000),
    ],
)
def test_percentiles_are_fios_within_a_bucket(daemon, slow, tmp_path, delay, depth, number):
    """fio's and dashpot's percentiles must agree within a bucket, which is about 2.2 % wide. fio reads its clock later
    than the kernel, after a system call and perhaps after other work on a busy machine. The difference is noise in
    fio's figures, so it is enough if one of several attempts agrees. The delays vary, because with a constant delay
    p90 and p99 would show only that noise.
    """
    daemon.cli("inject", "d", "-D", delay)
    for _ in range(ATTEMPTS):
        figures = measured(slow, depth, number, tmp_path)
        print(f"depth {depth}: {figures}")
        if all(abs(bucket(theirs) - bucket(own)) <= 1 for theirs, own in figures.values()):
            return
    raise AssertionError(f"fio's and ours differ by more than a bucket: {figures}")


def measured(loop, depth, number, directory):
    """For each percentile that is compared, fio's value and dashpot's. How long the few longest I/Os take depends on
    how busy the host is, so only percentiles that at least ten I/Os exceed are compared.
    """
    report = Watching(loop, "--percentiles", "--json", 600)
    theirs = fio(loop, depth, number, directory)
    (interval,) = report.intervals()
    ours = interval["latency"]
    assert interval["lost"] == 0 and interval["in_flight"]["zios"] == 0
    assert ours["n"] == len(theirs) == number
    assert ours["p50_ns"] >= 10_000_000
    # After its last request, fio waits until all requests have ended, and reads its clock only then: so its last
    # latencies are wrong.
    theirs = sorted(theirs[:-depth])
    shares = [share for share in SHARES if number * (100 - share) >= 1000]
    return {share: (theirs[math.ceil(len(theirs) * share / 100) - 1], ours[f"p{share}_ns"]) for share in shares}


# I/Os that last longer than an interval.


@pytest.mark.parametrize("queued", [[], ["-Q"]])
@pytest.mark.parametrize("how", ["suspended", "held"])
def test_what_outlasts_intervals_is_counted_once_and_named_meanwhile(daemon, slow, how, queued):
    before = slow.stat()
    text, lines = Watching(slow, *queued, 1), Watching(slow, "--json", *queued, 1)
    block(daemon, how)
    reader = read(slow)
    said = []
    while not said or said[-1][0] < 2:
        said.append(in_flight(text.process.stderr.readline(), slow))
    if how == "suspended":
        daemon.cli("resume", "d")
    assert reader.wait(timeout=120) == 0
    assert len(said) >= 2, "it was in flight at two ends of intervals"
    table, _ = text.end()
    ((low, count),) = [(int(low), count) for low, _, count, _ in rows(table, IOLATENCY_ROW) if count != "0"]
    assert (low >= 1024, count) == (True, "1")
    intervals = lines.intervals()
    (seen,) = [interval for interval in intervals if interval["latency"]["n"]]
    assert seen["latency"]["n"] == 1 == slow.stat()["reads"] - before["reads"]
    assert seen["latency"]["max_ns"] >= 2_000_000_000
    waited = [interval["in_flight"] for interval in intervals if interval["in_flight"]["zios"]]
    assert len(waited) >= 2
    assert all((each["zios"], each["device"], each["wait"]) == (1, slow.name, "issued") for each in waited)
    assert waited[-1]["oldest_ns"] - waited[0]["oldest_ns"] >= 900_000_000


def block(daemon, how):
    """Makes reads wait, by a suspend or by a rule, until at least two intervals have ended."""
    if how == "suspended":
        daemon.cli("suspend", "d")
    else:
        daemon.cli("inject", "d", "-D", "3500ms")


def in_flight(line, loop):
    """The age of the I/O that the report's line names as in flight, and the line itself."""
    number, age, name, wait = IN_FLIGHT.match(line.rstrip("\n")).groups()
    assert (number, name, wait) == ("1", loop.name, "issued"), line
    return float(age), line


@requires("fio")
def test_what_crosses_ends_of_intervals_is_counted_once(daemon, slow, tmp_path):
    """Each I/O is in flight at the ends of at least two intervals, and must count only in the interval in
    which it ends."""
    daemon.cli("inject", "d", "-D", "250ms")
    report = Watching(slow, "--json", "100ms")
    assert len(fio(slow, 8, 60, tmp_path)) == 60
    intervals = report.intervals()
    assert sum(interval["latency"]["n"] for interval in intervals) == 60
    assert sum(interval["lost"] for interval in intervals) == 0
    assert sum(row["count"] for interval in intervals for row in interval["rows"] if row["from_ns"] < 128_000_000) == 0
    ends = sum(interval["in_flight"]["zios"] for interval in intervals)
    assert ends >= 2 * 60


# I/Os that never end.


@pytest.mark.parametrize("queued", [[], ["-Q"]])
def test_what_hangs_is_named_at_the_end(daemon, slow, queued):
    text, lines = Watching(slow, *queued, 600), Watching(slow, "--json", *queued, 600)
    daemon.cli("inject", "d", "--hang")
    reader = read(slow)
    eventually(lambda: slow.stat()["in_flight"], "a read in flight")
    table, said = text.end()
    in_flight(said, slow)
    assert all(count == "0" for _, _, count, _ in rows(table, IOLATENCY_ROW))
    (interval,) = lines.intervals()
    assert (interval["latency"]["n"], interval["in_flight"]["zios"], interval["in_flight"]["device"]) == (
        0,
        1,
        slow.name,
    )
    daemon.cli("clear", "d", "--release")
    assert reader.wait(timeout=120) == 0
