"""Daemons that record: `serve --record` and `observe --record`, and reports that find what they recorded."""

import json
import os
import signal
import subprocess

import pytest

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


def test_what_no_daemon_records_is_refused(serve, directory):
    daemon = serve("-d", "d=ram,size=4M")
    refused = daemon.cli("iolatency", "--from", "03:10", code=1)
    assert "nothing records these disks" in refused.stderr and "serve --record" in refused.stderr
    used = run(BINARY, "serve", "--keep", "1G", code=2)
    assert "--record" in used.stderr
    (directory / "full").mkdir()
    (directory / "full/file").write_text("x")
    arguments = ["-d", "d=ram", "--nbd", f"unix:{directory}/n", "--api", f"unix:{directory}/a"]
    foreign = run(BINARY, "serve", *arguments, "--record", directory / "full", code=1)
    assert "--record" in foreign.stderr
    assert not (directory / "a").exists()


@takes_a_kernel
def test_observe_records_and_reports_of_the_kernel_find_it(directory):
    recording = directory / "rec"
    with loop_in_memory() as loop:
        observe = subprocess.Popen(
            [BINARY, "observe", loop.path, "1", "--record", recording],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
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
    """A recorder deletes files to keep its bound: what no longer has single I/Os is counted by seconds, or told."""
    recording = directory / "rec"
    client = Client(daemon, "d")
    for operations in (20, 30, 40):
        recorder = daemon.start("record", "-o", recording)
        assert "until Ctrl-C" in recorder.stdout.readline()
        client.many(operations, 4)
        client.many(operations // 10, 1, client.write)
        recorder.send_signal(signal.SIGINT)
        assert f"{operations + operations // 10} I/Os" in recorder.communicate()[0]
    whole = [json.loads(run(BINARY, "stat", name, "--in", recording, "--json").stdout) for name in
             ("disk.ops[op]", "disk.total")]
    deleted = sorted((recording / "ios").glob("*.parquet"))[1]
    deleted.unlink()

    def ask(*words):
        done = run(BINARY, *words, "--in", recording, "--json")
        return json.loads(done.stdout), done.stderr

    told, said = ask("stat", "disk.ops[op]")
    assert (told["count"], told["bytes"], told["values"]) == tuple(whole[0][key] for key in ("count", "bytes", "values"))
    assert "has only counts: their latencies" in said
    told, said = ask("stat", "disk.total")
    assert told["count"] == 99
    assert told["numbers"]["max_ns"] == whole[1]["numbers"]["max_ns"]
    assert whole[1]["numbers"]["p50_ns"] <= told["numbers"]["p50_ns"] * 1.01 <= whole[1]["numbers"]["p50_ns"] * 1.2
    told, said = ask("stat", "disk.ops[op=read]")
    assert told["count"] == 90
    told, said = ask("stat", "disk.ops[client]")
    assert told["count"] == 66 and "left out: the recording has only counts" in said
