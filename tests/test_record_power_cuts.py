"""Tests power cuts at any moment of a recorder's work. A naive model, which gets the recorder's own system calls,
computes what a disk would keep.

strace reports the calls. After a cut, the model has the flushed data and any part of the rest. In a folder that was
not flushed, each name is as it was before or after the change; a file that was not flushed has its bytes only up to
some length.
"""

import os
import pathlib
import random
import re
import signal
import subprocess

import pytest
from conftest import BINARY, eventually, requires, run
from timed import Client

CALLS = "openat,write,pwrite64,fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,exit_group"
CUTS = 24
ROUNDS = 3
RESUMED = re.compile(r"<\.\.\. (\w+) resumed>(.*)")
PATH = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
FD = re.compile(r"\((\d+)<((?:\\x[0-9a-f]{2})*)>")


def plain(hexed):
    return bytes.fromhex(hexed.replace("\\x", ""))


def calls(trace):
    """The finished calls, in the order of their ends: a list of words."""
    begun = {}
    for line in trace.read_text().splitlines():
        thread, _, call = line.partition(" ")
        call = call.strip()
        if call.endswith("<unfinished ...>"):
            begun[thread] = call.removesuffix("<unfinished ...>")
            continue
        if resumed := RESUMED.match(call):
            call = begun.pop(thread, resumed[1] + "(") + resumed[2].lstrip()
        name, _, rest = call.partition("(")
        result = re.search(r"\)\s+= (-?\d+)", rest)
        if result and int(result[1]) >= 0:
            yield name, "(" + rest


class File:
    """A file's bytes, and how many of them were flushed."""

    def __init__(self):
        self.bytes, self.flushed = bytearray(), 0


class Disk:
    """The files and folders below a root, by their names: `now` has what the page cache has, and `flushed` has what
    the disk has. The value of a folder is `None`.
    """

    def __init__(self, root):
        self.root, self.now, self.flushed = str(root), {}, {}

    def do(self, name, rest):
        """Applies a call to the model. Returns the path of a folder that was flushed."""
        paths = [os.path.normpath(plain(path).decode(errors="replace")) for path in PATH.findall(rest)]
        fd = FD.match(rest)
        on = plain(fd[2]).decode() if fd else None
        if name == "openat" and "O_CREAT" in rest and self.has(paths[-1]):
            if paths[-1] not in self.now or "O_TRUNC" in rest:
                kept = self.now.get(paths[-1])
                self.now[paths[-1]] = kept or File()
                self.now[paths[-1]].bytes, self.now[paths[-1]].flushed = bytearray(), 0
        elif name in ("mkdir", "mkdirat") and self.has(paths[-1]):
            self.now[paths[-1]] = None
        elif name in ("write", "pwrite64") and self.has(on) and self.now.get(on):
            self.now[on].bytes += plain(PATH.search(rest)[1])
        elif name in ("fsync", "fdatasync") and on is not None:
            if self.now.get(on):
                self.now[on].flushed = len(self.now[on].bytes)
            else:
                return self.flush(on)
        elif name.startswith("rename") and self.has(paths[-1]):
            self.now[paths[-1]] = self.now.pop(paths[-2])
        elif name.startswith("unlink") and self.has(paths[-1]):
            self.now.pop(paths[-1], None)
        return None

    def has(self, path):
        return path is not None and (path + "/").startswith(self.root + "/")

    def flush(self, folder):
        names = {path for path in {*self.now, *self.flushed} if os.path.dirname(path) == folder}
        for path in names:
            self.flushed.pop(path, None)
            if path in self.now:
                self.flushed[path] = self.now[path]
        return folder

    def whole(self):
        """The Parquet files that must be whole after a power cut."""
        return {path for path in self.flushed if path.endswith(".parquet") and self.now.get(path) is self.flushed[path]}

    def cut(self, place, keep):
        """Makes the files that a cut leaves, below a different root. `keep` chooses how much of the unflushed
        data is left."""
        for path in sorted({*self.now, *self.flushed}):
            both = [names[path] for names in (self.flushed, self.now) if path in names]
            is_there = [path in self.flushed, path in self.now]
            if not is_there[keep(2)]:
                continue
            file = both[-1] if is_there[1] and (len(both) == 1 or keep(2)) else both[0]
            target = place / os.path.relpath(path, self.root)
            if file is None:
                target.mkdir(parents=True, exist_ok=True)
            elif target.parent.is_dir():
                target.write_bytes(file.bytes[: file.flushed + keep(len(file.bytes) - file.flushed + 1)])


