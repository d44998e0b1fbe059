"""What distorts latencies and is no rule's doing is measured, and said beside them."""

import contextlib
import os
import pathlib
import signal

import pytest

from conftest import eventually

CGROUPS = pathlib.Path("/sys/fs/cgroup")


@contextlib.contextmanager
def cpu_quota(quota_us, period_us):
    """A control group with a quota, of either version. Skips where none can be made."""
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
            # What a test that has failed leaves in it goes back to where it came from.
            for pid in (group / "cgroup.procs").read_text().split():
                (root / "cgroup.procs").write_text(pid)
            group.rmdir()
    pytest.skip("no control group with a CPU quota can be made here")


def inside(group):
    """The words that start a command in a control group."""
    return ("sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh")


def test_what_a_quota_has_stopped_is_shown_beside_lateness(serve):
    with cpu_quota(quota_us=2_000, period_us=20_000) as group:
        daemon = serve("-d", "d=ram,size=64M", "-r", "-D 100us", under=inside(group))
        assert daemon.json("status")["host"]["quota_millicpus"] == 100
        load = daemon.start("load", daemon.uri("d"), "--depth", "64", "--block", "64K")
        eventually(lambda: daemon.json("status")["host"]["throttled_periods"] > 3, "the quota stops it")
        load.send_signal(signal.SIGINT)
        load.communicate()
        host = daemon.json("status")["host"]
        assert host["quota_periods"] >= host["throttled_periods"] > 0 < host["throttled_ns"]
        assert "a quota of 0.10 CPUs, stopped in " in daemon.cli("status").stdout
        assert "the CPU quota of 0.10 CPUs: stopped in " in daemon.cli("list").stdout
        daemon.stop()
