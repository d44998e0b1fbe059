"""Runs the scripts of docs/guide as they are in the pages, and checks the claims that the pages make about
them."""

import glob
import os
import re
import shutil
import subprocess

import pytest
from attached import attach, can_attach  # noqa: F401 (a fixture)
from conftest import BINARY, HANG_LIMIT, ROOT, requires
from containers import can_run_containers
from test_device import device  # noqa: F401 (a fixture)

GUIDES = ROOT / "docs/guide"
has_postgresql = pytest.mark.skipif(
    not glob.glob("/usr/lib/postgresql/*/bin/initdb"), reason="postgresql is missing: make deps"
)


def needs(*marks):
    """Puts all these marks on a test: each mark skips the test if something that the test needs is missing."""

    def mark_all(test):
        for mark in marks:
            test = mark(test)
        return test

    return mark_all


as_root = needs(*can_attach, requires("unshare"))


def script_of(page):
    (script,) = [
        it for it in re.findall(r"```sh\n(.*?)```", (GUIDES / page).read_text(), re.DOTALL) if it.startswith("#!")
    ]
    return script


def run_script(page, directory, *words, under=("unshare", "--mount")):
    """Runs the script of a page with this program on its PATH, and returns what it prints. The output goes to
    a file, so that a process that the script leaves behind does not keep a pipe open."""
    (directory / "bin").mkdir()
    # A script may run dashpot as another user, who may not be able to reach the build directory.
    shutil.copy(BINARY, directory / "bin/dashpot")
    (directory / "script").write_text(script_of(page))
    directory.chmod(directory.stat().st_mode | 0o055)
    command = ["bash", directory / "script", *words]
    if os.geteuid() == 0:
        command = [*under, *command]
    environment = {**os.environ, "PATH": f"{directory}/bin:{os.environ['PATH']}", "TMPDIR": str(directory)}
    with open(directory / "said", "w+") as said:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            timeout=HANG_LIMIT,
            cwd=directory,
            env=environment,
        )
        said.seek(0)
        text = said.read()
    assert done.returncode == 0, text
    return text


def least(line):
    """fio's smallest latency, in milliseconds."""
    unit, least = re.search(r"lat \((\w+)\): min=([\d.k]+),", line).groups()
    return float(least.replace("k", "e3")) * {"nsec": 1e-6, "usec": 1e-3, "msec": 1}[unit]


def test_every_guide_is_run_and_listed():
    pages = {page.name for page in GUIDES.glob("*.md")} - {"README.md"}
    assert pages == set(re.findall(r'run_script\("(.*?)"', (ROOT / "tests/test_guides.py").read_text()))
    assert pages == set(re.findall(r"^\| \[.*?\]\((.*?)\)", (GUIDES / "README.md").read_text(), re.MULTILINE))


@as_root
@requires("fio")
@requires("iostat")
@requires("blockdev")
@pytest.mark.skipif(os.path.lexists("/dev/mapper/delayed"), reason="there is a device 'delayed' already")
def test_a_slow_device(attach, device, directory):
    said = run_script("slow-device.md", directory, device())
    by_itself, reads, writes = [least(line) for line in re.findall(r"^ +lat .*$", said, re.MULTILINE)]
    assert by_itself < 50 <= reads and writes >= 100
    rows = [line.split() for line in said.splitlines() if re.match(r"loop\d+ ", line)]
    # The table has one row for the disk alone, then two rows for reads and two rows for writes, in the order of
    # iostat.
    assert len(rows) == 5, said
    for pair in (rows[1:3], rows[3:5]):
        upper, lower = sorted(pair, key=lambda row: -float(row[4]))
        arrived = float(lower[1]) + float(lower[3])
        assert abs(float(upper[1]) - arrived) <= float(upper[1]) / 10, said
        assert float(upper[6]) > 64 > float(lower[6]), said
    assert "State:             SUSPENDED" in said
    assert not os.path.lexists("/dev/mapper/delayed")


@as_root
@requires("fio")
@requires("mkfs.xfs")
def test_file_systems(attach, directory):
    said = run_script("file-systems.md", directory)
    assert said.count("-D 10ms -T flush") >= 2 and "No modify flag set" in said, said


