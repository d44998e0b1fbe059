"""Path disks: each kind of call is held, errors come as a rule says, and the counts are those of strace."""

import json
import os
import random
import re

from conftest import BINARY, requires, run
from test_path import PYTHON, SYNCS, counted, path_run, places  # noqa: F401

# Makes each call on a file in each of two directories, and prints the result of each call.
KINDS = """
import ctypes, mmap, os, sys
libc = ctypes.CDLL(None, use_errno=True)

def checked(result):
    if result:
        raise OSError(ctypes.get_errno(), "")

def end_of(call, *arguments):
    try:
        call(*arguments)
        return 0
    except OSError as error:
        return error.errno

def msync(memory, flag):
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    checked(libc.msync(ctypes.c_void_p(address), ctypes.c_size_t(4096), flag))

def sync_file_range(file, flags):
    checked(libc.sync_file_range(file, ctypes.c_long(0), ctypes.c_long(4096), flags))

MS_ASYNC, MS_SYNC = 1, 4
WAIT_BEFORE, WRITE, WAIT_AFTER = 1, 2, 4
ends = {"sync": [], "never": []}
for directory in sys.argv[1:]:
    file = os.open(directory + "/f", os.O_CREAT | os.O_RDWR)
    os.write(file, bytes(4096))
    memory = mmap.mmap(file, 4096)
    calls = {
        "fsync": (os.fsync, file),
        "fdatasync": (os.fdatasync, file),
        "sync_file_range": (sync_file_range, file, WAIT_BEFORE | WRITE | WAIT_AFTER),
        "msync": (msync, memory, MS_SYNC),
        "pwritev2 RWF_SYNC": (os.pwritev, file, [b"a"], 0, os.RWF_SYNC),
        "pwritev2 RWF_DSYNC": (os.pwritev, file, [b"a"], 0, os.RWF_DSYNC),
        "syncfs": (lambda: checked(libc.syncfs(file)),),
    }
    for name, call in calls.items():
        ends.setdefault(name, []).append(end_of(*call))
    ends["never"] += [end_of(msync, memory, MS_ASYNC), end_of(os.pwritev, file, [b"a"], 0)]
    # Without a flag that waits, this call only asks the kernel to begin to write.
    ends["never"].append(end_of(sync_file_range, file, WRITE))
ends["sync"].append(end_of(os.sync))
print(__import__("json").dumps(ends))
"""
# The calls that sync only one file.
OF_FILES = ["fsync", "fdatasync", "sync_file_range", "msync", "pwritev2 RWF_SYNC", "pwritev2 RWF_DSYNC"]


def test_each_kind_of_call_is_held(places, tmp_path):  # noqa: F811
    wal, other = places
    done, rule = counted(wal, tmp_path, PYTHON, "-c", KINDS, wal, other)
    assert all(not any(ends) for ends in json.loads(done.stdout).values()), done.stdout
    # Both directories are on the same file system, so `syncfs` in either directory matches.
    assert rule["matched"] == rule["held"] == len(OF_FILES) + 2 + 1


def test_each_kind_of_call_hears_the_error(places):  # noqa: F811
    wal, other = places
    # The kernel returns no error from sync(2) to any program, and the C library does not either.
    done = path_run(wal, PYTHON, "-c", KINDS, wal, other, rules=["-e ENOSPC"])
    ends = json.loads(done.stdout)
    assert {name: ends[name] for name in OF_FILES} == {name: [28, 0] for name in OF_FILES}
    assert (ends["syncfs"], ends["sync"], ends["never"]) == ([28, 28], [0], [0] * 6)


def test_a_rule_can_name_a_call(places):  # noqa: F811
    wal, other = places

    def failed(types, rule):
        done = path_run(wal, PYTHON, "-c", KINDS, wal, other, types=types, rules=[rule])
        return {name for name, ends in json.loads(done.stdout).items() if 28 in ends}

    assert failed("sync", "-e ENOSPC -T fdatasync,msync") == {"fdatasync", "msync"}
    # The kernel reports only the calls that `types` names, whatever a rule says.
    assert failed("fsync,syncfs", "-e ENOSPC") == {"fsync", "syncfs"}
    assert failed("fsync", "-e ENOSPC -T sync") == {"fsync"}
    assert failed("sync", "-e ENOSPC -T pwritev2") == {"pwritev2 RWF_SYNC", "pwritev2 RWF_DSYNC"}


