"""Gives each test its own daemon, and has the helpers that tests share.

Nothing here sleeps for a result: `eventually` asks again until the answer is right. Its time limit only keeps a
defect from hanging the run. The watchdog that kills a daemon which outlives its test has the same purpose.
"""

import json
import os
import pathlib
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import threading
import time

import pytest
import tracefs

# Mount tracefs before the test modules are imported, because they look for it at their import.
tracefs.mount()

ROOT = pathlib.Path(__file__).resolve().parent.parent
BINARY = os.environ.get("DASHPOT") or str(ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "debug" / "dashpot")
HANG_LIMIT = 120


def requires(tool):
    """Skips the test if a tool is missing, and names the tool."""
    return pytest.mark.skipif(shutil.which(tool) is None, reason=f"{tool} is missing: make deps")


def eventually(probe, describe="the condition"):
    """Calls `probe` until its answer is true, and returns the answer."""
    deadline = time.monotonic() + HANG_LIMIT
    while time.monotonic() < deadline:
        if answer := probe():
            return answer
        time.sleep(0.02)
    raise AssertionError(f"{describe} never came true")


def run(*command, code=0, env=None, stdin=""):
    """Runs a command to its end, checks its exit code, and returns its output."""
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        timeout=HANG_LIMIT,
        input=stdin,
        env={**os.environ, **(env or {})},
    )
    text = f"{' '.join(map(str, command))}\nexit {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert code is None or done.returncode == code, text
    return done


def open_to_all(path):
    """Lets every user use a directory of a test, and reach it below the directory of temporary files."""
    top = pathlib.Path(tempfile.gettempdir())
    for place in [path, *path.parents]:
        if place == top or top not in place.parents:
            break
        place.chmod(0o777)


class Daemon:
    """`dashpot serve` with private sockets in a directory of its own."""

    def __init__(self, directory, arguments, under=()):
        self.directory = directory
        self.over = False
        self.nbd = directory / "nbd.sock"
        self.api = directory / "api.sock"
        self.ready = directory / "ready"
        self.log = open(directory / "log", "w+")
        command = [*under, BINARY, "serve", *arguments, "--nbd", f"unix:{self.nbd}"]
        if "--api" not in arguments:
            command += ["--api", f"unix:{self.api}"]
        self.process = subprocess.Popen(
            [*command, "--ready-file", str(self.ready)],
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            cwd=directory,
        )
        # Twice the limit, so that a test whose condition never comes says so itself.
        self.watchdog = threading.Timer(2 * HANG_LIMIT, self.process.kill)
        self.watchdog.daemon = True
        self.watchdog.start()
        eventually(lambda: self.ready.exists() or self.process.poll() is not None, "ready")
        assert self.process.poll() is None, f"the daemon did not start:\n{self.output()}"

    @property
    def pid(self):
        return self.process.pid

    def output(self):
        return (self.directory / "log").read_text()

    def uri(self, disk):
        return f"nbd+unix:///{disk}?socket={self.nbd}"

    def connect(self):
        """A plain socket to the NBD listener."""
        plain = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        plain.settimeout(HANG_LIMIT)
        plain.connect(str(self.nbd))
        return plain

    def cli(self, *arguments, code=0):
        """Runs a command against this daemon."""
        return run(BINARY, *arguments, code=code, env={"DASHPOT_API": f"unix:{self.api}"})

    def start(self, *arguments):
        """Starts a command against this daemon. The caller reads its output."""
        return subprocess.Popen(
            [BINARY, *map(str, arguments)],
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "DASHPOT_API": f"unix:{self.api}"},
        )

    def json(self, *arguments):
        return json.loads(self.cli(*arguments, "--json").stdout)

    def rules(self, disk=None):
        """The armed rules by id."""
        return {rule["id"]: rule for rule in self.json("list", *([disk] if disk else []))}

    def disk(self, name="d"):
        """The daemon's view of a disk, with all zios in flight."""
        (disk,) = [disk for disk in self.json("status", "--inflight")["disks"] if disk["name"] == name]
        return disk

    def volume(self, name="tank/v"):
        """The daemon's view of a volume, with all zios in flight."""
        (volume,) = [volume for volume in self.json("status", "--inflight")["volumes"] if volume["name"] == name]
        return volume

    def stop(self):
        """Ends the daemon as its user would, and checks that it exits cleanly."""
        self.over = True
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait()
        self.watchdog.cancel()
        self.log.close()
        assert code == 0, f"the daemon ended with {code}:\n{self.output()}"
        left = [path.name for path in self.directory.iterdir() if stat.S_ISSOCK(path.stat().st_mode)]
        assert not left, f"sockets left behind: {left}"

    def abandon(self):
        """Kills the daemon, for a test that has failed or that needs a killed daemon."""
        self.over = True
        self.watchdog.cancel()
        self.process.kill()
        self.process.wait()
        self.log.close()


@pytest.fixture
def directory():
    """A directory with a short path, because the name of a unix socket may have only 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="dashpot.") as path:
        yield pathlib.Path(path)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.when == "call":
        item.failed_in_call = report.failed


@pytest.fixture
def serve(directory, request):
    """Starts daemons. Each daemon is stopped, and checked, at the end of the test."""
    daemons = []

    def start(*arguments, under=()):
        home = directory / f"d{len(daemons)}"
        home.mkdir()
        daemons.append(Daemon(home, arguments, under))
        return daemons[-1]

    yield start
    failed = getattr(request.node, "failed_in_call", True)
    for daemon in [daemon for daemon in daemons if not daemon.over]:
        if failed:
            daemon.abandon()
            print(f"the daemon said:\n{daemon.output()}")
        else:
            daemon.stop()


@pytest.fixture
def daemon(serve):
    """The daemon for most tests: one disk, `d`, of 64 MiB in memory."""
    return serve("-d", "d=ram,size=64M")


def pytest_sessionstart():
    if not os.access(BINARY, os.X_OK):
        pytest.exit(f"{BINARY} is missing: `make build` makes it", returncode=1)
