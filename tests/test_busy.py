"""`stat disk.busy`: the share of the time in which a device had I/O in flight, from each source that knows it."""

import json

import pytest
from conftest import BINARY, eventually, run
from kernel import dd, loop_in_memory, takes_a_kernel
from test_kernel_reports import Watching
from test_recorded_reports import asked, over
from test_sim import (
    POOL,
    lab,  # noqa: F401, a fixture
    of_report,
)
from timed import Client


def ios(recording):
    return [json.loads(line) for line in run(BINARY, "snoop", "--in", recording, "--json").stdout.splitlines()]


def busy_ns(interval):
    return {one["value"]: one["busy_percent"] / 100 * interval["elapsed_ns"] for one in interval["values"]}


def test_a_hung_disk_is_busy_all_the_time_and_an_idle_one_never(serve):
    daemon = serve("-d", "a=ram,size=4M", "-d", "b=ram,size=4M")
    daemon.cli("inject", "a", "--hang")
    client = Client(daemon, "a")
    client.read()
    eventually(lambda: daemon.rules()[1]["taken"] == 1)
    told = json.loads(daemon.cli("stat", "disk.busy", "200ms", "1", "--json").stdout)
    assert told["count"] == 0 and told["in_flight"]["zios"] == 1
    assert [(one["value"], one["busy_percent"]) for one in told["values"]] == [("a", 100.0), ("b", 0.0)]
    text = daemon.cli("stat", "disk.busy", "200ms", "1").stdout
    assert "100.0  ########################" in text and "\nb " not in text, text
    of_b = daemon.cli("stat", "disk.busy", "--where", "device=b", "200ms", "1", "--csv").stdout.splitlines()
    assert of_b[0] == "at_ns,elapsed_ns,device,count,bytes,busy_percent"
    assert [line.split(",")[2:] for line in of_b[1:]] == [["b", "0", "0", "0"]]
    client.close()


def test_a_recording_knows_how_busy_the_live_disks_were(serve, directory):
    daemon = serve("-d", "a=ram,size=4M", "-d", "b=ram,size=4M")
    daemon.cli("inject", "a", "-D", "5ms:2")
    recorder = daemon.start("record", "-o", directory / "rec")
    assert "until Ctrl-C" in recorder.stdout.readline()
    live = daemon.start("stat", "disk.busy", "--json", "1")
    assert json.loads(live.stdout.readline())["count"] == 0
    Client(daemon, "a").many(60, 3)
    Client(daemon, "b").many(20, 1)
    told = [json.loads(line) for line in over(live).splitlines()]
    over(recorder)
    [recorded] = asked(directory / "rec", "disk.busy")
    assert recorded["count"] == sum(one["count"] for one in told) == 80
    sums = {name: sum(busy_ns(one)[name] for one in told) for name in "ab"}
    # The counters see an I/O from the moment at which the shard takes it until the shard offers the reply to the
    # transport. The recording counts from the arrival of the header until the transport has taken the reply.
    for name, counted in sums.items():
        waits = [io["waits"] for io in ios(directory / "rec") if io["device"] == name]
        beside = sum(wait["recv_ns"] + wait["reply_ns"] for wait in waits)
        # A report reads the devices one after another, so the interval of a device differs slightly from the one that
        # the report prints.
        assert abs(busy_ns(recorded)[name] - counted) <= beside + 0.05 * counted, (name, counted, beside)
    # 60 requests took turns in two lanes of 5 ms.
    assert sums["a"] >= 150e6


def test_a_simulation_and_iostat_agree(lab):  # noqa: F811
    path = lab(POOL)
    for layer in ("disk", "volume"):
        busy = of_report(path, f"stat {layer}.busy 1")
        rows = of_report(path, f"iostat -x --layer {layer} 1")
        assert len(busy) == 3
        for one, devices in zip(busy, rows):
            told = {value["value"]: value["busy_percent"] for value in one["values"]}
            assert told == pytest.approx({device["device"]: device["busy_percent"] for device in devices})
            assert max(told.values()) > 0


@takes_a_kernel
def test_the_kernels_own_busy_time_is_told():
    with loop_in_memory() as loop:
        before = loop.stat()
        # Once the report has printed an interval, it is watching.
        report = Watching("stat", "disk.busy", "--json", "-d", loop.path, 1)
        dd("if=/dev/zero", f"of={loop.path}", "bs=64k", "count=400", "oflag=direct")
        after = loop.stat()
        told = [json.loads(line) for line in report.end().splitlines()]
    busy_ms = sum(busy_ns(one)[loop.name] for one in told) / 1e6
    assert busy_ms == pytest.approx(after["busy_ms"] - before["busy_ms"])
    assert sum(one["count"] for one in told) >= 400


@pytest.mark.parametrize(
    "words, message",
    [
        (["disk.busy[op=write]"], "'op': busy time is known of each device as a whole"),
        (["disk.busy[client]"], "'client': busy time is known of each device as a whole"),
        (["disk.busy", "--where", "size>=4K"], "'size': busy time is known of each device as a whole"),
        (["fs.busy"], "a device is busy, not a call"),
        (["disk.busy", "--last", "1m"], "a daemon's memory of seconds has no busy times"),
    ],
    ids=str,
)
def test_what_no_source_knows_is_refused_by_name(daemon, words, message):
    assert message in daemon.cli("stat", *words, code=2).stderr
