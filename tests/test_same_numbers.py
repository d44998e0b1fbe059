"""The answer to a question about a live daemon, the kernel's disks, a simulation or a recording must be the same as
that of a naive computation from the single I/Os.
"""

import json
import random
import shlex

import naive
import pytest
from conftest import BINARY, eventually, run
from kernel import dd, is_watching, loop_in_memory, takes_a_kernel
from test_kernel_reports import started
from test_recorded_reports import asked, over
from test_sim import POOL, as_json
from timed import Client

ZIO = [
    "device",
    "op",
    "type",
    "fua",
    "client",
    "size",
    "offset",
    "depth",
    "latency",
    "total",
    "recv",
    "throttle",
    "queue",
    "suspend",
    "store",
    "hold",
    "late",
    "reply",
    "rule",
    "lane",
    "class",
    "txg",
    "error",
]
KERNEL = ["device", "op", "type", "size", "offset", "latency", "total", "queue", "pid", "tid", "error"]
# Each reader has its own trace instance, which takes its own times.
TIMELESS = ["device", "op", "type", "size", "offset", "pid", "tid", "error"]


def recorded(recording, of):
    lines = run(BINARY, "snoop", "--in", recording, "--json").stdout.splitlines()
    return [of(json.loads(line)) for line in lines]


def check_recording(seed, recording, ios, dimensions):
    for statistic in naive.some(random.Random(seed), 40, "disk", ios, dimensions):
        statistic.check(naive.told(asked(recording, statistic.name)), ios)


@pytest.mark.parametrize("seed", range(3))
def test_a_simulation_counts_as_a_list_does(tmp_path, seed):
    path = tmp_path / "lab.toml"
    errors = POOL.replace(
        'bandwidth = "100M"\n[disk.c]', 'bandwidth = "100M"\nrules = ["-e EIO -T read --every 9"]\n[disk.c]'
    )
    path.write_text(f"{errors}seed = {seed}\n")
    layers = ["disk", "volume"]
    [told] = as_json(path, *(word for layer in layers for word in ("--report", f"snoop --layer {layer}")))
    known = {
        layer: [naive.of_zio(layer, io) for io in report["output"] if "device" in io]
        for layer, report in zip(layers, told["reports"])
    }
    assert all(len(ios) > 1_000 for ios in known.values())
    # A pool writes dirty data to its disks only while a txg syncs, but reads from them at any time.
    written = {io["txg"] for io in known["disk"] if io["class"] == "async_write"}
    assert written == {"syncing"} and {io["txg"] for io in known["volume"]} == {"open", "syncing"}
    questions = [
        (layer, statistic)
        for layer in layers
        for statistic in naive.some(random.Random(seed), 40, layer, known[layer], ZIO)
    ]
    words = (
        f"stat {shlex.quote(statistic.name)} {interval}"
        for (_, statistic), interval in zip(questions, ["1h", "100ms"] * len(questions))
    )
    [told] = as_json(path, *(word for report in words for word in ("--report", report)))
    assert len(told["reports"]) == len(questions)
    for (layer, statistic), report in zip(questions, told["reports"]):
        statistic.check(naive.told(report["output"]), known[layer])


def random_ios(client, draw, count):
    """Reads, writes, flushes, zeroes and trims of many sizes and places, several at once."""

    def issue(_):
        length = draw.choice([512, 4096, 4096, 8192, 65536])
        offset = draw.randrange(0, (4 << 20) - length, 512)
        kind = draw.choice([client.read, client.read, client.write, client.trim, client.zero, None])
        return kind(offset, length) if kind else client.flush()

    client.many(count, 6, issue)


@pytest.mark.parametrize("seed", range(2))
def test_a_daemon_and_its_recording_count_as_a_list_does(serve, directory, seed):
    draw = random.Random(seed)
    daemon = serve("-d", "a=ram,size=4M", "-d", "b=ram,size=4M")
    daemon.cli("inject", "a", "-D", "2ms:2", "-T", "write")
    daemon.cli("inject", "b", "-e", "EIO", "-T", "read", "--every", "5")
    clients = [Client(daemon, name) for name in "aab"]
    # The conditions of the live reports use values of the I/Os of this first recording, so that they select
    # something.
    pilot = daemon.start("record", "-o", directory / "pilot")
    assert "until Ctrl-C" in pilot.stdout.readline()
    for client in clients:
        random_ios(client, draw, 40)
    over(pilot)
    values = recorded(directory / "pilot", lambda io: naive.of_zio("disk", io))
    questions = naive.some(draw, 12, "disk", values, ZIO)
    recorder = daemon.start("record", "-o", directory / "rec")
    assert "until Ctrl-C" in recorder.stdout.readline()
    live = [daemon.start("stat", statistic.name, "--json", "1") for statistic in questions]
    # Once a report has printed its first interval, it misses no I/O.
    for report in live:
        assert json.loads(report.stdout.readline())["count"] == 0
    for client in clients:
        random_ios(client, draw, 120)
    texts = [over(report) for report in live]
    over(recorder)
    ios = recorded(directory / "rec", lambda io: naive.of_zio("disk", io))
    assert len(ios) == 3 * 120
    for statistic, text in zip(questions, texts):
        statistic.check(naive.told(map(json.loads, text.splitlines())), ios)
        statistic.check(naive.told(asked(directory / "rec", statistic.name)), ios)
    check_recording(seed, directory / "rec", ios, ZIO)


@takes_a_kernel
def test_the_kernels_disks_and_their_recording_count_as_a_list_does(directory):
    def work(path):
        for size, count in [("4k", 80), ("64k", 30), ("512", 20)]:
            dd("if=/dev/zero", f"of={path}", f"bs={size}", f"count={count}", "oflag=direct")
            dd(f"if={path}", "of=/dev/null", f"bs={size}", f"count={count}", "skip=100", "iflag=direct")

    with loop_in_memory() as loop:
        pilot = started(["record", "-d", loop.path, "-o", directory / "pilot"])
        assert "until Ctrl-C" in pilot.stdout.readline()
        work(loop.path)
        over(pilot)
        values = recorded(directory / "pilot", naive.of_kernel)
        questions = naive.some(
            random.Random(7), 8, "disk", values, [one for one in TIMELESS if one not in ("pid", "tid")]
        )
        recorder = started(["record", "-d", loop.path, "-o", directory / "rec"])
        assert "until Ctrl-C" in recorder.stdout.readline()
        live = [started(["stat", statistic.name, "-d", loop.path, "--json", "600"]) for statistic in questions]
        for report in live:
            eventually(lambda report=report: is_watching(report.pid), "it watches")
        work(loop.path)
        texts = [over(report) for report in live]
        over(recorder)
    ios = recorded(directory / "rec", naive.of_kernel)
    assert len(ios) >= 2 * (80 + 30 + 20)
    for statistic, text in zip(questions, texts):
        statistic.check(naive.told(map(json.loads, text.splitlines())), ios)
    check_recording(7, directory / "rec", ios, KERNEL)
