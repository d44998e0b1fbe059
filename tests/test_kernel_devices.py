"""Disks of the kernel that appear, vanish and are replaced during a watch, I/Os from before the watch, and disks that the
kernel does not count."""

import collections
import contextlib
import fcntl
import json
import os
import pathlib
import re
import signal
import stat
import subprocess
import tempfile

import pytest
from conftest import BINARY, ROOT, eventually, requires, run
from kernel import dd, is_watching, loop_in_memory, loop_that_can_be_frozen, takes_a_kernel
from test_kernel_reports import Watching, dashpot, nothing_left  # noqa: F401 (a fixture)
from test_record import PYTHON, has

pytestmark = takes_a_kernel

# From linux/loop.h.
LOOP_SET_FD, LOOP_CLR_FD, LOOP_CTL_ADD, LOOP_CTL_REMOVE = 0x4C00, 0x4C01, 0x4C80, 0x4C81


class OwnLoop:
    """A loop device whose number no other program uses, which the kernel makes and removes."""

    def __init__(self, directory):
        self.number = 3_000 + os.getpid() % 100_000
        self.name = f"loop{self.number}"
        self.node = directory / self.name
        os.mknod(self.node, stat.S_IFBLK | 0o600, os.makedev(7, self.number))
        self.control = os.open("/dev/loop-control", os.O_RDWR)

    def make(self):
        fcntl.ioctl(self.control, LOOP_CTL_ADD, self.number)
        with tempfile.TemporaryFile(dir="/dev/shm") as file, open(self.node, "rb") as device:
            file.truncate(4 << 20)
            fcntl.ioctl(device, LOOP_SET_FD, file.fileno())

    def stat(self):
        return int(pathlib.Path(f"/sys/block/{self.name}/stat").read_text().split()[0])

    def remove(self):
        with open(self.node, "rb") as device:
            fcntl.ioctl(device, LOOP_CLR_FD, 0)
        eventually(self.is_removed, "the loop device is free")

    def is_removed(self):
        with contextlib.suppress(OSError):
            fcntl.ioctl(self.control, LOOP_CTL_REMOVE, self.number)
            return True
        return False


@pytest.fixture
def own(directory):
    loop = OwnLoop(directory)
    yield loop
    if os.path.exists(f"/sys/block/{loop.name}"):
        loop.remove()
    os.close(loop.control)


def work(own, watchers):
    """Uses a new disk, and then another disk with its number. Returns how many reads the kernel counted on each.
    Each disk stays until all watchers have seen it."""
    counts = []
    for reads in (500, 300):
        own.make()
        dd(f"if={own.node}", "of=/dev/null", "bs=4k", f"count={reads}", "iflag=direct")
        counts.append(own.stat())
        if reads == 500:
            said_by_all(watchers, f"{own.name} has appeared")
            own.remove()
            said_by_all(watchers, f"{own.name} has vanished")
    return counts


def said_by_all(watchers, words):
    eventually(lambda: all(words in one.errors() for one in watchers), f"all say '{words}'")


class ToFile:
    """A report whose output goes to a file, because a full pipe would stop it."""

    def __init__(self, directory, *words):
        self.path = directory / f"{words[0]}.out"
        self.said = directory / f"{words[0]}.err"
        with open(self.path, "w") as file, open(self.said, "w") as said:
            self.process = subprocess.Popen([BINARY, *words], stdout=file, stderr=said)
        if words[0] != "iostat":
            eventually(lambda: is_watching(self.process.pid), "it watches")

    def end(self):
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(timeout=120) == 0, self.errors()
        return self.path.read_text()

    def errors(self):
        return self.said.read_text()


def of_own(own, counts):
    """The counts of the own disk, by its names, in the order in which they appeared."""
    return [count for name, count in counts.items() if name.split("#")[0] == own.name and count]


