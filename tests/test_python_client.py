"""The Python package `dashpot`: each verb against the real daemon, with real NBD clients."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import threading

import pytest
from conftest import BINARY, HANG_LIMIT, ROOT, eventually, requires, run
from test_generated_clients import TOOLS

nbd = pytest.importorskip("nbd", reason="python3-libnbd is missing: make deps")

MYPY = TOOLS / "venv/bin/mypy"
PACKAGE = ROOT / "python/src"
sys.path.insert(0, str(PACKAGE))
os.environ["DASHPOT"] = BINARY

import dashpot  # noqa: E402 (it is found only now)

MS = 1_000_000


@pytest.fixture(scope="module")
def lab():
    with dashpot.run("db=ram,size=64M", "log=lossy:ram,size=1M") as daemon:
        yield daemon


@pytest.fixture
def d(lab):
    yield lab
    lab.reset()


def client(disk):
    handle = nbd.NBD()
    handle.connect_uri(disk.uri)
    return handle


def gone(pid):
    """Whether a process has ended, even if its parent has not yet asked for its status."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_a_scenario_runs_for_its_block(d, directory):
    with d["db"].scenario("brown-out", speed=100) as scenario:
        assert [rule["rule"] for rule in d.rules()] == ["-D 5ms~2ms --bandwidth 200M -T read,write,flush"]
        assert scenario.state()["state"] == "running"
    assert d.rules() == [] and scenario.state()["state"] == "stopped"
    file = directory / "s.toml"
    taken = 'format = 1\nabout = "x"\n[[step]]\nafter = "1ms"\ninject = "-D 1ms --name taken"\n'
    file.write_text(taken)
    d["db"].inject("-D 1ms", name="taken")
    with pytest.raises(dashpot.DashpotError, match="the name 'taken' is taken"), d["db"].scenario(file) as scenario:
        eventually(lambda: scenario.state()["state"] == "failed", "a step that fails")
    with pytest.raises(dashpot.DashpotError, match="no scenario 'brownout': did you mean 'brown-out'"):
        d["db"].scenario("brownout").__enter__()


def test_a_rule_is_armed_for_its_block(d):
    with d["db"].rule("-D 20ms -T flush", name="slow") as slow:
        client(d["db"]).flush()
        (armed,) = d.rules()
        assert (armed["id"], armed["name"], armed["rule"]) == (slow.id, "slow", "-D 20ms -T flush")
        assert slow.matched == slow.injected == slow.held == 1
    assert d.rules() == []
    assert slow.held == 1 and slow.requested.p50_ns == 20 * MS <= slow.achieved.p50_ns
    assert slow.lateness.count == 1


def test_nothing_injected_has_the_daemons_reason(d):
    with pytest.raises(dashpot.NothingInjected, match="nothing had matched: -T flush.*fsync=off") as raised:
        with d["db"].rule("-D 20ms -T flush"):
            client(d["db"]).pread(512, 0)
    assert raised.value.reason in str(raised.value)
    with pytest.raises(dashpot.NothingInjected, match="page cache"):
        with d["db"].rule("-D 20ms -T read"):
            pass
    with d["db"].rule("-D 20ms -T flush", allow_idle=True) as idle:
        pass
    assert idle.injected == 0 and idle.why_nothing
    with pytest.raises(ZeroDivisionError):
        with d["db"].rule("-D 20ms -T flush"):
            1 / 0
    assert "db -D 20ms -T flush: matched 0" in d.failures[-1]


def test_the_rule_that_decided_is_named(d):
    """The daemon's reason must name the rule that decided, and not only say 'no match'."""
    with d["db"].rule("-e EIO -T read"):
        with pytest.raises(dashpot.NothingInjected) as raised:
            with d["db"].rule("-D 1ms -T read"):
                with pytest.raises(nbd.Error):
                    client(d["db"]).pread(512, 0)
    assert "fsync" not in str(raised.value) and "rule" in raised.value.reason


def test_update_and_a_group(d):
    with d["db"].rule("-D 1ms -T read") as slow:
        client(d["db"]).pread(512, 0)
        slow.update("-D 30ms -T read")
        client(d["db"]).pread(512, 0)
        assert slow.held == 2 and slow.achieved.count == 1 and slow.achieved.p50_ns >= 30 * MS
    with d["db"].rule("-D 1ms:1 -D 2ms:1") as lanes:
        client(d["db"]).pread(512, 0)
    assert len(lanes.state()) == 2 and lanes.held == 1
    with pytest.raises(dashpot.DashpotError, match="is 2 rules"):
        lanes.achieved


