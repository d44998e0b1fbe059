"""File systems on disks that `dashpot attach`, `mount` and `run` make block devices of this host."""

import json
import os
import pathlib
import random
import re
import shutil
import subprocess

import pytest
from attached import attach, can_attach, remains  # noqa: F401 (a fixture)
from conftest import BINARY, eventually, requires, run

pytestmark = can_attach


# The daemon's own memory, and the 4 MiB of free chunks that a RAM disk may keep.
OWN_MIB = 16
CHECKS = {"ext4": ["fsck.ext4", "-fn"], "xfs": ["xfs_repair", "-n"]}


def change(daemon, rng):
    """Makes a random change to the rules of disk `d`. An update or a clear of a rule that is not there is refused."""
    delay = rng.choice(["2ms", "1ms:8", "lognormal=500us..5ms", "p50=1ms,p99=20ms"])
    ops = rng.choice(["read", "write", "flush", "read,write,flush", "all"])
    words = rng.choice(
        [
            ["inject", "d", "-D", delay, "-T", ops, "--name", "r"],
            ["inject", "d", "-D", delay, "-T", ops, "--mode", "add", "--name", "r"],
            ["update", "r", "-D", delay, "-T", ops],
            ["clear", "r"],
            ["clear", "r", "--release"],
            ["suspend", "d", "--now"],
            ["suspend", "d", "--for", "50ms"],
            ["resume", "d"],
        ]
    )
    daemon.cli(*words, code=None)


def resident_mib(daemon):
    status = pathlib.Path(f"/proc/{daemon.pid}/status").read_text()
    return int(re.search(r"RssAnon:\s+(\d+) kB", status)[1]) >> 10


def stored_mib(daemon):
    """The size of the data of disk `d`, as an NBD client sees it."""
    extents = json.loads(run("nbdinfo", "--map", "--json", daemon.uri("d")).stdout)
    return sum(extent["length"] for extent in extents if extent["description"] == "data") >> 20


@requires("fio")
@requires("mkfs.ext4")
@requires("mkfs.xfs")
@requires("nbdinfo")
@pytest.mark.parametrize("fs", CHECKS)
def test_a_file_system_stays_whole_while_rules_change(serve, attach, tmp_path, fs):
    seed = int(os.environ.get("SEED", random.randrange(1 << 32)))
    print(f"to reproduce: SEED={seed}")
    rng = random.Random(seed)
    daemon = serve("-d", "d=ram,size=400M")
    at = tmp_path / "at"
    at.mkdir()
    daemon.cli("mount", "d", at, "--fs", fs, "--mkfs", "--with", "loop")
    words = ["--name=job", f"--directory={at}", "--size=32M", "--bs=4k", "--ioengine=libaio", "--direct=1"]
    job = subprocess.Popen(
        ["fio", *words, "--rw=randwrite", "--iodepth=32", "--verify=crc32c", "--verify_state_save=0", "--fsync=64"],
        stdout=subprocess.DEVNULL,
    )
    changes = 0
    while job.poll() is None:
        change(daemon, rng)
        changes += 1
        if changes % 8 == 0:
            daemon.cli("reset")
    assert job.returncode == 0 and changes > 0
    daemon.cli("reset")
    before = stored_mib(daemon)
    os.remove(next(at.glob("job*")))

    def is_given_back():
        os.sync()
        run("fstrim", at)
        return stored_mib(daemon) < before - 24 and resident_mib(daemon) < stored_mib(daemon) * 9 / 8 + OWN_MIB

    # XFS frees the blocks of a removed file only after some time.
    eventually(is_given_back, "memory of the file is given back")
    daemon.cli("detach", "d")
    assert not os.path.ismount(at)
    node = attach(daemon)
    run(*CHECKS[fs], node)
    daemon.cli("detach", node)


