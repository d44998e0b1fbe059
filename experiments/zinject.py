"""The experiments of D. Prakash Surya's article "OpenZFS: Artificial Disk Latency Using zinject"
(2015): one disk with one lane and with sixteen, then two disks of different latency.

The article's writes came from ZFS, which sent them in bursts: on average 1.7 were in flight (97 a second, of 17.08 ms
each). Here a closed loop of bursts of one to four writes imitates this. The disk then has about the article's rate
and mean latency, with one lane as well as with sixteen.
"""

import collections
import re
import threading
import time

import nbd
from lab import beside, daemon, title

SECONDS = 10
BLOCK = 128 << 10
DISK_SIZE = 64 << 20
# The writes in each burst: 1.6 on average, which gives a mean latency of 16.9 ms with one lane of 10 ms.
BURSTS = [1, 1, 1, 4, 1, 1, 1, 1, 2, 1, 1, 4, 1, 1, 1, 3, 1, 1, 4, 1]
PAUSE = 0.0005

Report = collections.namedtuple("Report", "rows avg stddev iops throughput")

ARTICLE = {
    "baseline": Report(
        {256: 248, 512: 6204, 1024: 26218, 2048: 13070, 4096: 2474, 8192: 416, 16384: 56, 32768: 7},
        2025,
        1609,
        811,
        99623,
    ),
    "10:1": Report({8192: 4177, 16384: 894, 32768: 807, 65536: 1}, 17080, 12448, 97, 12518),
    "10:16": Report({8192: 8836, 16384: 39, 32768: 11, 65536: 1, 131072: 1}, 10261, 3022, 148, 18463),
    "16:16": Report({8192: 29964, 16384: 1012, 32768: 117, 65536: 4}, 16391, 2128, 518, 64651),
    "32:16": Report({8192: 26, 16384: 16104, 32768: 162, 65536: 5}, 32310, 1680, 271, 33630),
}


def text(report):
    """A report in the layout of the article."""
    values = sorted(report.rows)
    total = sum(report.rows.values())
    lines = [f"{'value':>16}  ------------- Distribution ------------- count"]
    value = values[0] // 2
    while value <= values[-1] * 2:
        count = report.rows.get(value, 0)
        lines.append(f"{value:>16} |{'@' * int(40 * count / total + 0.5):<40} {count}")
        value *= 2
    summary = f"{report.avg:<16}   {report.stddev:<11}   {report.iops:<4}   {report.throughput}"
    return "\n".join([*lines, "", "avg latency (us)   stddev (us)   iops   throughput (KB/s)", summary])


def parse(text):
    """Parses the output of `dashpot quantize`: a report for each disk by its name, or a single report for
    all disks under "". As with DTrace, the distributions come in a different order from the figures.
    """
    figures = {
        name: map(int, numbers.split())
        for name, numbers in re.findall(r"^([a-z]\w*)? *((?:\d+ +){3}\d+) *$", text, re.MULTILINE)
    }
    rows, name = collections.defaultdict(dict), ""
    for line in text.splitlines():
        if row := re.match(r" *(\d+) \|@* * (\d+) *$", line):
            rows[name][int(row[1])] = int(row[2])
        elif line.strip() in figures:
            name = line.strip()
    return {
        name: Report({value: count for value, count in rows[name].items() if count}, *numbers)
        for name, numbers in figures.items()
    }


class Writer(threading.Thread):
    """A client that writes in bursts until it is told to stop. Each burst waits for the end of the previous one."""

    def __init__(self, uri, bursts, pause):
        super().__init__()
        self.handle = nbd.NBD()
        self.handle.connect_uri(uri)
        self.bursts, self.pause = bursts, pause
        self.least = float("inf")
        self.over = threading.Event()

    def run(self):
        payload = nbd.Buffer.from_bytearray(bytearray(BLOCK))
        written = 0
        while True:
            for burst in self.bursts:
                if self.over.is_set():
                    self.handle.shutdown()
                    return
                sent = time.monotonic()
                answered = []
                for _ in range(burst):
                    self.handle.aio_pwrite(payload, written % DISK_SIZE, lambda error: self.note(sent, error, answered))
                    written += BLOCK
                while len(answered) < burst:
                    self.handle.poll(-1)
                time.sleep(self.pause)

    def note(self, sent, error, answered):
        assert error.value == 0
        answered.append(error)
        self.least = min(self.least, time.monotonic() - sent)
        return 1

    def stop(self):
        self.over.set()
        self.join()


