"""Checks that the tests' own mounts do not appear on the machine."""

import os
import pathlib
import sys

import pytest
from conftest import requires, run
from kernel import takes_a_kernel

TESTS = pathlib.Path(__file__).parent
BARE = "umount -l /sys/kernel/tracing; umount -l /sys/kernel/debug/tracing 2>/dev/null; "


@takes_a_kernel
@requires("unshare")
def test_tracefs_is_mounted_for_the_tests_and_for_nobody_else():
    inside = f"{sys.executable} {TESTS}/tracefs.py ls /sys/kernel/tracing/events/block"
    script = f"{BARE} {inside} && ls /sys/kernel/tracing && findmnt -o PROPAGATION -n /"
    seen = run("unshare", "-m", "--propagation", "shared", "sh", "-c", script).stdout.splitlines()
    assert "block_rq_issue" in seen and seen[-1] == "shared"
    assert "trace" not in seen, "the namespace around it has no tracefs"


@requires("setpriv")
@pytest.mark.skipif(os.geteuid() != 0, reason="takes root: run the tests as root")
def test_an_ordinary_user_is_told_what_is_missing_and_why(tmp_path):
    tmp_path.chmod(0o755)
    script = "import sys; sys.path.insert(0, sys.argv[1]); import tracefs; tracefs.mount(); print(tracefs.complaint)"
    bare = f'{BARE} exec "$@"'
    told = run(
        "unshare",
        "-m",
        "sh",
        "-c",
        bare,
        "sh",
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        sys.executable,
        "-B",
        "-c",
        script,
        TESTS,
    ).stdout
    assert told.strip() == "takes root: run the tests as root"
