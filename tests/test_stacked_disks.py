"""An I/O that happens on two disks, one over the other, counts once in a sum of all disks."""

import json
import mmap
import os

import pytest
from kernel import loop_in_memory, loop_over, takes_a_kernel
from test_kernel_reports import Watching, dashpot, nothing_left  # noqa: F401 (a fixture)

pytestmark = takes_a_kernel

# No file system writes parts of its blocks.
BLOCKS, LENGTH = 16, 17 * 4096 + 512
CONDITIONS = f"[op=write][size={LENGTH}][offset<16M]"


@pytest.fixture
def pair():
    """A loop device over another one."""
    with loop_in_memory(megabytes=16) as lower, loop_over(lower.path, "--direct-io=on") as upper:
        yield upper, lower


def write(disk):
    block = mmap.mmap(-1, LENGTH)
    file = os.open(disk.path, os.O_WRONLY | os.O_DIRECT)
    try:
        for at in range(BLOCKS):
            os.pwrite(file, block, at * LENGTH)
    finally:
        os.close(file)


def left_out(report):
    return {one["device"]: one["over"] for one in report["not_in_sums"]}


def test_an_io_on_stacked_disks_counts_once_live_and_recorded(pair, directory, nothing_left):
    upper, lower = pair
    recording, statistic = directory / "recording", f"disk.ops{CONDITIONS}"
    live = Watching.quiet("stat", statistic, "-k", "--json")
    recorder = Watching.quiet("record", "-k", "-o", recording)
    write(upper)
    reports = {"live": json.loads(live.end())}
    recorder.end()
    assert f"not in the sums: {upper.name} (over {lower.name})" in live.errors
    assert f"{upper.name} (over {lower.name})" in recorder.errors

    def recorded(*words):
        return json.loads(dashpot("stat", *words, "--in", recording, "--json").stdout)

    reports["recorded"] = recorded(statistic)
    for name, report in reports.items():
        assert (report["count"], left_out(report)[upper.name]) == (BLOCKS, [lower.name]), name
    each = recorded(f"{statistic}[device]")
    counts = {one["value"]: one["count"] for one in each["values"]}
    assert counts == {upper.name: BLOCKS, lower.name: BLOCKS}
    assert (each["count"], left_out(each)[upper.name]) == (BLOCKS, [lower.name])
    # A condition that only excludes devices names none.
    others = recorded(f"disk.ops{CONDITIONS}[device!=nonesuch]")
    assert (others["count"], left_out(others)[upper.name]) == (BLOCKS, [lower.name])
    # A disk that the user names is always counted.
    named = recorded(f"disk.ops{CONDITIONS}[device={upper.name}]")
    assert named["count"] == BLOCKS and "not_in_sums" not in named
    assert recorded(statistic, "-d", upper.name)["count"] == BLOCKS


def test_two_stacked_disks_are_refused_as_a_disk_and_its_partition_are(pair, directory, nothing_left):
    upper, lower = pair
    why = f"{upper.name} is over {lower.name}, so its I/O would be counted twice"
    both = ["-d", lower.name, "-d", upper.name]
    assert why in dashpot("quantize", *both, "--for", "1s", code=1).stderr
    dashpot("record", "-k", "--for", "100ms", "-o", directory / "recording")
    assert why in dashpot("quantize", "--in", directory / "recording", *both, code=1).stderr


def test_disks_over_several_levels_and_parts_are_refused_too(pair):
    middle, lower = pair
    with loop_over(middle.path) as upper:
        why = f"{upper.name} is over {lower.name}, so its I/O would be counted twice"
        both = ["-d", lower.name, "-d", upper.name]
        assert why in dashpot("quantize", *both, "--for", "1s", code=1).stderr


def test_a_sum_of_what_is_in_flight_leaves_out_the_upper_disk(pair, directory, nothing_left):
    upper, lower = pair
    page = directory / "quantize.html"
    dashpot("quantize", "--for", "100ms", "-k", "--html", page)
    assert f"not in the sums: {upper.name} (over {lower.name})" in page.read_text()
    for report in (["iolatency", "0.1", "1"], ["quantize", "--for", "100ms"]):
        seen = json.loads(dashpot(*report, "--by", "device", "-k", "--json").stdout)
        assert left_out(seen)[upper.name] == [lower.name], report