def test_refusals_have_the_daemons_words(d):
    with pytest.raises(dashpot.DashpotError) as raised:
        d["db"].inject("-D 20")
    assert raised.value.status == 422 and "'20' has no unit: did you mean 20ms?" in str(raised.value)
    with pytest.raises(KeyError, match="no disk 'dc': there is db, log"):
        d["dc"]
    with pytest.raises(dashpot.DashpotError, match="no rule 'none': 'dashpot list' shows the rules") as raised:
        d.api.get("/v1/rules/none")
    assert (raised.value.status, raised.value.remedy) == (404, "'dashpot list' shows the rules")
    with pytest.raises(dashpot.DashpotError, match="is not armed"):
        d["db"].rule("-D 1ms").held


def test_inject_clear_and_reset(d):
    (first,) = d["db"].inject("-D 1ms", name="stays")
    assert [rule["id"] for rule in d.rules()] == [first]
    d["db"].clear()
    assert d.rules() == []
    d["db"].inject("-D 1m -T read")
    with d["db"].rule("-D 1ms -T write") as slow:
        client(d["db"]).pwrite(bytes(512), 0)
        d.reset()
        assert d.rules() == [] and slow.held == 1


def test_a_hang_is_released_at_the_end_of_its_block(d):
    handle = client(d["db"])
    reader = threading.Thread(target=lambda: handle.pread(512, 4096))
    with d["db"].hang("-T read --first 1") as hung:
        reader.start()
        (flying,) = eventually(d["db"].in_flight)
        assert (flying.op, flying.offset_bytes, flying.wait, flying.rule) == ("read", 4096, "hung", hung.id)
        assert "read 512 at 4096" in d.describe()
    reader.join(HANG_LIMIT)
    assert not reader.is_alive()


def test_suspend_and_resume(d):
    disk, handle = d["db"], client(d["db"])
    reader = threading.Thread(target=lambda: handle.pread(512, 0))
    with disk.suspend():
        reader.start()
        assert eventually(disk.in_flight)[0].wait == "suspended"
    reader.join(HANG_LIMIT)
    assert not reader.is_alive() and disk.state()["suspended"] is None
    disk.suspend(now=True)
    assert disk.resume() == 0
    disk.suspend(seconds=0.01)
    eventually(lambda: disk.state()["suspended"] is None)


def test_crash_loses_what_no_flush_covered(d):
    handle = client(d["log"])
    handle.pwrite(b"kept" * 128, 0)
    handle.flush()
    handle.pwrite(b"lost" * 128, 0)
    loss = d["log"].crash()
    assert loss["lost"]["bytes"] == 512 and bytes(handle.pread(4, 0)) == b"kept"


def test_figures_are_plain_numbers(lab):
    with dashpot.run("d=ram,size=1M") as d:
        handle = client(d["d"])
        for _ in range(12):
            handle.pread(512, 0)
        read = d["d"].latency()["read"]
        assert (read.completed, read.failed, read.bytes, read.total.count) == (12, 0, 12 * 512, 12)
        total = read.total
        assert 0 < total.min_ns <= total.p50_ns <= total.max_ns and total.min_ns <= total.mean_ns <= total.max_ns
        assert total.p90_ns is not None and total.p99_ns is None
        assert d["d"].latency()["flush"].total.max_ns is None


def test_check(d):
    client(d["db"]).flush()
    assert "db.flush.count > 0" in d.check("db.flush.count > 0", "db.flush.failed == 0")
    with pytest.raises(dashpot.CheckFailed, match=r"FAIL.*db.flush.max < 1ns"):
        d.check("db.flush.max < 1ns")
    with pytest.raises(dashpot.DashpotError, match="no disk, volume or rule 'dc'"):
        d.check("dc.p99 < 1s")


