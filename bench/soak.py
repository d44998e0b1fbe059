"""`make soak`: watches a busy loop device for a long time, and checks that the observer misses no I/O, does not grow,
and leaves nothing behind.

fio takes turns: it reads and writes the device at a steady rate, then at full speed, then almost not at all,
while `dashpot iolatency` watches the device, by process and from the moment at which an I/O is queued. After
each turn the soak prints the number of I/Os in all intervals beside the number of reads and writes that the
kernel says the device has finished. fio asks for no flushes, because the kernel counts each of them twice. At
the end both numbers must be equal, no event may be lost, the observer must not have grown after the first 90
s, and its instance of tracefs must be gone: otherwise the exit status is 1.

With --daemon, `dashpot serve` takes the place of the observer, with clients, watchers, and its page in a browser. Its
memory (RSS) must stay within 10 % of that after the first five minutes in 99 of 100 seconds: an answer that counts
single I/Os takes memory of its own for less than a second.

With --record, `dashpot record` takes the place of the observer. At the end its recording must count each I/O that the
kernel has finished, or say that the recorder lost the I/O, and must never have been larger than its bound.
"""

import argparse
import collections
import contextlib
import http.client
import itertools
import json
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

ROOT = pathlib.Path(__file__).parent.parent
sys.path.append(str(ROOT / "tests"))

import process
from observe import loop_device
from servers import DASHPOT, Unavailable

INSTANCES = pathlib.Path("/sys/kernel/tracing/instances")
INTERVAL_S = 1
SECOND = 1_000_000_000
# A new observer may allocate memory for this long, until it has seen each kind of I/O.
SETTLED_S = 90
GROWTH_BYTES = 1 << 20
# A recorder may have up to seven row groups of 6 MB at a time; how many it has depends on the host.
RECORDER_GROWTH_BYTES = 48 << 20
KEEP_BYTES = 24 << 20
MIN_MINUTES = 3
# The daemon's memory of single I/Os is full after five minutes.
DAEMON_SETTLED_S, DAEMON_GROWTH = 300, 1.1
DAEMON_RATE = 6_000
WORK = ["--direct=1", "--ioengine=libaio", "--bs=4k", "--rw=randrw", "--iodepth=32", "--time_based"]
# For most of the time, the load is less than the device can do, as on real hosts.
TURNS = [["--runtime=50", "--rate_iops=5000,5000"], ["--runtime=5"], ["--runtime=5", "--rate_iops=1,1"]]


def main():
    arguments = parse()
    # SIGTERM, which a supervisor sends, ends the soak in the same orderly way as Ctrl-C. (A shell starts its
    # background jobs with SIGINT ignored.)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    if arguments.daemon:
        return DaemonSoak(60 * arguments.minutes).run()
    with contextlib.ExitStack() as stack:
        device = stack.enter_context(loop_device())
        kind = RecordSoak if arguments.record else Soak
        soak = stack.enter_context(kind(device))
        soak.run(time.monotonic() + 60 * arguments.minutes)
        soak.end()
        return soak.judge()


def parse():
    parser = argparse.ArgumentParser(
        prog="make soak ARGS=", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60, metavar="N", help="how long [60]")
    parser.add_argument("--record", action="store_true", help="record the device instead of watching it")
    parser.add_argument("--daemon", action="store_true", help="watch the memory of a daemon with watchers and a page")
    arguments = parser.parse_args()
    least = DAEMON_SETTLED_S / 60 + 1 if arguments.daemon else MIN_MINUTES
    if arguments.minutes < least:
        parser.error(f"--minutes {arguments.minutes:g}: give {least:g} or more; the first ones tell nothing of growth")
    return arguments


