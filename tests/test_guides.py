"""Runs the script of each guide as it is in the page, and looks for what the page promises."""

import glob
import os
import re
import shutil
import subprocess

import pytest

from attached import can_attach
from conftest import BINARY, HANG_LIMIT, ROOT, requires

GUIDES = ROOT / "docs/guide"
has_postgresql = pytest.mark.skipif(
    not glob.glob("/usr/lib/postgresql/*/bin/initdb"), reason="postgresql is missing: apt install postgresql"
)
as_root = [*can_attach, requires("unshare")]


def needs(*marks):
    """Skips a test, by name, where one of these is missing."""
    def mark_all(test):
        for mark in marks:
            test = mark(test)
        return test
    return mark_all


def run_script(page, directory):
    """The output of a page's script. It goes to a file, so that a process that is left does not keep a pipe open."""
    text = (GUIDES / page).read_text()
    script = next(block for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) if block.startswith("#!/bin/bash"))
    (directory / "script.sh").write_text(script)
    (directory / "bin").mkdir()
    (directory / "bin/dashpot").symlink_to(shutil.which(BINARY))
    directory.chmod(0o755)
    words = ["bash", str(directory / "script.sh")]
    if os.geteuid() == 0:
        words = ["unshare", "--mount", *words]
    environment = {**os.environ, "PATH": f"{directory}/bin:{os.environ['PATH']}", "TMPDIR": str(directory)}
    with open(directory / "said", "w+") as said:
        code = subprocess.run(
            words, stdin=subprocess.DEVNULL, stdout=said, stderr=said, timeout=HANG_LIMIT, env=environment
        ).returncode
        said.seek(0)
        text = said.read()
    assert code == 0, text
    return text


def test_every_guide_is_run_here():
    pages = {page.name for page in GUIDES.glob("*.md")} - {"README.md"}
    here = set(re.findall(r'run_script\("(.*?)"', (ROOT / "tests/test_guides.py").read_text()))
    assert pages == here - {"(.*?)"}


@needs(*as_root, requires("fio"), requires("mkfs.xfs"))
def test_file_systems(directory):
    text = run_script("file-systems.md", directory)
    assert text.count("-D 10ms -T flush") >= 4 and "No modify flag set" in text, text


@needs(*as_root, has_postgresql)
def test_postgresql(directory):
    text = run_script("postgresql.md", directory)
    before, after = (float(tps) for tps in re.findall(r"^tps = ([\d.]+)", text, re.MULTILINE))
    assert after < before, text
    # No transaction is faster than its flush.
    latencies = [float(ms) for ms in re.findall(r"^latency average = ([\d.]+) ms", text, re.MULTILINE)]
    assert latencies[1] >= 20, text
    assert "flush       0" in text and "HOLD" in text, text


@needs(requires("qemu-img"), requires("qemu-io"))
def test_qemu(directory):
    text = run_script("qemu.md", directory)
    assert "read 65536/65536 bytes" in text and "most 16" in text, text
    seconds = float(re.search(r"Run completed in ([\d.]+) seconds", text)[1])
    assert seconds >= 0.4, "64 I/Os of 100 ms, 16 at a time"


@needs(*as_root, requires("fio"), requires("jq"))
def test_depth(directory):
    text = run_script("depth.md", directory)
    beyond, within = (float(ms) for ms in re.findall(r"^([\d.]+)$", text, re.MULTILINE)[:2])
    assert beyond >= 99 and within >= 50, text
    assert "most 128" in text, text
    first, second = (int(reads) for reads in re.findall(r"^(\d+) reads$", text, re.MULTILINE))
    assert 0 < first < 4096 and second == 0, text
