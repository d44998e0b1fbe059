"""Measured processes: none of them outlives the bench, and their figures come from /proc."""

import contextlib
import ctypes
import functools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG = 1
# The kernel's clock id for the CPU time of a process and all its threads, including ended ones (clock_getcpuclockid).
# This clock counts nanoseconds, whereas /proc/PID/stat counts ticks of 10 ms.
CPUCLOCK_SCHED = 2
PERF = ["perf", "stat", "-x", ",", "-e", "instructions"]


def start(argv, **options):
    """A process that the kernel kills if the bench dies without cleaning up."""
    die_too = lambda: LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen(argv, text=True, preexec_fn=die_too, **options)


def interrupt_group(process):
    """Interrupts a group as Ctrl-C on a terminal does: a script's children get the signal, too."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)


def stop(process):
    """Asks the process to end, and kills it if it does not end within 5 s."""
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for pipe in (process.stdout, process.stderr):
        if pipe:
            pipe.close()


def complaint(errors):
    """The first line of a program's error output. The lines after it show the usage."""
    return errors.strip().partition("\n")[0][:300]


def cpu_ns(pid):
    """CPU time that a process has used so far."""
    return time.clock_gettime_ns((~pid << 3) | CPUCLOCK_SCHED)


class Instructions:
    """Counts the instructions of a process and all its threads while another command runs; `under` makes that
    command run under perf.
    """

    def __init__(self, pid):
        self.pid = pid

    def __enter__(self):
        self.file = tempfile.NamedTemporaryFile("r", prefix="dashpot-bench.")
        return self

    def __exit__(self, *_):
        self.file.close()

    def under(self, argv):
        if not counts_instructions():
            return argv
        return [*PERF, "-o", self.file.name, "-p", str(self.pid), "--", *argv]

    def count(self):
        """The count, or None if perf cannot count on this machine, as on most virtual ones."""
        found = re.search(r"^(\d+),", self.file.read(), re.MULTILINE)
        return int(found[1]) if found else None


@functools.cache
def counts_instructions():
    if not shutil.which(PERF[0]):
        return False
    done = subprocess.run([*PERF, "--", "true"], capture_output=True, text=True)
    return re.search(r"^\d+,", done.stderr, re.MULTILINE) is not None


def memory_bytes(pid, kind="VmRSS"):
    """VmRSS, or RssAnon: the part that no other process can share."""
    return 1024 * _number(pathlib.Path(f"/proc/{pid}/status"), kind)


def wake_ups(pid):
    """How often the threads of the process went to sleep, which is also how often they woke up."""
    tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
    return sum(_number(task / "status", "voluntary_ctxt_switches") for task in tasks)


def _number(path, key):
    for line in path.read_text().splitlines():
        name, _, value = line.partition(":")
        if name == key:
            return int(value.split()[0])
    raise ValueError(f"{path} has no {key}")