class Soak:
    """An observer, and what the soak has read from it."""

    def __init__(self, device):
        self.device = device
        self.intervals, self.memory = [], []

    def __enter__(self):
        # The output goes to files: it would fill a pipe, because no process reads while the observer runs. The files
        # are opened for appending, because the writer and the reader share one position in each file.
        self.out, self.errors, self.place = tempfile.TemporaryFile("a+"), tempfile.TemporaryFile("a+"), 0
        self.began, self.counted = time.monotonic(), counters(self.device)
        self.watch = process.start(self.command(), stdout=self.out, stderr=self.errors)
        return self

    def command(self):
        return [DASHPOT, "iolatency", "--json", "-Q", "--by", "process", "-d", self.device.path, str(INTERVAL_S)]

    def __exit__(self, *_):
        process.stop(self.watch)
        self.out.close()
        self.errors.close()

    def run(self, end):
        """Runs the turns one after the other."""
        self.rest()
        for turn in itertools.cycle(TURNS):
            if (left := end - time.monotonic()) <= 0:
                break
            self.work(turn)
            self.rest()
            print(f"{left / 60:5.1f} min left  {self.told()}  {self.memory[-1][1] >> 10} KiB", flush=True)

    def told(self):
        return f"{self.seen()} I/Os seen, {self.finished()} finished  {self.lost()} events lost"

    def work(self, turn):
        load = process.start(["fio", "--name=soak", f"--filename={self.device.path}", *WORK, *turn])
        try:
            while load.poll() is None:
                self.look()
                time.sleep(0.5)
            if load.returncode:
                raise Unavailable(f"fio: {process.complaint(load.stderr.read())}")
        finally:
            process.stop(load)

    def rest(self):
        """Waits for the end of an interval that began only after all I/O had ended."""
        known = len(self.intervals)
        while len(self.intervals) < known + 2:
            self.look()
            time.sleep(0.1)

    def look(self):
        if self.watch.poll() is not None:
            raise Unavailable(f"the observer ended with {self.watch.returncode}: {self.complaints()}")
        self.memory.append((time.monotonic() - self.began, process.memory_bytes(self.watch.pid, "RssAnon")))
        self.read()

    def read(self):
        """Reads the intervals that have been written since the last call. The last line may be incomplete."""
        self.out.seek(self.place)
        while (line := self.out.readline()).endswith("\n"):
            self.intervals.append(json.loads(line))
            self.place = self.out.tell()

    def end(self):
        self.watch.send_signal(signal.SIGINT)
        self.watch.wait(30)
        self.read()

    def seen(self):
        return sum(value["latency"]["n"] for interval in self.intervals for value in interval["values"])

    def lost(self):
        return sum(interval["lost"] for interval in self.intervals)

    def finished(self):
        return counters(self.device) - self.counted

    def complaints(self):
        self.errors.seek(0)
        return self.errors.read().strip()

    def judge(self):
        """Prints the result, and returns the exit status."""
        settled = [size for when, size in self.memory if when > SETTLED_S]
        left = [instance.name for instance in INSTANCES.glob(f"dashpot-{self.watch.pid}-*")]
        checks = {
            f"{self.seen()} I/Os seen, {self.finished()} finished by the device": self.seen() == self.finished() > 0,
            f"{self.lost()} events lost": self.lost() == 0,
            f"memory after {SETTLED_S} s {settled[0] >> 10} KiB, then at most {max(settled) >> 10}, at last {settled[-1] >> 10}": max(
                settled
            )
            <= settled[0] + GROWTH_BYTES,
            f"exit status {self.watch.returncode}": self.watch.returncode == 0,
            f"instances left behind: {', '.join(left) or 'none'}": not left,
        }
        print(f"{len(self.intervals)} intervals of {INTERVAL_S} s")
        for what, held in checks.items():
            print(f"{'held  ' if held else 'FAILED'} {what}")
        if complaints := self.complaints():
            print(complaints)
        return 0 if all(checks.values()) else 1


class RecordSoak(Soak):
    """A recorder, and what the soak has read from it."""

    def __enter__(self):
        self.directory = tempfile.TemporaryDirectory()
        self.recording = pathlib.Path(self.directory.name) / "rec"
        self.most_bytes = 0
        super().__enter__()
        while not (self.recording / "ios").is_dir():
            self.look()
            time.sleep(0.05)
        time.sleep(1)
        self.counted = counters(self.device)
        return self

    def __exit__(self, *words):
        super().__exit__(*words)
        self.directory.cleanup()

    def command(self):
        return [DASHPOT, "record", "-d", self.device.path, "-o", self.recording, "--keep", str(KEEP_BYTES)]

    def rest(self):
        time.sleep(1)
        self.look()

    def read(self):
        with contextlib.suppress(FileNotFoundError):
            files = self.recording.glob("*/*.parquet")
            self.most_bytes = max(self.most_bytes, sum(path.stat().st_size for path in files))

    def told(self):
        return f"{self.finished()} finished  {self.most_bytes} bytes at most"

    def judge(self):
        settled = [size for when, size in self.memory if when > SETTLED_S]
        finished = self.finished()
        asked = subprocess.run(
            [DASHPOT, "stat", "disk.ops", "--in", self.recording, "--json"], capture_output=True, text=True
        )
        answer = json.loads(asked.stdout) if asked.returncode == 0 else {"count": 0, "lost": 0}
        checks = {
            f"{answer['count']} I/Os counted and {answer['lost']} lost, {finished} finished by the device": answer[
                "count"
            ]
            + answer["lost"]
            == finished
            > 0,
            f"{self.most_bytes} bytes at most of {KEEP_BYTES}": self.most_bytes <= KEEP_BYTES,
            f"memory after {SETTLED_S} s {settled[0] >> 20} MiB, then at most {max(settled) >> 20}, at last {settled[-1] >> 20}": max(
                settled
            )
            <= settled[0] + RECORDER_GROWTH_BYTES,
            f"exit status {self.watch.returncode}": self.watch.returncode == 0,
        }
        for what, held in checks.items():
            print(f"{'held  ' if held else 'FAILED'} {what}")
        print(self.complaints() + asked.stderr)
        return 0 if all(checks.values()) else 1