@pytest.mark.parametrize("fs", ["ext2", "ext3", "btrfs", "vfat"])
def test_other_kinds_of_file_systems(serve, attach, tmp_path, fs):
    """Tests file systems other than ext4 and XFS, as far as this host has them."""
    if shutil.which(f"mkfs.{fs}") is None:
        pytest.skip(f"mkfs.{fs} is missing: make deps")
    if f"\t{fs}\n" not in pathlib.Path("/proc/filesystems").read_text():
        pytest.skip(f"this kernel has no {fs}")
    daemon = serve("-d", "d=ram,size=256M")
    daemon.cli("mount", "d", tmp_path, "--fs", fs, "--mkfs", "--with", "loop")
    found = run("findmnt", "--noheadings", "--output", "FSTYPE", tmp_path).stdout.strip()
    assert found == fs
    (tmp_path / "file").write_text("kept")
    daemon.cli("detach", tmp_path)
    daemon.cli("mount", "d", tmp_path, "--with", "loop")
    assert (tmp_path / "file").read_text() == "kept"
    daemon.cli("detach", "d")
    assert not remains()


def test_a_kind_that_the_host_lacks_is_refused_before_anything_is_made(serve, attach, tmp_path):
    daemon = serve("-d", "d=ram,size=64M")
    for words, why in [
        (["--fs", "tmpfs"], "--fs tmpfs: its files are not on a disk: choose another"),
        (["--fs", "slowfs"], "--fs slowfs: this kernel does not know it: install its module, or choose another (ext"),
        (["--fs", "slowfs", "--mkfs"], "mkfs.slowfs is missing: install the package that has it, or leave --mkfs out"),
        (["--fs", "../ext4"], "invalid value '../ext4' for '--fs <FS>': write the kernel's name of a"),
    ]:
        refused = daemon.cli("mount", "d", tmp_path, *words, code=None)
        assert refused.returncode and why in refused.stderr, refused.stderr
        assert not remains()
    # Tools are also looked for where root has them.
    bare, empty = {"PATH": str(tmp_path), "DASHPOT_API": f"unix:{daemon.api}"}, tmp_path / "empty"
    empty.mkdir()
    hidden = 'for bin in /usr/sbin /usr/local/sbin; do /bin/mount --bind "$0" $bin; done; exec "$@"'
    without = ["/usr/bin/unshare", "-m", "/bin/sh", "-c", hidden, empty]
    for fs, package in [("btrfs", "btrfs-progs"), ("ext4", "e2fsprogs"), ("vfat", "dosfstools")]:
        refused = subprocess.run(
            [*without, BINARY, "mount", "d", tmp_path, "--mkfs", "--fs", fs], env=bare, capture_output=True, text=True
        )
        assert f"mkfs.{fs} is missing: install the package that has it (Debian: {package})" in refused.stderr
    assert not remains()


@requires("mkfs.xfs")
def test_xfs_for_the_life_of_a_command(attach, tmp_path):
    at = tmp_path / "at"
    at.mkdir()
    script = (
        'mkfs.xfs -q "$DASHPOT_DEV_D" && mount "$DASHPOT_DEV" "$0" && cp /etc/services "$0" && umount "$0" && exit 7'
    )
    run(BINARY, "run", "--attach", "-d", "d=ram,size=512M", "--", "sh", "-c", script, at, code=7)
    assert not remains()


@requires("mkfs.ext4")
def test_run_mounts_and_unmounts(attach, tmp_path):
    at = tmp_path / "at"
    at.mkdir()
    run(
        BINARY,
        "run",
        "--mount",
        at,
        "-d",
        "d=ram,size=64M",
        "--",
        "sh",
        "-c",
        'touch "$0/file" && mountpoint -q "$0"',
        at,
    )
    assert not os.path.ismount(at) and not os.listdir(at)
    assert not remains()


@requires("mkfs.ext4")
def test_a_rule_that_holds_the_unmounting_holds_no_end_up(attach, tmp_path):
    """`run` must end even if a rule holds for ever the writes that unmounting causes."""
    script = 'touch "$0/file" && "$1" inject d --hang -T write,flush'
    done = run(BINARY, "run", "--mount", tmp_path, "-d", "d=ram,size=64M", "--", "sh", "-c", script, tmp_path, BINARY)
    assert not os.path.ismount(tmp_path) and not remains(), done.stderr
