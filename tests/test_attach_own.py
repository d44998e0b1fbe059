"""Attached devices beside those of other daemons: a command changes only the devices of its own daemon. A
daemon that ends names the devices that stay attached."""

import os
import re
import subprocess

import pytest
from attached import attach, can_attach, remains, sysfs  # noqa: F401 (a fixture)
from conftest import BINARY, eventually, requires, run

pytestmark = can_attach


@requires("mkfs.ext4")
@pytest.mark.parametrize("options", [[], ["--fail-held"]])
def test_a_refusal_leaves_the_file_system_mounted(daemon, attach, tmp_path, options):
    """`detach --fail-held` first unmounts the file system, and then finds that another program has the device open.
    After the refusal the file system must be mounted again.
    """
    node = daemon.cli("mount", "d", tmp_path, "--mkfs", "--with", "loop").stdout.strip()
    with open(node, "rb"):
        refused = daemon.cli("detach", "d", *options, code=1).stderr
        assert re.search(rf"it is in use: .*\(pid {os.getpid()}\)", refused), refused
        assert os.path.ismount(tmp_path)
    (tmp_path / "file").touch()
    daemon.cli("detach", "d")
    assert not os.path.ismount(tmp_path) and not remains()


@requires("mkfs.ext4")
def test_the_held_io_of_a_program_fails_before_its_file_system_is_unmounted(daemon, attach, tmp_path):
    """A program that is stuck in a held I/O keeps the file system busy until `detach --fail-held` fails this I/O."""
    daemon.cli("mount", "d", tmp_path, "--mkfs", "--with", "loop")
    write = ["dd", "if=/dev/zero", f"of={tmp_path}/file", "bs=4k", "count=1", "conv=notrunc"]
    run(*write, "oflag=sync")
    daemon.cli("inject", "d", "--hang", "-T", "write", "--name", "stuck")
    stuck = subprocess.Popen([*write, "oflag=direct"], stderr=subprocess.DEVNULL)
    eventually(lambda: daemon.disk()["attachments"][0]["in_flight"] > 0)
    daemon.cli("detach", "d", "--fail-held")
    assert stuck.wait() == 1
    assert not os.path.ismount(tmp_path) and not remains()


def test_the_end_of_run_leaves_the_device_of_another_daemon_alone(serve, attach):
    """The command of `run` detaches its own device, and another daemon then gets the same node. At its end, `run` must
    leave that device alone.
    """
    daemon = serve("-d", "other=ram,size=8M")
    script = '"$0" detach "$DASHPOT_DEV" && DASHPOT_API=$1 "$0" attach other --with loop'
    words = ["run", "--attach", "-d", "d=ram,size=8M", "--", "sh", "-c", script, BINARY, f"unix:{daemon.api}"]
    done = run(BINARY, *words)
    assert done.stdout.startswith("/dev/loop") and "detach --stale" not in done.stderr, done.stderr
    assert sysfs(done.stdout.strip(), "size") == str((8 << 20) // 512)
    daemon.cli("detach", "other")


def test_daemons_with_the_same_relative_address_do_not_take_each_other_for_dead(serve, attach):
    daemons = [serve("-d", f"{name}=ram,size=8M", "--api", "unix:api.sock") for name in "ab"]
    nodes = []
    for daemon, disk in zip(daemons, "ab"):
        words = [BINARY, "attach", disk, "--with", "loop", "--api", "unix:api.sock"]
        done = subprocess.run(words, cwd=daemon.directory, stdout=subprocess.PIPE, text=True, check=True)
        nodes.append(done.stdout.strip())
    assert len(set(nodes)) == 2
    words = [BINARY, "detach", "all", "--api", "unix:api.sock"]
    subprocess.run(words, cwd=daemons[1].directory, check=True)
    assert daemons[0].disk("a")["attachments"] and not daemons[1].disk("b")["attachments"]
    daemons[0].cli("detach", "a")


@pytest.mark.parametrize("name", ["lock", "record", "changes", "record.new", "lock.new"])
def test_a_disk_may_have_any_name(serve, attach, name):
    """A disk may have any name, even that of a file that `attach` keeps beside the file of the disk."""
    daemon = serve("-d", f"{name}=ram,size=8M")
    node = attach(daemon, name)
    run("dd", "if=/dev/zero", f"of={node}", "bs=4k", "count=1", "oflag=direct")
    daemon.cli("detach", name)
    assert not remains()
    node = attach(daemon, name)
    daemon.abandon()
    assert run(BINARY, "detach", "--stale").stdout == f"{node}\n"
    assert not remains()


def test_a_daemon_that_ends_names_the_devices_that_it_leaves(serve, attach):
    daemon = serve("-d", "d=ram,size=8M")
    node = attach(daemon)
    daemon.stop()
    assert f"{node} (disk 'd') is still attached: its I/O fails from now on" in daemon.output()
    assert run(BINARY, "detach", "--stale").stdout == f"{node}\n"
