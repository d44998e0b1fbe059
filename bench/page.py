"""Measures the page's questions: the cost of ten subscribers on the data path, and the time of a drill-down and of
a question about a long past. Also measures the page itself, in Chromium: the time until an hour is drawn, and the
time of a redraw, beside that of ECharts.

The statistics that subscribers receive are counted outside of the shard's thread, so subscribers should cost
this thread almost nothing. To check this, this part of the bench measures the thread's CPU time per I/O in
pairs of rounds, one with and one without subscribers. The other figures are times of answers over the API's
socket.
"""

import contextlib
import http.client
import json
import os
import pathlib
import re
import selectors
import shutil
import socket
import subprocess
import threading
import time
import urllib.parse

import process
import servers
from load import load
from samples import Spread, sign_test_rank
from servers import DASHPOT, Dashpot, Unavailable
from table import count, print_table, spread

from bench import directory

RATE, SUBSCRIBERS = 100_000, 10
IOPS = f"{RATE:,} IOPS"
NONE, TEN = "no subscriber", f"{SUBSCRIBERS} subscribers"
# With fewer pairs, a few percent could not be distinguished from noise.
ROUNDS = 20
WATCHED = ["disk.latency[op]", "disk.ops[client]", "disk.size[op]", "disk.latency[size]"]
EVENTS = 1_000_000
SECOND = 1_000_000_000
# The question that a click on a panel asks: it needs facts that only single I/Os have.
DRILLED = "disk.latency[op=read][size]"
WEB = pathlib.Path(__file__).resolve().parent.parent / "web"
# An hour of 170 I/Os a second. A daemon would need an hour to collect an hour of I/Os, and a simulation needs only
# seconds.
HOUR = """
[disk.a]
store = "null"
size = "1G"
service = "4ms~2ms"
lanes = 4
[workload.reader]
target = "a"
threads = 4
think = "20ms"
read = "70%"
[sim]
lasts = "3600s"
"""
LOADED = "an hour of disk.latency[op]"
REDRAWN = "a redraw of 3,600 x 64 cells"
ANSWERS = ["a drill-down", "the I/Os of a cell", "a panel from the memory of seconds"]


def run(bench):
    for part in (subscribed, answered):
        with (
            directory() as place,
            Dashpot(place, [f"d=ram,size={servers.SIZE}"], ["--shards", "1", "--events", "256M"]) as server,
        ):
            server.fill()
            part(bench, server)
    with contextlib.ExitStack() as stack:
        if bench.start(stack, "page: Chromium", browser) is not None:
            loads(bench)
            redraws(bench)


@contextlib.contextmanager
def browser():
    """Checks that this host has the tools to open the page in a browser."""
    missing = [tool for tool in ("node", "chromium") if shutil.which(tool) is None]
    if missing or not (WEB / "node_modules/playwright-core").exists():
        raise Unavailable(f"{', '.join(missing) or 'web/node_modules'} is missing: make deps")
    yield True


def loads(bench):
    """The time until an hour of a panel is drawn."""
    with simulated_hour() as address:
        samples = bench.measure(
            "page", [LOADED], ["dashpot"], lambda *_: script("hour.mjs", address, "disk.latency[op]")
        )
    rows = [
        [words, spread(samples.spread(LOADED, "dashpot", figure), count)]
        for figure, words in (("opened", "from the opening of the page"), ("chosen", "from the choice of an hour"))
    ]
    print_table(f"page: {LOADED}, until Chromium has drawn it", ["", "ms"], rows)
    chosen = samples.spread(LOADED, "dashpot", "chosen")
    if chosen:
        bench.at_most("page: an hour of a panel: ms", LOADED, chosen.median, 300)


@contextlib.contextmanager
def simulated_hour():
    """Simulates an hour, and yields the address of its page when the simulation has ended."""
    with directory() as place:
        lab, said = pathlib.Path(place, "hour.toml"), pathlib.Path(place, "said")
        lab.write_text(HOUR)
        with open(said, "w") as out:
            simulation = process.start([DASHPOT, "sim", lab, "--page", "--speed", "max"], stdout=out, stderr=out)
        try:
            while "has ended" not in said.read_text():
                if simulation.poll() is not None:
                    raise RuntimeError(said.read_text())
                time.sleep(0.1)
            yield re.search(r"^page  (\S+)$", said.read_text(), re.M).group(1)
        finally:
            process.stop(simulation)


