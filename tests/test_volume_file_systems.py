"""A file system on a volume whose pool is on files: the daemon is killed while a program writes, and after the next start
the file system passes its check and has each file that was synced."""

import os
import random
import re
import subprocess
import sys
import time

import pytest
from attached import attach, can_attach  # noqa: F401 (a fixture)
from conftest import BINARY, HANG_LIMIT, eventually, requires, run
from pools import VOLUME, lab
from test_pool_power_cuts import mirrors

pytestmark = [*can_attach, requires("mkfs.ext4")]
ROUNDS = int(os.environ.get("KILLS", 1))

# Writes files, syncs each file and its directory, and then prints the file's number.
WRITER = """
import os, sys
at, first = sys.argv[1], int(sys.argv[2])
directory = os.open(at, os.O_RDONLY)
for number in range(first, first + 100000):
    file = os.open(f"{at}/{number}", os.O_CREAT | os.O_WRONLY)
    os.write(file, str(number).encode() * 4000)
    os.fsync(file)
    os.fsync(directory)
    print(number, flush=True)
    if number % 5 == 0 and number > first + 5:
        os.unlink(f"{at}/{number - 5}")
"""


class Attached:
    """A volume as a block device that `dashpot attach` makes."""

    def __init__(self, daemon, _):
        self.path = daemon.cli("attach", VOLUME, "--with", "loop").stdout.strip()

    def take_down(self, at=None):
        if at is not None:
            run("umount", "--lazy", at)
        run(BINARY, "detach", "--stale" if at else self.path)


class Node:
    """A volume as a loop device over the file of a FUSE client that we did not write."""

    def __init__(self, daemon, directory):
        self.fuse = directory / "fuse"
        self.fuse.mkdir()
        self.client = subprocess.Popen(["nbdfuse", self.fuse, daemon.uri(VOLUME)], stderr=subprocess.DEVNULL)
        eventually(lambda: (self.fuse / "nbd").exists(), "the client's file")
        self.path = run("losetup", "--find", "--show", self.fuse / "nbd").stdout.strip()

    def take_down(self, at=None):
        if at is not None:
            run("umount", "--lazy", at)
        run("losetup", "--detach", self.path)
        eventually(lambda: self.path not in run("losetup", "--list").stdout, "a detached loop device")
        run("umount", "--lazy", self.fuse)
        self.client.kill()
        self.client.wait(HANG_LIMIT)
        self.fuse.rmdir()


def synced(said):
    """The numbers that the writer has printed as whole lines, except those of files that it may have removed
    since."""
    numbers = [int(number) for number in re.findall(r"(\d+)\n", said)]
    return [number for number in numbers if number % 5]


@pytest.mark.parametrize("layout", ["stripe", "mirror"])
@pytest.mark.parametrize("policy", ["through", "openzfs"])
@pytest.mark.parametrize("way", [Attached, pytest.param(Node, marks=requires("nbdfuse"))])
def test_a_file_system_is_whole_after_the_daemon_was_killed(serve, attach, directory, tmp_path, policy, layout, way):
    seed = int(os.environ.get("SEED", random.randrange(1 << 32)))
    print(f"to reproduce: SEED={seed}")
    rng = random.Random(seed)
    # When the daemon ends, this store loses each write that no flush has covered.
    path, _ = lab(directory, policy, layout, "lossy:file:{disk}.img")
    daemon, said, first = serve(path), directory / "said", 1
    node = way(daemon, directory)
    run("mkfs.ext4", "-q", node.path)
    for _ in range(ROUNDS):
        run("mount", node.path, tmp_path)
        with open(said, "w") as out:
            writer = subprocess.Popen(
                [sys.executable, "-c", WRITER, tmp_path, str(first)], stdout=out, stderr=subprocess.DEVNULL
            )
        wanted = rng.randrange(5, 20)
        eventually(lambda: len(synced(said.read_text())) >= wanted, "synced files")
        daemon.abandon()
        daemon.ready.unlink()
        writer.wait(HANG_LIMIT)
        node.take_down(tmp_path)
        files = synced(said.read_text())
        first = max(files) + 10
        daemon = serve(path)
        node = way(daemon, directory)
        # fsck replays the journal (exit code 1), and finds nothing else to mend.
        checked = run("fsck.ext4", "-p", node.path, code=None)
        assert checked.returncode in (0, 1), checked.stdout
        run("fsck.ext4", "-fn", node.path)
        run("mount", node.path, tmp_path)
        for number in files:
            assert (tmp_path / str(number)).read_text() == str(number) * 4000, number
        run("umount", tmp_path)
    if layout == "mirror":
        eventually(lambda: mirrors(daemon)["nosync_regions"] == 0, "a repaired mirror")
    node.take_down()


def kill_at_a_moment(rng, daemon, *words):
    """Kills the daemon, and a dashpot command that changes its device, at a random moment of the command's
    work."""
    helper = daemon.start(*words)
    time.sleep(0.5 * rng.random() ** 2)
    helper.kill()
    daemon.abandon()
    helper.communicate(timeout=HANG_LIMIT)
    daemon.ready.unlink()


@pytest.mark.parametrize("policy", ["through", "openzfs"])
def test_a_file_system_is_whole_after_the_daemon_and_its_helper_were_killed(serve, attach, directory, tmp_path, policy):
    seed = int(os.environ.get("SEED", random.randrange(1 << 32)))
    print(f"to reproduce: SEED={seed}")
    rng = random.Random(seed)
    path, _ = lab(directory, policy, "mirror", "lossy:file:{disk}.img")
    daemon, said, first = serve(path), directory / "said", 1
    run("mkfs.ext4", "-q", attach(daemon, VOLUME))
    for _ in range(2 * ROUNDS):
        run("mount", f"/dev/dashpot/{VOLUME}", tmp_path)
        with open(said, "w") as out:
            writer = subprocess.Popen(
                [sys.executable, "-c", WRITER, tmp_path, str(first)], stdout=out, stderr=subprocess.DEVNULL
            )
        eventually(lambda: synced(said.read_text()), "a synced file")
        # The helper refuses to remove a device that is mounted, or is killed before it can refuse.
        kill_at_a_moment(rng, daemon, "detach", VOLUME)
        writer.wait(HANG_LIMIT)
        run("umount", "--lazy", tmp_path)
        run(BINARY, "detach", "--stale")
        files = synced(said.read_text())
        first = max(files) + 10
        kill_at_a_moment(rng, serve(path), "attach", VOLUME, "--with", "loop")
        run(BINARY, "detach", "--stale")
        daemon = serve(path)
        node = attach(daemon, VOLUME)
        # fsck replays the journal (exit code 1), and finds nothing else to mend.
        checked = run("fsck.ext4", "-p", node, code=None)
        assert checked.returncode in (0, 1), checked.stdout
        run("fsck.ext4", "-fn", node)
        run("mount", "-o", "ro", node, tmp_path)
        for number in files:
            assert (tmp_path / str(number)).read_text() == str(number) * 4000, number
        run("umount", tmp_path)
    daemon.cli("detach", VOLUME)
