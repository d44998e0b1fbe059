"""`mount` and `detach` never destroy a user's data: neither where a disk cannot be read, nor where other programs use
the mounted file system."""

import os
import subprocess

import pytest
from attached import attach, can_attach, remains  # noqa: F401 (a fixture)
from conftest import BINARY, run

pytestmark = can_attach


@pytest.fixture
def precious(tmp_path):
    """A file whose file system holds a precious file, and a directory to mount it at."""
    image, at = tmp_path / "precious.img", tmp_path / "at"
    at.mkdir()
    with open(image, "wb") as file:
        file.truncate(64 << 20)
    run("mkfs.ext4", "-q", image)
    content = tmp_path / "content"
    content.write_text("precious\n")
    run("debugfs", "-w", "-R", f"write {content} precious", image)
    return image, at


def has_its_file(image):
    return "precious" in run("debugfs", "-R", "cat precious", image).stdout


def mounted_run(image, at, *rule):
    # `run --mount` arms its rules only when its command starts, so here the command mounts.
    mounts = f'{BINARY} mount d "$1" && ls "$1"; code=$?; {BINARY} detach d; exit $code'
    words = ["run", "-d", f"d=file:{image}", *rule, "--", "sh", "-c", mounts, "sh", at]
    return subprocess.run([BINARY, *map(str, words)], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("failures", [1, 2, 3, 4, 6, 8, 12, 16, 24, 1000])
def test_a_disk_that_cannot_be_read_is_not_taken_for_empty(precious, failures):
    """A disk that cannot be read must not count as empty: its file system is mounted as it is, or nothing is
    mounted."""
    image, at = precious
    done = mounted_run(image, at, "-r", f"-e EIO -T read --first {failures}")
    assert has_its_file(image), done.stderr
    assert done.returncode or "precious" in done.stdout
    assert not os.path.ismount(at) and not remains()


SEEDS = {"30%": range(6), "10%": [44, 68, 69, 84, 94, 99, 100]}


@pytest.mark.parametrize("share, seed", [(share, seed) for share in SEEDS for seed in SEEDS[share]])
def test_nor_is_one_whose_reads_fail_now_and_then(precious, share, seed):
    """With few failing reads, dashpot's own reads can succeed, and then those of blkid fail, so that blkid
    finds nothing. The disk must not be overwritten."""
    image, at = precious
    done = mounted_run(image, at, "--seed", seed, "-r", f"-e EIO -T read -f {share}")
    assert has_its_file(image), done.stderr


def test_data_of_two_kinds_is_not_overwritten(precious):
    """A disk must not be overwritten if it has an ext4 file system and, before it, the signature of another
    kind of data."""
    image, at = precious
    with open(image, "r+b") as file:
        file.write(b"XFSB")
        file.seek(0)
        before = file.read()
    done = mounted_run(image, at)
    assert image.read_bytes()[:1024] == before[:1024] and has_its_file(image), done.stderr


def test_a_refused_detach_leaves_the_file_system_mounted(serve, attach, tmp_path):
    daemon = serve("-d", "d=ram,size=64M")
    node = daemon.cli("mount", "d", tmp_path, "--mkfs", "--with", "loop").stdout.split()[0]
    with open(node, "rb"):
        refused = daemon.cli("detach", "d", code=1).stderr
        assert "it is in use: open by" in refused and os.path.ismount(tmp_path)
    daemon.cli("detach", "d")
    assert not os.path.ismount(tmp_path) and not remains()


def test_detach_unmounts_no_other_file_system(serve, attach, tmp_path):
    daemon = serve("-d", "d=ram,size=64M")
    daemon.cli("mount", "d", tmp_path, "--mkfs", "--with", "loop")
    run("mount", "-t", "tmpfs", "other", tmp_path)
    (tmp_path / "file").write_text("kept")
    try:
        refused = daemon.cli("detach", "d", code=1).stderr
        assert f"another file system covers it at {tmp_path}: unmount that one first" in refused
        assert (tmp_path / "file").read_text() == "kept"
    finally:
        run("umount", tmp_path)
    daemon.cli("detach", "d")
    assert not os.path.ismount(tmp_path) and not remains()
