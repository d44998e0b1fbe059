"""Starts, stops and cleans up after each program that watches a block device."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

import process
from servers import DASHPOT, Unavailable

NOBODY = "nobody"
# A report that collects the same facts about each I/O as the recorder does, and the recorder.
WHO, RECORDER = "dashpot -Q, process", "dashpot record"
START_SECONDS, END_SECONDS = 20, 20
INTERVAL_S = 1
# perf-tools' iolatency uses the events of the whole machine, and this file as a lock.
EVENTS = pathlib.Path("/sys/kernel/tracing/events/block/enable")
LOCK = pathlib.Path("/var/tmp/.ftrace-lock")
# perf-tools' iolatency needs debugfs at `/sys/kernel/debug`. If the machine has no debugfs there, the tool
# gets it in a separate mount namespace.
DEBUGFS = "[ -d /sys/kernel/debug/tracing ] || mount -t debugfs nodev /sys/kernel/debug && exec iolatency-perf -d {number} {interval}"
# A row of a histogram, as both peers print it.
ROW = re.compile(r"-> \d+ +: (\d+) +\|")


class Observer:
    """A program that watches the device. The watch has begun when the program has printed `LINES` lines."""

    LINES = 2

    def __init__(self, name, device):
        self.name, self.argv = name, OBSERVERS[name](device)

    def __enter__(self):
        # The writer and the reader share one position in the file, so the file is opened for appending.
        self.out = tempfile.TemporaryFile("a+")
        self.process = None
        if self.argv is None:
            return self
        for program in PROGRAMS[self.name]:
            if not shutil.which(program):
                raise Unavailable(f"{program} is not installed: make deps")
        if self.name == "iolatency" and (LOCK.exists() or is_tracing()):
            raise Unavailable("another program uses the kernel's block events")
        self.process = process.start(self.argv, stdout=self.out, stderr=self.out, start_new_session=True)
        try:
            self.wait()
        except BaseException:
            self.__exit__()
            raise
        return self

    def wait(self):
        """Waits until the observer has begun its watch, so that its start is not measured."""
        end = time.monotonic() + START_SECONDS
        while self.said().count("\n") < self.LINES:
            if self.process.poll() is not None:
                raise Unavailable(f"{self.argv[0]} ended: {process.complaint(self.said())}")
            if time.monotonic() > end:
                raise Unavailable(f"{self.argv[0]} says nothing")
            time.sleep(0.05)

    def said(self):
        self.out.seek(0)
        return self.out.read()

    def settle(self):
        """Waits for the observer's work on its last interval, which is a part of the cost of watching."""
        time.sleep(1.2 * INTERVAL_S)

    def end(self):
        """The number of I/Os that the observer has seen and, for dashpot only, the number of events that it missed."""
        if self.argv is None:
            return {}
        self.interrupt()
        lines = self.said().splitlines()
        if self.argv[0] != DASHPOT:
            return {"seen": sum(int(row[1]) for line in lines if (row := ROW.search(line)))}
        intervals = [json.loads(line) for line in lines if line.startswith("{")]
        # A report by process has a histogram for each process.
        histograms = (one for each in intervals for one in each.get("values", [each]))
        return {"seen": sum(one["latency"]["n"] for one in histograms), "lost": sum(each["lost"] for each in intervals)}

    def interrupt(self):
        process.interrupt_group(self.process)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(END_SECONDS)

    def __exit__(self, *_):
        if self.process:
            self.interrupt()
            # A script does not end its children, so kill the whole group. iolatency leaves the kernel's
            # events enabled.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            if self.name == "iolatency":
                put_away()
        self.out.close()


class Recorder(Observer):
    """A recorder, which writes its last file when it is interrupted."""

    LINES = 1

    def __init__(self, name, device):
        super().__init__(name, device)
        self.directory = tempfile.TemporaryDirectory(prefix="dashpot-bench.")
        self.recording = pathlib.Path(self.directory.name, "recording")
        self.argv = [*self.argv, "-o", str(self.recording)]

    def settle(self):
        self.interrupt()

    def end(self):
        """The numbers of I/Os that the recording has and lacks."""
        asked = subprocess.run(
            [DASHPOT, "stat", "disk.ops", "--in", self.recording, "--json"], capture_output=True, text=True, check=True
        )
        answer = json.loads(asked.stdout)
        return {"seen": answer["count"], "lost": answer["lost"]}

    def __exit__(self, *words):
        super().__exit__(*words)
        self.directory.cleanup()


def observer(name, device):
    return (Recorder if name == RECORDER else Observer)(name, device)


def is_tracing():
    return EVENTS.read_text().strip() != "0"


def put_away():
    """Switches off the events that iolatency has left on, and says so, because the next observer must be measured
    without them.
    """
    if not is_tracing() and not LOCK.exists():
        return
    EVENTS.write_text("0")
    LOCK.unlink(missing_ok=True)
    raise RuntimeError("iolatency left the kernel's block events on; they are off now")


def dashpot(*words):
    # With `--json` the report says how many events were lost, and costs as much CPU time as a text histogram.
    return lambda device: [DASHPOT, "iolatency", "--json", *words, "-d", device.path, str(INTERVAL_S)]


# biolatency buffers its output unless an option prevents it.
OBSERVERS = {
    NOBODY: lambda device: None,
    "dashpot": dashpot(),
    "dashpot -Q": dashpot("-Q"),
    WHO: dashpot("-Q", "--by", "process"),
    RECORDER: lambda device: [DASHPOT, "record", "-d", device.path],
    "biolatency": lambda device: ["stdbuf", "-oL", "biolatency", "-d", device.name, str(INTERVAL_S)],
    "iolatency": lambda device: [
        "unshare",
        "-m",
        "sh",
        "-c",
        DEBUGFS.format(number=device.number, interval=INTERVAL_S),
    ],
}
PROGRAMS = {
    "dashpot": [DASHPOT],
    "dashpot -Q": [DASHPOT],
    WHO: [DASHPOT],
    RECORDER: [DASHPOT],
    "biolatency": ["stdbuf", "biolatency"],
    "iolatency": ["unshare", "iolatency-perf"],
}
