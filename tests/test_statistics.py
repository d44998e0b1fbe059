"""Statistics: any question by name, with the same words on every report, over a daemon, the kernel's disks and
simulations.
"""

import json
import signal

import pytest

from conftest import BINARY, run
from kernel import dd, loop_in_memory, takes_a_kernel
from test_kernel_reports import Watching
from test_sim import POOL
from timed import Client

def begun(daemon, *words):
    """A report of the daemon, once it watches."""
    report = daemon.start(*words)
    report.stdout.readline()
    return report


def ended(report):
    report.send_signal(signal.SIGINT)
    text, errors = report.communicate()
    assert report.returncode == 0 and "lost" not in errors, errors
    return text


@pytest.fixture
def two(serve):
    """A daemon with two disks, whose writes to `a` take at least 20 ms."""
    daemon = serve("-d", "a=ram,size=1M", "-d", "b=ram,size=1M")
    daemon.cli("inject", "a", "-D", "20ms", "-T", "write")
    return daemon


def work(daemon):
    a, b = Client(daemon, "a"), Client(daemon, "b")
    a.many(30, 4, a.write)
    a.many(20, 4)
    b.many(10, 2, lambda offset: b.write(offset, 65536))


STATISTICS = {
    "disk.ops[op]": {"write": (40, 30 * 4096 + 10 * 65536), "read": (20, 20 * 4096)},
    "disk.ops[device]": {"a": (50, 50 * 4096), "b": (10, 10 * 65536)},
    "disk.bytes[size]": {"4K-8K": (50, 50 * 4096), "64K-128K": (10, 10 * 65536)},
    "disk.ops[op=write][size]": {"4K-8K": (30, 30 * 4096), "64K-128K": (10, 10 * 65536)},
    "disk.ops[latency>=20ms][device]": {"a": (30, 30 * 4096)},
    "disk.ops[device!=a][op]": {"write": (10, 10 * 65536)},
    "disk.ops[rule]": {"1": (30, 30 * 4096), "none": (30, 20 * 4096 + 10 * 65536)},
    "disk.ops[hold>=20ms][rule=1][op]": {"write": (30, 30 * 4096)},
    "disk.errors[error]": {},
}


def test_statistics_of_a_daemon(two):
    reports = {name: begun(two, "stat", name, "600") for name in STATISTICS}
    work(two)
    for name, report in reports.items():
        lines = ended(report).splitlines()
        found = {}
        for line in lines:
            words = line.split()
            if len(words) > 4 and words[1].replace(",", "").isdigit() and words[0] not in ("op", "rule"):
                found[words[0]] = int(words[1])
        assert found == {value: count for value, (count, _) in STATISTICS[name].items()}, (name, lines)


def test_csv_and_json_have_the_same_figures(two):
    as_csv = two.start("stat", "disk.latency[op]", "--csv", "1")
    as_json = two.start("stat", "disk.latency[op]", "--json", "1")
    # The head of the CSV comes with the first interval.
    head = as_csv.stdout.readline().strip()
    assert head == "at_ns,elapsed_ns,op,count,bytes,p50_ns,p90_ns,p95_ns,p99_ns,p99_9_ns,max_ns"
    as_json.stdout.readline()
    work(two)
    rows = [line.split(",") for line in ended(as_csv).splitlines()]
    documents = [json.loads(line) for line in ended(as_json).splitlines()]
    values = [value for document in documents for value in document["values"]]
    for op, count, size in (("write", 40, 30 * 4096 + 10 * 65536), ("read", 20, 20 * 4096)):
        assert sum(int(row[3]) for row in rows if row[2] == op) == count
        assert sum(value["count"] for value in values if value["value"] == op) == count
        assert sum(int(row[4]) for row in rows if row[2] == op) == size
        assert sum(value["bytes"] for value in values if value["value"] == op) == size
    document = documents[0]
    assert document["statistic"] == "disk.latency[op]" and document["title"] == "Latency of disk I/Os, by op"


@pytest.mark.parametrize("words", [
    ["iolatency", "--where", "op=write,latency>=20ms", "600"],
    ["quantize", "--where", "op=write,latency>=20ms"],
    ["snoop", "--where", "op=write,latency>=20ms"],
], ids=lambda words: words[0])
def test_where_means_the_same_on_each_report(two, words):
    report = begun(two, *words)
    work(two)
    text = ended(report)
    if words[0] == "snoop":
        assert len([line for line in text.splitlines() if " write " in line]) == 30
    else:
        counts = [line.split(":")[1].split()[0] for line in text.splitlines() if "->" in line]
        at = [line.split("|")[1].split()[-1] for line in text.splitlines() if "|" in line and "->" not in line]
        numbers = counts if words[0] == "iolatency" else at
        assert sum(int(number) for number in numbers if number.isdigit()) == 30, text


