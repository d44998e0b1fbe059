"""Disks that are block devices of this host, for tests as root.

The fixture `attach` makes them with the program itself, and at the end of a test makes sure that nothing is
left: no loop device, no mount, no directory. A test that kills a daemon cleans up with `detach --stale`, as a
user would.
"""

import ctypes
import fcntl
import os
import pathlib
import shutil

import pytest
from conftest import BINARY, requires, run

BASE = pathlib.Path("/run/dashpot-attached")
LINKS = pathlib.Path("/dev/dashpot")
CLONE_NEWNS = 0x00020000  # of linux/sched.h
LOOP_CTL_ADD, LOOP_CTL_REMOVE = 0x4C80, 0x4C81  # of linux/loop.h


def hide_from_others():
    """Puts private directories in place of the machine's, so that this run neither checks nor removes the devices
    and links that other runs make at the same time."""
    if ctypes.CDLL(None).unshare(CLONE_NEWNS) == 0:
        run("mount", "--make-rslave", "/")
        for directory, mode in [(BASE, "700"), (LINKS, "755")]:
            directory.mkdir(mode=int(mode, 8), exist_ok=True)
            run("mount", "-t", "tmpfs", "-o", f"mode={mode}", "tmpfs", directory)


if os.geteuid() == 0:
    hide_from_others()

can_attach = [
    pytest.mark.skipif(os.geteuid() != 0, reason="attach takes root"),
    pytest.mark.skipif(not os.path.exists("/dev/fuse"), reason="/dev/fuse is missing"),
    pytest.mark.skipif(not os.path.exists("/dev/loop-control"), reason="/dev/loop-control is missing"),
    requires("losetup"),
]


@pytest.fixture
def attach():
    """Attaches a disk of a daemon, and returns its node."""
    before = remains()

    def attach(daemon, disk="d", *options):
        return daemon.cli("attach", disk, "--with", "loop", *options).stdout.strip()

    yield attach
    # After a failed test, devices that are still attached would disturb the other tests.
    run(BINARY, "detach", "--stale", code=None)
    left = remains() - before
    # A directory can be removed once nothing is mounted in it.
    for what in sorted(left, key=os.path.isdir):
        take_down(what)
    assert not left, f"left behind: {left}"


def sysfs(node, name):
    """An attribute of a node."""
    return (pathlib.Path("/sys/block") / os.path.basename(node) / name).read_text().strip()


@pytest.fixture
def own_loop(tmp_path_factory, monkeypatch):
    """A loop device for a test that changes its settings: `attach` takes this device next, and no other program takes
    it.
    """
    number = 64 + os.getpid() % 900
    node, folder = f"/dev/loop{number}", tmp_path_factory.mktemp("bin")
    tool = folder / "losetup"
    tool.write_text(f'#!/bin/sh\n[ "$*" = --find ] && echo {node} && exit\nexec {shutil.which("losetup")} "$@"\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    with open("/dev/loop-control") as control:
        fcntl.ioctl(control, LOOP_CTL_ADD, number)
        yield node
        fcntl.ioctl(control, LOOP_CTL_REMOVE, number)


def can_write(attribute, value):
    """Writes a value, and returns whether the kernel took it: new kernels refuse a change while another is under way."""
    try:
        attribute.write_text(value)
        return True
    except OSError:
        return False


def backing(loop):
    """The backing file of a loop device, or nothing."""
    try:
        return (loop / "loop/backing_file").read_text().strip()
    except OSError:
        return ""


def is_own(file):
    """Whether a file or a mount belongs to this run. Its path alone does not tell, because the kernel shows the
    same paths for other runs. But only the directories of this run exist here.
    """
    return file.startswith(str(BASE)) and pathlib.Path(file).parent.exists()


def remains():
    """The remains of attachments in the kernel and in the file system."""
    loops = {f"/dev/{loop.name}" for loop in pathlib.Path("/sys/block").glob("loop*") if is_own(backing(loop))}
    with open("/proc/self/mountinfo") as table:
        mounts = {line.split()[4] for line in table if " fuse.dashpot " in line}
    # The list also has the mounts that other runs made in the machine's own directory, over which this run has
    # mounted a directory of its own.
    mounts = {mount for mount in mounts if is_own(mount)}
    return loops | mounts | {str(entry) for directory in [BASE, LINKS] for entry in directory.glob("*")}


def take_down(what):
    """Detaches by force after a test that has failed already."""
    if os.path.islink(what):
        os.remove(what)
    elif what.startswith("/dev/"):
        run("losetup", "--detach", what, code=None)
    elif os.path.isdir(what):
        run("rm", "-rf", what, code=None)
    else:
        run("umount", "--lazy", what, code=None)