def redraws(bench):
    """Measures a redraw of the page beside one of ECharts, if the environment says where ECharts is."""
    peer = os.environ.get("ECHARTS")
    if peer is None:
        bench.skipped.append("page: ECharts: ECHARTS=PATH/TO/echarts.min.js says where it is (npm install echarts)")
        return
    samples = bench.measure("page", [REDRAWN], ["dashpot"], lambda *_: script("redraw.mjs", os.path.abspath(peer)))
    rows = [
        [name, spread(samples.spread(REDRAWN, "dashpot", figure), lambda ms: f"{ms:.1f}")]
        for name, figure in (("page", "page"), ("ECharts", "peer"))
    ]
    print_table(f"page: {REDRAWN}, in Chromium", ["", "ms"], rows)
    share = samples.spread(REDRAWN, "dashpot", "share")
    if share:
        bench.at_most("page: a redraw, as a share of ECharts'", REDRAWN, share.median, 1 / 20)


def script(name, *words):
    """Runs a script of the page's tests, and returns the figures that it prints."""
    done = subprocess.run(["node", f"tests/{name}", *words], cwd=WEB, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[:300])
    figures = json.loads(done.stdout)
    if "peer" in figures:
        figures["share"] = figures["page"] / figures["peer"]
    return figures


def subscribed(bench, server):
    rounds = bench.rounds if bench.quick else max(ROUNDS, bench.rounds)
    samples = bench.measure("page", [IOPS], [NONE, TEN], lambda _, name: loaded(bench, server, name == TEN), rounds)
    ratio = paired(samples, "shard_ns")
    rows = [
        [name, *(spread(samples.spread(IOPS, name, figure), count) for figure in ("shard_ns", "iops", "told"))]
        for name in (NONE, TEN)
    ]
    print_table(
        f"page: reads of 4K, {RATE:,} a second are asked for",
        ["", "shard's CPU ns per I/O", "IOPS", "seconds told"],
        rows,
    )
    if ratio:
        print(f"ratio of pairs: {ratio.median:.3f}, 95 % of the median {ratio.least:.3f}..{ratio.most:.3f}\n")
        bench.figures["page"]["ratio"] = [round(value, 4) for value in ratio]
        bench.at_most("page: ten subscribers, the shard's CPU per I/O", IOPS, ratio.median, 1.02)


def paired(samples, figure):
    """The median of the pairs' ratios, and the 95 % interval of that median."""
    rounds = samples.rounds[IOPS, TEN], samples.rounds[IOPS, NONE]
    ratios = sorted(
        rounds[0][number][figure] / rounds[1][number][figure] for number in rounds[0].keys() & rounds[1].keys()
    )
    if not ratios:
        return None
    low = sign_test_rank(len(ratios))
    return Spread(Spread.of(ratios).median, ratios[low], ratios[-1 - low])


def loaded(bench, server, watched):
    with Subscribers(server, SUBSCRIBERS if watched else 0) as subscribers:
        before = shard_ns(server.pid)
        figures = load(server, bench.seconds(2.5, 1.5), 32, "--rate", RATE)
        spent = shard_ns(server.pid) - before
    return {"shard_ns": spent / figures["n"], "iops": figures["iops"], "told": subscribers.told}


def shard_ns(pid):
    """CPU time of the shards' threads."""
    tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
    shards = [task for task in tasks if (task / "comm").read_text().startswith("dashpot-shard")]
    return sum(int((task / "schedstat").read_text().split()[0]) for task in shards)


