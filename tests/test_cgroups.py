"""The cgroup of each I/O of the kernel's disks, even of processes that end at once."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess

import pytest
from conftest import BINARY, eventually, run
from kernel import is_watching, loop_in_memory, takes_a_kernel

CGROUPS = pathlib.Path("/sys/fs/cgroup")
SHORT = 'dd if=/dev/zero of="$1" bs=4k count=1 oflag=direct status=none'


@contextlib.contextmanager
def cgroup(name):
    """A cgroup of the hierarchy that governs I/O. Skips the test if none can be made."""
    v1 = (CGROUPS / "blkio").is_dir()
    group = (CGROUPS / "blkio" if v1 else CGROUPS) / name
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup can be made here: {error}; run the tests as root, where /sys/fs/cgroup can be written")
    try:
        yield group
    finally:
        group.rmdir()


def ios_of(loop, command):
    """The I/Os of `dd` on a loop device while a command runs, as snoop prints them."""
    watch = subprocess.Popen([BINARY, "snoop", "-d", loop.path, "--json"], stdout=subprocess.PIPE, text=True)
    eventually(lambda: is_watching(watch.pid), "it watches")
    command()
    watch.send_signal(signal.SIGINT)
    told = [json.loads(line) for line in watch.communicate()[0].splitlines()]
    return [io for io in told if io.get("process") == "dd"]


@takes_a_kernel
def test_processes_that_end_at_once_have_the_cgroups_in_which_they_asked():
    names = [f"/dashpot-test-{os.getpid()}-{letter}" for letter in "ab"]
    with cgroup(names[0][1:]) as one, cgroup(names[1][1:]) as other, loop_in_memory() as loop:
        # The shell moves from one cgroup to the other, and each of its children ends long before dashpot reads the
        # child's events.
        visit = f"echo $$ >{one}/cgroup.procs; {SHORT}; {SHORT}; echo $$ >{other}/cgroup.procs; {SHORT}"
        shell = lambda: run("sh", "-c", f"{visit}; {visit}; {SHORT}", "sh", loop.path)
        told = ios_of(loop, lambda: [shell() for _ in range(10)])
        assert len({io["pid"] for io in told}) == len(told) == 70
        assert [io["cgroup"] for io in told] == [
            names[0],
            names[0],
            names[1],
            names[0],
            names[0],
            names[1],
            names[1],
        ] * 10


@takes_a_kernel
def test_a_breakdown_has_containers():
    name = f"dashpot-test-{os.getpid()}-" + "0123456789abcdef" * 4
    with cgroup(name) as group, loop_in_memory() as loop:
        watch = subprocess.Popen(
            [BINARY, "stat", "disk.ops[process=dd][container]", "-d", loop.path, "--json", "600s"],
            stdout=subprocess.PIPE,
            text=True,
        )
        eventually(lambda: is_watching(watch.pid), "it watches")
        for _ in range(3):
            run("sh", "-c", f"echo $$ >{group}/cgroup.procs; {SHORT}", "sh", loop.path)
        watch.send_signal(signal.SIGINT)
        told = json.loads(watch.communicate()[0].splitlines()[-1])
        [value] = told["values"]
        assert (value["value"], value["count"]) == (f"dashpot-test-{os.getpid()}-0123456789ab", 3)
