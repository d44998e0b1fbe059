"""`make soak`: watches a busy loop device for long, and shows that nothing grows, is lost or is left behind.

fio reads and writes the device in turns of full speed and of rest, while `dashpot iolatency` watches it. At the end the
counts of all intervals together are compared with the kernel's own, and the observer's memory with what it had at first.
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
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
SETTLED_S = 60
GROWTH_BYTES = 1 << 20


def main():
    minutes = parse().minutes
    before = set(os.listdir(INSTANCES))
    with Loop() as device, tempfile.TemporaryFile("w+") as out:
        started = counters(device)
        watch = process.start([DASHPOT, "iolatency", "--json", "-Q", "--by", "process", "-d", device.path, str(INTERVAL_S)], stdout=out)
        memory = work(device, watch, time.monotonic() + 60 * minutes)
        watch.send_signal(signal.SIGINT)
        complaints = watch.communicate(timeout=30)[1]
        done = [now - then for now, then in zip(counters(device), started)]
        out.seek(0)
        intervals = [json.loads(line) for line in out if line.startswith("{")]
    return judge(intervals, done, memory, set(os.listdir(INSTANCES)) - before, complaints)


def parse():
    parser = argparse.ArgumentParser(prog="make soak ARGS=", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60, metavar="N", help="how long [60]")
    return parser.parse_args()


def work(device, watch, end):
    """Full speed, rest, and again; the observer's memory every few seconds."""
    memory = []
    while time.monotonic() < end:
        load = subprocess.Popen(["fio", "--name=soak", *words(device)], stdout=subprocess.DEVNULL)
        while load.poll() is None:
            memory.append((time.monotonic(), process.memory_bytes(watch.pid)))
            time.sleep(1)
        time.sleep(2)
        print(f"{(end - time.monotonic()) / 60:.1f} min left, {memory[-1][1] >> 10} KiB", flush=True)
    return memory


def words(device):
    return [f"--filename={device.path}", "--direct=1", "--ioengine=libaio", "--bs=4k", "--rw=randrw", "--iodepth=32", "--time_based",
            "--runtime=20"]


def counters(device):
    """Reads and writes that the kernel has finished on the device."""
    numbers = pathlib.Path(f"/sys/class/block/{pathlib.Path(device.path).name}/stat").read_text().split()
    return [int(numbers[0]), int(numbers[4])]


def judge(intervals, done, memory, left, complaints):
    """Prints what was seen, and returns the exit status."""
    seen, lost = sum(interval["latency"]["n"] for interval in intervals), sum(interval["lost"] for interval in intervals)
    began = memory[0][0]
    settled = [size for when, size in memory if when > began + SETTLED_S] or [memory[-1][1]]
    checks = {
        f"{seen} I/Os seen, {sum(done)} finished by the device": seen == sum(done),
        f"{lost} events lost": lost == 0,
        f"memory from {settled[0] >> 10} to {settled[-1] >> 10} KiB, at most {max(settled) >> 10}":
            max(settled) <= settled[0] + GROWTH_BYTES,
        f"instances left behind: {', '.join(left) or 'none'}": not left,
    }
    for what, held in checks.items():
        print(f"{'held  ' if held else 'FAILED'} {what}")
    if complaints:
        print(complaints)
    return 0 if all(checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
