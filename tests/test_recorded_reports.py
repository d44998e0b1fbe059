"""Reports over recordings: the same question has the same answer for the live disks and for the recording
that is made meanwhile, and a period of the past can be chosen.
"""

import json
import os
import re
import signal

import pytest
from conftest import BINARY, eventually, run
from kernel import dd, is_watching, loop_in_memory, takes_a_kernel
from test_events import ask
from test_kernel_reports import started
from timed import Client

# The test asks the working daemon for each of these statistics, and asks the recording afterwards.
STATISTICS = [
    "disk.ops[op]",
    "disk.bytes[device]",
    "disk.latency",
    "disk.latency[rule]",
    "disk.hold[lane]",
    "disk.total[op]",
    "disk.ops[client]",
    "disk.ops[op=write][latency>=3ms][size]",
    "disk.errors[error]",
    "disk.store[op]",
    "disk.depth",
    "disk.size[op!=read]",
    "disk.ops[offset]",
    "disk.ops[error=*][op]",
    "disk.queue[op]",
    "disk.reply[fua]",
]
N = 460


def work(daemon):
    a, b = Client(daemon, "a"), Client(daemon, "b")
    a.many(100, 8, a.write)
    a.many(200, 8)
    a.many(10, 2, lambda offset: a.write(offset, 65536))
    b.many(150, 4)
    eventually(lambda: len(ask(daemon, "/v1/events", after=0)["zios"]) == N, "all zios are told")


def over(report):
    report.send_signal(signal.SIGINT)
    text, errors = report.communicate(timeout=60)
    assert report.returncode == 0 and "lost" not in errors, errors
    return text


def asked(recording, statistic, *words):
    text = run(BINARY, "stat", statistic, "--in", recording, "--json", *words).stdout
    return [json.loads(line) for line in text.splitlines()]


def counts(document):
    """The numbers of I/Os and bytes, in the whole answer and for each value of the breakdown."""
    values = {value["value"]: (value["count"], value["bytes"]) for value in document["values"]}
    return document["count"], document["bytes"], values


def test_a_recording_answers_as_the_live_disks_did(serve, directory):
    daemon = serve("-d", "a=ram,size=4M", "-d", "b=ram,size=4M")
    daemon.cli("inject", "a", "-D", "3ms:2", "-T", "write")
    daemon.cli("inject", "b", "-e", "EIO", "-T", "read", "--every", "7")
    recording = directory / "rec"
    recorder = daemon.start("record", "-o", recording)
    assert "until Ctrl-C" in recorder.stdout.readline()
    live = {name: daemon.start("stat", name, "--json", "--api", f"unix:{daemon.api}", "1") for name in STATISTICS}
    # Once a report has printed its first interval, it misses no I/O.
    for report in live.values():
        assert json.loads(report.stdout.readline())["count"] == 0
    work(daemon)
    texts = {name: over(report) for name, report in live.items()}
    over(recorder)
    for name, text in texts.items():
        [recorded] = asked(recording, name)
        intervals = [json.loads(line) for line in text.splitlines()]
        assert sum(one["count"] for one in intervals) == recorded["count"], name
        assert sum(one["bytes"] for one in intervals) == recorded["bytes"], name
        values = {}
        for one in intervals:
            for value in one.get("values", []):
                amount = values.setdefault(value["value"], [0, 0])
                amount[0] += value["count"]
                amount[1] += value["bytes"]
        told = {value["value"]: [value["count"], value["bytes"]] for value in recorded.get("values", [])}
        assert told == values, name


@pytest.fixture
def recording(serve, directory):
    """A recording of a daemon's two disks."""
    daemon = serve("-d", "a=ram,size=4M", "-d", "b=ram,size=4M")
    daemon.cli("inject", "a", "-D", "3ms:2", "-T", "write")
    daemon.cli("inject", "b", "-e", "EIO", "-T", "read", "--every", "7")
    recorder = daemon.start("record", "-o", directory / "rec")
    assert "until Ctrl-C" in recorder.stdout.readline()
    work(daemon)
    over(recorder)
    return directory / "rec"


def test_a_recording_that_may_not_be_read_is_told_from_a_stranger(recording):
    """The message must distinguish a recording that the user may not read from a directory that is no
    recording. Root may read any directory, so the test takes away root's capabilities to do so."""
    recording.chmod(0)
    under = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    refused = run(*under, BINARY, "stat", "disk.ops", "--in", recording, code=1).stderr
    recording.chmod(0o700)
    assert "Permission denied" in refused and "not a recording" not in refused


