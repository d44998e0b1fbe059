"""Intervals show their true length: if a report or a daemon was stopped, that time counts in the interval that ends
next, and the intervals that were due meanwhile are reported as missed.
"""

import contextlib
import json
import re
import signal
import subprocess
import time

import pytest
from conftest import eventually, requires
from kernel import dd, loop_in_memory, takes_a_kernel
from test_kernel_reports import Watching, counted
from test_reports import QUANTIZE_ROW, has_begun, rows
from timed import Client

# On a busy host, the report adds a sentence on the time for which the host stopped dashpot.
LONG = re.compile(
    r"^Interval: (\d+\.\d+) s instead of ([\d.]+) s; (\d+) intervals? (?:was|were) missed\.(?: |$)", re.MULTILINE
)
SHORT = re.compile(r"^Interval: (\d+\.\d+) s instead of ([\d.]+) s\.(?: |$)", re.MULTILINE)
PERIOD = 0.2
PERIOD_NS = 200_000_000
STOPPED = 1.5


@contextlib.contextmanager
def stopped(process):
    """Stops a process for at least several intervals."""
    process.send_signal(signal.SIGSTOP)
    begun = time.monotonic()
    yield
    eventually(lambda: time.monotonic() - begun > STOPPED, "a long stop")
    process.send_signal(signal.SIGCONT)


@contextlib.contextmanager
def busy_loops(number):
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(number)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def lines_until(report, is_enough):
    """Lines of JSON, up to the first one that satisfies the caller."""
    lines = []
    while not lines or not is_enough(lines[-1]):
        lines.append(json.loads(report.stdout.readline()))
    return lines


def is_long(line):
    return elapsed(line) >= STOPPED * 1e9


def elapsed(line):
    return first(line)["elapsed_ns"]


def first(line):
    return line[0] if isinstance(line, list) else line