@pytest.fixture
def traced(daemon, directory):
    """The calls of a recorder that was started three times."""
    root = directory / "rec"
    client = Client(daemon)
    seen = []
    for round in range(ROUNDS):
        trace = directory / f"trace-{round}"
        recorder = subprocess.Popen(
            [
                "strace",
                "-D",
                "-f",
                "-y",
                "-xx",
                "-s",
                "4000000",
                "-o",
                trace,
                "-e",
                f"trace={CALLS}",
                BINARY,
                "record",
                "-d",
                "d",
                "-o",
                root,
            ],
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "DASHPOT_API": f"unix:{daemon.api}"},
        )
        assert "recording d" in recorder.stdout.readline()
        client.many(200, 4)
        eventually(
            lambda: (
                '"in_flight":0'
                in run(BINARY, "status", "--json", env={"DASHPOT_API": f"unix:{daemon.api}"}).stdout.replace(" ", "")
            )
        )
        recorder.send_signal(signal.SIGINT)
        recorder.communicate(timeout=60)
        eventually(
            lambda: re.search(rf"^{recorder.pid} +\+\+\+ exited", trace.read_text(), re.M), "the end of the trace"
        )
        seen += calls(trace)
    return root, seen


@requires("strace")
def test_a_power_cut_leaves_whole_files(traced, directory):
    root, seen = traced
    flushes = [at for at, (name, _) in enumerate(seen) if "sync" in name]
    assert len(flushes) > 5 * ROUNDS
    chance = random.Random(15)
    # A power cut keeps nothing, everything, or a random part of the data that was not flushed.
    keeps = [lambda n: 0, lambda n: n - 1, chance.randrange]
    cuts = sorted(chance.choices(range(len(seen)), k=CUTS - 1)) + [len(seen)]
    disk, done, answers = Disk(root), 0, 0
    for number, at in enumerate(cuts):
        for name, rest in seen[done:at]:
            disk.do(name, rest)
        done = at
        place = directory / f"cut-{number}"
        place.mkdir()
        disk.cut(place, keeps[number % 3])
        for path in disk.whole():
            assert (place / os.path.relpath(path, root)).exists(), (number, path)
        if not list(place.glob("ios/*.parquet")):
            continue
        listed = run(BINARY, "snoop", "--in", place, "--json")
        assert "damaged" not in listed.stderr, listed.stderr
        answers += 1
    assert answers > CUTS / 4
    # The last power cut comes after the recorder's last call, and keeps only the flushed data.
    kept = directory / "kept"
    kept.mkdir()
    disk.cut(kept, lambda n: 0)
    same = [run(BINARY, "snoop", "--in", one, "--json").stdout for one in (root, kept)]
    assert same[0] == same[1] and len(same[0].splitlines()) >= 200 * ROUNDS


def test_the_model_sees_a_missing_flush():
    """Tests the model itself: if a file's name was flushed before its bytes, the file may be short after a
    cut."""
    disk = Disk(pathlib.Path("/r"))
    hexed = lambda text: "".join(f"\\x{byte:02x}" for byte in text.encode())
    disk.do("openat", f'(AT_FDCWD, "{hexed("/r/a.parquet")}", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3')
    disk.do("write", f'(3<{hexed("/r/a.parquet")}>, "{hexed("bytes")}", 5) = 5')
    assert disk.whole() == set()
    disk.do("fsync", f"(4<{hexed('/r')}>) = 0")
    assert disk.whole() == {"/r/a.parquet"} and disk.flushed["/r/a.parquet"].flushed == 0
