"""What it costs to watch a block device: CPU time per I/O of the whole machine, with an observer and without.

The device is a loop device over tmpfs, read by fio at depth 32: the fastest that this machine has, so that what is
added stands out. Instances of tracefs, BPF programs and the kernel's own work are nobody's process, so all CPUs are
added up. The original iolatency wants debugfs at its old place; it gets it in a mount namespace of its own.
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
from samples import difference
from servers import DASHPOT, Unavailable
from table import count, spread

from table import print_table

CELL = "loop over tmpfs, random reads of 4K at depth 32"
NOBODY = "nobody"
SIZE = 512 << 20
# Fewer pairs cannot tell what a few percent are.
ROUNDS = 24
TICK_NS = 10**9 // os.sysconf("SC_CLK_TCK")
DEBUGFS = "mount -t debugfs nodev /sys/kernel/debug && exec iolatency-perf -d {number} 1"


def run(bench):
    rounds = bench.rounds if bench.quick else max(ROUNDS, bench.rounds)
    with contextlib.ExitStack() as stack:
        device = bench.start(stack, "observe", loop_device)
        if device is None:
            return
        samples = bench.measure("observe", [CELL], list(OBSERVERS), lambda _, name: watched(bench, name, device), rounds)
    rows = [row(samples, name) for name in OBSERVERS if samples.spread(CELL, name, "cpu_ns")]
    columns = ["observer", "CPU ns per I/O", "added", "95 % of the median", "IOPS", "lost"]
    print_table(f"observe: {CELL}", columns, rows)
    ours, theirs = (added(samples, name) for name in ("dashpot", "biolatency"))
    if ours and theirs:
        bench.at_most("observing: CPU per I/O added, beside biolatency", CELL, ours.median / max(theirs.median, 1), 1)
    lost = samples.spread(CELL, "dashpot", "lost")
    if lost:
        bench.at_most("observing: events lost", f"at {count(samples.spread(CELL, 'dashpot', 'iops').median)} IOPS", lost.most, 0)


def row(samples, name):
    of = lambda figure, form=count: spread(samples.spread(CELL, name, figure), form)
    more = added(samples, name)
    between = f"{more.least:.0f}..{more.most:.0f}" if more else "-"
    return [name, of("cpu_ns"), f"{more.median:.0f}" if more else "-", between, of("iops"), of("lost")]


def added(samples, name):
    """CPU time per I/O more than with nobody, taken round by round: its median, and where that is with 95 %."""
    return None if name == NOBODY else difference(samples, CELL, "cpu_ns", name, NOBODY)


class Loop:
    """A loop device over a file in memory."""

    def __enter__(self):
        self.file = tempfile.NamedTemporaryFile(dir="/dev/shm", prefix="dashpot-bench.")
        # Written once: a hole would be read for nothing.
        for _ in range(SIZE >> 20):
            self.file.write(b"\xa5" * (1 << 20))
        self.file.flush()
        attached = subprocess.run(["losetup", "-f", "--show", self.file.name], capture_output=True, text=True)
        if attached.returncode:
            self.file.close()
            raise Unavailable(f"no loop device: {process.complaint(attached.stderr)}")
        self.path = attached.stdout.strip()
        self.number = pathlib.Path(f"/sys/class/block/{pathlib.Path(self.path).name}/dev").read_text().strip()
        return self

    def __exit__(self, *_):
        subprocess.run(["losetup", "-d", self.path], check=False)
        self.file.close()


def loop_device():
    if not shutil.which("losetup") or not shutil.which("fio"):
        raise Unavailable("losetup or fio is not installed: make deps")
    return Loop()


def watched(bench, name, device):
    with contextlib.ExitStack() as stack:
        observer = bench.start(stack, name, lambda: Observer(name, device))
        if observer is None:
            return None
        busy = busy_ns()
        done = fio(device, bench.seconds(2.5, 1))
        spent = busy_ns() - busy
        return {"cpu_ns": spent / done["total_ios"], "iops": done["iops"], **observer.lost()}


def fio(device, seconds):
    argv = ["fio", "--name=observed", f"--filename={device.path}", "--direct=1", "--ioengine=libaio", "--rw=randread", "--bs=4k",
            "--iodepth=32", "--readonly", "--time_based", f"--runtime={seconds}", "--gtod_reduce=1", "--output-format=json"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    if done.returncode:
        raise RuntimeError(f"fio: {process.complaint(done.stderr)}")
    return json.loads(done.stdout[done.stdout.index("{"):])["jobs"][0]["read"]


def busy_ns():
    """Time that all CPUs have worked; what the host took is not in it."""
    user, nice, system, _, _, irq, softirq, *_ = map(int, pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:])
    return (user + nice + system + irq + softirq) * TICK_NS


class Observer:
    """A program that watches the device, from when it says so."""

    def __init__(self, name, device):
        self.argv = OBSERVERS[name](device)

    def __enter__(self):
        self.out = tempfile.TemporaryFile("w+")
        self.process = None
        if self.argv is None:
            return self
        if not shutil.which(self.argv[0]):
            raise Unavailable(f"{self.argv[0]} is not installed: make deps")
        self.process = process.start(self.argv, stdout=self.out, stderr=self.out, start_new_session=True)
        try:
            self.wait()
        except BaseException:
            self.__exit__()
            raise
        return self

    def wait(self):
        """Until it has reported once: what it takes to begin is not what it takes to watch."""
        end = time.monotonic() + 20
        while self.said().count("\n") < 3:
            if self.process.poll() is not None:
                raise Unavailable(f"{self.argv[0]} ended: {process.complaint(self.said())}")
            if time.monotonic() > end:
                raise Unavailable(f"{self.argv[0]} says nothing")
            time.sleep(0.05)

    def said(self):
        self.out.seek(0)
        return self.out.read()

    def lost(self):
        """Events that dashpot says it has not seen; the others do not say."""
        if self.argv is None or self.argv[0] != DASHPOT:
            return {}
        process.interrupt_group(self.process)
        self.process.wait(10)
        return {"lost": sum(json.loads(line)["lost"] for line in self.said().splitlines() if line.startswith("{"))}

    def __exit__(self, *_):
        if self.process:
            process.interrupt_group(self.process)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(5)
            process.stop(self.process)
        self.out.close()


# `--json` says how much was lost; a histogram costs the same either way.
OBSERVERS = {
    NOBODY: lambda device: None,
    "dashpot": lambda device: [DASHPOT, "iolatency", "--json", "-d", device.path, "1"],
    "dashpot -Q": lambda device: [DASHPOT, "iolatency", "--json", "-Q", "-d", device.path, "1"],
    "biolatency": lambda device: ["stdbuf", "-oL", "biolatency", "-d", pathlib.Path(device.path).name, "1"],
    "iolatency": lambda device: ["unshare", "-m", "sh", "-c", DEBUGFS.format(number=device.number.replace(":", ","))],
}
