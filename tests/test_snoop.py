"""snoop: a line for each finished I/O with its waits, on disks from every source."""

import json
import re
import signal
import subprocess

import pytest
from conftest import BINARY, ROOT, eventually, run
from kernel import loop_in_memory, takes_a_kernel
from timed import Client

WAITS = ("recv", "throttle", "queue", "suspend", "store", "hold", "lateness", "reply")
TITLES = "TIME DISK OP OFFSET SIZE TOTAL RECV SUSPEND STORE HOLD LATE REPLY RULE CLIENT ERROR"


@pytest.fixture
def client(daemon):
    return Client(daemon)


def snoop(daemon, *words, until):
    """Starts snoop, calls `until` once it has begun, ends it as its user would, and returns its lines."""
    process = daemon.start("snoop", *words)
    header = process.stdout.readline().rstrip()
    until()
    out, err = process.communicate()
    assert process.returncode == 0, err
    return header, out.splitlines()


def test_lines_say_where_the_time_went_and_which_rule_did_it(daemon, client):
    daemon.cli("inject", "d", "-D", "5ms:1", "-T", "read")
    header, lines = snoop(daemon, "--wide", "-n", "12", until=lambda: client.many(12, 4))
    assert header.split() == TITLES.split()
    assert len(lines) == 12
    for line in lines:
        assert re.match(r"\d\d:\d\d:\d\d\.\d{3} d +read ", line), line
        assert line.split()[12] == "1/0"
        # The words of a column end where its title ends.
        end = header.index("HOLD") + len("HOLD")
        assert re.search(r"[\d.]+ms$", line[:end]), line


def test_waits_add_up(daemon, client):
    daemon.cli("inject", "d", "-D", "2ms")
    process = daemon.start("snoop", "--json", "-n", "20")

    def ended():
        # snoop prints nothing when its watch begins, so make I/O until snoop ends.
        client.many(1, 1)
        return process.poll() is not None

    eventually(ended, "the end of 20 lines")
    lines = [json.loads(line) for line in process.stdout]
    assert len(lines) == 20
    for zio in lines:
        assert sum(zio["waits"][f"{wait}_ns"] for wait in WAITS) == zio["total_ns"]
        assert zio["ended_ns"] - zio["arrived_ns"] == zio["total_ns"]
        assert (zio["rule"], zio["device"], zio["op"]) == (1, "d", "read")
        assert zio["waits"]["hold_ns"] > 0


def test_a_threshold_leaves_out_what_is_faster(daemon, client):
    daemon.cli("inject", "d", "-D", "30ms", "--every", "10")
    _, lines = snoop(daemon, "--min", "30ms", "-n", "10", until=lambda: client.many(100, 4))
    assert len(lines) == 10 and all(line.split()[5:7] == ["HOLD", "1"] for line in lines)


def test_ctrl_c_ends_it_in_order(daemon):
    process = daemon.start("snoop")
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    assert process.wait() == 0


def test_a_reader_that_has_enough_is_no_failure(daemon, client):
    process = daemon.start("snoop")
    process.stdout.readline()
    process.stdout.close()

    def closed():
        client.many(4, 4)
        return process.poll() is not None

    eventually(closed, "the end of snoop")
    assert process.returncode == 0, process.stderr.read()


def test_bad_words(daemon):
    assert "did you mean 10ms?" in daemon.cli("snoop", "--min", "10", code=2).stderr
    assert "'nope'" in daemon.cli("snoop", "-d", "nope", code=1).stderr
    daemon.cli("snoop", "-n", "0", code=2)


@takes_a_kernel
def test_of_a_disk_of_the_kernel():
    with loop_in_memory() as loop:
        check_writes(loop)


def check_writes(loop):
    process = subprocess.Popen(
        [BINARY, "snoop", "-d", loop.path, "--op", "write", "-n", "8", "--json"],
        text=True,
        stdout=subprocess.PIPE,
    )

    def ended():
        # snoop prints nothing when its watch begins, so make I/O until snoop ends.
        run("dd", "if=/dev/zero", f"of={loop.path}", "bs=4k", "count=8", "oflag=direct")
        return process.poll() is not None

    eventually(ended, "the end of 8 lines")
    ios = [json.loads(line) for line in process.stdout]
    assert len(ios) == 8 and process.returncode == 0
    for io in ios:
        assert (io["device"], io["rwbs"][0], io["bytes"], io["process"]) == (loop.name, "W", 4096, "dd")
        assert io["total_ns"] == io["queue_ns"] + io["device_ns"]


def test_of_a_simulation(directory):
    lab = ROOT / "labs" / "scenario3-legacy.toml"
    words = "snoop --wide --layer volume --min 1s -n 3"
    text = run(BINARY, "sim", lab, "--for", "40s", "--report", words).stdout
    lines = text.splitlines()
    assert "THROTTLE" in lines[0] and "HOLD" not in lines[0] and len(lines) == 4
    (outcome,) = json.loads(run(BINARY, "sim", lab, "--for", "40s", "--report", words, "--json").stdout)
    (report,) = outcome["reports"]
    assert [zio["total_ns"] >= 10**9 for zio in report["output"]] == [True] * 3
    again = run(BINARY, "sim", lab, "--for", "40s", "--report", words).stdout
    assert again == text