class Subscribers:
    """Streams of statistics, whose events a thread reads."""

    def __init__(self, server, number):
        self.path, self.number, self.told, self.streams = f"{server.directory}/api.sock", number, 0, []

    def __enter__(self):
        body = json.dumps({"statistics": WATCHED})
        head = f"POST /v1/statistics/watch HTTP/1.1\r\nHost: dashpot\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        for _ in range(self.number):
            stream = socket.socket(socket.AF_UNIX)
            stream.connect(self.path)
            stream.sendall((head + body).encode())
            self.streams.append(stream)
        self.is_over = False
        self.thread = threading.Thread(target=self.read)
        self.thread.start()
        return self

    def read(self):
        with selectors.DefaultSelector() as selector:
            for stream in self.streams:
                selector.register(stream, selectors.EVENT_READ)
            while not self.is_over:
                for key, _ in selector.select(0.1) if self.streams else []:
                    self.told += key.fileobj.recv(1 << 20).count(b"event: second")
                if not self.streams:
                    return

    def __exit__(self, *_):
        self.is_over = True
        self.thread.join()
        for stream in self.streams:
            stream.close()
        if self.number and not self.told:
            raise RuntimeError("the subscribers got no events")


def answered(bench, server):
    """Measures how long answers take when the daemon remembers a million I/Os."""
    remembered = fill(server)
    now = ask(server, "/v1/clock")["now_ns"] // SECOND
    since = ask(server, "/v1/statistics/columns", statistic=DRILLED)["since_ns"] // SECOND
    span = {"from_ns": max(since, now - 3_600) * SECOND, "to_ns": now * SECOND}
    slowest = max(
        part["numbers"]["max"]
        for column in ask(server, "/v1/statistics/columns", statistic=DRILLED, **span)["columns"]
        for part in column["parts"]
    )
    questions = {
        ANSWERS[0]: lambda: read(server, "/v1/statistics/columns", statistic=DRILLED, **span),
        ANSWERS[1]: lambda: read(server, "/v1/events", after=0, where=f"[latency>={slowest}ns]", **span),
        ANSWERS[2]: lambda: read(server, "/v1/statistics/columns", statistic="disk.latency[op]", **span),
    }
    samples = bench.measure("page", ANSWERS, ["dashpot"], lambda cell, _: timed(server, questions[cell]))
    rows = [
        [cell, *(spread(samples.spread(cell, "dashpot", figure), count) for figure in ("ms", "cpu_ms"))]
        for cell in ANSWERS
    ]
    print_table(
        f"page: answers over {remembered:,} I/Os of {now - span['from_ns'] // SECOND} s",
        ["", "ms", "daemon's CPU ms"],
        rows,
    )
    drilled = samples.spread(ANSWERS[0], "dashpot", "ms")
    if drilled:
        bench.at_most("page: a drill-down over a million I/Os: ms", ANSWERS[0], drilled.median, 200)


def timed(server, question):
    before, began = daemon_ns(server.pid), time.monotonic()
    question()
    took = time.monotonic() - began
    return {"ms": took * 1e3, "cpu_ms": (daemon_ns(server.pid) - before) / 1e6}


def daemon_ns(pid):
    return sum(int((task / "schedstat").read_text().split()[0]) for task in pathlib.Path(f"/proc/{pid}/task").iterdir())


def fill(server):
    """Makes the daemon remember a million I/Os. Waits until the second in which the last I/O ended is over, and
    returns their number."""
    done = lambda: sum(op["completed"] for op in server.json("status")["disks"][0]["ops"])
    while done() < EVENTS:
        load(server, 0.5, 32)
    time.sleep(1.1)
    return done()


class Connection(http.client.HTTPConnection):
    """HTTP over the daemon's unix socket."""

    def __init__(self, server):
        super().__init__("dashpot", timeout=60)
        self.path = f"{server.directory}/api.sock"

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def read(server, path, **query):
    """Returns the body of an answer."""
    with contextlib.closing(Connection(server)) as connection:
        connection.request("GET", f"{path}?{urllib.parse.urlencode(query)}")
        answer = connection.getresponse()
        said = answer.read()
    if answer.status != 200:
        raise RuntimeError(f"{path}: {said[:300].decode()}")
    return said


def ask(server, path, **query):
    return json.loads(read(server, path, **query))
