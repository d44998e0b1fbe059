"""`iostat` on the kernel's disks: what the kernel's counters cannot tell."""

import json
import pathlib
import subprocess

from kernel import dd, takes_a_kernel
from test_kernel_reports import dashpot, loop  # noqa: F401 (a fixture)

pytestmark = takes_a_kernel


def test_a_disk_that_the_kernel_does_not_count_has_no_figures(loop):  # noqa: F811
    """zram has the kernel's counters off. Zero would say that nothing happened."""
    switch = pathlib.Path(f"/sys/block/{loop.name}/queue/iostats")
    switch.write_text("0")
    try:
        dd(f"if={loop.path}", "of=/dev/null", "bs=4k", "count=10", "iflag=direct")
        done = dashpot("iostat", "-x", "-d", loop.name)
        (row,) = [line.split() for line in done.stdout.splitlines() if line.startswith(loop.name)]
        assert set(row[1:]) == {"-"}, row
        assert "does not count its I/Os: write 1 to /sys/dev/block/" in done.stderr
        (told,) = json.loads(dashpot("iostat", "-y", "--json", "-d", loop.name, "0.1", "1").stdout)
    finally:
        switch.write_text("1")
    assert told["busy_percent"] is told["mean_in_flight"] is told["in_flight"]["zios"] is None
    assert {value for kind in ("reads", "writes", "discards", "flushes") for value in told[kind].values()} == {None}


def test_no_interval_is_busier_than_it_is_long(loop):  # noqa: F811
    """The kernel counts busy time in ticks, which may be longer than an interval."""
    reader = subprocess.Popen(
        ["sh", "-c", f"while dd if={loop.path} of=/dev/null bs=4k iflag=direct status=none; do :; done"]
    )
    try:
        lines = dashpot("iostat", "-y", "--json", "-d", loop.name, "10ms", "40").stdout.splitlines()
    finally:
        reader.kill()
        reader.wait()
    told = [json.loads(line)[0]["busy_percent"] for line in lines]
    assert any(percent > 0 for percent in told) and max(told) <= 100


def test_the_first_report_says_that_it_is_of_the_past(loop):  # noqa: F811
    past, now = dashpot("iostat", "-d", loop.name, "0.1", "2").stdout.split("\n\n")[:2]
    assert "Since the disks' start; -y leaves this report out." in past and "Since" not in now
    refused = dashpot("iostat", "-y", "-d", loop.name, code=2).stderr
    assert "-y leaves no report without an interval" in refused
