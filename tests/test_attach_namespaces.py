"""Devices that were attached in a mount namespace that has ended, as the scripts of the guides make one."""

import pathlib

import pytest
from attached import attach, backing, can_attach  # noqa: F401 (a fixture)
from conftest import BINARY, requires, run

pytestmark = [*can_attach, requires("unshare")]


@pytest.fixture
def orphan(daemon, attach):  # noqa: F811
    """The loop device of disk `d`. The namespace in which it was attached has ended."""
    command = [BINARY, "attach", "d", "--with", "loop"]
    made = run("unshare", "--mount", *command, env={"DASHPOT_API": f"unix:{daemon.api}"})
    node = pathlib.Path("/sys/block") / pathlib.Path(made.stdout.strip()).name
    assert backing(node) and "dashpot-attached" not in backing(node), "the kernel no longer shows the path"
    return node


def test_it_is_detached_by_name_and_attached_again(daemon, attach, orphan):  # noqa: F811
    assert f"it is /dev/{orphan.name} already" in daemon.cli("attach", "d", "--with", "loop", code=1).stderr
    daemon.cli("detach", "d")
    assert backing(orphan) != "/"
    attach(daemon)
    daemon.cli("detach", "all")


def test_after_a_kill_it_is_stale(daemon, orphan):
    daemon.abandon()
    assert run(BINARY, "detach", "--stale").stdout == f"/dev/{orphan.name}\n"
    assert backing(orphan) != "/"


def test_the_daemon_names_it_at_its_end(daemon, orphan):
    said = daemon.cli("stop").stderr
    assert f"/dev/{orphan.name} (disk 'd') is still attached" in said
    run(BINARY, "detach", "--stale")
    assert backing(orphan) != "/"
