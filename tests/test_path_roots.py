"""Path disks: programs that have changed their root, so that an absolute link leads them to other files than it leads
dashpot to."""

import os
import pathlib
import random

import pytest
from test_path import PYTHON, counted, places  # noqa: F401

HERE = pathlib.Path(__file__).resolve().parent
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the root of a process")

# Makes a directory its root, and then opens a file, whose name is looked up below that root.
CHANGED = """
import os, sys
os.chroot(sys.argv[1])
os.chdir("/")
os.open(sys.argv[2], os.O_RDONLY)
"""


@pytest.mark.parametrize(("name", "matched"), [("/out/in", 1), ("/in/out", 0), ("out/in", 1), ("/../../out/in", 1)])
def test_an_absolute_link_leads_to_the_root_of_the_program(places, tmp_path, name, matched):  # noqa: F811
    wal, other = places
    for place, link in ((wal, other / "in"), (other, wal / "out")):
        (place / "f").touch()
        link.symlink_to(f"/{place.name}/f")
    (tmp_path / "in").symlink_to("wal")
    (tmp_path / "out").symlink_to("other")
    _, rule = counted(wal, tmp_path, PYTHON, "-c", CHANGED, tmp_path, name, types="open")
    assert rule["matched"] == matched


@pytest.mark.parametrize("_", range(4))
def test_random_names_are_followed_as_the_program_follows_them(tmp_path, _):
    seed = random.randrange(1 << 32)
    inside = tmp_path / "in"
    inside.mkdir()
    words = [PYTHON, HERE / "path_names.py", seed, tmp_path, 300]
    done, rule = counted(inside, tmp_path, *words, types="open")
    opened_inside, opened_outside = map(int, done.stdout.split())
    assert opened_inside > 20 and opened_outside > 20, f"seed {seed}"
    assert rule["matched"] == opened_inside, f"seed {seed}"