def check_long(line):
    """The interval must stand for exactly those intervals that were due while the process was stopped."""
    missed = first(line)["missed"]
    assert missed in (elapsed(line) // PERIOD_NS - 1, elapsed(line) // PERIOD_NS)


def completed(line):
    return sum(disk["reads"]["n"] for disk in line) if isinstance(line, list) else line["latency"]["n"]


@pytest.mark.parametrize("words", [["iostat"], ["iolatency"], ["heatmap"]], ids=lambda words: words[0])
def test_a_report_that_was_stopped_counts_what_it_slept_through(daemon, words):
    client = Client(daemon)
    report = daemon.start(*words, "--json", PERIOD)
    report.stdout.readline()
    with stopped(report):
        client.many(50, 1)
    lines = lines_until(report, is_long)
    check_long(lines[-1])
    report.send_signal(signal.SIGINT)
    rest, errors = report.communicate()
    assert report.returncode == 0, errors
    lines += [json.loads(line) for line in rest.splitlines()]
    count = (lambda line: line["count"]) if words == ["heatmap"] else completed
    assert sum(map(count, lines)) == 50
    ((length, asked, missed),) = LONG.findall(errors)
    assert (float(length) >= STOPPED, float(asked), int(missed)) == (
        True,
        PERIOD,
        max(first(line)["missed"] for line in lines),
    )


def test_rates_are_of_the_time_that_an_interval_took(daemon):
    client = Client(daemon)
    report = daemon.start("iostat", "--json", PERIOD)
    report.stdout.readline()
    with stopped(report):
        client.many(50, 1)
    (disk,) = lines_until(report, is_long)[-1]
    reads = disk["reads"]
    assert reads["ops_per_s"] == pytest.approx(reads["n"] * 1e9 / disk["elapsed_ns"])
    report.kill()


def test_the_text_says_how_long_an_interval_was(daemon):
    report = daemon.start("iostat", PERIOD)
    text = report.stdout.readline()
    with stopped(report):
        pass
    while not LONG.search(text):
        text += report.stdout.readline()
    length, asked, missed = LONG.search(text).groups()
    assert float(length) >= STOPPED and float(asked) == PERIOD and int(missed) >= STOPPED / PERIOD - 2
    report.kill()


@pytest.mark.parametrize("words", [["iostat"], ["iolatency"]], ids=lambda words: words[0])
def test_a_daemon_that_was_stopped_makes_one_long_interval(daemon, words):
    report = daemon.start(*words, "--json", PERIOD)
    begun = time.monotonic()
    lines_until(report, lambda line: elapsed(line) < 1e9 * (time.monotonic() - begun))
    with stopped(daemon.process):
        pass
    lines = lines_until(report, is_long)
    check_long(lines[-1])
    report.send_signal(signal.SIGINT)
    rest, errors = report.communicate()
    assert report.returncode == 0, errors
    lines += [json.loads(line) for line in rest.splitlines()]
    due = sum(1 + first(line)["missed"] for line in lines)
    # Each interval accounts for one moment at which an interval was due to end, and for those that it missed. The signal
    # cuts the last interval short, so that one accounts for none. No moment counts twice.
    assert (due - 1) * PERIOD_NS <= sum(map(elapsed, lines)) + PERIOD_NS
    assert LONG.search(errors), errors


def test_an_interval_that_was_cut_short_says_so(daemon):
    report = daemon.start("iolatency", 3600)
    report.stdout.readline()
    report.send_signal(signal.SIGINT)
    _, errors = report.communicate()
    ((length, asked),) = SHORT.findall(errors)
    assert float(length) < 3600 == float(asked)


def test_quantize_divides_by_the_time_that_passed(daemon):
    daemon.cli("inject", "d", "-D", "10ms")
    client = Client(daemon)
    report = daemon.start("quantize", "--for", "1.9s")
    eventually(lambda: has_begun(report))
    while report.poll() is None:
        client.many(8, 4)
    text, errors = report.communicate()
    assert report.returncode == 0, errors
    count = sum(int(count) for _, _, count in rows(text, QUANTIZE_ROW))
    lines = iter(text.splitlines())
    next(line for line in lines if line.startswith("avg latency"))
    iops = int(next(lines).split()[2])
    assert count > 20 and iops - 0.5 <= count / 1.9


def test_snoop_says_that_the_daemon_was_started_again(directory, serve):
    """snoop must say that the daemon was started again. snoop asks 20 times a second. If a request is on its
    way when the daemon is killed, snoop reports the lost connection first, and the test tries again.
    """
    said = ""
    while "the daemon was started again" not in said:
        assert "connection" in said or not said, said
        said = said_after_a_restart(directory, serve)


def said_after_a_restart(directory, serve):
    api = ["--api", f"unix:{directory}/api.sock"]
    daemon = serve("-d", "d=ram,size=1M", *api)
    daemon.api = directory / "api.sock"
    snoop = daemon.start("snoop")
    snoop.stdout.readline()
    # snoop is stopped, so that it does not notice that the daemon is gone.
    snoop.send_signal(signal.SIGSTOP)
    daemon.abandon()
    daemon = serve("-d", "d=ram,size=1M", *api)
    Client(daemon).many(10, 1)
    snoop.send_signal(signal.SIGCONT)
    _, errors = snoop.communicate(timeout=60)
    daemon.stop()
    assert snoop.returncode == 1, errors
    return errors


def test_iolatency_of_what_the_daemon_remembers(serve):
    daemon = serve("-d", "fast=ram,size=1M", "-d", "slow=ram,size=1M")
    daemon.cli("inject", "slow", "-D", "40ms")
    Client(daemon, "fast").many(30, 1)
    Client(daemon, "slow").many(20, 4)
    report = daemon.json("iolatency", "--last", "10m", "--by", "device")
    assert {value["value"]: value["latency"]["n"] for value in report["values"]} == {"fast": 30, "slow": 20}
    only = daemon.cli("iolatency", "--last", "10m", "-d", "slow", "-i", "*R*")
    assert sum(counted(only.stdout).values()) == 20 and min(counted(only.stdout)) >= 32
    # The daemon has run for less than the 10 minutes that the question covers.
    ((length, asked),) = SHORT.findall(only.stderr)
    assert float(length) < float(asked) == 600
    assert "--by size" in daemon.cli("iolatency", "--last", "1m", "--by", "size", code=2).stderr


def test_iostat_takes_several_devices_then_interval_and_count(serve):
    daemon = serve("-d", "a=ram,size=1M", "-d", "b=ram,size=1M", "-d", "c=ram,size=1M")
    lines = [
        json.loads(line) for line in daemon.cli("iostat", "--json", "-d", "a", "b", "0.1", "2").stdout.splitlines()
    ]
    assert [[disk["device"] for disk in line] for line in lines] == [["a", "b"]] * 2
    assert "devices come first" in daemon.cli("iostat", "1", "1", "a", code=2).stderr


def test_quantize_by_device(serve):
    daemon = serve("-d", "a=ram,size=1M", "-d", "b=ram,size=1M")
    report = daemon.json("quantize", "--by", "device", "--for", "100ms")
    assert [one["device"] for one in report["devices"]] == ["a", "b"]


@pytest.fixture
def loop():
    with loop_in_memory() as loop:
        yield loop


def read_all(loop, number):
    dd(f"if={loop.path}", "of=/dev/null", "bs=4k", f"count={number}", "iflag=direct")


@takes_a_kernel
def test_iostat_of_the_kernels_disks_that_was_stopped(loop):
    report = Watching("iostat", "-d", loop.name, "--json", PERIOD).process
    with stopped(report):
        read_all(loop, 500)
    line = lines_until(report, is_long)[-1]
    check_long(line)
    assert completed(line) == 500
    report.kill()


@takes_a_kernel
def test_a_report_of_the_kernels_disks_that_was_stopped_misses_nothing(loop):
    """A report that was stopped must miss no interval as long as no event is lost, because events carry the
    times at which the I/Os ended."""
    report = Watching("iolatency", "-d", loop.name, "--json", PERIOD)
    with stopped(report.process):
        read_all(loop, 500)
    text = report.end()
    lines = [json.loads(line) for line in text.splitlines()]
    assert sum(map(completed, lines)) == 500
    ends = [line["at_ns"] for line in lines]
    assert ends == sorted(ends)
    assert sum(1 + line["missed"] for line in lines) * PERIOD_NS >= sum(map(elapsed, lines)) - PERIOD_NS


@takes_a_kernel
@requires("dd")
@pytest.mark.parametrize("text", [[], ["--json"]], ids=["text", "json"])
def test_the_tail_of_a_watch_is_read_up_to_the_signal(loop, text):
    """A watch must read all events up to the signal, even on a busy host, where the program prints and reads
    late."""
    with busy_loops(4):
        report = Watching("iolatency", "-d", loop.path, *text, "5ms")
        read_all(loop, 15_000)
        ended_ns = time.time_ns()
        said = report.end()
    if not text:
        assert sum(counted(said).values()) == 15_000, report.errors
        return
    lines = [json.loads(line) for line in said.splitlines()]
    assert sum(row["count"] for line in lines for row in line["rows"]) == 15_000, report.errors
    assert lines[-1]["at_ns"] >= ended_ns
