"""heatmap shows latency over time in characters, as SVG and as JSON, and misses no I/O."""

import json
import os
import re
import signal
import subprocess
import time
import xml.etree.ElementTree as xml

import pytest
from conftest import BINARY, ROOT, eventually, run
from kernel import loop_in_memory, takes_a_kernel
from timed import Client

LAB = ROOT / "labs" / "tuning.toml"


@pytest.fixture
def client(daemon):
    return Client(daemon)


def test_columns_have_every_io_in_rows(daemon, client):
    daemon.cli("inject", "d", "-D", "10ms")
    process = daemon.start("heatmap", "--json", "0.1")
    columns = [json.loads(process.stdout.readline())]
    client.many(100, 10)
    while sum(column["count"] for column in columns) < 100:
        columns.append(json.loads(process.stdout.readline()))
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 0
    for column in columns:
        assert column["count"] == sum(row["count"] for row in column["rows"])
        for row in column["rows"]:
            assert row["to_ns"] >= 10_000_000, "nothing finished early"


def test_in_a_pipe_it_is_printed_once_at_the_end(daemon):
    text = daemon.cli("heatmap", "-d", "d", "--op", "read,write", "0.1", "3").stdout
    assert text.startswith("Latency of d (read,write): 0 I/Os, a column is 100ms\n")
    assert text.count("Latency") == 1 and "\x1b" not in text
    assert max(len(line) for line in text.splitlines()) <= 80


def test_bad_words_before_anything_is_watched(daemon, directory):
    refused = daemon.cli("heatmap", "--svg", directory / "none" / "x.svg", code=1).stderr
    assert "--svg" in refused and "x.svg" in refused
    pipe = directory / "pipe"
    os.mkfifo(pipe)
    assert "not a regular file" in daemon.cli("heatmap", "--svg", pipe, "0.1", "1", code=1).stderr
    assert pipe.is_fifo(), "it was replaced"
    assert "'nope'" in daemon.cli("heatmap", "-d", "nope", code=1).stderr
    assert "10ms" in daemon.cli("heatmap", "--max", "10", code=2).stderr
    assert "--max" in daemon.cli("heatmap", "--min", "1s", "--max", "10ms", code=2).stderr


def test_what_has_been_is_what_the_daemon_remembers(daemon, client):
    daemon.cli("inject", "d", "-D", "10ms", "-T", "read")
    client.many(50, 10)
    lines = daemon.cli("heatmap", "--last", "5m", "--op", "read", "--json").stdout.splitlines()
    columns = [json.loads(line) for line in lines]
    rows = [row for column in columns for row in column["rows"]]
    assert sum(row["count"] for row in rows) == 50
    assert all(row["to_ns"] >= 10_000_000 for row in rows)
    starts = [column["start_ns"] for column in columns]
    assert all(later - earlier == 10**9 for earlier, later in zip(starts, starts[1:])), "no second is left out"
    assert all(column["lost"] == 0 for column in columns)
    assert "50 I/Os" in daemon.cli("heatmap", "--last", "5m").stdout
    assert " 0 I/Os" in daemon.cli("heatmap", "--last", "5m", "--op", "write").stdout


def test_seconds_in_which_nothing_was_done_are_columns_too(serve):
    daemon = serve("-d", "a=ram,size=1M", "-d", "b=ram,size=1M")
    began = time.monotonic()

    def columns(*words):
        return [json.loads(line) for line in daemon.cli("heatmap", "--last", *words, "--json").stdout.splitlines()]

    eventually(lambda: len(columns("5m")) >= 3, "columns from the daemon's start on")
    shown = columns("5m", "-d", "a", "-d", "b")
    assert all(column["count"] == 0 for column in shown)
    assert len(shown) <= time.monotonic() - began + 3, "none from before"
    assert 1 <= len(columns("2s", "-d", "a")) <= 3


@pytest.mark.parametrize(
    "words, code, why",
    [
        (["-k"], 1, "no daemon remembers"),
        (["-Q"], 2, "cannot be used with"),
        (["1"], 2, "cannot be used with"),
    ],
)
def test_what_nobody_remembers_is_refused(daemon, words, code, why):
    assert why in daemon.cli("heatmap", "--last", "1m", *words, code=code).stderr


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_do_not_lose_the_picture(daemon, directory, how):
    svg = directory / "x.svg"
    process = daemon.start("heatmap", "--json", "--svg", svg, "0.1")
    process.stdout.readline()
    process.send_signal(how)
    process.communicate()
    assert process.returncode == 0
    assert svg.read_text().startswith("<svg")


def test_a_daemon_that_dies_does_not_take_the_picture_along(daemon, directory):
    svg = directory / "x.svg"
    process = daemon.start("heatmap", "--json", "--svg", svg, "0.1")
    process.stdout.readline()
    daemon.abandon()
    _, errors = process.communicate()
    assert process.returncode == 1 and "no daemon" in errors
    assert svg.read_text().startswith("<svg")


@takes_a_kernel
def test_of_a_disk_of_the_kernel():
    with loop_in_memory() as loop:
        check_writes(loop)


def check_writes(loop):
    process = subprocess.Popen(
        [BINARY, "heatmap", "-d", loop.path, "--json", "0.1"],
        text=True,
        stdout=subprocess.PIPE,
    )
    process.stdout.readline()
    run("dd", "if=/dev/zero", f"of={loop.path}", "bs=4k", "count=50", "oflag=direct")
    seen = 0
    while seen < 50:
        seen += json.loads(process.stdout.readline())["count"]
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 0


def simulate(*words):
    return run(BINARY, "sim", LAB, "--report", " ".join(map(str, ("heatmap", *words)))).stdout


def test_of_a_simulation_it_is_the_same_every_time(directory):
    svg = directory / "x.svg"
    text = simulate("--layer", "volume", "--svg", svg)
    picture = svg.read_bytes()
    assert simulate("--layer", "volume", "--svg", svg) == text
    assert svg.read_bytes() == picture
    assert [path.name for path in directory.iterdir()] == ["x.svg"]
    assert "< 1us" in text, "the row of I/Os that are acknowledged at once"


def test_the_cells_of_the_svg_are_all_ios(directory):
    svg = directory / "x.svg"
    text = simulate("--layer", "volume", "--svg", svg)
    (total,) = re.findall(r": ([\d,]+) I/Os", text)
    cells = [title.text for title in xml.parse(svg).iter("{http://www.w3.org/2000/svg}title")][1:]
    counts = [int(re.search(r": ([\d,]+) of ", cell)[1].replace(",", "")) for cell in cells]
    assert sum(counts) == int(total.replace(",", ""))
    assert cells[-1].endswith("(100.00 %)")
    assert b"<script" not in svg.read_bytes()


def test_as_json_its_columns_are_what_iolatency_counts():
    out = run(BINARY, "sim", LAB, "--report", "heatmap 1", "--report", "iolatency 1", "--json").stdout
    (outcome,) = json.loads(out)
    heat, iolatency = (report["output"] for report in outcome["reports"])
    assert [column["count"] for column in heat] == [interval["latency"]["n"] for interval in iolatency]


def test_several_labs_do_not_share_a_picture(directory):
    words = f"heatmap --svg {directory / 'x.svg'}"
    refused = run(BINARY, "sim", LAB, LAB, "--report", words, code=2).stderr
    assert "--svg" in refused
