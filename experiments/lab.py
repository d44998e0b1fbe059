"""The common parts of the experiments: a daemon, output in two columns, and claims that hold or do not."""

import contextlib
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time


def find_dashpot():
    """The program that DASHPOT names, or else the one that cargo has built here last."""
    if "DASHPOT" in os.environ:
        return os.path.abspath(os.environ["DASHPOT"])
    target = pathlib.Path(__file__).resolve().parent.parent / "target"
    built = [path for kind in ("release", "debug") if (path := target / kind / "dashpot").exists()]
    if not built:
        sys.exit("there is no dashpot here: run 'make build', or set DASHPOT to the program")
    return str(max(built, key=lambda path: path.stat().st_mtime))


DASHPOT = find_dashpot()
WIDTH = 78


class Claims:
    """The claims of an article, and whether each holds here."""

    def __init__(self):
        self.failed = []
        self.held = 0

    def __call__(self, claim, holds):
        print(f"  {'holds' if holds else 'FAILS'}: {claim}", flush=True)
        if holds:
            self.held += 1
        else:
            self.failed.append(claim)

    def near(self, claim, here, there, share):
        """Checks the claim that a figure differs from the article's figure by at most this share of the article's."""
        self(f"{claim}: {here:.5g} here, {there:.5g} there, within {share:.0%}", abs(here - there) <= share * there)

    def verdict(self):
        """Prints how many claims hold, and returns the exit code."""
        print(f"\n{self.held} claims held, {len(self.failed)} did not", *self.failed, sep="\n  ")
        return 1 if self.failed else 0


class Daemon:
    """`dashpot serve` on private sockets."""

    def __init__(self, directory, words):
        self.directory = pathlib.Path(directory)
        self.environment = {**os.environ, "DASHPOT_API": f"unix:{directory}/api.sock"}
        self.process = subprocess.Popen(
            [
                DASHPOT,
                "serve",
                *words,
                "--nbd",
                f"unix:{directory}/nbd.sock",
                "--api",
                f"unix:{directory}/api.sock",
                "--ready-file",
                f"{directory}/ready",
            ],
            stdout=subprocess.DEVNULL,
        )
        while not (self.directory / "ready").exists():
            if self.process.poll() is not None:
                sys.exit("the daemon did not start")
            time.sleep(0.05)

    def uri(self, disk):
        return f"nbd+unix:///{disk}?socket={self.directory}/nbd.sock"

    def start(self, *words):
        return subprocess.Popen([DASHPOT, *words], env=self.environment, stdout=subprocess.PIPE, text=True)

    def command(self, *words):
        """Runs a command and shows it, as the articles do."""
        print(f"\n  $ dashpot {' '.join(words)}")
        text = self.ask(*words)
        print("".join(f"  {line}\n" for line in text.splitlines()), end="", flush=True)

    def ask(self, *words):
        return subprocess.run(
            [DASHPOT, *words], env=self.environment, stdout=subprocess.PIPE, text=True, check=True
        ).stdout

    def json(self, *words):
        return json.loads(self.ask(*words, "--json"))


def daemon(*disks):
    return serving(*(word for disk in disks for word in ("-d", disk)))


@contextlib.contextmanager
def serving(*words):
    """A daemon of `dashpot serve` with these arguments."""
    with tempfile.TemporaryDirectory(prefix="dashpot.") as directory:
        served = Daemon(directory, words)
        try:
            yield served
        finally:
            served.process.terminate()
            served.process.wait()


def title(text):
    print(f"\n{'=' * WIDTH}\n{text}\n{'=' * WIDTH}", flush=True)


def beside(here, there):
    """Prints two texts side by side."""
    left, right = (["dashpot", "", *here.splitlines()], ["the article", "", *there.splitlines()])
    print()
    for one, other in itertools.zip_longest(left, right, fillvalue=""):
        print(f"{one.rstrip():<{WIDTH}}{other.rstrip()}".rstrip())
    print(flush=True)
