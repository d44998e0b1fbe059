"""Disks of the kernel for tests: loop devices over memory, and the kernel's counts of them."""

import contextlib
import fcntl
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest
import tracefs
from conftest import run
from tracefs import TRACEFS

IN_FLIGHT = re.compile(r"^In flight: (\d+), the oldest for (\d+\.\d+) s on (\w+) \((\w+)\)\.$", re.MULTILINE)
FIELDS = (
    "reads reads_merged sectors_read read_ms writes writes_merged sectors_written write_ms in_flight busy_ms "
    "depth_ms discards discards_merged sectors_discarded discard_ms flushes flush_ms"
).split()
# From linux/loop.h.
LOOP_CHANGE_FD = 0x4C06


def why_not():
    """The reason that the kernel's disks cannot be tested here, or None."""
    if os.geteuid() != 0:
        return "takes root: run the tests as root"
    if not (TRACEFS / "events/block").is_dir():
        return tracefs.complaint or "the kernel has no block events (CONFIG_BLK_DEV_IO_TRACE)"
    if shutil.which("losetup") is None:
        return "losetup is missing: make deps"
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as backing:
        backing.truncate(1 << 20)
        tried = subprocess.run(["losetup", "-f", "--show", backing.name], capture_output=True, text=True)
        if tried.returncode == 0:
            run("losetup", "-d", tried.stdout.strip())
        if tried.returncode:
            return f"no loop device can be made: {tried.stderr.strip()}; modprobe loop, or a container with /dev/loop*"
    return None


WHY_NOT = why_not()
takes_a_kernel = pytest.mark.skipif(WHY_NOT is not None, reason=WHY_NOT or "")


class Loop:
    """A loop device."""

    is_detached = False

    def __init__(self, backing, *options):
        self.path = run("losetup", "-f", "--show", *options, backing).stdout.strip()
        self.name = os.path.basename(self.path)
        # No other program may read the device during the test; when this command returns, udev and blkid have
        # finished.
        if shutil.which("udevadm"):
            run("udevadm", "settle", code=None)

    def stat(self):
        words = pathlib.Path(f"/sys/block/{self.name}/stat").read_text().split()
        return dict(zip(FIELDS, map(int, words)))

    def limit(self, kilobytes):
        """Makes the kernel split requests of more kilobytes than this."""
        pathlib.Path(f"/sys/block/{self.name}/queue/max_sectors_kb").write_text(str(kilobytes))

    def number(self):
        return pathlib.Path(f"/sys/block/{self.name}/dev").read_text().strip().replace(":", ",")

    def change_file(self):
        """Replaces the file of a read-only loop device by another of equal size, in one step, so that no
        other program can take the device."""
        with (
            tempfile.NamedTemporaryFile(dir="/dev/shm", prefix="dashpot-test-") as file,
            open(self.path, "rb") as device,
        ):
            file.truncate(device.seek(0, os.SEEK_END))
            fcntl.ioctl(device, LOOP_CHANGE_FD, file.fileno())

    def detach(self):
        """Detaches the device only at the first call, because later another program may own it."""
        if not self.is_detached:
            self.is_detached = True
            run("losetup", "-d", self.path, code=None)


@contextlib.contextmanager
def loop_over(backing, *options):
    loop = Loop(backing, *options)
    try:
        yield loop
    finally:
        loop.detach()


@contextlib.contextmanager
def loop_in_memory(*options, megabytes=64):
    with tempfile.NamedTemporaryFile(dir="/dev/shm", prefix="dashpot-test-") as backing:
        backing.truncate(megabytes << 20)
        with loop_over(backing.name, *options) as loop:
            yield loop


@contextlib.contextmanager
def loop_that_can_be_frozen(directory):
    """A loop device whose backing file is on a separate file system, and the path of that file system."""
    with loop_in_memory() as below:
        run("mkfs.ext4", "-q", "-O", "^has_journal", below.path)
        place = directory / "frozen"
        place.mkdir()
        run("mount", below.path, place)
        try:
            backing = place / "backing"
            run("dd", "if=/dev/zero", f"of={backing}", "bs=1M", "count=16", "status=none")
            with loop_over(backing) as loop:
                yield loop, place
        finally:
            run("umount", place)


def dd(*words):
    run("dd", *words, "status=none")


def instances_of(pid):
    """The instances of tracefs that a process has made."""
    return list((TRACEFS / "instances").glob(f"dashpot-{pid}-*"))


def is_watching(pid):
    """Whether a process has begun to watch the kernel's events, so that it sees all later events."""
    return any(map(is_on, instances_of(pid)))


def is_on(instance):
    """Whether the observer has switched on an instance of tracefs. A new instance is already on: the observer
    switches it off, enables its events, and switches it on again. It watches only from then on.
    """
    # The directory appears before its files.
    with contextlib.suppress(FileNotFoundError):
        is_asked = (instance / "events/enable").read_text().strip() != "0"
        return is_asked and (instance / "tracing_on").read_text().strip() == "1"


def left_behind():
    """Instances of tracefs whose owner has ended. Other processes on this machine may have live ones."""
    instances = (TRACEFS / "instances").glob("dashpot-*")
    return {path.name for path in instances if not pathlib.Path("/proc", path.name.split("-")[1]).exists()}
