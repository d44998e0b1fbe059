"""Daemons that record: `serve --record` and `observe --record`, and reports that find what they recorded."""

import csv
import io
import json
import os
import re
import signal
import subprocess

import pytest
from between import Between
from conftest import BINARY, eventually, run
from kernel import dd, loop_in_memory, takes_a_kernel
from timed import Client

POOL = """
[disk.x]
store = "ram"
size = "8M"
[disk.y]
store = "ram"
size = "8M"
[pool.tank]
disks = ["x", "y"]
[volume."tank/v"]
size = "4M"
"""


def is_sealed(recording):
    return lambda: list((recording / "ios").glob("*.parquet"))


def test_a_daemon_records_and_reports_find_it(serve, directory):
    recording = directory / "rec"
    daemon = serve("-d", "d=ram,size=4M", "--record", recording, "--trigger", "latency>=5ms", "--keep", "8M")
    client = Client(daemon, "d")
    client.many(50, 4)
    daemon.cli("inject", "d", "-D", "5ms", "-T", "write", "--name", "slow")
    client.many(20, 2, client.write)
    eventually(is_sealed(recording), "a sealed file")
    refused = daemon.cli("stat", "disk.ops", "--from", "03:61", code=2)
    assert "03:61" in refused.stderr
    shown = daemon.cli("stat", "disk.ops[op]", "--last", "1h", "--json")
    assert f"From {recording}." in shown.stderr
    document = json.loads(shown.stdout)
    assert {value["value"]: value["count"] for value in document["values"]} == {"read": 50, "write": 20}
    assert "write" in daemon.cli("iolatency", "--by", "op", "--last", "1h").stdout
    daemon.stop()
    assert "70 I/Os" in daemon.output() and "nothing was lost" in daemon.output()
    shown = json.loads(run(BINARY, "record", "show", recording, "--json").stdout)
    marks = [(mark["event"], mark["device"], mark["text"]) for mark in shown["marks"]]
    assert ("rule", "d", "rule 1 'slow' -D 5ms -T write") in marks
    assert ("trigger", "d", "[latency>=5ms]") in marks
    assert marks[0][0] == "began" and marks[-1][0] == "ended"
    assert shown["disks"] == ["d"] and shown["volumes"] == [] and shown["counted_seconds"] == 0
    text = run(BINARY, "record", "show", recording).stdout
    assert "disks: d" in text and "rule 1 'slow' -D 5ms" in text and max(map(len, text.splitlines())) <= 80
    assert not list(directory.glob("*.rec")), "the link is gone with the daemon"


def test_a_recording_has_disks_and_volumes(serve, directory):
    lab = directory / "lab.toml"
    lab.write_text(POOL)
    recording = directory / "rec"
    daemon = serve(lab, "--record", recording)
    client = Client(daemon, "tank/v")
    client.many(30, 2, client.write)
    daemon.stop()

    def count(*words):
        return json.loads(run(BINARY, "stat", *words, "--in", recording, "--json").stdout)["count"]

    assert count("volume.ops") == 30
    assert count("disk.ops") >= 30
    assert count("disk.ops", "-d", "x") + count("disk.ops", "-d", "y") == count("disk.ops")
    refused = run(BINARY, "stat", "disk.ops", "-d", "tank/v", "--in", recording, code=2)
    assert "--layer volume" in refused.stderr


def test_an_event_that_the_daemon_forgot_is_lost_once(serve, directory):
    """Without a memory of events, a daemon forgets each I/O before the recorder reads it. A recording of disks and
    volumes must not count a lost I/O twice."""
    lab = directory / "lab.toml"
    lab.write_text(POOL + '[serve]\nevents = "0"\n')
    daemon = serve(lab)
    client = Client(daemon, "tank/v")

    def finished():
        return sum(row["completed"] for name in ("x", "y") for row in daemon.disk(name)["ops"]) + sum(
            row["completed"] for row in daemon.volume()["ops"]
        )

    before = finished()
    out = recorded(daemon, directory / "rec", lambda: client.many(40, 2, client.write))
    lost = int(re.search(r"([0-9,]+) I/Os were lost", out)[1].replace(",", ""))
    assert 40 <= lost <= finished() - before, out


