"""The devices of sync calls: each call counts at its device, or as a call on an unknown device."""

import collections
import contextlib
import json
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest
from conftest import BINARY, eventually, run
from kernel import instances_of, is_watching, loop_in_memory, takes_a_kernel

# Makes each call in each directory on descriptors that it closes at once, and prints how many calls of each kind it has
# made in all.
PROGRAM = """
import collections, ctypes, json, mmap, os, sys
libc = ctypes.CDLL(None, use_errno=True)
name, rounds = sys.argv[1], int(sys.argv[2])
open("/proc/self/comm", "w").write(name)
made = collections.Counter()

def call(kind, path, flags, sync):
    file = os.open(path, flags)
    sync(file)
    os.close(file)
    made[kind] += 1

def mapped(file):
    os.ftruncate(file, 4096)
    with mmap.mmap(file, 4096) as memory:
        memory[:1] = b"x"
        memory.flush()

def ranged(file):
    assert libc.sync_file_range(file, ctypes.c_int64(0), ctypes.c_int64(4096), 2) == 0

for place in sys.argv[3:]:
    new = f"{place}/new"
    for _ in range(rounds):
        call("fsync", new, os.O_RDWR | os.O_CREAT, lambda file: (os.write(file, b"x"), os.fsync(file)))
        call("fdatasync", new, os.O_RDWR, lambda file: (os.write(file, b"y"), os.fdatasync(file)))
        call("fsync", place, os.O_RDONLY | os.O_DIRECTORY, os.fsync)
    for _ in range(5):
        call("syncfs", place, os.O_RDONLY, lambda file: libc.syncfs(file))
        call("msync", new, os.O_RDWR, mapped)
        call("sync_file_range", new, os.O_RDWR, ranged)
os.sync()
made["sync"] += 1
print(json.dumps(made))
"""
# The calls that are never on an unknown device.
PLACED = ("fsync", "fdatasync", "syncfs", "msync")


@contextlib.contextmanager
def mounted(at, *words):
    at.mkdir()
    run("mount", *words, at)
    try:
        yield at
    finally:
        run("umount", at)


@contextlib.contextmanager
def made(kind, directory):
    """A file system of this kind, a part of it that is mounted elsewhere, and an overlay over it; and its devices."""
    if shutil.which(f"mkfs.{kind}") is None:
        pytest.skip(f"mkfs.{kind} is missing: make deps")
    known = pathlib.Path("/proc/filesystems").read_text()
    if f"\t{kind}\n" not in known:
        pytest.skip(f"this kernel has no {kind}")
    with contextlib.ExitStack() as stack:
        loops = [stack.enter_context(loop_in_memory(megabytes=320)) for _ in range(1 + (kind == "btrfs"))]
        run(f"mkfs.{kind}", "-q", *(loop.path for loop in loops))
        place = stack.enter_context(mounted(directory / kind, loops[0].path))
        below = place / "below"
        run("btrfs", "subvolume", "create", below) if kind == "btrfs" else below.mkdir()
        places = [place, below, stack.enter_context(mounted(directory / "bound", "--bind", below))]
        # btrfs has no layer of an overlay on every kernel.
        if "\toverlay\n" in known and kind != "btrfs":
            [(place / name).mkdir() for name in ("lower", "upper", "work")]
            options = f"lowerdir={place}/lower,upperdir={place}/upper,workdir={place}/work"
            places.append(stack.enter_context(mounted(directory / "merged", "-t", "overlay", "overlay", "-o", options)))
        yield loops, places


