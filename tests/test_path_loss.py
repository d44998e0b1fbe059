"""Path disks: dashpot and its keeper are killed at random moments, each alone, and both together. No call
waits for ever, and each is answered as --on-loss asks."""

import os
import pathlib
import random
import subprocess
import time

import pytest
from conftest import BINARY, HANG_LIMIT, eventually
from test_path import PYTHON, places, zombie  # noqa: F401

# Threads sync a file, and each writes a line with the error of each sync, with 0 for success.
THREADS = """
import os, sys, threading
os.setsid()
file = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR)
log = open(sys.argv[2], "a", buffering=1)
log.write(f"{os.getpid()}\\n")
def sync():
    errors = []
    for _ in range(100):
        try:
            os.fsync(file)
            errors.append("0")
        except OSError as error:
            errors.append(str(error.errno))
    log.write(" ".join(errors) + "\\n")
threads = [threading.Thread(target=sync) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
EIO, ENOSYS = "5", "38"
DASHPOT, KEEPER = "dashpot", "keeper"
# For each value of `--on-loss`, the errors that calls may get after the loss.
ASKED = {"pass": [], "fail": [EIO]}


def keeper_of(pid):
    """The process id of dashpot's keeper."""
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            children = (task / "children").read_text().split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # This thread of dashpot has ended.
        for child in children:
            if pathlib.Path(f"/proc/{child}/cmdline").read_bytes().startswith(b"dashpot-keeps-calls"):
                return int(child)
    raise AssertionError("dashpot has no keeper")


def is_stopped(pid):
    try:
        return ") T " in pathlib.Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("killed", [[DASHPOT], [KEEPER], [KEEPER, DASHPOT], [DASHPOT, KEEPER]])
@pytest.mark.parametrize("on_loss", ["pass", "fail", "kill"])
def test_no_call_waits_for_ever_when_processes_are_killed(places, tmp_path, on_loss, killed):  # noqa: F811
    wal, _ = places
    log = tmp_path / "log"
    process = subprocess.Popen(
        [
            BINARY,
            "run",
            "--on-loss",
            on_loss,
            "-d",
            f"wal=path:{wal}",
            "-r",
            "-D 3ms",
            "--",
            PYTHON,
            "-c",
            THREADS,
            wal / "f",
            log,
        ],
    )
    eventually(lambda: log.exists() and "\n" in log.read_text(), "the program's first line")
    program = int(log.read_text().split()[0])
    pids = {DASHPOT: process.pid, KEEPER: keeper_of(process.pid)}
    moment = random.uniform(0, 0.3)
    print(f"reproduce: killed after {moment} s")
    time.sleep(moment)
    for victim in killed:
        os.kill(pids[victim], 9)
    # If the keeper is killed while it kills the program, it leaves a program that it has stopped.
    may_stop = on_loss == "kill" and killed == [DASHPOT, KEEPER]
    eventually(lambda: zombie(program) or (may_stop and is_stopped(program)), "the program's end")
    if is_stopped(program):
        os.kill(program, 9)
    status = process.wait(HANG_LIMIT)
    lines = [line.split() for line in log.read_text().splitlines()[1:]]
    if DASHPOT not in killed:
        assert status == 0 and lines == [["0"] * 100] * 4
        return
    if on_loss == "kill":
        # If the program was killed, only threads that had already ended have written a line.
        assert {error for line in lines for error in line} <= {"0", *([ENOSYS] if KEEPER in killed else [])}
        return
    asked = ["0", *ASKED[on_loss], *([ENOSYS] if KEEPER in killed else [])]
    assert len(lines) == 4
    for errors in lines:
        assert len(errors) == 100
        assert errors == sorted(errors, key=asked.index), errors
