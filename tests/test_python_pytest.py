"""Tests the pytest plugin in separate runs of pytest: fixtures, the marker, reports, and that nothing is left
behind."""

import glob
import os
import re
import signal
import subprocess
import sys
from xml.etree import ElementTree

import pytest
from conftest import BINARY, HANG_LIMIT, ROOT, eventually, run

pytest.importorskip("nbd", reason="python3-libnbd is missing: make deps")
has_xdist = pytest.mark.skipif(
    subprocess.run([sys.executable, "-c", "import xdist"], capture_output=True).returncode != 0,
    reason="python3-pytest-xdist is missing: make deps",
)
PRELUDE = """
import os, sys, time
import nbd, pytest

def client(disk):
    handle = nbd.NBD()
    handle.connect_uri(disk.uri)
    return handle
"""


class Suite:
    """A directory with tests, and runs of pytest on them."""

    def __init__(self, directory):
        self.directory = directory
        (directory / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\n")
        # The directory for the daemons' private directories.
        (directory / "tmp").mkdir()
        plugin = {"PYTHONPATH": str(ROOT / "python/src"), "PYTEST_PLUGINS": "dashpot_pytest"}
        self.env = {**plugin, "DASHPOT": BINARY, "TMPDIR": str(directory / "tmp")}

    def write(self, source, disks=()):
        (self.directory / "test_it.py").write_text(PRELUDE + source)
        with open(self.directory / "pytest.ini", "a") as ini:
            ini.write("".join(["dashpot_disks =\n", *(f"    {disk}\n" for disk in disks)]) if disks else "")

    def run(self, *options, code=0):
        # With one of these variables, pytest repeats each whole message in its summary.
        pytest = ("env", "-u", "CI", "-u", "BUILD_NUMBER", sys.executable, "-m", "pytest", "-q")
        return run(*pytest, self.directory, *options, code=code, env=self.env).stdout

    def left(self):
        """The directories of daemons, and the daemons that have their sockets there."""
        place = self.directory / "tmp"
        return glob.glob(f"{place}/dashpot-*"), found(place, "dashpot")


def found(place, name):
    """The processes of a program that have this directory for temporary files."""
    pids = []
    for process in glob.glob("/proc/[0-9]*"):
        try:
            environ = open(f"{process}/environ", "rb").read()
            if open(f"{process}/comm").read().strip() == name and f"TMPDIR={place}\0".encode() in environ:
                pids.append(int(process.split("/")[2]))
        except OSError:
            pass  # The process has ended, or belongs to another user.
    return pids


@pytest.fixture
def suite(directory):
    return Suite(directory)


def test_the_fixtures_and_the_marker(suite):
    suite.write(
        """
def test_a_disk(dashpot, dashpot_disk):
    assert list(dashpot) == ["wal", "data"] and dashpot_disk.name == "wal"
    dashpot_disk.inject("-D 1m")

def test_is_reset(dashpot):
    assert dashpot.rules() == []

@pytest.mark.slow_disk("-D 20ms -T flush")
def test_is_slow(dashpot_disk):
    began = time.monotonic()
    client(dashpot_disk).flush()
    assert time.monotonic() - began >= 0.02

@pytest.mark.slow_disk("-D 5ms -T read", disk="data")
@pytest.mark.slow_disk("-D 1ms -T write", allow_idle=True)
class TestMany:
    def test_rules(self, dashpot):
        client(dashpot["data"]).pread(512, 0)
        assert [rule["disk"] for rule in dashpot.rules()] == ["data", "wal"]

@pytest.mark.slow_disk("-D 1ms", allow_idle=True)
def test_needs_no_fixture():
    pass
""",
        disks=["wal=ram,size=1M", "data=ram,size=1M"],
    )
    assert "5 passed" in suite.run()
    assert suite.left() == ([], [])


def test_a_teardown_leaves_what_wider_fixtures_did(suite):
    suite.write("""
@pytest.fixture(scope="module", autouse=True)
def wide(dashpot_disk_module):
    dashpot_disk_module.inject("-D 1ms -T write")

@pytest.fixture(scope="session", autouse=True)
def widest(dashpot_disk_session):
    dashpot_disk_session.inject("-D 1ms -T trim")

def test_leaves_a_rule_and_a_suspension(dashpot_disk):
    dashpot_disk.inject("-D 1ms -T read")
    dashpot_disk.suspend()

@pytest.mark.slow_disk("-D 1ms -T flush")
def test_marker(dashpot, dashpot_disk):
    client(dashpot_disk).flush()
    assert [rule["rule"].split()[-1] for rule in dashpot.rules()] == ["trim", "write", "flush"]

def test_wide_rules_are_there(dashpot):
    assert [rule["rule"].split()[-1] for rule in dashpot.rules()] == ["trim", "write"]
    assert not dashpot["db"].state()["suspended"]
""")
    (suite.directory / "test_later.py").write_text("""
def test_the_module_is_over(dashpot):
    assert [rule["rule"].split()[-1] for rule in dashpot.rules()] == ["trim"]
""")
    assert "4 passed" in suite.run()


def test_a_rule_that_injects_nothing_fails_the_test(suite):
    suite.write("""
@pytest.mark.slow_disk("-D 20ms -T flush")
def test_idle(dashpot_disk):
    client(dashpot_disk).pread(512, 0)

def test_idle_in_a_block(dashpot_disk):
    with dashpot_disk.rule("-D 20ms -T flush"):
        pass

@pytest.mark.slow_disk("-D 20")
def test_never_runs(dashpot_disk):
    open("ran", "w")

@pytest.mark.slow_disk("-D 20ms -T flush")
def test_fails_by_itself(dashpot_disk):
    assert 1 == 2
""")
    printed = suite.run(code=1)
    assert "4 failed" in printed and "error" not in printed.splitlines()[-1]
    assert printed.count("NothingInjected: rule '-D 20ms -T flush' of disk 'db' injected nothing") == 2
    assert "fsync=off" in printed and "did you mean 20ms?" in printed and "assert 1 == 2" in printed
    assert not (suite.directory / "ran").exists()


def test_a_failing_tests_report_shows_rules_and_the_oldest_ios(suite):
    suite.write("""
import threading

def test_hangs(dashpot_disk):
    handle = client(dashpot_disk)
    with dashpot_disk.hang("-T read"):
        threading.Thread(target=lambda: handle.pread(512, 4096), daemon=True).start()
        while not dashpot_disk.in_flight():
            pass
        pytest.fail("I am stuck")

def test_leaves_a_rule(dashpot_disk):
    dashpot_disk.inject("-D 1ms", name="left")
    pytest.fail("I am not")
""")
    printed = suite.run(code=1)
    sections = re.findall(r"-+ dashpot -+\n(.*?)(?=\n[_=]{3})", printed, re.DOTALL)
    assert len(sections) == 2, printed
    assert (
        "--hang -T read: matched 1" in sections[0]
        and "read 512 at 4096" in sections[0]
        and ", hung, rule" in sections[0]
    )
    assert "'left' db -D 1ms" in sections[1] and sections[1].endswith("oldest I/Os in flight:\n  none")


def test_junit_has_what_rules_injected(suite):
    suite.write("""
@pytest.mark.slow_disk("-D 20ms -T flush")
def test_slow(dashpot_disk):
    client(dashpot_disk).flush()
""")
    suite.run("--junit-xml", suite.directory / "junit.xml")
    properties = ElementTree.parse(suite.directory / "junit.xml").iter("property")
    by_name = {one.get("name"): int(one.get("value")) for one in properties}
    assert by_name["dashpot db -D 20ms -T flush injected"] == 1
    assert by_name["dashpot db -D 20ms -T flush achieved_p50_ns"] >= 20_000_000


def test_a_daemon_that_runs_already_is_used(suite, daemon):
    suite.write("""
def test_theirs(dashpot, dashpot_disk):
    assert list(dashpot) == ["d"]
""")
    suite.env["DASHPOT_API"] = f"unix:{daemon.api}"
    assert "1 passed" in suite.run()
    assert daemon.process.poll() is None


def test_the_plugin_imports_nothing_until_it_is_used(suite):
    suite.write("""
def test_nothing():
    assert not [name for name in sys.modules if name == "dashpot" or name.startswith("dashpot.")]
""")
    assert "1 passed" in suite.run()


PARALLEL = """
@pytest.mark.parametrize("number", range(24))
@pytest.mark.slow_disk("-D 20ms -T flush")
def test_slow(dashpot, dashpot_disk, number):
    assert len(dashpot.rules()) == 1
    client(dashpot_disk).flush()
    with open(f"{os.environ['TMPDIR']}/pids", "a") as pids:
        print(os.environ["PYTEST_XDIST_WORKER"], dashpot.pid, file=pids)
"""


@has_xdist
def test_eight_workers_have_eight_daemons(suite):
    suite.write(PARALLEL)
    assert "24 passed" in suite.run("-n", "8")
    pairs = {tuple(line.split()) for line in (suite.directory / "tmp/pids").read_text().splitlines()}
    workers, daemons = map(set, zip(*pairs))
    assert len(pairs) == len(workers) == len(daemons) == 8
    assert suite.left() == ([], [])


STUCK = """
@pytest.mark.slow_disk("--hang -T read")
def test_stuck(dashpot_disk):
    open(f"{os.environ['TMPDIR']}/stuck-{os.getpid()}", "w").close()
    client(dashpot_disk).pread(512, 0)
"""


@pytest.mark.parametrize(
    "options, many", [([], 1), pytest.param(["-n", "2"], 2, marks=has_xdist)], ids=["alone", "xdist"]
)
def test_a_killed_pytest_leaves_nothing(suite, options, many):
    suite.write(STUCK + STUCK.replace("test_stuck", "test_stuck_too"))
    pytest_run = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", suite.directory, *options],
        env={**os.environ, **suite.env},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        stuck = lambda: glob.glob(f"{suite.directory}/tmp/stuck-*")  # noqa: E731
        eventually(lambda: len(stuck()) == many, "a test that hangs")
        directories, daemons = suite.left()
        assert len(directories) == len(daemons) == many
    finally:
        # Kill the workers, too: a worker in a hanging system call notices the end of pytest only much later.
        for pid in found(suite.directory / "tmp", os.path.basename(sys.executable)):
            os.kill(pid, signal.SIGKILL)
        pytest_run.wait(HANG_LIMIT)
    eventually(lambda: suite.left() == ([], []), "the end of the daemons")
