"""Checks whether `dashpot diff` names the cause. For each of twenty seeds and each kind of cause, `diff` compares
the recording of a run that has the cause with the recording of a steady run."""

import os
import pathlib
import re
import signal
import subprocess
import time

import process
from servers import DASHPOT
from table import print_table

from bench import directory

DISKS, CLIENTS, SECONDS = 10, 8, 1.5
SEEDS, QUICK_SEEDS = 20, 2
# For each kind of cause, a pattern of the line in which `diff` must name it. This must be the first line or,
# for the neighbour, any line.
KINDS = {
    "a disk of ten": r"^Slower: (device d3|rule \d+) ",
    "a client of eight": r"^Slower: (client uid=\d+ pid=CLIENT|rule \d+) ",
    "a size": r"^Slower: size 64K-128K ",
    "a range of offsets": r"^Slower: (offset 1M-2M|rule \d+) ",
    "a neighbour of the same queue": r"(?m)^More than there: device tank/noisy",
    "nothing": r"^Nothing (differs|to tell)",
}


def run(bench):
    seeds = QUICK_SEEDS if bench.quick else SEEDS
    named = dict.fromkeys(KINDS, 0)
    with directory() as place, Lab(pathlib.Path(place)) as lab:
        for seed in range(seeds):
            good = lab.record(f"good-{seed}", seed)
            quiet = lab.neighbours(f"quiet-{seed}", seed, 0)
            for kind, expected in KINDS.items():
                bad, client = lab.bad(kind, seed)
                beside = quiet if kind.startswith("a neighbour") else good
                told = lab.cli("diff", "--in", bad, "--baseline", beside)
                if re.search(expected.replace("CLIENT", str(client)), told):
                    named[kind] += 1
                else:
                    print(f"seed {seed}, {kind}: {told.splitlines()[0]}", flush=True)
    bench.figures["differences"] = {"seeds": seeds, "named": named}
    print_table(
        f"differences: in how many of {seeds} seeds diff named the cause",
        ["cause", "named"],
        [[kind, str(count)] for kind, count in named.items()],
    )
    bench.failures.extend(
        f"differences: {kind} {count} of {seeds}" for kind, count in named.items() if count < 0.95 * seeds
    )


class Lab:
    """Ten disks under a constant delay of 10 ms, and two volumes of a pool whose disk has one lane."""

    def __init__(self, place):
        self.place, self.nbd = place, place / "nbd.sock"
        lab = place / "lab.toml"
        lab.write_text(
            "".join(f'[disk.d{n}]\nstore = "ram"\nsize = "4M"\nrules = ["-D 10ms"]\n' for n in range(DISKS))
            + """
[disk.one]
store = "ram"
size = "64M"
rules = ["-D 1ms:1 -T all"]
[pool.tank]
disks = ["one"]
[volume."tank/v"]
size = "8M"
[volume."tank/noisy"]
size = "8M"
"""
        )
        ready = place / "ready"
        api = f"unix:{place / 'api.sock'}"
        self.environment = {**os.environ, "DASHPOT_API": api}
        self.daemon = process.start(
            [DASHPOT, "serve", lab, "--nbd", f"unix:{self.nbd}", "--api", api, "--ready-file", ready]
        )
        while not ready.exists():
            time.sleep(0.02)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        process.stop(self.daemon)

    def cli(self, *words):
        done = subprocess.run(
            [DASHPOT, *map(str, words)], env=self.environment, capture_output=True, text=True, timeout=120
        )
        if done.returncode:
            raise RuntimeError(f"{words}: {done.stderr}")
        return done.stdout

    def load(self, export, seed, rate, *words):
        return process.start(
            [
                DASHPOT,
                "load",
                f"nbd+unix:///{export}?socket={self.nbd}",
                "--depth",
                "64",
                "--time",
                f"{SECONDS}s",
                "--seed",
                str(seed),
                "--rate",
                str(rate),
                "--write",
                "40%",
                *words,
            ]
        )

    def recorded(self, name, disks, loads):
        """Records these disks while the loads run."""
        recording = self.place / name.replace(" ", "-")
        words = [word for disk in disks for word in ("-d", disk)]
        recorder = process.start(
            [DASHPOT, "record", *words, "-o", recording], env=self.environment, stdout=subprocess.PIPE
        )
        recorder.stdout.readline()
        for load in loads():
            load.wait()
        recorder.send_signal(signal.SIGINT)
        recorder.wait()
        return recording

    def mixed(self, seed):
        """Two clients for each disk: one sends small I/Os, and one sends a few large I/Os."""
        sizes = ((120, "4K"), (8, "64K"))
        return [
            self.load(f"d{number}", 100 * seed + number, rate, "--block", size)
            for number in range(DISKS)
            for rate, size in sizes
        ]

    def record(self, name, seed):
        return self.recorded(name, [f"d{number}" for number in range(DISKS)], lambda: self.mixed(seed))

    def neighbours(self, name, seed, rate):
        def loads():
            noisy = [self.load("tank%2Fnoisy", seed, rate)] if rate else []
            return [self.load("tank%2Fv", seed + 1, 200), *noisy]

        return self.recorded(name, ["tank/v", "tank/noisy"], loads)

    def bad(self, kind, seed):
        """A recording with a cause of this kind, and the slow process, if the cause is a process."""
        seen, name = seed + 50, f"{kind}-{seed}"
        if kind.startswith("a neighbour"):
            return self.neighbours(name, seen, 900), None
        # For "a size", the limited bandwidth makes large I/Os slow; small I/Os sometimes wait behind large ones.
        every = [f"d{number}" for number in range(DISKS)]
        causes = {
            "a disk of ten": (["d3"], ["-D", "30ms", "-f", "30%"]),
            "a size": (every, ["-D", "10ms", "--bandwidth", "3M"]),
            "a range of offsets": (every, ["-D", "30ms", "-f", "40%", "--range", "1M..2M"]),
        }
        if kind == "a client of eight":
            return self.of_client(name, seen)
        disks, rule = causes.get(kind, ([], []))
        for disk in disks:
            self.cli("inject", disk, *rule, "--name", f"cause-{disk}")
        recording = self.record(name, seen)
        for disk in disks:
            self.cli("clear", f"cause-{disk}")
        return recording, None

    def of_client(self, name, seed):
        clients = []

        def loads():
            clients.extend(self.load("d0", 100 * seed + number, 250) for number in range(CLIENTS))
            self.cli("inject", "d0", "-D", "30ms", "-f", "30%", "--client", f"*pid={clients[5].pid}", "--name", "cause")
            return clients

        recording = self.recorded(name, ["d0"], loads)
        self.cli("clear", "cause")
        return recording, clients[5].pid