class DaemonSoak:
    """A daemon with clients that write at a steady rate, watchers, its page in a browser, and a caller that asks for the
    long past each second."""

    def __init__(self, seconds):
        self.seconds, self.memory, self.failed = seconds, [], []

    def run(self):
        with tempfile.TemporaryDirectory() as place, contextlib.ExitStack() as stack:
            words = [DASHPOT, "serve", "-d", "d=ram,size=64M", "-r", "-D 1ms", "--nbd", f"unix:{place}/nbd.sock"]
            words += ["--api", "tcp:127.0.0.1:0"]
            said = pathlib.Path(place, "said")
            self.daemon = self.start(stack, words, stdout=stack.enter_context(open(said, "w")))
            while (page := re.search(r"^page  (\S+)$", said.read_text(), re.M)) is None:
                if self.daemon.poll() is not None:
                    raise Unavailable("the daemon has ended: it says why without this script")
                time.sleep(0.05)
            self.url = urllib.parse.urlsplit(page.group(1))
            uri = f"nbd+unix:///d?socket={place}/nbd.sock"
            load = ["load", uri, "--rate", str(DAEMON_RATE // 2), "--depth", "64", "--write", "50%"]
            at = ["--api", re.search(r"^API  (\S+)$", said.read_text(), re.M).group(1)]
            watchers = [["iolatency", "--json", "1"], ["snoop", "--min", "2ms", "--json"], ["iostat", "1"]]
            commands = [load, load, *([*words, *at] for words in watchers)]
            commands = [[DASHPOT, *words] for words in commands]
            self.others = [self.start(stack, words) for words in [*commands, browsing(page.group(1))]]
            stack.callback(self.subscribe().close)
            self.watch()
            return self.judge()

    def start(self, stack, words, **streams):
        started = process.start(words, stderr=subprocess.DEVNULL, **streams)
        stack.callback(process.stop, started)
        return started

    def subscribe(self):
        """A stream of the panels of a page. A thread reads it, and ends with this process."""
        stream = self.connect()
        headers = {"Content-Type": "application/json", **self.token()}
        panels = json.dumps({"statistics": ["disk.latency[op]", "disk.ops[client]", "disk.latency[size]"]})
        stream.request("POST", "/v1/statistics/watch", panels, headers)
        answer = stream.getresponse()

        def read():
            # At the end of the soak, the stream is closed.
            with contextlib.suppress(OSError, AttributeError, ValueError, http.client.HTTPException):
                collections.deque(answer, maxlen=0)

        threading.Thread(target=read, daemon=True).start()
        return stream

    def connect(self):
        return http.client.HTTPConnection(self.url.netloc, timeout=60)

    def token(self):
        return {"Authorization": f"Bearer {self.url.fragment.removeprefix('token=')}"}

    def watch(self):
        """Asks what a page asks each second, and all remembered seconds, until the end."""
        began = time.monotonic()
        while (now := time.monotonic() - began) < self.seconds:
            clock = json.loads(self.ask("/v1/clock"))["now_ns"] // SECOND * SECOND
            past = f"from_ns={max(0, clock - 600 * SECOND)}&to_ns={clock}&step_ns={SECOND}"
            for path in (
                "/v1/status",
                "/v1/rules",
                f"/v1/statistics/columns?statistic=disk.latency&{past}",
                "/v1/seconds",
            ):
                self.ask(path)
            self.memory.append((now, process.memory_bytes(self.daemon.pid, "VmRSS")))
            if len(self.memory) % 30 == 0:
                print(f"{(self.seconds - now) / 60:5.1f} min left  {self.memory[-1][1] >> 20} MiB", flush=True)
            time.sleep(1)

    def ask(self, path):
        with contextlib.closing(self.connect()) as connection:
            connection.request("GET", path, headers=self.token())
            answer = connection.getresponse()
            text = answer.read()
            if answer.status != 200:
                self.failed.append(f"{path}: {answer.status} {text[:200]}")
            return text

    def judge(self):
        """Prints the result, and returns the exit status."""
        settled = [size for when, size in self.memory if when > DAEMON_SETTLED_S]
        usual = sorted(settled)[len(settled) * 99 // 100]
        ended = [str(other.args[1]) for other in self.others if other.poll() is not None]
        checks = {
            f"memory after {DAEMON_SETTLED_S} s {settled[0] >> 20} MiB, then p99 {usual >> 20}, "
            f"at most {max(settled) >> 20}, at last {settled[-1] >> 20}": usual <= settled[0] * DAEMON_GROWTH,
            f"clients and watchers that ended early: {', '.join(ended) or 'none'}": not ended,
            f"refused questions: {'; '.join(self.failed[:3]) or 'none'}": not self.failed,
        }
        for what, held in checks.items():
            print(f"{'held  ' if held else 'FAILED'} {what}")
        return 0 if all(checks.values()) else 1


def browsing(address):
    """The command that keeps the page at the address open in a browser."""
    missing = [tool for tool in ("node", "chromium") if shutil.which(tool) is None]
    if missing:
        raise Unavailable(f"{', '.join(missing)} is missing: make deps")
    return ["node", ROOT / "web/tests/stay.mjs", address]


def counters(device):
    """Reads and writes that the kernel has finished on the device."""
    numbers = device.said("stat").split()
    return int(numbers[0]) + int(numbers[4])


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("\nsoak: stopped")
    except Unavailable as reason:
        sys.exit(f"soak: {reason}")