def test_reports_name_the_call(places, tmp_path):  # noqa: F811
    wal, _ = places
    script = """
        "$0" record -d wal -o "$3" >"$3.said" & recorder=$!
        until grep -q 'until Ctrl-C' "$3.said"; do sleep 0.01; done
        "$1" -c 'import os, sys; os.fdatasync(os.open(sys.argv[1], os.O_CREAT | os.O_RDWR))' "$2" & program=$!
        until "$0" inflight -d wal --json >"$3.flight" && grep -q fdatasync "$3.flight"; do sleep 0.01; done
        "$0" clear all --release >&2
        wait $program
        until curl -s --unix-socket "${DASHPOT_API#unix:}" "http://d/v1/events?after=0" >"$3.events" && grep -q recv_ns "$3.events"
        do sleep 0.01; done
        kill -INT $recorder
        wait $recorder
    """
    path_run(wal, "sh", "-ec", script, BINARY, PYTHON, wal / "f", tmp_path / "rec", rules=["--hang -T fdatasync"])
    (zio,) = json.loads((tmp_path / "rec.events").read_text())["zios"]
    assert (zio["op"], zio["call"]) == ("sync", "fdatasync")
    seen = run(BINARY, "snoop", "--in", tmp_path / "rec").stdout
    assert " fdatasync " in seen


# Prints the error of each call.
ERRORS = """
import os, sys
file = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR)
for _ in range(int(sys.argv[2])):
    try:
        os.fsync(file)
        print(0)
    except OSError as error:
        print(error.errno)
"""


def errors(wal, tmp_path, rule, count):
    done, listed = counted(wal, tmp_path, PYTHON, "-c", ERRORS, wal / "f", count, rules=[rule])
    return [int(line) for line in done.stdout.split()], listed


def test_the_chosen_calls_fail_and_no_others(places, tmp_path):  # noqa: F811
    wal, _ = places
    first, _ = errors(wal, tmp_path, "-e EIO --first 3", 8)
    assert first == [5] * 3 + [0] * 5
    every, _ = errors(wal, tmp_path, "-e EPERM --every 4", 12)
    assert every.count(1) == 3 and len({at % 4 for at, error in enumerate(every) if error}) == 1
    some, rule = errors(wal, tmp_path, "-e ENOMEM -f 50%", 400)
    assert set(some) == {0, 12} and rule["matched"] == 400
    # With 400 draws at a probability of one half, the number is outside of this range only once in 10^15 runs.
    assert 120 < some.count(12) < 280


@requires("strace")
def test_the_held_calls_are_those_that_strace_counts_outside(places, tmp_path):  # noqa: F811
    wal, other = places
    seed = random.randrange(1 << 32)
    history = [PYTHON, os.path.join(os.path.dirname(__file__), "path_history.py"), seed, wal, other, 60, 2]
    print("reproduce:", *history)
    trace = tmp_path / "trace"
    strace = ["strace", "-f", "-y", "-qq", "-e", "trace=fsync,fdatasync", "-o", trace]
    # strace knows only one name of a file, so the program makes no links here.
    _, rule = counted(wal, tmp_path, "env", "NO_LINKS=1", *history, under=strace)
    # If another thread's call interrupts a call's line, the rest of the line follows as a second line, which names
    # no file.
    seen = re.findall(rf"(?m)^\d+ +f(?:data)?sync\(\d+<{re.escape(str(wal))}/", trace.read_text())
    assert rule["matched"] == len(seen) > 0


@requires("strace")
def test_a_program_that_is_traced_inside_is_held(places, tmp_path):  # noqa: F811
    wal, _ = places
    traced = ["strace", "-f", "-qq", "-e", "trace=fdatasync", "-o", tmp_path / "trace"]
    done, rule = counted(wal, tmp_path, *traced, PYTHON, "-c", SYNCS, wal / "f", 5, rules=["-D 20ms"])
    assert min(map(int, done.stdout.split())) >= 20_000_000
    assert (rule["matched"], rule["held"]) == (5, 5)
    assert done.stderr.count("strace (thread") == 1 and "traces the program" in done.stderr


def test_doctor_says_whether_calls_can_be_held_here(places):  # noqa: F811
    wal, _ = places

    def way(text):
        (way,) = [way for way in json.loads(text)["ways"] if way["way"].startswith("path:")]
        return way

    free = way(run(BINARY, "doctor", "--json").stdout)
    assert free["works"] and free["change"] is None
    # Inside a program that dashpot runs, the kernel allows no second listener.
    inside = way(path_run(wal, BINARY, "doctor", "--json").stdout)
    assert not inside["works"]
    assert "another dashpot" in inside["why"] and inside["change"] == "start dashpot outside of it"
