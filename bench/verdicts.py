"""`make verdicts`: tests whether `proof --check` and `check` give the same answer every time.

The script arms rules of 20 and 50 ms that are kept, and rules that are broken, each many times: on the machine as it
is, and beside four busy loops. A kept rule must be called kept (0), or `cannot tell here` (4) if the host stops
dashpot; a broken one must be refused (3) every time. Prints a table of the exit statuses, and fails if one is wrong.
"""

import argparse
import collections
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import process

DASHPOT = os.path.abspath(os.environ["DASHPOT"])
DEPTH = 16
ENOUGH = 400
KEPT, NOT_KEPT, CANNOT_TELL = 0, 3, 4


class Daemon:
    """`dashpot serve` with one disk, and its commands."""

    def __init__(self, directory):
        self.api, self.nbd = (f"{directory}/{name}.sock" for name in ("api", "nbd"))
        ready = f"{directory}/ready"
        words = [
            "-d",
            "d=ram,size=64M",
            "--nbd",
            f"unix:{self.nbd}",
            "--api",
            f"unix:{self.api}",
            "--ready-file",
            ready,
        ]
        self.process = process.start([DASHPOT, "serve", *words], stderr=subprocess.DEVNULL)
        self.run("status", "--wait", "20s")

    def run(self, *words):
        environment = {**os.environ, "DASHPOT_API": f"unix:{self.api}"}
        return subprocess.run([DASHPOT, *words], env=environment, capture_output=True, text=True, timeout=120)

    def arm(self, *words):
        done = self.run("inject", "d", *words)
        assert done.returncode == 0, done.stderr

    def load(self, delay_ms, *words):
        """Loads the disk with somewhat more than `ENOUGH` I/Os."""
        milliseconds = round(1.25 * ENOUGH * delay_ms / DEPTH) + 100
        uri = f"nbd+unix:///d?socket={self.nbd}"
        done = self.run("load", uri, "--depth", str(DEPTH), "--time", f"{milliseconds}ms", *words)
        assert done.returncode == 0, done.stderr


def kept(daemon, delay_ms):
    """Arms a rule that does what it says, and asks `proof --check` and `check` about it: neither may call it broken."""
    daemon.arm("-D", f"{delay_ms}ms", "--name", "slow")
    while json.loads(daemon.run("list", "--json").stdout)[0]["held"] < ENOUGH:
        daemon.load(delay_ms)
    yield "proof --check", daemon.run("proof", "slow", "--check")
    expected = [f"slow.achieved.p50 >= {delay_ms}ms", f"slow.held >= {ENOUGH}"]
    yield "check", daemon.run("check", as_asked(delay_ms), *expected)


def as_asked(delay_ms):
    """A check on `requested`, which holds on any host: only `achieved` includes the host's delays."""
    return f"slow.requested.p50 < {delay_ms * 1.05:.2f}ms"


def off(daemon, delay_ms):
    """Arms a rule whose delay is a quarter longer than the check allows, so `check` must fail."""
    daemon.arm("-D", f"{delay_ms * 1.25:g}ms", "--name", "slow")
    daemon.load(delay_ms)
    yield "delay 25 % off", daemon.run("check", as_asked(delay_ms))


def wrong_type(daemon, delay_ms):
    daemon.arm("-D", f"{delay_ms}ms", "-T", "flush", "--name", "slow")
    daemon.load(delay_ms, "--rate", str(1000 * DEPTH // delay_ms))
    yield "wrong type", daemon.run("proof", "slow", "--check")


def beaten(daemon, delay_ms):
    """Arms a rule, and another that always beats it because it holds I/Os longer, so `proof --check` must fail."""
    daemon.arm("-D", f"{delay_ms}ms", "--name", "slow")
    daemon.arm("-D", f"{delay_ms * 1.5:g}ms")
    daemon.load(delay_ms * 1.5)
    yield "beaten", daemon.run("proof", "slow", "--check")


CASES = [(kept, KEPT), (off, NOT_KEPT), (wrong_type, NOT_KEPT), (beaten, NOT_KEPT)]


@contextlib.contextmanager
def busy_loops(count):
    loops = [process.start([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            process.stop(loop)


def measure(runs, daemon, place, table, reasons):
    """Runs every case `runs` times, and adds the exit statuses to the table."""
    for delay_ms in (20, 50):
        for case, wanted in CASES:
            for _ in range(runs):
                for name, done in case(daemon, delay_ms):
                    table[place, delay_ms, name, wanted][done.returncode] += 1
                    if not is_right(wanted, [done.returncode]):
                        said = (done.stderr or done.stdout).strip()
                        reasons.append(f"{place}, {delay_ms} ms, {name}: {said}")
                daemon.run("clear", "all")


def is_right(wanted, statuses):
    """Whether the statuses are allowed: a rule that is kept may also get “cannot tell”, but a broken rule may not."""
    allowed = {wanted, CANNOT_TELL} if wanted == KEPT else {wanted}
    return set(statuses) <= allowed


def show(table):
    print(f"{'where':<22} {'delay':>6}  {'case':<18} {'exit 0':>7} {'3':>4} {'4':>4} {'other':>6}")
    for (place, delay_ms, name, wanted), statuses in table.items():
        known = [statuses[status] for status in (KEPT, NOT_KEPT, CANNOT_TELL)]
        other = sum(statuses.values()) - sum(known)
        mark = "" if is_right(wanted, statuses) else "  WRONG"
        print(f"{place:<22} {delay_ms:>3} ms  {name:<18} {known[0]:>7} {known[1]:>4} {known[2]:>4} {other:>6}{mark}")


def main():
    parser = argparse.ArgumentParser(prog="make verdicts ARGS=", description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20, metavar="N", help="runs of each case [20]")
    runs = parser.parse_args().runs
    load = os.getloadavg()[0]
    print(
        f"{os.cpu_count()} CPUs, load average {load:.1f} before, {runs} runs, at least {ENOUGH} I/Os of depth {DEPTH}"
    )
    table, reasons = collections.defaultdict(collections.Counter), []
    with tempfile.TemporaryDirectory(prefix="dashpot.") as directory:
        daemon = Daemon(pathlib.Path(directory))
        try:
            measure(runs, daemon, "as it is", table, reasons)
            with busy_loops(4):
                measure(runs, daemon, "beside 4 busy loops", table, reasons)
        finally:
            process.stop(daemon.process)
    show(table)
    print(*reasons, sep="\n")
    return 0 if all(is_right(wanted, statuses) for (*_, wanted), statuses in table.items()) else 1


if __name__ == "__main__":
    sys.exit(main())