def test_checking_counts_only_the_block(d):
    client(d["db"]).flush()
    with d.checking("db.flush.count == 1", "db.flush.max < 1m"):
        client(d["db"]).flush()
    with pytest.raises(dashpot.CheckFailed, match="no flush seen"):
        with d.checking("db.flush.p50 < 1m"):
            pass
    with pytest.raises(dashpot.DashpotError, match="no metric 'p98'"):
        with d.checking("db.p98 < 1m"):
            pytest.fail("the block has begun")
    with pytest.raises(ZeroDivisionError):
        with d.checking("db.flush.count == 9"):
            1 / 0


def test_record(d, tmp_path):
    with d.record(str(tmp_path / "rec"), "db"):
        client(d["db"]).pwrite(b"x" * 4096, 8192)
    snoop = run(BINARY, "snoop", "--in", tmp_path / "rec").stdout
    assert "write" in snoop and "4K" in snoop
    with pytest.raises(dashpot.DashpotError, match="dc"):
        with d.record(str(tmp_path / "other"), "dc"):
            pass


def test_connect(d, serve, monkeypatch):
    assert dashpot.connect(d.api.address).version == d.version
    monkeypatch.setenv("DASHPOT_API", d.api.address)
    assert list(dashpot.connect()) == ["db", "log"]
    with pytest.raises(dashpot.DashpotError, match="no daemon answers at unix:/nowhere"):
        dashpot.connect("unix:/nowhere/api.sock")
    with pytest.raises(dashpot.DashpotError, match="no address of an API"):
        dashpot.connect("localhost:80")
    tcp = serve("-d", "d=ram,size=1M", "--api", "tcp:127.0.0.1:0")
    url = next(line for line in eventually(tcp.output).splitlines() if line.startswith("API")).split()[1]
    assert list(dashpot.connect(url)) == ["d"]
    with pytest.raises(dashpot.CheckFailed, match="no I/O seen"):
        dashpot.connect(url).check("d.failed == 0")
    with pytest.raises(dashpot.DashpotError, match="no daemon answers") as unanswered:
        dashpot.connect("http://127.0.0.1:1/?token=0123456789abcdef")
    assert "0123456789abcdef" not in str(unanswered.value)
    with pytest.raises(dashpot.DashpotError) as raised:
        dashpot.connect(url.split("?")[0])
    assert raised.value.status == 401


def test_a_daemon_that_does_not_start_says_why(monkeypatch):
    with pytest.raises(dashpot.NotStarted, match="nosuch"):
        dashpot.run("db=nosuch:thing")
    monkeypatch.setenv("DASHPOT", "/nowhere/dashpot")
    with pytest.raises(dashpot.NotStarted, match="which is no program"):
        dashpot.run()


def test_the_lab_the_rules_and_the_options(tmp_path):
    lab = tmp_path / "lab.toml"
    lab.write_text('[disk.a]\nstore = "ram"\nsize = "1M"\n')
    with dashpot.run(lab=str(lab), rules=["a -D 1ms"], options=["--seed", "7"]) as d:
        assert list(d) == ["a"] and d.rules()[0]["rule"].startswith("-D 1ms")


def test_stop_leaves_nothing():
    d = dashpot.run("d=ram,size=1M")
    directory = pathlib.Path(d.api.address[len("unix:") :]).parent
    assert directory.is_dir()
    assert d.stop() == 0 and not directory.exists() and gone(d.pid)


# Starts a daemon from a thread that ends at once, and prints the daemon's pid and address, so that the test
# can check that both are gone.
KILLED = """
import json, sys, threading, dashpot
started = []
start = threading.Thread(target=lambda: started.append(dashpot.run(*sys.argv[1:2], command=sys.argv[2:] or None)))
start.start()
start.join()
d = started[0]
print(json.dumps([d.pid, d.api.address]), flush=True)
sys.stdin.read()
"""


# Ignores SIGTERM. Starts no child processes, because they would outlive the program when it is killed.
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.sigwait([signal.SIGUSR1])"


