"""Attached devices beside those of other daemons: a command changes only what is its own, and says what it leaves."""

import os
import re
import subprocess

import pytest

from attached import attach, can_attach, remains, sysfs  # noqa: F401 (a fixture)
from conftest import BINARY, requires, run

pytestmark = can_attach


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
    """`attach` keeps files with these names beside the file of the disk."""
    daemon = serve("-d", f"{name}=ram,size=8M")
    node = attach(daemon, name)
    run("dd", "if=/dev/zero", f"of={node}", "bs=4k", "count=1", "oflag=direct")
    daemon.cli("detach", name)
    assert not remains()
    node = attach(daemon, name)
    daemon.abandon()
    assert run(BINARY, "detach", "--stale").stdout == f"{node}\n"
    assert not remains()
