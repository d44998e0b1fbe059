"""The reports on the kernel's own disks: no I/O is missing or counted twice, and the reports leave nothing in
the kernel."""

import fcntl
import itertools
import json
import os
import pathlib
import re
import signal
import subprocess

import pytest
from conftest import BINARY, eventually, requires, run
from kernel import (
    IN_FLIGHT,
    dd,
    instances_of,
    is_watching,
    left_behind,
    loop_in_memory,
    loop_that_can_be_frozen,
    takes_a_kernel,
)
from test_reports import IOLATENCY_HEADER, IOLATENCY_ROW, IOSTAT_COLUMNS, rows

pytestmark = takes_a_kernel


@pytest.fixture
def loop():
    with loop_in_memory() as loop:
        yield loop


@pytest.fixture
def nothing_left():
    before = left_behind()
    yield
    assert left_behind() <= before


def dashpot(*words, code=0):
    environment = {name: value for name, value in os.environ.items() if name != "DASHPOT_API"}
    done = subprocess.run([BINARY, *map(str, words)], capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == code, f"{words}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def started(words):
    environment = {name: value for name, value in os.environ.items() if name != "DASHPOT_API"}
    return subprocess.Popen(
        [BINARY, *map(str, words)],
        text=True,
        bufsize=1,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


class Watching:
    """A running report."""

    def __init__(self, *words):
        self.errors = ""
        self.process = started(words)
        self.first = self.process.stdout.readline()

    @classmethod
    def quiet(cls, *words, watches=True):
        """Starts a report that may print nothing before an I/O ends. A report that needs no events never begins to
        watch the kernel."""
        self = cls.__new__(cls)
        self.first = self.errors = ""
        self.process = started(words)
        if watches:
            eventually(lambda: is_watching(self.process.pid), "it watches")
        return self

    def end(self, how=signal.SIGINT, code=0):
        """Ends the report with a signal, and returns its output."""
        self.process.send_signal(how)
        text, errors = self.process.communicate(timeout=120)
        self.errors += errors
        assert self.process.returncode == code, self.errors
        return self.first + text


def iolatency(*words):
    """Starts iolatency, and returns once it is watching, which its first line shows."""
    return Watching("iolatency", *words)


def counted(text):
    """The counts of the non-empty rows, by the lower bound of each row."""
    counts = {}
    for low, _high, count, _bar in rows(text, IOLATENCY_ROW):
        if count != "0":
            counts[int(low)] = counts.get(int(low), 0) + int(count)
    return counts


def by_value(text):
    """The count of each value of a breakdown."""
    counts, value = {}, None
    for line in text.splitlines():
        if match := re.match(r"^(?:device|type|process|cgroup|size) (.*):$", line):
            value = match[1]
        elif match := IOLATENCY_ROW.match(line):
            counts[value] = counts.get(value, 0) + int(match[3])
    return {value: count for value, count in counts.items() if count}


# Counts.


@pytest.mark.parametrize("queued", [[], ["-Q"]])
def test_counts_are_those_of_the_kernel(loop, nothing_left, queued):
    before = loop.stat()
    report = iolatency("-d", loop.path, "--by", "type", *queued, 1)
    dd("if=/dev/zero", f"of={loop.path}", "bs=64k", "count=200", "oflag=direct")
    dd(f"if={loop.path}", "of=/dev/null", "bs=4k", "count=1000", "iflag=direct")
    dd("if=/dev/zero", f"of={loop.path}", "bs=4k", "count=2000", "conv=fsync")
    text = report.end()
    after = loop.stat()
    kinds = by_value(text)
    reads = sum(count for kind, count in kinds.items() if "R" in kind)
    writes = sum(count for kind, count in kinds.items() if "W" in kind)
    flushes = sum(count for kind, count in kinds.items() if set(kind) == {"F"})
    assert reads == after["reads"] - before["reads"]
    assert flushes == after["flushes"] - before["flushes"] > 0
    # If only one process waits for a flush, the kernel counts the flush, and also an empty write for that process.
    assert writes + flushes == after["writes"] - before["writes"]
    assert "lost" not in report.errors


def test_dd_is_split_as_the_kernel_splits_it(loop, nothing_left):
    loop.limit(256)
    report = iolatency("-d", loop.name, "--by", "size", 1)
    dd("if=/dev/zero", f"of={loop.path}", "bs=1M", "count=16", "oflag=direct")
    assert by_value(report.end()) == {"256K-512K": 64}


def test_iostat_has_the_counts_of_the_kernel(loop):
    before = loop.stat()
    report = Watching("iostat", "-x", "--json", "-d", loop.path, 600)
    dd("if=/dev/zero", f"of={loop.path}", "bs=4k", "count=4000", "conv=fsync")
    dd(f"if={loop.path}", "of=/dev/null", "bs=64k", "count=100", "iflag=direct")
    after = loop.stat()
    first, second = report.end().splitlines()
    (whole,), (interval,) = json.loads(first), json.loads(second)
    assert (whole["reads"]["n"], whole["writes"]["n"]) == (before["reads"], before["writes"])
    delta = {name: after[name] - before[name] for name in after}
    for kind in ("reads", "writes", "discards", "flushes"):
        assert interval[kind]["n"] == delta[kind]
    seconds = interval["elapsed_ns"] / 1e9
    asked = delta["writes"] + delta["writes_merged"]
    reads, writes = interval["reads"], interval["writes"]
    assert writes["merged_per_s"] == pytest.approx(delta["writes_merged"] / seconds)
    assert writes["merged_percent"] == pytest.approx(100 * delta["writes_merged"] / asked)
    assert writes["bytes_per_s"] == pytest.approx(delta["sectors_written"] * 512 / seconds)
    assert interval["depth"] is None, "the kernel's counters tell only the mean"
    assert reads["mean_ns"] == pytest.approx(delta["read_ms"] * 1e6 / delta["reads"])


@requires("iostat")
@pytest.mark.parametrize("extended", [[], ["-x"]])
def test_iostat_prints_what_sysstats_does(loop, extended):
    dd("if=/dev/zero", f"of={loop.path}", "bs=4k", "count=3000", "conv=fsync")
    dd(f"if={loop.path}", "of=/dev/null", "bs=4k", "count=3000", "iflag=direct")
    theirs = run("iostat", "-d", *extended, loop.name, env={"LC_ALL": "C", "S_COLORS": "never"}).stdout
    ours = dashpot("iostat", "-d", loop.name, *extended).stdout
    tables = [
        [line.split() for line in text.splitlines() if re.match(f"Device|{loop.name} ", line)]
        for text in (theirs, ours)
    ]
    (titles, figures), (our_titles, our_figures) = tables
    assert our_titles == titles
    # Both tools print averages since the boot. dashpot reads the counters later, so its averages cover more time.
    for title, figure, our_figure in zip(titles[1:], figures[1:], our_figures[1:]):
        assert float(our_figure) == pytest.approx(float(figure), rel=0.02, abs=0.011), title
    widths = [[len(line) for line in text.splitlines() if line.startswith(loop.name)] for text in (theirs, ours)]
    assert widths[0] == widths[1]


def test_iostat_of_all_disks_takes_no_privilege(loop):
    dd(f"if={loop.path}", "of=/dev/null", "bs=4k", "count=10", "iflag=direct")
    text = as_nobody("iostat", "-x", "-k").stdout
    titles, *disks = text.splitlines()
    assert " ".join(titles.split()) == IOSTAT_COLUMNS
    assert any(line.startswith(f"{loop.name} ") for line in disks)


# I/Os that take longer than an interval.


@requires("mkfs.ext4")
@requires("fsfreeze")
def test_what_outlasts_intervals_is_counted_once(tmp_path, nothing_left):
    """A write blocks for more than two intervals of a second. Reports must mention it meanwhile, and count it
    once."""
    with loop_that_can_be_frozen(tmp_path) as (loop, place):
        report = iolatency("-d", loop.path, 1)
        run("fsfreeze", "-f", place)
        try:
            writer = subprocess.Popen(
                ["dd", "if=/dev/zero", f"of={loop.path}", "bs=4k", "count=1", "oflag=direct", "status=none"]
            )
            ages = []
            while not ages or ages[-1] < 2:
                line = report.process.stderr.readline()
                number, age, name, wait = IN_FLIGHT.match(line.rstrip("\n")).groups()
                assert (number, name, wait) == ("1", loop.name, "issued")
                ages.append(float(age))
        finally:
            run("fsfreeze", "-u", place)
        assert writer.wait() == 0
        assert len(ages) >= 2, "it was in flight at two ends of intervals"
        ((low, count),) = counted(report.end()).items()
        assert count == 1 and low >= 1024


def test_every_io_is_in_one_interval(loop, nothing_left):
    """Every I/O must be in exactly one interval. The intervals are so short that many I/Os cross their ends,
    or complete while an interval is printed."""
    before = loop.stat()
    report = iolatency("-d", loop.path, "5ms")
    dd(f"if={loop.path}", "of=/dev/null", "bs=4k", "count=15000", "iflag=direct")
    text = report.end()
    assert text.count(IOLATENCY_HEADER) > 5
    assert sum(counted(text).values()) == loop.stat()["reads"] - before["reads"] >= 15000


def test_an_interval_that_is_cut_short_has_what_it_saw(loop, nothing_left):
    report = iolatency("-d", loop.path, 600)
    dd(f"if={loop.path}", "of=/dev/null", "bs=4k", "count=7", "iflag=direct")
    text = report.end()
    assert sum(counted(text).values()) == 7
    assert text.count(IOLATENCY_HEADER) == 1 and text.endswith("\nEnding tracing...\n")


# Options.


def test_a_device_by_name_path_and_number(loop, nothing_left):
    for words in (loop.name, loop.path, loop.number()):
        report = iolatency("-d", words, 600)
        dd(f"if={loop.path}", "of=/dev/null", "bs=4k", "count=5", "iflag=direct")
        assert sum(counted(report.end()).values()) == 5, words


def test_types_are_a_glob_over_the_kernels_letters(loop, nothing_left):
    for glob, expected in (("*W*", 3), ("*R*", 5), ("R", 0), ("*S", 8)):
        report = iolatency("-d", loop.name, "-i", glob, 600)
        # Direct reads and writes of dd are synchronous: RS and WS.
        dd(f"if={loop.path}", "of=/dev/null", "bs=4k", "count=5", "iflag=direct")
        dd("if=/dev/zero", f"of={loop.path}", "bs=4k", "count=3", "oflag=direct")
        assert sum(counted(report.end()).values()) == expected, glob


def test_breakdowns(loop, nothing_left):
    for by, values in (("device", {loop.name}), ("process", {"dd"}), ("size", {"4K-8K"})):
        report = iolatency("-d", loop.name, "--by", by, 600)
        dd(f"if={loop.path}", "of=/dev/null", "bs=4k", "count=50", "iflag=direct")
        assert by_value(report.end()) == {value: 50 for value in values}, by


def test_percentiles_say_how_many_they_are_of(loop, nothing_left):
    report = iolatency("-d", loop.name, "--percentiles", "--by", "device", 600)
    dd(f"if={loop.path}", "of=/dev/null", "bs=4k", "count=50", "iflag=direct")
    title, line = [line.split() for line in report.end().splitlines() if line.startswith(("device", loop.name))]
    assert title == ["device", "n", "p50", "p90", "p95", "p99", "p99.9", "max"]
    figures = dict(zip(title, line))
    assert figures["n"] == "50" and figures["p99"] == figures["p99.9"] == "-" and figures["p95"] != "-"


def test_two_disks_at_once(loop, nothing_left):
    with loop_in_memory() as other:
        report = iolatency("-d", loop.name, "-d", other.path, "--by", "device", 600)
        dd(f"if={loop.path}", "of=/dev/null", "bs=4k", "count=5", "iflag=direct")
        dd(f"if={other.path}", "of=/dev/null", "bs=4k", "count=9", "iflag=direct")
        assert by_value(report.end()) == {loop.name: 5, other.name: 9}


def test_quantize_of_a_disk(loop, nothing_left):
    report = subprocess.Popen(
        [BINARY, "quantize", "-d", loop.path, "--op", "read", "--for", "600s", "--json"],
        text=True,
        stdout=subprocess.PIPE,
    )
    eventually(lambda: is_watching(report.pid), "the watch")
    dd(f"if={loop.path}", "of=/dev/null", "bs=4k", "count=200", "iflag=direct")
    dd("if=/dev/zero", f"of={loop.path}", "bs=4k", "count=20", "oflag=direct")
    report.send_signal(signal.SIGINT)
    quantized = json.loads(report.communicate(timeout=120)[0])
    counts = sum(row["count"] for row in quantized["total"]["rows"])
    # I/O from before the watch is in no interval.
    assert 0 < counts <= 200 and quantized["total"]["latency"]["n"] == counts and quantized["lost"] == 0


# Losses.


@requires("fio")
@pytest.mark.parametrize("queued", [[], ["-Q"]])
def test_losses_invent_no_latency(loop, nothing_left, queued):
    """An observer that was paused must report the events that it missed, and pair no end with the beginning
    of another I/O."""
    report = Watching("iolatency", "--percentiles", "--json", "-d", loop.path, *queued, "500ms")
    work = subprocess.Popen(
        [
            "fio",
            "--name=fio",
            f"--filename={loop.path}",
            "--direct=1",
            "--ioengine=libaio",
            "--rw=randread",
            "--bs=4k",
            "--size=1m",
            "--iodepth=32",
            "--time_based",
            "--runtime=10",
            "--readonly",
            "--output-format=json",
        ],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        eventually(lambda: loop.stat()["reads"] > 100, "I/O")
        report.process.send_signal(signal.SIGSTOP)
        eventually(lambda: is_overwritten(report.process.pid), "a loss")
    finally:
        report.process.send_signal(signal.SIGCONT)
        told = json.loads(work.communicate(timeout=120)[0])
    intervals = [json.loads(line) for line in report.end().splitlines()]
    assert all(interval["in_flight"]["zios"] <= 32 for interval in intervals if not is_doubtful(interval["in_flight"]))
    slowest = max(interval["latency"]["max_ns"] or 0 for interval in intervals)
    assert sum(interval["lost"] for interval in intervals) > 0
    # fio's latency includes all of the time that the kernel sees between queueing and the end.
    assert slowest <= told["jobs"][0]["read"]["lat_ns"]["max"]
    assert intervals[-1]["in_flight"]["zios"] == 0
    while not intervals[-1]["latency"]["n"]:
        intervals.pop()
    busy = itertools.dropwhile(lambda interval: not interval["latency"]["n"], intervals)
    # After an interval that ended late comes a short interval, in which fio may have had no CPU time.
    whole = [interval for interval in busy if interval["elapsed_ns"] >= 500_000_000]
    assert all(interval["latency"]["n"] or interval["lost"] for interval in whole), (
        "an interval without I/Os has a loss"
    )


def is_doubtful(in_flight):
    return "lost" in (in_flight["wait"] or "")


def is_overwritten(pid):
    """Whether the kernel has lost events of a watching process."""
    stats = [path for instance in instances_of(pid) for path in instance.glob("per_cpu/cpu*/stats")]
    return any(not re.search(r"^overrun: 0$", path.read_text(), re.MULTILINE) for path in stats)


def test_the_reader_comes_first_on_a_busy_host(loop, nothing_left):
    report = iolatency("-d", loop.name, 600)

    def comes_first(thread):
        is_realtime = os.sched_getscheduler(thread) & ~os.SCHED_RESET_ON_FORK == os.SCHED_RR
        return is_realtime or os.getpriority(os.PRIO_PROCESS, thread) == -10

    def threads():
        return {comes_first(int(thread)) for thread in os.listdir(f"/proc/{report.process.pid}/task")}

    eventually(lambda: threads() == {True, False}, "a reader that comes before the thread that prints")
    report.end()


# Endings.


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_signals_leave_nothing_behind(loop, nothing_left, how):
    report = iolatency("-d", loop.name, 600)
    assert report.end(how).endswith("\nEnding tracing...\n")


def test_a_reader_that_has_had_enough_leaves_nothing_behind(loop, nothing_left):
    report = iolatency("-d", loop.name, "100ms")
    report.process.stdout.close()
    assert report.process.wait(timeout=120) == 0


def test_a_reader_that_does_not_read_keeps_nothing_in_the_kernel(loop, nothing_left):
    report = iolatency("--json", "-d", loop.name, "10ms")
    fcntl.fcntl(report.process.stdout, fcntl.F_SETPIPE_SZ, 4096)
    wait = pathlib.Path(f"/proc/{report.process.pid}/wchan")
    eventually(lambda: "pipe" in wait.read_text(), "a full pipe")
    report.process.send_signal(signal.SIGTERM)
    eventually(lambda: not instances_of(report.process.pid), "the end of the watch")
    assert report.process.poll() is None
    report.process.communicate(timeout=120)
    assert report.process.returncode == 0


def test_what_a_killed_one_has_left_is_removed_by_the_next(loop, nothing_left):
    report = iolatency("-d", loop.name, 600)
    report.end(signal.SIGKILL, code=-signal.SIGKILL)
    dashpot("iolatency", "-d", loop.name, "100ms", 1)


def test_two_observers_see_the_same(loop, nothing_left):
    first, second = iolatency("-d", loop.name, 600), iolatency("-d", loop.name, 600)
    dd(f"if={loop.path}", "of=/dev/null", "bs=4k", "count=30", "iflag=direct")
    assert sum(counted(first.end()).values()) == sum(counted(second.end()).values()) == 30


def test_a_disk_that_vanishes_is_said_to(nothing_left):
    with loop_in_memory() as loop, loop_in_memory() as other:
        both = iolatency("-d", loop.name, "-d", other.name, "100ms")
        alone = iolatency("-d", loop.name, "100ms")
        loop.detach()
        _, errors = alone.process.communicate(timeout=120)
        assert alone.process.returncode == 1
        assert errors.count(loop.name) == 1 and "lsblk" in errors, errors
        said = both.process.stderr.readline()
        assert loop.name in said and "vanished" in said
        both.end()
        assert both.errors == "", "it is said once"


def test_a_disk_that_another_has_replaced_is_said_to(nothing_left):
    with loop_in_memory("--read-only") as loop, loop_in_memory() as other:
        both = iolatency("-d", loop.name, "-d", other.name, "100ms")
        alone = iolatency("-d", loop.name, "100ms")
        if not pathlib.Path(f"/sys/block/{loop.name}/diskseq").exists():
            pytest.skip("the kernel does not count its disks: Linux 5.15 does")
        loop.change_file()
        _, errors = alone.process.communicate(timeout=120)
        assert alone.process.returncode == 1 and "whose I/Os do not count" in errors, errors
        said = both.process.stderr.readline()
        assert f"{loop.name} has vanished; another disk has its number now" in said
        both.end()
        assert both.errors == "", "it is said once"


def test_an_interval_ends_when_the_last_disk_vanishes(nothing_left):
    with loop_in_memory() as loop:
        report = iolatency("-d", loop.name, 600, 1)
        dd(f"if={loop.path}", "of=/dev/null", "bs=4k", "count=30", "iflag=direct")
        loop.detach()
        text, errors = report.process.communicate(timeout=120)
        assert sum(counted(text).values()) == 30
        assert report.process.returncode == 1
        assert errors.count(loop.name) == 1 and "nothing is left to watch" in errors


def test_quantize_ends_when_the_last_disk_vanishes(nothing_left):
    with loop_in_memory() as loop:
        report = Watching.quiet("quantize", "--json", "-d", loop.name, "--for", "600s")
        dd(f"if={loop.path}", "of=/dev/null", "bs=4k", "count=30", "iflag=direct")
        loop.detach()
        text, errors = report.process.communicate(timeout=120)
        assert report.process.returncode == 1 and errors.count(loop.name) == 1
        assert json.loads(text)["elapsed_ns"] < 600e9


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_snoop_says_what_vanishes_and_ends_with_the_last(nothing_left, words):
    with loop_in_memory() as loop, loop_in_memory() as other:
        snoop = Watching.quiet("snoop", *words, "-d", loop.name, "-d", other.name)
        loop.detach()
        assert f"{loop.name} has vanished" in snoop.process.stderr.readline()
        dd(f"if={other.path}", "of=/dev/null", "bs=4k", "count=1", "iflag=direct")
        other.detach()
        text, errors = snoop.process.communicate(timeout=60)
        assert snoop.process.returncode == 1 and other.name in text
        assert errors.count(other.name) == 1 and "lsblk" in errors, errors


def test_flushes_of_the_kernel_are_not_said_to_be_unknown(loop, nothing_left):
    report = iolatency("-d", loop.path, "--by", "process", 1)
    dd("if=/dev/zero", f"of={loop.path}", "bs=4k", "count=1", "conv=fsync")
    values = by_value(report.end())
    assert values["flush"] >= 1 and "unknown" not in values, values


def test_a_disk_without_a_size_is_refused(nothing_left):
    with loop_in_memory() as loop:
        loop.detach()
        for words in (["iolatency"], ["iostat", "-k"], ["snoop"]):
            error = run(BINARY, *words, "-d", loop.path, code=1).stderr
            assert f"'{loop.path}' has no size" in error


# Bad input.


def as_nobody(*words, code=0):
    return run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", BINARY, *words, code=code)


def test_without_privilege_it_says_what_can_be_done(loop):
    error = as_nobody("iolatency", "-d", loop.name, "1", "1", code=1).stderr
    assert "root" in error and len(error.splitlines()) == 1, error


@requires("unshare")
def test_without_tracefs_it_says_what_to_mount(loop):
    # The kernel mounts tracefs below a mounted debugfs again, whenever a program looks there.
    script = (
        "umount -l /sys/kernel/tracing; umount -l /sys/kernel/debug/tracing 2>/dev/null; "
        'while umount -l /sys/kernel/debug 2>/dev/null; do :; done; exec "$@"'
    )
    error = run(
        "unshare",
        "-m",
        "sh",
        "-c",
        script,
        "sh",
        BINARY,
        "iolatency",
        "-d",
        loop.name,
        "1",
        "1",
        code=1,
    ).stderr
    assert "mount -t tracefs" in error and len(error.splitlines()) == 1, error


@pytest.mark.parametrize(
    "words, code, remedy",
    [
        (["-d", "/dev/lop0"], 1, "there are"),
        (["-d", "nonesuch"], 1, "no daemon"),
        (["-d", "/etc/passwd"], 1, "it is a file"),
        (["-k", "--by", "client"], 2, "the kernel's disks know processes"),
        (["-k", "--by", "colour"], 2, "colour"),
    ],
)
def test_refusals_name_the_remedy(loop, nothing_left, words, code, remedy):
    error = dashpot("iolatency", *words, "1", "1", code=code).stderr
    assert remedy in error, error


def test_layers_that_the_kernel_does_not_show(loop, nothing_left):
    assert "-d" in dashpot("quantize", "-d", loop.name, "--layer", "store", code=2).stderr
