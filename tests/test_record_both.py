"""record -d DEVICE --disk NAME: one recording of the kernel's disks and a daemon's, on one clock. The tests give a
served disk the name of the loop device, and no report mixes the two up.
"""

import json
import os
import signal

import pytest
from between import Between
from conftest import BINARY, eventually, run
from kernel import dd, instances_of, loop_in_memory, takes_a_kernel
from test_record import end, files, snoop
from timed import Client

pytestmark = takes_a_kernel
READS, WRITES, CALLS = 100, 40, 60


def served(serve, loop):
    return serve("-d", f"{loop.name}=ram,size=4M")


def begun(daemon, loop, recording, *words):
    """Begins to record a loop device and the disk with the same name."""
    recorder = daemon.start("record", "-d", loop.name, "--disk", loop.name, "-o", recording, *words)
    line = recorder.stdout.readline()
    assert f"recording {loop.name} of the kernel and {loop.name} of the daemon on one clock" in line, line
    return recorder


def read(loop):
    dd(f"if={loop.path}", "of=/dev/null", "bs=4k", f"count={READS}", "iflag=direct")


def work(daemon, loop):
    dd("if=/dev/zero", f"of={loop.path}", "bs=64k", f"count={WRITES}", "oflag=direct")
    Client(daemon, loop.name).many(CALLS, 4)
    read(loop)


@pytest.fixture
def recorded(serve, directory):
    """A recording of both disks, and the name that they share."""
    with loop_in_memory() as loop:
        daemon = served(serve, loop)
        daemon.cli("inject", loop.name, "-D", "3ms", "-T", "read")
        recorder = begun(daemon, loop, directory / "rec")
        work(daemon, loop)
        text = end(recorder)
        assert "nothing was lost" in text, text
        yield directory / "rec", loop.name


def of_kernel(recording, *words):
    return snoop(recording, "--layer", "kernel", *words)


def of_dd(recording):
    return [io for io in of_kernel(recording) if io["process"] == "dd"]


def shown(recording):
    return json.loads(run(BINARY, "record", "show", recording, "--json").stdout)


def asked(recording, statistic, *words):
    [line] = run(BINARY, "stat", statistic, "--in", recording, "--json", *words).stdout.splitlines()
    document = json.loads(line)
    return {value["value"]: value["count"] for value in document["values"]}


def test_the_disks_of_both_are_apart_although_they_have_one_name(recorded):
    recording, name = recorded
    kernels, daemons = of_kernel(recording), snoop(recording)
    assert len(daemons) == CALLS and len(of_dd(recording)) == READS + WRITES
    assert {io["device"] for io in kernels + daemons} == {name}
    # A fact that a source does not know is absent.
    assert all("rwbs" in io and not {"rule", "lane", "client"} & io.keys() for io in kernels)
    assert all(io["rule"] == 1 and not {"process", "pid", "tid", "rwbs"} & io.keys() for io in daemons)
    assert (shown(recording)["disks"], shown(recording)["kernel_disks"]) == ([name], [name])


def test_both_are_on_one_clock(recorded):
    """The served disk worked after the loop device was written, and before it was read."""
    recording, _ = recorded
    writes, reads = ([io["at_ns"] for io in of_dd(recording) if io["rwbs"][0] == letter] for letter in "WR")
    calls = [io["at_ns"] for io in snoop(recording)]
    assert max(writes) < min(calls) and max(calls) < min(reads)
    # The offset from the daemon's clock to the time since 1970 is the same for all I/Os, to the nanosecond.
    [ahead_ns] = {io["at_ns"] - io["ended_ns"] for io in snoop(recording)}
    assert ahead_ns > 0
    clocks = [(mark["text"], mark["n"]) for mark in shown(recording)["marks"] if mark["event"] == "clock"]
    assert sorted(clocks) == [("daemon", 0), ("kernel", 0)]


@pytest.mark.parametrize("report", ["iolatency", "quantize", "heatmap", "iostat", "snoop"])
def test_a_report_says_that_it_is_about_the_disks_of_one(recorded, report):
    recording, _ = recorded
    for layer, is_told in (("disk", True), ("kernel", False)):
        done = run(BINARY, report, "--in", recording, "--layer", layer)
        assert done.stdout and ("the recording has the kernel's, too" in done.stderr) == is_told, done.stderr


def test_statistics_are_of_one_layer_or_of_both_beside_each_other(recorded):
    recording, name = recorded
    n = len(of_kernel(recording))
    assert asked(recording, "disk.ops[device]") == {name: CALLS}
    assert asked(recording, "kernel.ops[device]") == {name: n}
    assert asked(recording, "kernel.ops[process=dd][op]") == {"read": READS, "write": WRITES}
    assert asked(recording, "kernel.busy").keys() == {name}
    both = run(BINARY, "iolatency", "--in", recording, "--layer", "kernel", "--layer", "disk", "--percentiles").stdout
    assert [line.split()[:2] for line in both.splitlines()[2:4]] == [["kernel", str(n)], ["disk", str(CALLS)]], both
    # `observe` is about the kernel's disks.
    assert run(BINARY, "observe", "--in", recording).stdout.splitlines()[1].split()[4] == str(n)
    # The intervals of one layer count each of its I/Os, and none of the other layer's.
    lines = run(BINARY, "stat", "kernel.ops", "1", "--in", recording, "--json").stdout.splitlines()
    assert sum(json.loads(line)["count"] for line in lines) == n


