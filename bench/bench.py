"""One run of the bench: its rounds, its failures, and the promises that held."""

import contextlib
import sys
import tempfile
import time

from samples import Samples
from servers import Unavailable

NOISE_NS = 300_000_000
GAP_NS = 20_000


class Bench:
    def __init__(self, rounds, quick):
        self.rounds, self.quick = rounds, quick
        self.failures, self.skipped, self.figures = [], [], {}
        self.promises, self.lost = {}, {}
        self.progress = Progress()

    def seconds(self, full, quick):
        """How many seconds one unit of measurement takes."""
        return quick if self.quick else full

    def measure(self, part, cells, servers, unit, rounds=None):
        """In each round, measures every server in every cell. Each round begins with a different server, so that no
        server is always measured right after the same other server. `unit(cell, server)` returns figures, or
        None.
        """
        samples, rounds = Samples(), rounds or self.rounds
        self.progress.begin(part, rounds * len(cells) * len(servers))
        for number in range(rounds):
            self.lost.setdefault(part, []).append(round(share_lost(), 3))
            for cell in cells:
                turn = number % len(servers)
                for server in [*servers[turn:], *servers[:turn]]:
                    self.progress.step(f"round {number + 1} of {rounds}: {cell}, {server}")
                    with self.guard(f"{part}: {cell}, {server}"):
                        samples.add(cell, server, number, unit(cell, server))
        self.progress.end()
        self.figures.setdefault(part, {}).update(samples.figures())
        return samples

    @contextlib.contextmanager
    def guard(self, name):
        """Records a failure under its name, and continues with the rest."""
        try:
            yield
        except Exception as error:
            self.fail(f"{name}: {type(error).__name__}: {error}")

    def fail(self, failure):
        if failure not in self.failures:
            self.failures.append(failure)
            self.progress.say(f"FAILED {failure}")

    def start(self, stack, name, begin):
        """A server that lives as long as `stack`, or None if it cannot be started."""
        try:
            return stack.enter_context(begin())
        except Unavailable as reason:
            skipped = f"{name}: {reason}"
            if skipped not in self.skipped:
                self.skipped.append(skipped)
                self.progress.say(f"SKIPPED {skipped}")
            return None

    def at_most(self, promise, where, value, bound):
        self._keep(promise, where, value, bound, (_over(value, bound), value - bound))

    def at_least(self, promise, where, value, bound):
        self._keep(promise, where, value, bound, (_over(bound, value), bound - value))

    def _keep(self, promise, where, value, bound, used):
        self.promises.setdefault(promise, []).append((used, f"{where}: {value:.3g}, bound {bound:.3g}"))

    def verdicts(self):
        """For each promise, the number of places in which it was checked and in which it held, and the place
        in which it came closest to failing.
        """
        for promise, places in self.promises.items():
            held = sum(used[0] <= 1 for used, _ in places)
            yield {"promise": promise, "held": held, "of": len(places), "hardest": max(places)[1]}


def _over(value, bound):
    """The share of the bound that the value uses. The promise holds if the share is at most 1."""
    if bound > 0:
        return value / bound
    return float(value > bound) * 2


def share_lost():
    """The machine's present noise: the share of a short time in which a loop that only reads the clock did
    not have its CPU.
    """
    began = before = time.monotonic_ns()
    lost = 0
    while before - began < NOISE_NS:
        now = time.monotonic_ns()
        if now - before > GAP_NS:
            lost += now - before
        before = now
    return lost / (before - began)


class Progress:
    """Shows the progress of the bench in one line on a terminal; in a pipe, prints only the important lines."""

    def __init__(self):
        self.shown = sys.stderr.isatty()

    def begin(self, part, units):
        self.part, self.units, self.done, self.began = part, units, 0, time.monotonic()

    def step(self, text):
        if self.shown:
            spent = time.monotonic() - self.began
            left = f", {spent / self.done * (self.units - self.done):.0f} s left" if self.done else ""
            print(
                f"\r\x1b[K{self.part}: {text} ({self.done} of {self.units}{left})"[:160],
                end="",
                file=sys.stderr,
                flush=True,
            )
        self.done += 1

    def say(self, text):
        self.end()
        print(text, file=sys.stderr, flush=True)

    def end(self):
        if self.shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def directory():
    """The directory for the sockets of one part, removed afterwards."""
    return tempfile.TemporaryDirectory(prefix="dashpot-bench.")
