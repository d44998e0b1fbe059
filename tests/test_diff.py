"""Records real runs, and checks that `diff` names the cause of a difference in its first line."""

import html
import json
import signal
import subprocess

import pytest
from conftest import BINARY, eventually, run
from test_events import ask
from timed import Client

DISKS = [f"d{number}" for number in range(6)]


def over(process):
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors


def load(daemon, disks, seconds, rate=250):
    """A load of 4 KiB reads and writes at random offsets for each of these disks, each from its own
    process."""
    return [
        subprocess.Popen(
            [
                BINARY,
                "load",
                daemon.uri(disk),
                "--depth",
                "64",
                "--write",
                "40%",
                "--time",
                seconds,
                "--seed",
                str(number),
                "--rate",
                str(rate),
                "--json",
            ],
            stdout=subprocess.DEVNULL,
        )
        for number, disk in enumerate(disks)
    ]


@pytest.fixture
def lab(serve):
    """Disks on which a rule delays every I/O by 10 ms."""
    daemon = serve(*(word for disk in DISKS for word in ("-d", f"{disk}=ram,size=4M")))
    for disk in DISKS:
        daemon.cli("inject", disk, "-D", "10ms", "--name", f"base-{disk}")
    return daemon


def recorded(daemon, path, loads):
    recorder = daemon.start("record", "-o", path)
    assert "until Ctrl-C" in recorder.stdout.readline()
    for process in loads():
        assert process.wait(timeout=60) == 0
    over(recorder)
    return path


def diff(*words):
    return json.loads(run(BINARY, "diff", "--json", *words).stdout)


def first_line(*words):
    return run(BINARY, "diff", *words).stdout.splitlines()[0]


def test_an_injected_rule_a_disk_and_a_range_are_named(lab, directory):
    good = recorded(lab, directory / "good", lambda: load(lab, DISKS, "3s"))
    again = recorded(lab, directory / "again", lambda: load(lab, DISKS, "3s"))
    same = diff("--in", again, "--baseline", good)
    assert same["finding"] in ("not_slower", "too_few"), same
    assert same["differs"] == [] and same["rose"] == []

    lab.cli("inject", "d3", "-D", "30ms", "-f", "30%", "--name", "culprit")
    bad = recorded(lab, directory / "bad", lambda: load(lab, DISKS, "3s"))
    line = first_line("--in", bad, "--baseline", good)
    assert line.startswith("Slower: rule ") or line.startswith("Slower: device d3 "), line
    found = diff("--in", bad, "--baseline", good)
    named = {one["dimension"]: one["values"][0]["value"] for one in found["differs"]}
    assert named["device"] == "d3" and {"op", "size", "offset"} <= set(found["alike"])
    assert found["spent"][0]["wait"] == "hold"
    # A comparison of the slow I/Os with the other I/Os of the same recording finds the same device.
    slow = diff("--in", bad, "--slow", "latency>=25ms")
    assert {one["dimension"]: one["values"][0]["value"] for one in slow["differs"]}["device"] == "d3"
    page = directory / "diff.html"
    first_line("--in", bad, "--baseline", good, "--html", page)
    assert line in html.unescape(page.read_text())
    # Without the slow disk, nothing differs.
    rest = diff("--in", bad, "--baseline", good, "--where", "device!=d3")
    assert rest["differs"] == []

    lab.cli("clear", "all")
    lab.cli("inject", "all", "-D", "10ms")
    lab.cli("inject", "all", "-D", "30ms", "--range", "1M..2M")
    ranged = recorded(lab, directory / "ranged", lambda: load(lab, DISKS, "3s"))
    found = diff("--in", ranged, "--baseline", good)
    named = {one["dimension"]: one["values"][0]["value"] for one in found["differs"]}
    assert named["offset"] == "1M-2M" and "device" in found["alike"]


def test_a_client_that_does_more_is_told_as_what_rose(lab, directory):
    good = recorded(lab, directory / "good", lambda: load(lab, DISKS[:2], "3s"))

    def more():
        return [*load(lab, DISKS[:1], "3s"), *load(lab, DISKS[1:2], "3s", rate=2000)]

    busy = recorded(lab, directory / "busy", more)
    rose = diff("--in", busy, "--baseline", good)["rose"]
    assert ("device", "d1") in {(one["dimension"], one["value"]) for one in rose}, rose


@pytest.mark.parametrize(
    "words, message",
    [
        ([], "there is nothing to compare with"),
        (["--during", "03:10"], "with '..' between them"),
        (["--slow", "latency>=10"], "10ms"),
        (["--slow", "process=dd"], "'process' is unknown here"),
        (["--slow", "op=read", "--against", "03:10..03:15"], "cannot be used with"),
        (["--during", "2020-01-01T00:00..2020-01-02T00:00"], "nothing of that period"),
        (["--baseline", "/nowhere"], "No such file"),
        (["--slow", "op=read", "-d", "x"], "the recording has d"),
    ],
    ids=str,
)
def test_bad_words_are_refused(daemon, directory, words, message):
    recorder = daemon.start("record", "-o", directory / "rec")
    assert "until Ctrl-C" in recorder.stdout.readline()
    Client(daemon).many(20, 2)
    eventually(lambda: len(ask(daemon, "/v1/events", after=0)["zios"]) == 20, "all are told")
    over(recorder)
    refused = run(BINARY, "diff", "--in", directory / "rec", *words, code=None)
    assert refused.returncode in (1, 2) and message in refused.stderr, refused.stderr
