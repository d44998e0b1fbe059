"""An I/O that is longer than an interval, or that crosses an interval's end, is counted exactly once, and is
shown as in flight until then. Tests served disks and simulations.
"""

import json
import re
import signal

import pytest
from conftest import BINARY, eventually, run
from timed import Client

SLOW = "2500ms"
ROW = re.compile(r"^ *(\d+) -> (\d+) *: (\d+) *\|#* *\|$", re.MULTILINE)
IN_FLIGHT = re.compile(r"^In flight: (\d+), the oldest for (\d+\.\d+) s on d \(held, rule 1\)\.$", re.MULTILINE)

LAB = f"""
[disk.d]
store = "null"
size = "1M"
rules = ["-D {SLOW}"]
[workload.w]
trace = "trace.csv"
[sim]
lasts = "8s"
"""
# The first I/O lasts from 250 ms to 2.75 s, the second from 1.9 s to 4.4 s, and the third from exactly the end of an
# interval, at 3 s, to 5.5 s.
TRACE = """250000000,read,d,0,4096
1900000000,write,d,4096,4096
3000000000,read,d,8192,4096
"""
ENDED = [0, 0, 1, 0, 1, 1, 0, 0]
IN_FLIGHT_AT_END = [1, 2, 2, 2, 1, 0, 0, 0]


@pytest.fixture
def slow(daemon):
    daemon.cli("inject", "d", "-D", SLOW)
    return daemon


def watched(daemon, *words):
    """Starts `iolatency`, sends two I/Os and then a third, and stops the report when they have ended. Returns stdout
    and stderr.
    """
    report = daemon.start("iolatency", *words)
    begun = report.stdout.readline()
    client = Client(daemon)
    client.wait(*[client.read(), client.write(4096)])
    client.wait(client.read(8192))
    eventually(lambda: not daemon.disk()["in_flight"])
    report.send_signal(signal.SIGINT)
    text, errors = report.communicate()
    assert report.returncode == 0, errors
    return begun + text, errors


def counted(text):
    """The counts of each row, identified by its lower edge, added up over all intervals."""
    sums = {}
    for low, _high, count in ROW.findall(text):
        sums[int(low)] = sums.get(int(low), 0) + int(count)
    return {low: count for low, count in sums.items() if count}


def test_iolatency_counts_a_served_disks_slow_io_once(slow):
    text, errors = watched(slow, "1")
    assert sum(counted(text).values()) == 3 and min(counted(text)) >= 2048
    named = IN_FLIGHT.findall(errors)
    assert {int(zios) for zios, _ in named} <= {1, 2} and len(named) >= 2, errors
    assert all(float(oldest) >= 1 for _, oldest in named), "they waited for whole intervals"


def test_iolatency_counts_a_served_disks_slow_io_once_in_json(slow):
    text, _ = watched(slow, "1", "--json")
    intervals = [json.loads(line) for line in text.splitlines()]
    assert sum(row["count"] for interval in intervals for row in interval["rows"]) == 3
    assert intervals[-1]["in_flight"]["zios"] == 0
    busy = [interval["in_flight"] for interval in intervals if interval["in_flight"]["zios"]]
    assert {(one["wait"], one["rule"]) for one in busy} - {("reply", None)} == {("held", 1)}
    assert sum(one["wait"] == "held" for one in busy) >= 3
    assert max(one["zios"] for one in busy) == 2


@pytest.fixture
def simulate(directory):
    """Runs the three I/Os of the trace under a report with intervals of a second."""
    (directory / "trace.csv").write_text(TRACE)
    (directory / "lab.toml").write_text(LAB)
    return lambda *words: run(BINARY, "sim", directory / "lab.toml", "--report", "iolatency 1", *words)


def test_iolatency_counts_a_simulated_disks_slow_io_once(simulate):
    assert counted(simulate().stdout) == {2048: 3}


def test_iolatency_counts_a_simulated_disks_slow_io_once_in_json(simulate):
    (lab,) = json.loads(simulate("--json").stdout)
    intervals = lab["reports"][0]["output"]
    assert [sum(row["count"] for row in one["rows"]) for one in intervals] == ENDED
    assert [one["in_flight"]["zios"] for one in intervals] == IN_FLIGHT_AT_END
