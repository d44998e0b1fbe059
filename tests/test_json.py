"""The JSON of all reports follows the conventions of docs/observe.md."""

import json
import re
import time

import pytest
from conftest import BINARY, eventually, run
from kernel import loop_in_memory, takes_a_kernel
from test_kernel_reports import Watching, dd
from test_reports import has_begun
from test_sim import POOL
from timed import Client

UNITS = ("_ns", "_per_s", "_percent", "_bytes")
# Figures without a unit, and names that are numbers.
PLAIN = {
    "n",
    "count",
    "zios",
    "lost",
    "missed",
    "unmatched",
    "bytes",
    "merged",
    "requeued",
    "sector",
    "pid",
    "tid",
    "rule",
    "lane",
    "requested",
    "achieved",
    "stopped",
    "mean_in_flight",
    "most",
    "usual",
    "depth",
}
REPORTS = {
    "iolatency": ["iolatency", "-T", "1", "1"],
    "iolatency by type": ["iolatency", "--by", "type", "1", "1"],
    "quantize": ["quantize", "--for", "1s"],
    "quantize by disk": ["quantize", "--by", "disk", "--for", "1s"],
    "iostat": ["iostat", "1", "2"],
    "iostat -x": ["iostat", "-x", "1", "2"],
    "heatmap": ["heatmap", "1", "1"],
    "snoop": ["snoop", "--for", "1s"],
}


def check(value, place=""):
    if isinstance(value, list):
        for number, each in enumerate(value):
            check(each, f"{place}[{number}]")
    elif isinstance(value, dict):
        for key, each in value.items():
            check_key(key, each, place)
            # A rule is the API's object, with the API's keys.
            if not (key == "rule" and isinstance(each, dict)):
                check(each, f"{place}.{key}")


def check_key(key, value, place):
    assert re.fullmatch("[a-z][a-z0-9_]*", key), f"{place}.{key}"
    assert key not in ("disk", "disks"), f"{place}.{key}: a watched device is a device"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        assert key.endswith(UNITS) or key in PLAIN, f"{place}.{key}: which unit?"
    if key.endswith("_ns") and isinstance(value, float):
        assert key == "mean_ns", f"{place}.{key}: times are whole, but for averages"


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def parsed(words, text):
    """Parses the output: reports with several intervals print a line for each, others print one document."""
    return json.loads(text) if words[0] in ("quantize", "proof") else lines(text)


@pytest.mark.parametrize("words", REPORTS.values(), ids=REPORTS)
def test_of_a_daemons_disks(daemon, words):
    daemon.cli("inject", "d", "-D", "1ms", "-T", "read")
    client = Client(daemon)
    process = daemon.start(*words, "--json")
    eventually(lambda: has_begun(process), "the report has begun")
    client.many(20, 2)
    text, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    found = parsed(words, text)
    assert found
    check(found)


def test_of_proof(daemon):
    daemon.cli("inject", "d", "-D", "1ms", "-T", "read")
    Client(daemon).many(20, 2)
    found = daemon.json("proof")
    assert found[0]["rows"]
    check(found)


def test_of_check(daemon):
    daemon.cli("inject", "d", "-D", "1ms", "-T", "read", "--name", "slow")
    Client(daemon).many(20, 2)
    found = daemon.json("check", "d.read.p50 >= 1ms", "d.iops > 0", "slow.held == 20")
    assert [one["holds"] for one in found] == [True] * 3
    check(found)


@takes_a_kernel
@pytest.mark.parametrize("words", [*REPORTS.values(), ["observe"]], ids=[*REPORTS, "observe"])
def test_of_the_kernels_disks(words):
    with loop_in_memory() as loop:
        where, pace = ([], [loop.name, "1", "1"]) if words[0] == "observe" else (["-d", loop.name], words[1:])
        report = Watching.quiet(words[0], *where, *pace, "--json", watches=words[0] != "iostat")
        dd(f"if={loop.path}", "of=/dev/null", "bs=4k", "count=20", "iflag=direct")
        text, errors = report.process.communicate(timeout=60)
        assert report.process.returncode == 0, errors
        found = parsed(words, text)
        assert found
        check(found)
        if words[0] not in ("iostat", "snoop"):
            assert all(
                one.get("unmatched", 0) == 0 == one["lost"] for one in (found if isinstance(found, list) else [found])
            )


def test_the_moment_is_a_date_and_not_only_a_time_of_day(daemon):
    before = time.time_ns()
    (interval,) = lines(daemon.cli("iolatency", "-T", "--json", "100ms", "1").stdout)
    assert before < interval["at_ns"] <= time.time_ns()


def test_of_simulations(directory):
    lab = directory / "lab.toml"
    lab.write_text(POOL)
    reports = [["--report", " ".join(words)] for words in REPORTS.values()]
    told = run(BINARY, "sim", lab, "--json", *[word for report in reports for word in report]).stdout
    (outcome,) = json.loads(told)
    for report in outcome["reports"]:
        assert report["output"], report["report"]
        check(report["output"], report["report"])
