"""dashpot measures and reports the distortions of latency that no rule causes."""

import contextlib
import json
import os
import pathlib
import re
import signal

import pytest
import wire
from conftest import BINARY, eventually, run
from wire import Wire

CGROUPS = pathlib.Path("/sys/fs/cgroup")


@contextlib.contextmanager
def cpu_quota(quota_us, period_us):
    """A control group of cgroup version 1 or 2, with a CPU quota. Skips the test if none can be made."""
    for root, files in (
        (CGROUPS / "cpu", {"cpu.cfs_period_us": period_us, "cpu.cfs_quota_us": quota_us}),
        (CGROUPS, {"cpu.max": f"{quota_us} {period_us}"}),
    ):
        group = root / f"dashpot-test-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            if all((group / name).exists() for name in files):
                for name, value in files.items():
                    (group / name).write_text(str(value))
                yield group
                return
        finally:
            # Move processes that a failed test has left in the group back to their former group.
            for pid in (group / "cgroup.procs").read_text().split():
                (root / "cgroup.procs").write_text(pid)
            group.rmdir()
    pytest.skip(
        "no control group with a CPU quota can be made here: run the tests as root, where /sys/fs/cgroup can be written"
    )


def inside(group):
    """The words that start a command in a control group."""
    return ("sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh")


def test_what_a_quota_has_stopped_is_shown_beside_lateness(serve):
    with cpu_quota(quota_us=2_000, period_us=20_000) as group:
        daemon = serve("-d", "d=ram,size=64M", "-r", "-D 100us", under=inside(group))
        assert daemon.json("status")["host"]["quota_millicpus"] == 100
        assert not shard(daemon)["spins"]
        load = daemon.start("load", daemon.uri("d"), "--depth", "64", "--block", "64K")
        eventually(lambda: daemon.json("status")["host"]["throttled_periods"] > 3, "the quota stops it")
        load.send_signal(signal.SIGINT)
        load.communicate()
        host = daemon.json("status")["host"]
        assert host["quota_periods"] >= host["throttled_periods"] > 0 < host["throttled_ns"]
        assert "a quota of 0.10 CPUs, stopped in " in daemon.cli("status").stdout
        assert "the CPU quota of 0.10 CPUs: stopped in " in daemon.cli("list").stdout
        assert all("quota" in promise["why"] for promise in daemon.json("status")["promises"][1:5])
        doctor = json.loads(run(*inside(group), BINARY, "doctor", "--json").stdout)
        assert doctor["host"]["quota_millicpus"] == 100 and doctor["host"]["throttled_periods"] > 0
        daemon.stop()


def shard(daemon, number=0):
    return daemon.json("status")["shards"][number]


def test_a_flooded_shard_is_overloaded_and_its_disks_are_named(serve):
    daemon = serve("-d", "d=ram,size=64M", "-r", "-D 1ms -T flush", "--shards", "1")
    assert not shard(daemon)["load"]["overloaded"]
    loads = [
        daemon.start("load", daemon.uri("d"), "--depth", "16", "--block", "1M", "--write", "50%") for _ in range(4)
    ]

    def overloaded():
        status = daemon.json("status")
        load = status["shards"][0]["load"]
        return load["overloaded"] and load["overloaded_seconds"] and status

    status = eventually(overloaded, "the shard is overloaded")
    assert status["shards"][0]["load"]["busy_percent"] > 50
    assert any("overloaded: shard 0" in promise["why"] for promise in status["promises"])
    for load in loads:
        load.send_signal(signal.SIGINT)
        load.communicate()
    eventually(lambda: not shard(daemon)["load"]["overloaded"], "the flood is over")
    # The daemon remembers a past overload for as long as it runs, because the rule's figures also cover the
    # time of the overload.
    assert daemon.rules()[1]["shard_load"]["overloaded_seconds"] > 0
    assert "(overloaded for " in daemon.cli("status").stdout
    assert "shard 0 (disks d): busy for " in daemon.cli("list").stdout


def sleeps_of_the_probe(daemon):
    """How often the prober's thread has gone to sleep."""
    for task in pathlib.Path(f"/proc/{daemon.pid}/task").iterdir():
        if (task / "comm").read_text() == "dashpot-probe\n":
            return int(re.search(r"\nvoluntary_ctxt_switches:\s+(\d+)", (task / "status").read_text())[1])


def test_the_probe_reads_while_clients_ask_and_counts_nowhere(serve):
    daemon = serve("-d", "d=ram,size=64M", "--shards", "1")
    client = Wire(daemon.connect())
    client.go("d")
    asked = 0
    while (probe := shard(daemon)["probe"])["n"] < 2:
        assert client.in_step()
        asked += 1
    assert 0 <= probe["last_ns"] <= probe["max_ns"] >= probe["p50_ns"]
    status = daemon.json("status")
    assert [disk["name"] for disk in status["disks"]] == ["d"] == status["shards"][0]["disks"]
    assert sum(op["completed"] for op in daemon.disk()["ops"]) == asked
    assert "the probe is off" not in daemon.cli("status").stdout


def test_the_probe_sleeps_while_nobody_is_connected(serve):
    daemon = serve("-d", "d=ram,size=64M", "--shards", "1")
    eventually(lambda: sleeps_of_the_probe(daemon), "it waits for the bell")
    before = sleeps_of_the_probe(daemon)
    for _ in range(20):
        assert "the probe is off" in daemon.cli("status").stdout
    assert sleeps_of_the_probe(daemon) == before
    assert shard(daemon)["probe"]["n"] == 0


def test_nobody_finds_the_disk_of_the_probe(daemon):
    client = Wire(daemon.connect())
    client.greet()
    assert client.option(wire.OPT_GO, wire.export("probe"))[-1][0] == wire.REP_ERR_UNKNOWN
    assert "probe" in daemon.cli("list", "probe", code=1).stderr
    assert "0" in daemon.cli("clear", "0", code=1).stderr


def test_a_promise_that_cannot_hold_says_why(serve):
    daemon = serve("-d", "d=ram,size=64M", "--spin", "never")
    by_spinning = next(p for p in daemon.json("status")["promises"] if "by spinning" in p["promise"])
    assert by_spinning["can_hold"] == "no" and "--spin auto" in by_spinning["why"]
    assert by_spinning["why"] in daemon.cli("status").stdout
    doctor = daemon.json("doctor")
    assert by_spinning in doctor["promises"] and doctor["shards"][0]["spins"] is False
    assert by_spinning["why"] in daemon.cli("doctor").stdout
