"""The cost of watching a block device: CPU time per I/O of the whole machine, with and without an observer.

The device is a loop device over tmpfs, read by fio at depth 32: the fastest device of this machine, so that
the additional cost shows. Instances of tracefs, BPF programs and the kernel's own work belong to no process,
so the CPU time of all CPUs counts. This time includes that of other programs, so the machine must be quiet.
"""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

import process
from observers import NOBODY, OBSERVERS, RECORDER, WHO, observer
from samples import difference
from servers import Unavailable
from table import count, print_table, spread

CELL = "loop over tmpfs, random reads of 4K at depth 32"
SIZE = 512 << 20
# With fewer pairs, a few percent could not be distinguished from noise.
ROUNDS = 24
TICK_NS = 10**9 // os.sysconf("SC_CLK_TCK")


def run(bench):
    rounds = bench.rounds if bench.quick else max(ROUNDS, bench.rounds)
    with contextlib.ExitStack() as stack:
        device = bench.start(stack, "observe", loop_device)
        if device is None:
            return
        samples = bench.measure(
            "observe", [CELL], list(OBSERVERS), lambda _, name: watched(bench, name, device), rounds
        )
    rows = [row(samples, name) for name in OBSERVERS if samples.spread(CELL, name, "cpu_ns")]
    columns = ["observer", "CPU ns per I/O", "added", "95 % of the median", "IOPS", "seen %", "lost"]
    print_table(f"observe: {CELL}", columns, rows)
    ours, theirs = (added(samples, name) for name in ("dashpot", "biolatency"))
    if ours and theirs:
        bench.at_most("observing: CPU per I/O added, beside biolatency", CELL, ours.median / max(theirs.median, 1), 1)
    if more := difference(samples, CELL, "cpu_ns", RECORDER, WHO):
        bench.at_most("recording: CPU ns per I/O added to watching with the same facts", CELL, more.median, 400)
    for name in ("dashpot", "dashpot -Q", WHO, RECORDER):
        if lost := samples.spread(CELL, name, "lost"):
            where = f"{name} at {count(samples.spread(CELL, name, 'iops').median)} IOPS"
            bench.at_most("observing: events lost", where, lost.most, 0)
            bench.at_least(
                "observing: I/Os seen, in percent", where, samples.spread(CELL, name, "seen_percent").least, 100
            )


def row(samples, name):
    of = lambda figure, form=count: spread(samples.spread(CELL, name, figure), form)
    more = added(samples, name)
    between = f"{more.least:.0f}..{more.most:.0f}" if more else "-"
    seen = of("seen_percent", lambda percent: f"{percent:.4g}")
    return [name, of("cpu_ns"), f"{more.median:.0f}" if more else "-", between, of("iops"), seen, of("lost")]


def added(samples, name):
    """The CPU time per I/O that an observer adds, compared with `nobody` round by round: the median, and its 95 %
    interval.
    """
    return None if name == NOBODY else difference(samples, CELL, "cpu_ns", name, NOBODY)


class Loop:
    """A loop device over a file in memory."""

    def __enter__(self):
        self.file = tempfile.NamedTemporaryFile(dir="/dev/shm", prefix="dashpot-bench.")
        # The file is written once, because reads of a hole would cost less.
        for _ in range(SIZE >> 20):
            self.file.write(b"\xa5" * (1 << 20))
        self.file.flush()
        attached = subprocess.run(["losetup", "-f", "--show", self.file.name], capture_output=True, text=True)
        if attached.returncode:
            self.file.close()
            raise Unavailable(f"no loop device: {process.complaint(attached.stderr)}")
        self.path = attached.stdout.strip()
        self.name = pathlib.Path(self.path).name
        self.number = self.said("dev").strip().replace(":", ",")
        return self

    def said(self, file):
        return pathlib.Path(f"/sys/class/block/{self.name}/{file}").read_text()

    def reads(self):
        """Reads that the kernel has finished."""
        return int(self.said("stat").split()[0])

    def __exit__(self, *_):
        subprocess.run(["losetup", "-d", self.path], check=False)
        self.file.close()


def loop_device():
    if not shutil.which("losetup") or not shutil.which("fio"):
        raise Unavailable("losetup or fio is not installed: make deps")
    return Loop()


def watched(bench, name, device):
    with contextlib.ExitStack() as stack:
        watch = bench.start(stack, name, lambda: observer(name, device))
        if watch is None:
            return None
        busy, before = busy_ns(), device.reads()
        iops = fio(device, bench.seconds(2.5, 1))
        watch.settle()
        spent, done = busy_ns() - busy, device.reads() - before
        figures = watch.end()
    if "seen" in figures:
        figures["seen_percent"] = 100 * figures.pop("seen") / done
    return {"cpu_ns": spent / done, "iops": iops, **figures}


def fio(device, seconds):
    argv = [
        "fio",
        "--name=observed",
        f"--filename={device.path}",
        "--direct=1",
        "--ioengine=libaio",
        "--rw=randread",
        "--bs=4k",
        "--iodepth=32",
        "--readonly",
        "--time_based",
        f"--runtime={seconds}",
        "--gtod_reduce=1",
        "--output-format=json",
    ]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    if done.returncode:
        raise RuntimeError(f"fio: {process.complaint(done.stderr)}")
    return json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]["read"]["iops"]


def busy_ns():
    """How long all CPUs together were neither idle nor taken by the host. The function subtracts the idle
    time from the total time, because the kernel measures idle time with a clock. It counts busy time only in
    ticks, of which a short run has few.
    """
    _, _, _, idle, iowait, _, _, steal, *_ = map(int, pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:])
    return time.monotonic_ns() * os.cpu_count() - (idle + iowait + steal) * TICK_NS
