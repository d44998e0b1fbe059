"""The scripts of docs/guide as they are in the pages, and the claims of the pages about them."""

import os
import re
import subprocess

import pytest

from attached import attach, can_attach  # noqa: F401 (a fixture)
from conftest import BINARY, HANG_LIMIT, ROOT, requires
from test_device import device  # noqa: F401 (a fixture)

pytestmark = can_attach


def script_of(page):
    text = (ROOT / "docs/guide" / page).read_text()
    return re.findall(r"```sh\n(.*?)```", text, re.DOTALL)[0]


def bash(script, directory, *words):
    """Runs a script with this program on its PATH, and returns what it prints."""
    (directory / "bin").mkdir()
    (directory / "bin/dashpot").symlink_to(BINARY)
    (directory / "script").write_text(script)
    done = subprocess.run(
        ["bash", directory / "script", *words], capture_output=True, text=True, timeout=HANG_LIMIT, cwd=directory,
        stdin=subprocess.DEVNULL, env={**os.environ, "PATH": f"{directory}/bin:{os.environ['PATH']}"},
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def least(line):
    """fio's smallest latency, in milliseconds."""
    unit, least = re.search(r"lat \((\w+)\): min=([\d.k]+),", line).groups()
    return float(least.replace("k", "e3")) * {"nsec": 1e-6, "usec": 1e-3, "msec": 1}[unit]


@requires("fio")
@requires("iostat")
@requires("blockdev")
@pytest.mark.skipif(os.path.lexists("/dev/mapper/delayed"), reason="there is a device 'delayed' already")
def test_a_slow_device(attach, device, directory):
    said = bash(script_of("slow-device.md"), directory, device())
    by_itself, reads, writes = [least(line) for line in re.findall(r"^ +lat .*$", said, re.MULTILINE)]
    assert by_itself < 50 <= reads and writes >= 100
    rows = [line.split() for line in said.splitlines() if re.match(r"loop\d+ ", line)]
    # One row for the disk alone; then two rows for reads and two for writes, in the order of iostat.
    assert len(rows) == 5, said
    for pair in (rows[1:3], rows[3:5]):
        upper, lower = sorted(pair, key=lambda row: -float(row[4]))
        arrived = float(lower[1]) + float(lower[3])
        assert abs(float(upper[1]) - arrived) <= float(upper[1]) / 10, said
        assert float(upper[6]) > 64 > float(lower[6]), said
    assert "State:             SUSPENDED" in said
    assert not os.path.lexists("/dev/mapper/delayed")
