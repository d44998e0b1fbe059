"""`make soak`: watches a busy loop device for long, and shows that nothing grows, is lost or is left behind.

fio reads and writes the device in turns: at a steady rate, at full speed, and not at all, while `dashpot iolatency` watches it. At the end the
counts of all intervals together are compared with the kernel's own, and the observer's memory with what it had at first.
"""

import argparse
import itertools
import json
import pathlib
import signal
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).parent.parent
sys.path.append(str(ROOT / "tests"))

import process
from observe import Loop
from servers import DASHPOT

INSTANCES = pathlib.Path("/sys/kernel/tracing/instances")
INTERVAL_S = 10
# What a fresh observer allocates while it first meets each kind of I/O.
SETTLED_S = 90
GROWTH_BYTES = 1 << 20
WORK = ["--direct=1", "--ioengine=libaio", "--bs=4k", "--rw=randrw", "--iodepth=32", "--time_based"]
# A host has other things to do: most of the time the device is not at its limit.
TURNS = [["--runtime=50", "--rate_iops=5000,5000"], ["--runtime=5"], ["--runtime=5", "--rate_iops=1,1"]]


def main():
    minutes = parse().minutes
    with Loop() as device, tempfile.TemporaryFile("w+") as out:
        started = counters(device)
        watch = process.start([DASHPOT, "iolatency", "--json", "-Q", "--by", "process", "-d", device.path, str(INTERVAL_S)], stdout=out)
        memory = work(device, watch, time.monotonic() + 60 * minutes)
        watch.send_signal(signal.SIGINT)
        complaints = watch.communicate(timeout=30)[1]
        done = [now - then for now, then in zip(counters(device), started)]
        out.seek(0)
        intervals = [json.loads(line) for line in out if line.startswith("{")]
    left = list(INSTANCES.glob(f"dashpot-{watch.pid}-*"))
    return judge(intervals, done, memory, left, complaints)


def parse():
    parser = argparse.ArgumentParser(prog="make soak ARGS=", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60, metavar="N", help="how long [60]")
    return parser.parse_args()


def work(device, watch, end):
    """One turn after the other; the observer's memory every second."""
    memory = []
    for turn in itertools.cycle(TURNS):
        if time.monotonic() > end:
            return memory
        load = process.start(["fio", "--name=soak", f"--filename={device.path}", *WORK, *turn])
        while load.poll() is None:
            memory.append((time.monotonic(), process.memory_bytes(watch.pid)))
            time.sleep(1)
        if load.returncode:
            raise RuntimeError(f"fio: {process.complaint(load.stderr.read())}")
        process.stop(load)
        print(f"{(end - time.monotonic()) / 60:.1f} min left, {memory[-1][1] >> 10} KiB", flush=True)


def counters(device):
    """Reads and writes that the kernel has finished on the device."""
    numbers = pathlib.Path(f"/sys/class/block/{pathlib.Path(device.path).name}/stat").read_text().split()
    return [int(numbers[0]), int(numbers[4])]


def judge(intervals, done, memory, left, complaints):
    """Prints what was seen, and returns the exit status."""
    seen = sum(process["latency"]["n"] for interval in intervals for process in interval["values"])
    lost = sum(interval["lost"] for interval in intervals)
    began = memory[0][0]
    settled = [size for when, size in memory if when > began + SETTLED_S] or [memory[-1][1]]
    checks = {
        f"{seen} I/Os seen, {sum(done)} finished by the device": seen == sum(done),
        f"{lost} events lost": lost == 0,
        f"memory from {settled[0] >> 10} to {settled[-1] >> 10} KiB, at most {max(settled) >> 10}":
            max(settled) <= settled[0] + GROWTH_BYTES,
        f"instances left behind: {len(left)}": not left,
    }
    for what, held in checks.items():
        print(f"{'held  ' if held else 'FAILED'} {what}")
    if complaints:
        print(complaints)
    return 0 if all(checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