def measure(lab, writers, *words):
    """Runs the writers, and returns dashpot's reports about the time in which they ran."""
    for writer in writers:
        writer.start()
    report = lab.start("quantize", "--op", "write", "--for", f"{SECONDS}s", *words)
    printed, _ = report.communicate()
    for writer in writers:
        writer.stop()
    assert report.returncode == 0
    return printed


def misplaced(here, there):
    """The share of I/Os that would have to be in other rows for the two histograms to be equal."""
    rows = here.rows.keys() | there.rows.keys()
    share = lambda report, row: report.rows.get(row, 0) / sum(report.rows.values())  # noqa: E731
    return sum(abs(share(here, row) - share(there, row)) for row in rows) / 2


def one_disk(lab, name):
    writer = Writer(lab.uri("c1t1d0"), BURSTS, PAUSE)
    here = parse(measure(lab, [writer]))[""]
    beside(text(here), text(ARTICLE[name]))
    return here, writer.least


def run(claims):
    with daemon("c1t1d0=ram,size=64M", "c1t2d0=ram,size=64M") as lab:
        baseline(claims, lab)
        one, sixteen = lanes(claims, lab, "10:1"), lanes(claims, lab, "10:16")
        claims.near("mean with one lane, in us", one.avg, ARTICLE["10:1"].avg, 0.10)
        claims.near("mean with sixteen lanes, in us", sixteen.avg, ARTICLE["10:16"].avg, 0.05)
        claims.near("IOPS with sixteen lanes, over those with one", sixteen.iops / one.iops, 148 / 97, 0.15)
        two_disks(claims, lab)


def baseline(claims, lab):
    title("zinject: the baseline")
    here, _least = one_disk(lab, "baseline")
    fast = sum(count for value, count in here.rows.items() if value < 8192)
    claims("most requests take less than 8 ms", fast > 0.9 * sum(here.rows.values()))


def lanes(claims, lab, delay):
    title(f"zinject: one disk, {delay}")
    lab.command("zinject", "-c", "all")
    lab.command("zinject", "-d", "c1t1d0", "-D", delay, "tank")
    lab.command("zinject", "--compat=2.3")
    here, least = one_disk(lab, delay)
    claims(f"nothing below 10 ms: the client's fastest took {least * 1e3:.3f} ms", least >= 0.010)
    share = misplaced(here, ARTICLE[delay])
    claims(f"the histograms are alike: {share:.0%} of the I/Os are in other rows, at most 20%", share <= 0.20)
    return here


def two_disks(claims, lab):
    title("zinject: two disks, 16:16 and 32:16")
    lab.command("zinject", "-c", "all")
    lab.command("zinject", "-d", "c1t1d0", "-D", "16:16", "tank")
    lab.command("zinject", "-d", "c1t2d0", "-D", "32:16", "tank")
    lab.command("zinject", "--compat=2.3")
    # In the article, 8.5 writes were in flight on the fast disk and 8.8 on the slow one: its rates times its latencies.
    writers = [Writer(lab.uri(disk), [1], 0) for disk in ("c1t1d0", "c1t2d0") for _ in range(8)]
    reports = parse(measure(lab, writers, "--by", "disk"))
    fast, slow = reports["c1t1d0"], reports["c1t2d0"]
    beside(text(fast), text(ARTICLE["16:16"]))
    beside(text(slow), text(ARTICLE["32:16"]))
    claims("nothing below 16 ms on the one", min(writer.least for writer in writers[:8]) >= 0.016)
    claims("nothing below 32 ms on the other", min(writer.least for writer in writers[8:]) >= 0.032)
    claims.near("the fast disk's IOPS over the slow one's", fast.iops / slow.iops, 2, 0.10)
    claims.near("its throughput over the slow one's", fast.throughput / slow.throughput, 2, 0.10)