@as_root
@has_postgresql
def test_postgresql(attach, directory):
    said = run_script("postgresql.md", directory)
    before, after = (float(tps) for tps in re.findall(r"^tps = ([\d.]+)", said, re.MULTILINE))
    assert after < before, said
    # No transaction can be faster than its flush.
    latencies = [float(ms) for ms in re.findall(r"^latency average = ([\d.]+) ms", said, re.MULTILINE)]
    assert latencies[1] >= 20, said
    assert "flush       0" in said and "HOLD" in said, said


@has_postgresql
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_any_program(directory):
    user = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups", "--bounding-set=-all"]
    directory.chmod(0o777)
    said = run_script("any-program.md", directory, under=user)
    # No transaction is faster than its sync.
    latencies = [float(ms) for ms in re.findall(r"^latency average = ([\d.]+) ms", said, re.MULTILINE)]
    assert latencies[1] >= 20, said
    matched, held = re.search(r"held (\d+) of (\d+) that matched", said).groups()
    assert matched == held != "0", said
    assert "PANIC" in said and "recovered" in said.splitlines(), said


@needs(*can_run_containers, has_postgresql, requires("jq"))
def test_container(directory):
    said = run_script("container.md", directory, under=())
    assert "--- postgres, as it is" in said, said
    latencies = [float(ms) for ms in re.findall(r"^latency average = ([\d.]+) ms", said, re.MULTILINE)]
    assert latencies[1] >= 20, said
    matched, held = re.search(r"held (\d+) of (\d+) that matched", said).groups()
    assert matched == held != "0", said
    assert "not held" not in said and said.splitlines()[-1] == "--- the status of the container: 7", said


@requires("go")
def test_static_go(directory):
    said = run_script("static-go.md", directory, under=())
    slow = re.findall(r"^800 entries in .*: (\d+) syncs, least ([\d.]+)ms", said, re.MULTILINE)[-1]
    assert float(slow[1]) >= 20, said
    assert f"held {slow[0]} of {slow[0]} that matched" in said, said
    assert said.splitlines()[-2].endswith("cannot sync the log: input/output error"), said
    assert said.splitlines()[-1].endswith("-e EIO -T sync --first 1: matched 1, failed 1"), said


def test_syncs_per_transaction(directory):
    said = run_script("syncs-per-transaction.md", directory, under=())
    counts = [int(count) for count in re.findall(r"^\w+ +db\.sync\.count .*  (\d+)$", said, re.MULTILINE)]
    journal, log, unsynced, _ = counts
    assert journal >= 3 * (log - unsynced) and 100 <= log - unsynced < 110, said
    assert said.splitlines()[-1] == "status 3" and "FAIL  db.sync.count >= 100" in said, said


def test_zinject(directory):
    said = run_script("zinject.md", directory, under=())
    means = [int(mean) for mean in re.findall(r"^(\d+) +\d+ +\d+ +\d+ *$", said, re.MULTILINE)]
    by_itself, one, sixteen = means
    assert one > 10_000 <= sixteen and by_itself < one, said
    # A simulation prints the same figures each time.
    static, dynamic = re.findall(r"^c1t1d0 +([\d.]+) .*\nc1t2d0 +([\d.]+) ", said, re.MULTILINE)
    ratio = lambda tps: float(tps[0]) / float(tps[1])  # noqa: E731
    assert ratio(static) < 1.2 and ratio(dynamic) == pytest.approx(2, rel=0.1), said


@requires("qemu-img")
@requires("qemu-io")
def test_qemu(directory):
    said = run_script("qemu.md", directory)
    assert "read 65536/65536 bytes" in said and "most 16" in said, said
    seconds = float(re.search(r"Run completed in ([\d.]+) seconds", said)[1])
    assert seconds >= 0.4, "64 I/Os of 100 ms, 16 at a time"


@as_root
@requires("fio")
@requires("jq")
def test_depth(attach, directory):
    said = run_script("depth.md", directory)
    beyond, within = (float(ms) for ms in re.findall(r"^([\d.]+)$", said, re.MULTILINE)[:2])
    assert beyond >= 99 and within >= 50, said
    assert "most 128" in said, said
    first, second = (int(reads) for reads in re.findall(r"^(\d+) reads$", said, re.MULTILINE))
    # On a host that is short of memory, the kernel may forget a few pages between the two passes.
    assert second < first < 4096, said