def test_what_no_daemon_records_is_refused(serve, directory):
    daemon = serve("-d", "d=ram,size=4M")
    refused = daemon.cli("iolatency", "--from", "03:10", code=1)
    assert "nothing records these disks" in refused.stderr and "serve --record" in refused.stderr
    used = run(BINARY, "serve", "--keep", "1G", code=2)
    assert "--record" in used.stderr
    arguments = ["-d", "d=ram", "--nbd", f"unix:{directory}/n", "--api", f"unix:{directory}/a"]
    small = run(BINARY, "serve", *arguments, "--record", directory / "small", "--keep", "100", code=2)
    assert "at least 1M" in small.stderr and not any((directory / name).exists() for name in ("n", "a", "small"))
    (directory / "full").mkdir()
    (directory / "full/file").write_text("x")
    foreign = run(BINARY, "serve", *arguments, "--record", directory / "full", code=1)
    assert "--record" in foreign.stderr
    assert not (directory / "a").exists()


@takes_a_kernel
def test_observe_records_and_reports_of_the_kernel_find_it(directory):
    recording = directory / "rec"
    with loop_in_memory() as loop:
        observe = subprocess.Popen(
            [BINARY, "observe", loop.path, "1", "--record", recording],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert observe.stdout.readline()
        dd("if=/dev/zero", f"of={loop.path}", "bs=64k", "count=40", "oflag=direct")
        eventually(is_sealed(recording), "a sealed file")
        shown = run(BINARY, "stat", "disk.ops[process]", "-d", loop.path, "--last", "1h", "--json")
        [document] = [json.loads(line) for line in shown.stdout.splitlines()]
        assert f"From {recording}." in shown.stderr
        assert {value["value"]: value["count"] for value in document["values"]}.get("dd") == 40
        observe.send_signal(signal.SIGINT)
        _, errors = observe.communicate(timeout=60)
    assert observe.returncode == 0 and "nothing was lost" in errors, errors
    assert not os.path.lexists("/run/dashpot/kernel.rec")


def test_seconds_answer_where_single_ios_were_deleted(daemon, directory):
    """A recorder deletes files to keep its bound. For I/Os that are gone, a report must use the counts of
    seconds, or say that it leaves them out."""
    recording = directory / "rec"
    client = Client(daemon, "d")
    sealed = []
    for operations in (20, 30, 40):
        recorder = daemon.start("record", "-o", recording)
        assert "until Ctrl-C" in recorder.stdout.readline()
        client.many(operations, 4)
        client.many(operations // 10, 1, client.write)
        recorder.send_signal(signal.SIGINT)
        assert f"{operations + operations // 10} I/Os" in recorder.communicate()[0]
        sealed.append(set((recording / "ios").glob("*.parquet")))
    whole = [
        json.loads(run(BINARY, "stat", name, "--in", recording, "--json").stdout)
        for name in ("disk.ops[op]", "disk.latency")
    ]
    # On a busy host, a recorder may seal more than one file.
    for deleted in sealed[1] - sealed[0]:
        deleted.unlink()

    def ask(*words):
        done = run(BINARY, *words, "--in", recording, "--json")
        return json.loads(done.stdout), done.stderr

    told, said = ask("stat", "disk.ops[op]")
    assert (told["count"], told["bytes"], told["values"]) == tuple(
        whole[0][key] for key in ("count", "bytes", "values")
    )
    assert "has only counts: their latencies" in said
    told, said = ask("stat", "disk.latency")
    assert told["count"] == 99
    assert told["numbers"]["max_ns"] == whole[1]["numbers"]["max_ns"]
    assert whole[1]["numbers"]["p50_ns"] <= told["numbers"]["p50_ns"] * 1.01 <= whole[1]["numbers"]["p50_ns"] * 1.2
    told, said = ask("stat", "disk.ops[op=read]")
    assert told["count"] == 90
    told, said = ask("stat", "disk.ops[client]")
    assert told["count"] == 66 and "left out: the recording has only counts" in said
    # The per-second counts have only times at the device, so only single I/Os count in `disk.total`.
    told, said = ask("stat", "disk.total")
    assert told["count"] == 66 and "left out: the recording has only counts" in said
    # A second without single I/Os must not look idle.
    told, said = ask("stat", "disk.busy")
    assert "left out: the recording has only counts" in said
    assert told["count"] <= 66
    [disk] = told["values"]
    # The report leaves out some seconds. If all I/Os that are left after the deletion ended in these seconds,
    # the disk was idle in the seconds that the report counts.
    assert disk["busy_percent"] is None or 0 <= disk["busy_percent"] <= 100
    assert disk["busy_percent"] or not told["count"]


# The events of a recording, as `record show` lists them.


def recorded(daemon, recording, work):
    recorder = daemon.start("record", "-o", recording)
    assert "until Ctrl-C" in recorder.stdout.readline()
    work()
    recorder.send_signal(signal.SIGINT)
    out, errors = recorder.communicate(timeout=60)
    assert recorder.returncode == 0, errors
    return out


def asked(recording, *words, code=0):
    done = run(BINARY, *words, "--in", recording, code=code)
    return done.stdout, done.stderr


def test_a_disk_that_hangs_all_the_time_is_in_the_recording(daemon, directory):
    """A disk hangs all the time, so none of its I/Os finishes. The reports must still have the disk's name
    and its I/Os in flight."""
    recording = directory / "rec"
    daemon.cli("inject", "d", "--hang", "-T", "read")
    client = Client(daemon, "d")

    def hang():
        requests.extend(client.read() for _ in range(4))
        eventually(lambda: daemon.disk()["in_flight"] == 4, "all hang")

    requests = []
    recorded(daemon, recording, hang)
    _, said = asked(recording, "stat", "disk.ops", "-d", "d")
    assert "In flight: 4" in said, said
    for words in (["disk.hold"], ["disk.ops[client]"]):
        asked(recording, "stat", *words)
    refused = asked(recording, "stat", "disk.ops[process]", code=2)[1]
    assert "unknown here" in refused
    daemon.cli("clear", "all", "--release")
    client.wait(*requests)


def test_the_ios_of_a_daemon_that_hangs_are_unknown_and_not_none(daemon, directory):
    recording = directory / "rec"
    daemon.cli("inject", "d", "--hang", "-T", "read")
    client = Client(daemon, "d")
    request = client.read()
    eventually(lambda: daemon.disk()["in_flight"] == 1, "it hangs")
    between = Between(daemon, directory / "between")
    recorder = daemon.start("record", "-o", recording, "--api", f"unix:{between.path}")
    assert "until Ctrl-C" in recorder.stdout.readline()
    between.hangs.set()
    _, errors = recorder.communicate(timeout=120)
    assert recorder.returncode == 1 and "has not answered" in errors, errors
    shown = json.loads(run(BINARY, "record", "show", recording, "--json").stdout)
    assert "in flight unknown" in [mark["event"] for mark in shown["marks"]]
    text, said = asked(recording, "stat", "disk.ops", "--json")
    assert "The daemon did not say which I/Os were in flight" in said
    assert json.loads(text)["in_flight"]["zios"] is None, text
    daemon.cli("clear", "all", "--release")
    client.wait(request)


def test_a_pause_between_two_recorders_is_told_and_not_counted(daemon, directory):
    recording = directory / "rec"
    client = Client(daemon, "d")
    recorded(daemon, recording, lambda: client.many(20, 4))
    before = json.loads(asked(recording, "stat", "disk.ops", "--json")[0])
    recorded(daemon, recording, lambda: client.many(20, 4))
    text, said = asked(recording, "stat", "disk.ops", "--json")
    assert "Nothing was recorded from" in said and json.loads(text)["count"] == 40
    assert before["count"] == 20
    shown = json.loads(run(BINARY, "record", "show", recording, "--json").stdout)
    events = [mark["event"] for mark in shown["marks"]]
    assert events == ["began", "watched", "ended"] * 2


def test_an_idle_disk_is_recorded_as_idle(daemon, directory):
    recording = directory / "rec"
    recorded(daemon, recording, lambda: None)
    text, _ = asked(recording, "stat", "disk.ops")
    assert "0 I/Os" in text


def test_a_part_says_which_ios_it_has_and_is_not_continued(daemon, directory):
    recording = directory / "rec"
    client = Client(daemon, "d")
    recorded(daemon, recording, lambda: (client.many(20, 4), client.many(5, 1, client.write)))
    run(BINARY, "record", "cut", recording, "--where", "op=write", "-o", directory / "part")
    text, said = asked(directory / "part", "stat", "disk.ops")
    assert "5 I/Os" in text and "with I/Os of [op=write] only" in said
    run(
        BINARY, "record", "cut", recording, "--where", "op=write,client=uid*", "--anonymous", "-o", directory / "ticket"
    )
    said = asked(directory / "ticket", "stat", "disk.ops")[1]
    assert "with I/Os of [op][client] only" in said
    nothing = run(BINARY, "record", "cut", recording, "--where", "op=trim", "-o", directory / "none", code=1).stderr
    assert "nothing was written" in nothing and not (directory / "none").exists()
    refused = daemon.cli("record", "-o", directory / "part", code=1).stderr
    assert "is a part of another recording: record in another directory" in refused


@pytest.mark.parametrize(
    "words, message",
    [
        (["disk.ops[op=writ]"], "write one of read, write"),
        (["disk.ops[op==write]"], "one comparison is enough"),
        (["disk.ops[fua=maybe]"], "write one of yes, no"),
        (["disk.ops", "1ns"], "intervals, more than 100,000"),
        (["disk.ops", "--from", "2026-11-23T10:00", "--to", "2026-11-23T09:00"], "the period ends before it begins"),
        (["disk.ops", "--to", "2020-01-01T00:00"], "nothing of that period"),
    ],
    ids=str,
)
def test_words_that_would_answer_nothing_are_refused(daemon, directory, words, message):
    recording = directory / "rec"
    client = Client(daemon, "d")
    recorded(daemon, recording, lambda: client.many(20, 4))
    done = run(BINARY, "stat", *words, "--in", recording, code=None)
    assert done.returncode in (1, 2) and message in done.stderr, done.stderr


def test_a_recorder_that_cannot_write_counts_what_it_lost(daemon, directory):
    """The recording's folder is moved away before its first file is written, so no I/O is recorded. The output
    must say how many I/Os were lost."""
    recording = directory / "rec"
    client = Client(daemon, "d")
    recorder = daemon.start("record", "-o", recording)
    assert "until Ctrl-C" in recorder.stdout.readline()
    client.many(20, 4)
    os.rename(recording / "ios", directory / "away")
    recorder.send_signal(signal.SIGINT)
    out, errors = recorder.communicate(timeout=60)
    assert recorder.returncode == 1 and "ended early" in errors
    assert "20 I/Os were lost" in out, out


def test_programs_get_every_value_and_people_a_screenful(daemon, directory):
    recording = directory / "rec"
    daemon.cli("inject", "d", "-D", "1ms:80")
    client = Client(daemon, "d")
    recorded(daemon, recording, lambda: client.many(320, 80))
    told = json.loads(asked(recording, "stat", "disk.ops[lane]", "--json")[0])
    assert {value["value"] for value in told["values"]} == {str(lane) for lane in range(80)}
    rows = list(csv.DictReader(io.StringIO(asked(recording, "stat", "disk.ops[lane]", "--csv")[0])))
    assert len(rows) == 80 and sum(int(row["count"]) for row in rows) == 320
    text = asked(recording, "stat", "disk.ops[lane]")[0]
    assert "other" in text and len(text.splitlines()) < 75