def test_a_disk_that_appears_is_counted_and_its_successor_is_another(own, directory, nothing_left):
    recording = directory / "rec"
    snoop = ToFile(directory, "snoop", "-k", "--json")
    record = ToFile(directory, "record", "-k", "-o", recording)
    observe = ToFile(directory, "observe", "200ms", "--json")
    stat = ToFile(directory, "stat", "disk.ops[device]", "-k", "200ms", "--json")
    iostat = ToFile(directory, "iostat", "-k", "200ms", "--json")
    eventually(lambda: iostat.path.read_text(), "iostat has read the counters")
    counted = work(own, [snoop, record, observe, stat, iostat])
    found = {}
    ios = [json.loads(line) for line in snoop.end().splitlines()]
    found["snoop"] = collections.Counter(io["device"] for io in ios if "device" in io)
    record.end()
    listed = dashpot("stat", "--in", recording, "disk.ops[device]", "--json").stdout.splitlines()
    found["record"] = of_values(listed)
    found["stat"] = of_values(stat.end().splitlines())
    found["observe"] = collections.Counter()
    for interval in map(json.loads, observe.end().splitlines()):
        for device in interval["devices"]:
            found["observe"][device["device"]] += device["latency"]["n"]
    found["iostat"] = collections.Counter()
    for devices in list(map(json.loads, iostat.end().splitlines()))[1:]:
        for device in devices:
            found["iostat"][device["device"]] += device["reads"]["n"]
    assert {name: of_own(own, counts) for name, counts in found.items()} == dict.fromkeys(found, counted)


def of_values(lines):
    counts = collections.Counter()
    for interval in map(json.loads, lines):
        for value in interval["values"]:
            counts[value["value"]] += value["count"]
    return counts


def test_a_named_disk_is_not_its_successor(own, directory, nothing_left):
    own.make()
    with loop_in_memory() as other:
        snoop = Watching.quiet("snoop", "--json", "-d", own.node, "-d", other.name)
        dd(f"if={own.node}", "of=/dev/null", "bs=4k", "count=50", "iflag=direct")
        own.remove()
        own.make()
        dd(f"if={own.node}", "of=/dev/null", "bs=4k", "count=70", "iflag=direct")
        ios = [json.loads(line) for line in snoop.end().splitlines()]
    assert collections.Counter(io["device"] for io in ios if "device" in io)[own.name] == 50


@contextlib.contextmanager
def stalled(directory):
    """A loop device on which a write hangs."""
    with loop_that_can_be_frozen(directory) as (loop, place):
        run("fsfreeze", "-f", place)
        try:
            write = subprocess.Popen(
                ["dd", "if=/dev/zero", f"of={loop.path}", "bs=4k", "count=1", "oflag=direct"], stderr=subprocess.DEVNULL
            )
            inflight = pathlib.Path(f"/sys/block/{loop.name}/inflight")
            eventually(lambda: inflight.read_text().split() == ["0", "1"], "the write hangs")
            yield loop
        finally:
            run("fsfreeze", "-u", place)
            write.wait()


@requires("mkfs.ext4")
@requires("fsfreeze")
def test_an_io_from_before_the_watch_is_in_flight_in_every_report(directory, nothing_left):
    with stalled(directory) as loop:
        reports = {
            "observe": dashpot("observe", "--json", loop.name, "200ms", 1),
            "iolatency": dashpot("iolatency", "--json", "-d", loop.name, "200ms", 1),
            "quantize": dashpot("quantize", "--json", "-d", loop.name, "--for", "200ms"),
            "stat": dashpot("stat", "--json", "disk.latency", "-d", loop.name, "200ms", 1),
        }
        for name, report in reports.items():
            told = json.loads(report.stdout)
            in_flight = told["devices"][0]["in_flight"] if name == "observe" else told["in_flight"]
            assert (in_flight["zios"], in_flight["device"]) == (1, loop.name), name
            assert in_flight["oldest_ns"] >= 200e6 and "before the watch" in in_flight["wait"], name
        (averages,) = json.loads(dashpot("iostat", "--json", "-d", loop.name).stdout)
        assert averages["in_flight"]["zios"] == 1
        listed = json.loads(dashpot("inflight", "--json", "-d", loop.name, "--for", "200ms").stdout)
        assert (listed["ios"], listed["older"], listed["older_than_ns"]) == ([], 1, 200_000_000)
        text = dashpot("inflight", "-d", loop.name, "--for", "200ms").stdout
        assert "1 in flight began before the watch" in text and "No I/O" not in text
        conditional = dashpot("iolatency", "--json", "-d", loop.name, "--where", "op=read", "200ms", 1).stdout
        assert json.loads(conditional)["in_flight"]["zios"] is None, "its operation is not known"
        check_recorded(loop, directory / "recording")
        assert metric(loop, "in_flight") == "1" and float(metric(loop, "oldest_in_flight_seconds")) > 0
        assert metric(loop, "present") == "1"


