"""docs/start/: the commands of each page work as they are, one block after the other."""

import os
import re
import subprocess

import pytest
from conftest import ROOT, requires
from kernel import loop_in_memory, takes_a_kernel
from test_readme import bash, typed

START = ROOT / "docs/start"


def commands(page):
    """All that a user of the page types."""
    return "\n".join(
        map(typed, re.findall(r"^```sh\n(.*?)^```$", (START / page).read_text(), re.DOTALL | re.MULTILINE))
    )


def test_tests_on_a_slow_disk(directory):
    said = bash(commands("database-tests.md").replace("/tmp/wal", f"{directory}/wal"), directory)
    assert (directory / "wal/log").stat().st_size == 8192, said


@takes_a_kernel
@requires("fio")
def test_slow_sometimes(directory):
    with loop_in_memory() as loop:
        load = subprocess.Popen(
            [
                "fio",
                "--thread",
                "--name=load",
                f"--filename={loop.path}",
                "--rw=randrw",
                "--bs=4k",
                "--iodepth=4",
                "--ioengine=libaio",
                "--direct=1",
                "--time_based",
                "--runtime=600",
                "--rate_iops=2000",
                f"--output={os.devnull}",
            ],
            cwd=directory,
        )
        try:
            typed_here = commands("slow-sometimes.md").replace("sudo ", "").replace("sda", os.path.basename(loop.path))
            said = bash(f"cd {directory}\n{typed_here}", directory)
        finally:
            load.kill()
            load.wait()
    assert "fio" in said and "nothing was lost" in said and "slow time" in said
    assert "<svg" in (directory / "slow.svg").read_text()


@pytest.mark.parametrize(
    ("page", "tells"),
    [
        ("storage-development.md", ["power cut", "achieved"]),
        ("throttles.md", ["zfs_delay_scale: 1ms", "stime", "volumes"]),
    ],
)
def test_pages_of_served_disks(page, tells, directory):
    typed_here = commands(page).replace("--chart .", f"--chart {directory}")
    said = bash(f"cd {ROOT}\n{typed_here}", directory)
    assert all(word in said for word in tells), said


def test_every_page_is_in_the_list():
    listed = re.findall(r"^\| .*\[.*?\]\((.*?)\)", (START / "README.md").read_text(), re.MULTILINE)
    assert set(listed) == {page.name for page in START.glob("*.md")} - {"README.md"}