def test_intervals_of_a_recording_add_up(recording):
    [whole] = asked(recording, "disk.latency[op]")
    assert whole["count"] == N and whole["lost"] == 0
    for words in (["20ms"], ["7ms"]):
        parts = asked(recording, "disk.latency[op]", *words)
        assert len(parts) > 2 and sum(part["count"] for part in parts) == N
        assert sum(part["elapsed_ns"] for part in parts) == whole["elapsed_ns"]
        ends = [part["at_ns"] for part in parts]
        assert ends == sorted(ends) and ends[-1] == whole["at_ns"]
    half = f"{whole['elapsed_ns'] // 2}ns"
    [late] = asked(recording, "disk.latency[op]", "--last", half)
    assert 0 < late["count"] < N
    firsts = asked(recording, "disk.latency[op]", "7ms", "2")
    assert len(firsts) == 2


def test_each_report_reads_the_recording(recording):
    by_op = {value["value"]: value["count"] for value in asked(recording, "disk.ops[op]")[0]["values"]}
    assert by_op == {"read": 350, "write": 110}
    report = json.loads(run(BINARY, "iolatency", "--in", recording, "--by", "op", "--json").stdout)
    assert {value["value"]: value["latency"]["n"] for value in report["values"]} == by_op
    report = json.loads(run(BINARY, "quantize", "--in", recording, "--op", "write", "--json").stdout)
    assert report["total"]["latency"]["n"] == 110
    layers = run(BINARY, "quantize", "--in", recording, "--layer", "disk", "--layer", "store").stdout
    assert "store, below the injection:" in layers
    columns = run(BINARY, "heatmap", "--in", recording, "--json").stdout.splitlines()
    assert sum(bucket["count"] for column in columns for bucket in json.loads(column)["rows"]) == N
    assert f"{N} I/Os" in run(BINARY, "heatmap", "--in", recording).stdout
    slow = run(BINARY, "snoop", "--in", recording, "--where", "latency>=3ms", "-d", "a", "--json").stdout.splitlines()
    assert len(slow) == 110
    text = run(BINARY, "iolatency", "--in", recording, "--by", "device", "--percentiles").stdout
    assert "Tracing" not in text and re.search(r"^a +310 ", text, re.M) and re.search(r"^b +150 ", text, re.M)


@pytest.mark.parametrize(
    "words, message",
    [
        (["--in", "REC", "-d", "c"], "-d c: the recording has a, b"),
        (["--in", "REC", "--from", "2020-01-01T00:00", "--to", "2020-01-02T00:00"], "has nothing of that period"),
        (["--in", "REC", "--from", "2020-01-02T00:00", "--to", "2020-01-01T00:00"], "the period ends before it begins"),
        (["--in", "REC", "--from", "noon"], "write a time of day, 03:10"),
        (["--in", "REC", "--layer", "volume"], "the recording has no such volumes"),
        (["--in", "REC", "--by", "process"], "'process' is unknown here"),
        (["--in", "REC", "-k"], "cannot be used with"),
        (["--from", "03:10"], "no daemon at"),
        (["--in", "/nowhere"], "No such file"),
        (["--last", "1m", "1"], "no daemon at"),
    ],
    ids=str,
)
def test_bad_words_are_refused(recording, words, message):
    words = [recording if word == "REC" else word for word in words]
    refused = run(BINARY, "iolatency", *words, code=None)
    assert refused.returncode in (1, 2) and message in refused.stderr, refused.stderr


def test_a_period_that_begins_too_early_is_said(recording):
    done = run(BINARY, "stat", "disk.ops", "--in", recording, "--from", "2020-01-01T00:00")
    assert f" {N} I/Os" in done.stdout and "recording begins at" in done.stderr


@takes_a_kernel
def test_a_recording_of_the_kernels_disks_answers_as_they_did(directory):
    names = ["disk.ops[type]", "disk.bytes[process]", "disk.latency[op]", "disk.ops[size][op=write]"]
    with loop_in_memory() as loop:
        recorder = started(["record", "-d", loop.path, "-o", directory / "rec"])
        assert "until Ctrl-C" in recorder.stdout.readline()
        live = {name: started(["stat", name, "-d", loop.path, "--json", "600"]) for name in names}
        for report in live.values():
            eventually(lambda report=report: is_watching(report.pid), "it watches")
        dd("if=/dev/zero", f"of={loop.path}", "bs=64k", "count=40", "oflag=direct")
        dd(f"if={loop.path}", "of=/dev/null", "bs=4k", "count=100", "iflag=direct")
        told = {name: json.loads(over(report)) for name, report in live.items()}
        over(recorder)
    for name in names:
        [recorded] = asked(directory / "rec", name)
        # Each reader has its own trace instance, which takes its own times, so latencies differ by
        # microseconds.
        assert counts(recorded) == counts(told[name]), name
        assert recorded["count"] > 0


