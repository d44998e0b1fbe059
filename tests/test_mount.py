"""`dashpot mount` and `run --mount`: the file system of a disk, mounted for as long as the disk is
attached."""

import json
import signal

import pytest
from attached import attach, can_attach, remains  # noqa: F401 (a fixture)
from conftest import BINARY, HANG_LIMIT, requires, run

pytestmark = can_attach


@requires("mkfs.ext4")
def test_a_mount_that_waits_says_so_and_an_interrupted_one_leaves_nothing(daemon, attach, tmp_path):
    daemon.cli("inject", "d", "--hang", "-T", "read")
    waits = daemon.start("mount", "d", tmp_path, "--mkfs", "--with", "loop")
    said = iter(waits.stderr.readline, "")
    assert any("is not mounted yet: mounting waits for its I/O, and so for its rules" in line for line in said)
    waits.send_signal(signal.SIGINT)
    _, said = waits.communicate(timeout=HANG_LIMIT)
    assert waits.returncode == 1 and said == "dashpot: interrupted: nothing is attached\n"
    assert not remains()


@requires("mkfs.ext4")
@pytest.mark.parametrize("effect", ["--hang", "-e EIO"])
def test_the_rules_of_run_are_for_the_command(attach, tmp_path, effect):
    """Making the file system and mounting it do not meet them, and at the end each rule says what it did."""
    words = [BINARY, "run", "--mount", tmp_path, "-d", "d=ram,size=64M", "-r", f"{effect} -T read --range 32M..33M"]
    done = run(
        *words,
        "-r",
        f"{effect} -T read --first 1 --name reads",
        "--",
        "sh",
        "-c",
        'list=$("$0" list --json); echo $list',
        BINARY,
    )
    armed = json.loads(done.stdout)
    assert {rule["matched"] for rule in armed} == {0}
    told = [line for line in done.stderr.splitlines() if line.startswith("dashpot: rule on d: ")]
    assert len(told) == 2 and "injected nothing: nothing matched yet" in told[0], done.stderr


@requires("mkfs.ext4")
def test_what_is_on_a_disk_is_read_once(daemon, attach, tmp_path):
    """`mount` must read the ends of the disk only once: blkid finds them in the page cache."""
    daemon.cli("mount", "d", tmp_path, "--mkfs", "--with", "loop")
    daemon.cli("detach", "d")
    reads = lambda: {op["op"]: op["completed"] for op in daemon.disk()["ops"]}["read"]  # noqa: E731
    before = reads()
    refused = daemon.cli("mount", "d", tmp_path, "--mkfs", "--with", "loop", code=1).stderr
    assert "has data on it already (ext4)" in refused
    assert reads() - before < 30, "blkid alone reads about fifty times"


@requires("mkfs.ext4")
def test_another_kind_of_file_system_than_the_disk_has_is_named(daemon, attach, tmp_path):
    daemon.cli("mount", "d", tmp_path, "--mkfs", "--with", "loop")
    daemon.cli("detach", "d")
    refused = daemon.cli("mount", "d", tmp_path, "--fs", "xfs", "--with", "loop", code=1).stderr
    assert refused.startswith("dashpot: --fs xfs: disk 'd' has ext4; leave --fs out: mount:"), refused
    assert not remains()


@requires("mkfs.ext4")
def test_what_a_disk_holds_gets_no_rights_unless_the_user_asks(daemon, attach, tmp_path):
    """The daemon's user decides what is on the disk, and may not be the user who mounts it."""
    options = lambda: set(run("findmnt", "-no", "OPTIONS", tmp_path).stdout.strip().split(","))  # noqa: E731
    daemon.cli("mount", "d", tmp_path, "--mkfs", "--with", "loop")
    assert {"nosuid", "nodev"} <= options()
    daemon.cli("detach", "d")
    daemon.cli("mount", "d", tmp_path, "-o", "suid,dev,noatime", "--with", "loop")
    assert not {"nosuid", "nodev"} & options() and "noatime" in options()
    with open(tmp_path / "busy", "w"):
        daemon.cli("detach", "d", code=1)
    assert "noatime" in options() and "nosuid" not in options(), "mounted again as before"
    daemon.cli("detach", "d")
    words = ["run", "--mount", tmp_path, "-d", "d=ram,size=8M", "--", "findmnt", "-no", "OPTIONS", tmp_path]
    assert {"nosuid", "nodev"} <= set(run(BINARY, *words).stdout.strip().split(","))