def test_iolatency_by_any_dimension(two):
    report = begun(two, "iolatency", "--by", "rule", "--percentiles", "600")
    work(two)
    lines = [line.split() for line in ended(report).splitlines()]
    assert {words[0]: words[1] for words in lines if words and words[0] in ("1", "none")} == {"1": "30", "none": "30"}


@pytest.mark.parametrize("words, message", [
    (["disk.ops[process]"], "'process' is unknown here: dashpot's disks and simulations know their clients"),
    (["disk.opz"], "there is no metric 'opz': did you mean 'ops'?"),
    (["disk.ops[op=write"], "write each condition and the breakdown in brackets"),
    (["disk.ops", "--where", "latency>=10"], "10ms"),
    (["disk.ops", "--where", "latancy>=10ms"], "did you mean 'latency'?"),
    (["disk.ops", "-d", "x"], "the daemon has d"),
    (["volume.ops"], "the daemon serves no volume"),
    (["disk.ops", "--csv", "--json"], "cannot be used with"),
], ids=str)
def test_bad_words_are_refused(daemon, words, message):
    refused = daemon.cli("stat", *words, "1", "1", code=None)
    assert refused.returncode in (1, 2) and message in refused.stderr, refused.stderr


def test_stats_lists_words_that_stat_takes():
    words = json.loads(run(BINARY, "stats", "--json").stdout)["words"]
    assert {word["word"] for word in words if word["of_the_kernel"]} >= {"process", "cgroup", "latency", "ops"}
    assert not any(word["of_dashpot"] for word in words if word["word"] in ("process", "pid", "cgroup"))
    text = run(BINARY, "stats").stdout
    assert all(word["word"] in text for word in words)


def simulated(path, statistic):
    """All values of a statistic over a whole simulation, with counts and bytes."""
    [outcome] = json.loads(run(BINARY, "sim", path, "--json", "--report", f"stat {statistic} 10").stdout)
    [report] = outcome["reports"]
    [interval] = report["output"]
    return interval, {value["value"]: value["count"] for value in interval["values"]}


def test_breakdowns_of_a_simulation_have_the_same_sum(directory):
    path = directory / "lab.toml"
    path.write_text(POOL)
    whole, by_op = simulated(path, "disk.ops[op]")
    for statistic in ("disk.latency", "disk.ops[size]", "disk.bytes[offset]", "disk.hold[rule]", "disk.ops[client]"):
        interval, values = simulated(path, statistic)
        assert sum(values.values()) == interval["count"] == whole["count"], statistic
        assert interval["bytes"] == whole["bytes"], statistic
    _, reads = simulated(path, "disk.ops[op=read][device]")
    assert sum(reads.values()) == by_op["read"]
    _, held = simulated(path, "disk.ops[hold>0ns][op]")
    _, ruled = simulated(path, "disk.ops[rule=1][op]")
    assert held == ruled and set(held) == {"read"}
    volume, _ = simulated(path, "volume.latency[client]")
    assert volume["title"] == "Latency of volume I/Os, by client" and volume["numbers"]["n"] == volume["count"] > 0


@takes_a_kernel
def test_the_kernels_disks_by_process_and_with_conditions():
    with loop_in_memory() as loop:
        words = ("-d", loop.path, "600")
        by_process = Watching("stat", "disk.ops[op=write][process]", *words)
        by_size = Watching("iolatency", "--where", "size>=64K,op=write", "--by", "size", "--percentiles", *words)
        dd("if=/dev/zero", f"of={loop.path}", "bs=4k", "count=25", "oflag=direct")
        dd("if=/dev/zero", f"of={loop.path}", "bs=64k", "count=12", "oflag=direct")
        lines = [line.split() for line in by_process.end().splitlines()]
        assert [words[:2] for words in lines if words and words[0] == "dd"] == [["dd", "37"]]
        sizes = [line.split() for line in by_size.end().splitlines()]
        assert [words[:2] for words in sizes if words and words[0].endswith("K")] == [["64K-128K", "12"]]