# Parts of recordings.


def test_a_part_of_a_recording_is_one_of_its_own(recording, directory):
    [whole] = asked(recording, "disk.latency[client]")
    done = run(BINARY, "record", "cut", recording, "-o", directory / "same")
    assert f"{N} I/Os" in done.stdout
    assert asked(directory / "same", "disk.latency[client]") == [whole]
    run(BINARY, "record", "cut", recording, "--where", "op=write", "-d", "a", "-o", directory / "part")
    assert asked(directory / "part", "disk.ops[op]")[0]["count"] == 110
    assert not list((directory / "part").rglob("*.draft"))
    said = run(BINARY, "record", "cut", recording, "-o", directory / "part", code=1).stderr
    assert "exists: name a directory that does not" in said
    assert "the recording has a, b" in run(BINARY, "record", "cut", recording, "-d", "x", "-o", "/x", code=1).stderr


def test_an_anonymous_part_has_no_names(recording, directory):
    ticket = directory / "ticket"
    run(BINARY, "record", "cut", recording, "--anonymous", "-o", ticket)
    [told] = asked(ticket, "disk.ops[client]")
    assert told["count"] == N
    assert {value["value"] for value in told["values"]} == {"client1"}
    assert {value["value"] for value in asked(ticket, "disk.ops[device]")[0]["values"]} == {"device1", "device2"}
    assert "bytes of anonymous\n" in run(BINARY, "record", "show", ticket).stdout
    for path in ticket.rglob("*.parquet"):
        assert b"uid=" not in path.read_bytes(), path


def test_each_fact_is_that_of_the_single_ios(recording):
    """For each question dashpot reads only some columns of a recording, and these must include every column that the
    question needs.
    """
    ios = [json.loads(line) for line in run(BINARY, "snoop", "--in", recording, "--json").stdout.splitlines()]
    for wait in ("recv", "throttle", "queue", "suspend", "store", "hold", "reply"):
        [told] = asked(recording, f"disk.{wait}")
        longest = max(io["waits"][f"{wait}_ns"] for io in ios)
        # Disks have no throttle.
        expected = None if wait == "throttle" else longest
        assert told["numbers"]["max_ns"] == expected, wait
    assert asked(recording, "disk.late")[0]["numbers"]["max_ns"] == max(io["waits"]["lateness_ns"] for io in ios)
    assert asked(recording, "disk.depth")[0]["numbers"]["max"] == max(io["depth"] for io in ios)
    for fact in ("client", "rule", "lane"):
        [told] = asked(recording, f"disk.ops[{fact}]")
        values = {value["value"]: value["count"] for value in told["values"]}
        expected = [str(io[fact]) if io[fact] is not None else "none" for io in ios]
        assert values == {value: expected.count(value) for value in set(expected)}
    far = sum(io["offset_bytes"] >= 2**20 for io in ios)
    assert asked(recording, "disk.ops[offset>=1M]")[0]["count"] == far
    slow = sorted(io["total_ns"] for io in ios)[-50]
    expected = sum(io["total_ns"] >= slow for io in ios)
    assert asked(recording, f"disk.ops[total>={slow}ns]")[0]["count"] == expected


def test_rates_of_a_recording_are_those_of_its_ios(daemon, directory):
    recording = directory / "rec"
    recorder = daemon.start("record", "-o", recording)
    assert "until Ctrl-C" in recorder.stdout.readline()
    Client(daemon, "d").many(60, 4)
    over(recorder)
    rows = json.loads(run(BINARY, "iostat", "-x", "--in", recording, "--json").stdout)
    (disk,) = [row for row in rows if row["device"] == "d"]
    assert disk["reads"]["n"] == 60 and 0 < disk["busy_percent"] <= 100
    assert disk["reads"]["ops_per_s"] * disk["elapsed_ns"] / 1e9 == pytest.approx(60)
    seen = json.loads(run(BINARY, "observe", "--in", recording, "--json").stdout)
    (disk,) = [device for device in seen["devices"] if device["device"] == "d"]
    assert disk["latency"]["n"] == 60
    assert disk["reads_per_s"] * seen["elapsed_ns"] / 1e9 == pytest.approx(60)


def test_a_recording_with_a_fifo_does_not_hang_a_report(recording):
    """Without a check, a report would wait until another program opens the FIFO."""
    [file, *_] = sorted((recording / "ios").iterdir())
    file.unlink()
    os.mkfifo(file)
    refused = run(BINARY, "stat", "disk.ops", "--in", recording, code=1).stderr
    assert file.name in refused and "not a regular file" in refused