def watch(*words):
    process = subprocess.Popen([BINARY, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    eventually(lambda: is_watching(process.pid), "it watches")
    return process


def end(process):
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert not instances_of(process.pid)
    return out, err


@takes_a_kernel
@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs"])
def test_no_call_vanishes(tmp_path, kind):
    with made(kind, tmp_path) as (loops, places):
        # The second device of a btrfs shows the calls as its first device does.
        loop = loops[-1]
        name = f"sync-{kind}"
        snoop = watch("snoop", "--layer", "fs", "-d", loop.path, "--where", f"process={name}", "--json")
        record = watch("record", "--layer", "fs", "-d", loop.path, "-o", tmp_path / "rec")
        program = [sys.executable, "-c", PROGRAM, name, "10", *places]
        own = json.loads(run(*program).stdout)
        out, err = end(snoop)
        lines = [json.loads(line) for line in out.splitlines()]
        told = collections.Counter(line["rwbs"] for line in lines if "rwbs" in line)
        unplaced = sum(line.get("unplaced", 0) for line in lines)
        assert {line["device"] for line in lines if "rwbs" in line} == {loop.name}
        assert {call: told[call] for call in PLACED} == {call: own[call] for call in PLACED}
        assert told["sync"] == 0
        assert told.total() + unplaced == sum(own.values())
        noun = "sync call" if unplaced == 1 else "sync calls"
        assert f"{unplaced} {noun} on unknown devices" in err
        assert "on unknown devices\n" in end(record)[0]
    # Each watch looks descriptors up on its own. A recording has no conditions, and other processes sync, too.
    at = ["--in", tmp_path / "rec", "--where", f"process={name}", "--json"]
    recorded = json.loads(run(BINARY, "iolatency", "--layer", "fs", "--by", "type", *at).stdout)
    counts = {value["value"]: value["latency"]["n"] for value in recorded["values"]}
    assert {call: counts[call] for call in PLACED} == {call: own[call] for call in PLACED}
    assert sum(counts.values()) + recorded["unplaced"] >= sum(own.values())
    beside = run(BINARY, "diff", "--layer", "fs", "--slow", "latency>=0ns", "--in", tmp_path / "rec").stderr
    assert "on unknown devices.\n" in beside


@takes_a_kernel
def test_a_descriptor_says_the_device_where_no_event_does(tmp_path):
    """`sync_file_range` reaches no file system, and a file that is only in the lower layer has nothing to sync."""
    with made("ext4", tmp_path) as (loops, places):
        stat = watch("stat", "fs.ops[type]", "-d", loops[0].path, "--where", "process=sync-held", "--json", "600s")
        (tmp_path / "ext4/lower/old").write_text("old")
        held = """
import ctypes, os, sys
open("/proc/self/comm", "w").write("sync-held")
libc = ctypes.CDLL(None)
files = [os.open(path, os.O_RDONLY) for path in sys.argv[1:]]
[libc.sync_file_range(files[0], ctypes.c_int64(0), ctypes.c_int64(4096), 2) for _ in range(3)]
[os.fsync(file) for file in files]
print("done", flush=True)
sys.stdin.read()
"""
        paths = [loops[0].path, *(f"{place}/old" for place in places if (place / "old").exists())]
        program = subprocess.Popen(
            [sys.executable, "-c", held, *paths], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert program.stdout.readline() == "done\n"
        out, _ = end(stat)
        program.communicate("")
        last = json.loads(out.splitlines()[-1])
        assert {value["value"]: value["count"] for value in last["values"]} == {
            "sync_file_range": 3,
            "fsync": len(paths),
        }
        assert last["unplaced"] == 0


@takes_a_kernel
def test_calls_on_a_disk_that_has_replaced_another_are_not_its_calls(tmp_path):
    with loop_in_memory() as loop, open(tmp_path / "other", "wb") as other:
        other.truncate(64 << 20)
        snoop = watch("snoop", "--layer", "fs", "-d", loop.path, "--where", "process=sync-replaced", "--json")
        run("losetup", "-d", loop.path)
        taken = run("losetup", loop.path, other.name, code=None)
        if taken.returncode:
            pytest.skip("another program has taken the loop device")
        run("mkfs.ext4", "-q", loop.path)
        with mounted(tmp_path / "at", loop.path) as place:
            run(sys.executable, "-c", PROGRAM, "sync-replaced", "1", place)
        lines = [json.loads(line) for line in end(snoop)[0].splitlines()]
        assert [line for line in lines if "rwbs" in line] == []
