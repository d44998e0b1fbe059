"""A daemon that this process starts, and that ends with it."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from types import TracebackType
from typing import IO, List, Optional, Sequence, Type

from ._binary import find_program
from ._daemon import Daemon
from ._errors import DashpotError, NotStarted
from ._figures import Json

# A daemon that no longer answers has this many seconds until its process ends.
_ENDS_WITHIN = 5.0
# When `serve` is ready, it prints its API's address after this word.
_ANNOUNCED = "API  "
# A Python script that writes the API's address to the file descriptor whose number is its first argument, and then
# becomes the command in its other arguments.
_SAY_AND_BECOME = """
import os, shutil, sys
say, command = int(sys.argv[1]), sys.argv[2:]
if shutil.which(command[0]) is None:
    print(f"dashpot: {command[0]}: this program does not exist, or cannot be executed", file=sys.stderr)
    sys.exit(127)
os.write(say, ("API  " + os.environ["DASHPOT_API"] + "\\n").encode())
os.close(say)
try:
    os.execvp(command[0], command)
except OSError as error:
    sys.exit(f"dashpot: {command[0]}: {error}")
"""


class Captive(Daemon):
    """A daemon that this process has started. The daemon ends with the `with` block, at `stop`, or with this process,
    even if this process is killed. The daemon's sockets are in a private directory, which it removes when it ends."""

    def __init__(
        self, program: str, process: subprocess.Popen[bytes], log: IO[bytes], outcomes: IO[bytes], address: str
    ) -> None:
        super().__init__(address, program)
        self.process = process
        self._log = log
        self._outcomes = outcomes
        self.api.explain_absence = self._explain_absence

    def __enter__(self) -> Captive:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """The id of the daemon's process."""
        return self.process.pid

    def output(self) -> str:
        """The output so far of the daemon, and of its program if it has one."""
        return _read(self._log)

    def outcomes(self) -> List[Json]:
        """The rules that were armed when the program ended, with their last figures; empty if there is no program, or
        if it has not ended."""
        told = _read(self._outcomes)
        return list(json.loads(told)) if told else []

    def _explain_absence(self) -> str:
        """Why no daemon answers, as far as this process knows."""
        try:
            # The daemon stops answering a little before its process ends.
            status = self.process.wait(_ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            return ""
        return f": dashpot has ended with status {status} and said:\n{self.output()}"

    def stop(self, timeout: float = 20.0) -> int:
        """Ends the daemon, and its program if it has one, with SIGTERM. Returns the exit status. The figures of rules
        that are armed stay readable.

        A daemon that has not ended after `timeout` seconds is killed.
        """
        if self.process.poll() is None:
            with suppress(DashpotError):
                self.remember()
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


def run(
    *disks: str,
    lab: Optional[str] = None,
    rules: Sequence[str] = (),
    command: Optional[Sequence[str]] = None,
    options: Sequence[str] = (),
    timeout: float = 30.0,
) -> Captive:
    """Starts a daemon with private sockets, and returns when clients can connect.

    `disks` are in the words of `-d` ("db=ram,size=1G"), `rules` in those of `-r` ("db -D 2ms"), and `options`
    are further options of `dashpot serve`. Without disks and `lab` there are two RAM disks, c1t1d0 and
    c1t2d0.

    dashpot starts the program `command`, if it is given. The program's calls on files become the I/Os of the
    `path:DIR` disks that have these files. `run` then returns when the program is about to begin.
    """
    program = find_program()
    words = [word for disk in disks for word in ("-d", disk)]
    words += [word for rule in rules for word in ("-r", rule)]
    words += [*options, *([lab] if lab else [])]
    log, outcomes = tempfile.TemporaryFile(), tempfile.TemporaryFile()
    reading, writing = os.pipe()
    # If this process is killed before the daemon has begun to watch it, the daemon finds the pipe broken, and ends.
    try:
        started = _start(program, words, command, writing, log, outcomes)
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    try:
        address = _announced(started, reading, time.monotonic() + timeout)
    except BaseException as error:
        started.kill()
        started.wait()
        if isinstance(error, DashpotError):
            raise NotStarted(f"{error} and said:\n{_read(log)}") from None
        raise
    finally:
        # `serve` prints nothing more to this pipe; its later messages go to the log.
        os.close(reading)
    return Captive(program, started, log, outcomes, address)


def _start(
    program: str,
    words: List[str],
    command: Optional[Sequence[str]],
    writing: int,
    log: IO[bytes],
    outcomes: IO[bytes],
) -> subprocess.Popen[bytes]:
    if command is None:
        here = [program, "serve", "--exit-with-parent", "--api", "unix:-", "--nbd", "unix:-", *words]
        return subprocess.Popen(here, stdin=subprocess.DEVNULL, stdout=writing, stderr=log)
    say = [sys.executable, "-I", "-S", "-c", _SAY_AND_BECOME, str(writing), *command]
    last = f"/proc/{os.getpid()}/fd/{outcomes.fileno()}"
    here = [program, "run", "--exit-with-parent", "--outcomes", last, *words, "--", *say]
    return subprocess.Popen(here, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=[writing])


def _announced(process: subprocess.Popen[bytes], reading: int, deadline: float) -> str:
    """Waits until the daemon prints the address of its API, which it does when clients can connect, and returns the
    address."""
    said = b""
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([reading], [], [], left)[0]:
            raise DashpotError("dashpot did not become ready in time")
        more = os.read(reading, 65536)
        if not more:
            raise DashpotError(f"dashpot ended with status {process.wait()}")
        said += more
        for line in said.decode(errors="replace").splitlines(keepends=True):
            if line.startswith(_ANNOUNCED + "unix:") and line.endswith("\n"):
                return line[len(_ANNOUNCED) :].rstrip("\n")


def _read(log: IO[bytes]) -> str:
    """The whole log. The function uses `pread`, because a read would move the file offset, which the daemon's
    descriptor shares.
    """
    size = os.fstat(log.fileno()).st_size
    return os.pread(log.fileno(), size, 0).decode(errors="replace")
