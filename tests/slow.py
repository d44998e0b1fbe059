"""A slow kernel disk for tests, made without the device mapper: a loop device over a file that is one of
dashpot's disks.

nbdfuse shows dashpot's disk as a file, and the loop device reads and writes that file without the page cache. (With
the page cache, the loop device would do one I/O at a time.) nbdfuse has the 10 threads of libfuse, each with one
request, so at most 10 I/Os are at the disk at once; the others wait in the kernel. nbdfuse has a connection for each
thread, because the threads of one connection share a lock. No deadlock is possible: dashpot's disk is in memory, and
no page of the file is ever dirty.
"""

import contextlib
import fcntl
import os
import subprocess

import pytest
from conftest import eventually, requires, run
from kernel import Loop

CONNECTIONS = 10
LOOP_CONTROL = "/dev/loop-control"
# The numbers are from linux/loop.h.
LOOP_CTL_ADD, LOOP_CTL_REMOVE = 0x4C80, 0x4C81
needs_nbdfuse = requires("nbdfuse")


@pytest.fixture
def slow(daemon, tmp_path):
    """The daemon's disk `d` as a loop device. Rules make it slow."""
    with disk_as_file(daemon, tmp_path) as file, contextlib.closing(OwnLoop(file)) as loop:
        yield loop


class OwnLoop(Loop):
    """A loop device that did not exist before. An existing loop device keeps the settings of former users: a lowered
    `nr_requests` stays in force even when it is set back.
    """

    def __init__(self, backing):
        # An index that `losetup -f` does not pick, and that other test runs are unlikely to pick.
        self.index = 1000 + os.getpid() % 500_000
        control(LOOP_CTL_ADD, self.index)
        self.name = f"loop{self.index}"
        self.path = f"/dev/{self.name}"
        run("losetup", "--direct-io=on", self.path, backing)

    def close(self):
        self.detach()
        eventually(self.is_removed, "the end of the loop device")

    def is_removed(self):
        try:
            control(LOOP_CTL_REMOVE, self.index)
        except OSError:
            return False
        return True


def control(request, index):
    with open(LOOP_CONTROL) as loops:
        fcntl.ioctl(loops, request, index)


@contextlib.contextmanager
def disk_as_file(daemon, directory):
    file, ready = directory / "disk", directory / "nbdfuse.pid"
    file.touch()
    with open(directory / "nbdfuse.log", "w+") as log:
        command = ["nbdfuse", "-C", str(CONNECTIONS), "-P", str(ready), str(file), daemon.uri("d")]
        nbdfuse = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            eventually(lambda: is_written(ready) or nbdfuse.poll() is not None, "nbdfuse")
            assert nbdfuse.poll() is None, (directory / "nbdfuse.log").read_text()
            yield file
        finally:
            # When nbdfuse ends, waiting I/Os fail: a failed test must not leave a process that waits for ever.
            nbdfuse.kill()
            nbdfuse.wait()
            subprocess.run(["umount", "--lazy", str(file)], check=False)


def is_written(path):
    return path.exists() and path.read_text()