@pytest.mark.parametrize("program", [[], ["sleep", "1000"], [sys.executable, "-c", DEAF]], ids=["serve", "run", "deaf"])
def test_the_daemon_ends_with_its_parent_and_not_with_a_thread(program, tmp_path):
    disk = f"d=path:{tmp_path}" if program else "d=ram,size=1M"
    parent = subprocess.Popen(
        [sys.executable, "-c", KILLED, disk, *program],
        env={**os.environ, "PYTHONPATH": str(PACKAGE)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    pid, address = json.loads(parent.stdout.readline())
    directory = pathlib.Path(address[len("unix:") :]).parent
    assert dashpot.connect(address).version and not gone(pid)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    eventually(lambda: gone(pid) and not directory.exists(), "the daemon's end")
    parent.stdin.close()
    parent.stdout.close()


def test_a_rule_ends_with_the_process_that_armed_it(d):
    code = "import dashpot\nwith dashpot.connect()['db'].rule('-D 1m'): print(flush=True); input()"
    child = subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(PACKAGE), **d.environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    child.stdout.readline()
    assert len(d.rules()) == 1
    child.kill()
    child.communicate()
    eventually(lambda: not d.rules(), "the end of the rule")


def test_a_program_with_a_path_disk(tmp_path):
    syncs = (
        "import os, sys; f = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR); input(); os.fsync(f);"
        "os.open(sys.argv[1], os.O_RDWR | os.O_DSYNC); print('synced', flush=True); input()"
    )
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["sh", "-c", f'exec "$@" <{fifo}', "sh", sys.executable, "-c", syncs, str(disk / "f")]
    with dashpot.run(f"wal=path:{disk}", command=command) as d:
        with d["wal"].rule("-D 20ms -T sync") as slow:
            with open(fifo, "w") as program:
                print("go", file=program, flush=True)
                eventually(lambda: "synced" in d.output())
                assert slow.held == 1 and slow.achieved.p50_ns >= 20 * MS
                assert d["wal"].unheld == {"synced_open": 1}
                # Null in the API before Linux 5.19.
                assert d["wal"].interrupted in (0, None)
                slow.clear()
    assert slow.held == 1


def test_the_outcome_of_a_rule_under_which_the_program_dies(tmp_path):
    """The daemon ends with its program. Its rules can be asked afterwards what they did."""
    script = "import os, sys; f = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR); input(); os.fsync(f)"
    fifo, disk = tmp_path / "fifo", tmp_path / "disk"
    os.mkfifo(fifo)
    disk.mkdir()
    command = ["sh", "-c", f'exec "$@" <{fifo}', "sh", sys.executable, "-c", script, str(disk / "f")]
    with dashpot.run(f"wal=path:{disk}", command=command) as d:
        with d["wal"].rule("-e EIO -T sync") as broken:
            fifo.write_text("go\n")
            assert d.process.wait(HANG_LIMIT) == 1
            assert broken.failed == 1 and broken.why_nothing is None
        assert broken.failed == 1
        with pytest.raises(dashpot.DashpotError, match="(?s)ended with status 1.*Input/output error"):
            d.rules()


def test_a_program_that_cannot_start_or_fails_is_told():
    with pytest.raises(dashpot.NotStarted, match="(?s)127.*/nonexistent"):
        dashpot.run(command=["/nonexistent"])
    with dashpot.run(command=["sh", "-c", "echo my words; exit 2"]) as d:
        assert d.process.wait(HANG_LIMIT) == 2
        with pytest.raises(dashpot.DashpotError, match="(?s)status 2 .*my words"):
            d.rules()


@requires("nbdcopy")
def test_the_guide_in_the_package(tmp_path):
    """Runs the example of docs/python.md as it is there."""
    page = (ROOT / "docs/python.md").read_text()
    (example,) = [text.split("```")[0] for text in page.split("```python\n") if "nbdcopy" in text.split("```")[0]]
    (tmp_path / "example.py").write_text(example)
    printed = run(sys.executable, tmp_path / "example.py", env={"PYTHONPATH": str(PACKAGE)}).stdout
    assert int(printed.split()[0]) > 0


def test_the_version_is_the_programs(lab):
    cargo = (ROOT / "Cargo.toml").read_text()
    assert f'version = "{dashpot.__version__}"' in cargo and lab.version == dashpot.__version__


@pytest.mark.skipif(not MYPY.exists(), reason="mypy is missing: `make deps` installs it")
def test_the_package_is_typed():
    """The package must be typed. Debian's pluggy has no types, so the functions that its decorators return
    are left out."""
    words = ["--strict", "--allow-untyped-decorators", "--python-executable", sys.executable, "--cache-dir", os.devnull]
    run(MYPY, *words, PACKAGE)