def check_recorded(loop, recording):
    """A report over a recording says the same of the I/O as one on the live disk."""
    dashpot("record", "-d", loop.name, "-o", recording, "--for", "300ms")
    for words in (["quantize"], ["stat", "disk.latency"], ["iolatency"]):
        in_flight = json.loads(dashpot(*words, "--in", recording, "--json").stdout)["in_flight"]
        assert (in_flight["zios"], in_flight["device"]) == (1, loop.name), words
        assert in_flight["oldest_ns"] >= 200e6 and "before the watch" in in_flight["wait"], words
    (found,) = (json.loads(dashpot("iolatency", "--in", recording, "--json", "--where", "op=read").stdout),)
    assert found["in_flight"]["zios"] is None


def metric(loop, name):
    """A metric of an exporter that has just been started."""
    report = Watching("observe", "--json", "--metrics", "tcp:127.0.0.1:0", loop.name, "100ms")
    url = report.process.stderr.readline().split()[-1]
    text = run("curl", "-sf", url).stdout
    report.end()
    return re.search(rf'^dashpot_kernel_disk_{name}{{device="{loop.name}"}} (\S+)$', text, re.MULTILINE)[1]


def test_in_flight_is_null_with_the_reason_if_the_kernel_does_not_count(nothing_left):
    with loop_in_memory() as loop:
        switch = pathlib.Path(f"/sys/block/{loop.name}/queue/iostats")
        switch.write_text("0")
        try:
            (device,) = json.loads(dashpot("iostat", "--json", "-d", loop.name).stdout)
            interval = json.loads(dashpot("iolatency", "--json", "-d", loop.name, "100ms", 1).stdout)
            for in_flight in (device["in_flight"], interval["in_flight"]):
                assert in_flight["zios"] is None and "queue/iostats is 0" in in_flight["wait"]
            listed = json.loads(dashpot("inflight", "--json", "-d", loop.name, "--for", "100ms").stdout)
            assert listed["older"] is None
        finally:
            switch.write_text("1")


@requires("mkfs.ext4")
@requires("fsfreeze")
@pytest.mark.parametrize("source", ["docs/observe.md", "crates/cli/src/record.rs"])
def test_the_example_of_a_query_does_not_count_what_has_not_ended(directory, nothing_left, source):
    if not has("duckdb"):
        pytest.skip("duckdb is missing: `make deps` installs it")
    recording = directory / "today.rec"
    with loop_that_can_be_frozen(directory) as (loop, place):
        record = Watching.quiet("record", "-d", loop.name, "-o", recording)
        dd("if=/dev/zero", f"of={loop.path}", "bs=4k", "count=3", "oflag=direct")
        run("fsfreeze", "-f", place)
        write = subprocess.Popen(
            ["dd", "if=/dev/zero", f"of={loop.path}", "bs=4k", "count=1", "oflag=direct"], stderr=subprocess.DEVNULL
        )
        inflight = pathlib.Path(f"/sys/block/{loop.name}/inflight")
        eventually(lambda: inflight.read_text().split() == ["0", "1"], "the write hangs")
        record.end()
        run("fsfreeze", "-u", place)
        write.wait()
    text = (ROOT / source).read_text().replace('\\"', '"')
    (query,) = re.findall(r'duckdb -c "([^"]*)"', text)
    query = query.replace("10e6", "0").replace("today.rec", str(recording))
    counted = (
        f"select * from ({query})"
        if query.startswith("select")
        else f"select process, count(*) from ({query}) group by 1"
    )
    rows = run(
        PYTHON, "-c", f"import duckdb; import json; print(json.dumps(duckdb.sql({counted!r}).fetchall()))"
    ).stdout
    assert [row[1] for row in json.loads(rows)] == [3], query
    everything = f"select count(*) from '{recording}/ios/*.parquet'"
    rows = run(
        PYTHON, "-c", f"import duckdb; import json; print(json.dumps(duckdb.sql({everything!r}).fetchall()))"
    ).stdout
    assert json.loads(rows)[0][0] > 3, "the recording has the I/O that had not ended"