@pytest.mark.parametrize(
    "words, message",
    [
        (("stat", "disk.ops[process]"), "'process' is unknown here: dashpot's disks"),
        (("stat", "kernel.ops[client]"), "'client' is unknown here: the kernel's disks"),
        (("stat", "kernel.store"), "'store' is unknown here: the kernel's disks"),
        (
            ("iolatency", "--layer", "disk", "--layer", "kernel", "--by", "rule"),
            "'rule' is unknown here: the kernel's disks",
        ),
        (("stat", "volume.ops"), "the recording has no such volumes"),
        (("iostat", "-k"), "the recording says whose disks it has"),
        (("snoop", "-d", "nothing"), "-d nothing: the recording has"),
        (("diff", "--slow", "process=dd"), "'process' is unknown here: dashpot's disks"),
        (("diff", "--layer", "kernel", "--slow", "rule=1"), "'rule' is unknown here: the kernel's disks"),
    ],
)
def test_what_a_layer_does_not_know_is_refused(recorded, words, message):
    recording, _ = recorded
    done = run(BINARY, *words, "--in", recording, code=None)
    assert done.returncode and message in done.stderr, done.stderr


def test_diff_compares_either(recorded):
    recording, _ = recorded
    for words, n in (((), CALLS), (("--layer", "kernel", "--where", "process=dd"), READS + WRITES)):
        done = run(BINARY, "diff", "--in", recording, "--slow", "latency>=1ns", *words)
        assert f"Here: {n} I/Os" in done.stdout, done.stdout


def test_a_part_has_both_or_says_what_it_leaves_out(recorded, directory):
    recording, _ = recorded
    n = len(of_kernel(recording))
    whole, of_one, nameless = directory / "whole", directory / "one", directory / "nameless"
    run(BINARY, "record", "cut", recording, "-o", whole)
    assert (len(snoop(whole)), len(of_kernel(whole))) == (CALLS, n)
    done = run(BINARY, "record", "cut", recording, "-o", of_one, "--where", "process=dd")
    assert "no I/Os of --layer disk: 'process' is unknown here" in done.stderr
    assert len(of_kernel(of_one)) == READS + WRITES
    # The part has nothing of the layer `disk`. A report must say so, and must not show an idle disk.
    error = run(BINARY, "stat", "disk.ops", "--in", of_one, code=None).stderr
    assert "the recording has no such disks, but kernel disks such as" in error, error
    run(BINARY, "record", "cut", recording, "-o", nameless, "--anonymous")
    assert {io["device"] for io in of_kernel(nameless) + snoop(nameless)} == {"device1"}
    assert (len(snoop(nameless)), len(of_kernel(nameless))) == (CALLS, n)


def test_counts_of_seconds_are_apart_where_single_ios_are_gone(serve, directory):
    """A trigger fires for the I/Os of either disk, and --keep bounds both together."""
    recording = directory / "rec"
    with loop_in_memory() as loop:
        daemon = served(serve, loop)
        for _ in range(2):
            recorder = begun(daemon, loop, recording, "--keep", "1M", "--trigger", "process=dd")
            work(daemon, loop)
            end(recorder)
    [first, _, *_] = files(recording)
    n = len(of_kernel(recording))
    first.unlink()
    assert len(snoop(recording)) == CALLS
    assert asked(recording, "disk.ops[device]") == {loop.name: 2 * CALLS}
    assert asked(recording, "kernel.ops[device]") == {loop.name: n}
    triggers = [mark for mark in shown(recording)["marks"] if mark["event"] == "trigger"]
    told = {(mark["device"], mark["text"]) for mark in triggers}
    assert told == {(loop.name, "[process=dd] of the kernel")}, triggers


def test_the_recording_goes_on_without_a_daemon_that_ends(serve, directory):
    recording = directory / "rec"
    with loop_in_memory() as loop:
        daemon = served(serve, loop)
        recorder = begun(daemon, loop, recording)
        Client(daemon, loop.name).many(CALLS, 4)
        # When a daemon ends, the I/Os that the recorder has not read yet are lost.
        eventually(lambda: files(recording) and len(snoop(recording)) == CALLS, "a sealed file")
        daemon.stop()
        assert "the daemon's disks are not recorded any more" in recorder.stderr.readline()
        read(loop)
        recorder.send_signal(signal.SIGINT)
        text, errors = recorder.communicate()
    # The recorder says what it has recorded, and that the daemon's part ended early.
    assert recorder.returncode == 1 and "I/Os, " in text and "dashpot: " in errors, (text, errors)
    assert (len(of_dd(recording)), len(snoop(recording))) == (READS, CALLS)
    assert "watch ended" in run(BINARY, "record", "show", recording).stdout
    told = "Nothing of the daemon's disks was recorded from"
    assert told in run(BINARY, "stat", "disk.ops", "--in", recording).stderr
    assert told not in run(BINARY, "stat", "kernel.ops", "--in", recording).stderr
    assert told in run(BINARY, "iolatency", "--layer", "kernel", "--layer", "disk", "--in", recording).stderr
    # A cut without names does not show the daemon's disks as idle either.
    run(BINARY, "record", "cut", recording, "-o", directory / "nameless", "--anonymous")
    assert told in run(BINARY, "stat", "disk.ops", "--in", directory / "nameless").stderr


def test_a_daemon_that_hangs_does_not_keep_the_recorder_from_the_kernel(serve, directory):
    recording = directory / "rec"
    with loop_in_memory() as loop:
        daemon = served(serve, loop)
        between = Between(daemon, directory / "between")
        recorder = begun(daemon, loop, recording, "--api", f"unix:{between.path}")
        between.hangs.set()
        read(loop)
        eventually(lambda: files(recording), "a sealed file")
        recorder.send_signal(signal.SIGTERM)
        text, errors = recorder.communicate()
    assert recorder.returncode == 1 and "nothing was lost" in text, (text, errors)
    assert "the daemon's disks are not recorded any more" in errors, errors
    assert len(of_dd(recording)) == READS


def test_a_daemon_that_is_stopped_is_told_at_once(serve, directory):
    with loop_in_memory() as loop:
        daemon = served(serve, loop)
        recorder = begun(daemon, loop, directory / "rec")
        os.kill(daemon.pid, signal.SIGSTOP)
        try:
            assert "the daemon's disks are not recorded any more" in recorder.stderr.readline()
        finally:
            os.kill(daemon.pid, signal.SIGCONT)
        read(loop)
        recorder.send_signal(signal.SIGINT)
        recorder.communicate()
    assert len(of_dd(directory / "rec")) == READS


def test_a_killed_recorder_leaves_what_it_had_sealed_of_both(serve, directory):
    recording = directory / "rec"
    with loop_in_memory() as loop:
        daemon = served(serve, loop)
        recorder = begun(daemon, loop, recording)
        work(daemon, loop)
        eventually(lambda: files(recording), "a sealed file")
        recorder.kill()
        recorder.communicate()
    assert (len(of_dd(recording)), len(snoop(recording))) == (READS + WRITES, CALLS)


def test_a_recording_of_both_is_continued_by_both_only(recorded, serve, directory):
    recording, name = recorded
    daemon = serve("-d", "d=ram,size=4M")
    words = ("record", "-o", recording, "--for", "1ms")
    error = daemon.cli(*words, "-d", "d", code=1).stderr
    assert "has the kernel's disks and the daemon's disks, and not the daemon's disks" in error, error
    with loop_in_memory() as loop:
        error = daemon.cli(*words, "-d", loop.path, code=1).stderr
        assert "and not the kernel's disks: record in another directory" in error, error
        daemon.cli(*words, "-d", loop.path, "--disk", "d")
    assert len(snoop(recording, "-d", name)) == CALLS


def test_only_disks_of_a_daemon_are_a_recording_as_before(daemon, directory):
    recorder = daemon.start("record", "--disk", "d", "-o", directory / "rec")
    assert "recording d until Ctrl-C" in recorder.stdout.readline()
    Client(daemon).many(5, 1)
    end(recorder)
    assert len(snoop(directory / "rec")) == 5 and shown(directory / "rec")["kernel_disks"] == []
    error = run(BINARY, "stat", "kernel.ops", "--in", directory / "rec", code=None).stderr
    assert "the recording has no such kernel disks, but disks such as 'd'" in error, error


@pytest.mark.parametrize(
    "words, message",
    [
        (("--disk", "none", "-k"), "--disk none: the daemon has d"),
        (("--disk", "d", "-k", "--layer", "disk"), "add kernel or fs"),
        (("--disk", "d", "-k", "--layer", "kernel"), "add disk or volume"),
        (("--disk", "d", "-k", "--layer", "kernel", "--layer", "volume"), "'d' is a disk"),
        (("-d", "d", "--layer", "kernel"), "only a recording has this layer"),
        (("--disk", "d", "-d", "nothing"), "nothing"),
    ],
)
def test_bad_words_are_refused(daemon, directory, words, message):
    done = daemon.cli("record", "-o", directory / "rec", *words, code=None)
    assert done.returncode and message in done.stderr, done.stderr


def test_without_a_daemon_nothing_is_recorded(directory):
    with loop_in_memory() as loop:
        done = run(
            BINARY,
            "record",
            "-d",
            loop.path,
            "--disk",
            "d",
            "-o",
            directory / "rec",
            code=1,
            env={"DASHPOT_API": f"unix:{directory}/none"},
        )
    assert "daemon" in done.stderr and not (directory / "rec").exists(), done.stderr
    assert not instances_of(os.getpid())
