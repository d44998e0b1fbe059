"""Path disks: threads that are killed while dashpot holds their calls."""

import contextlib
import json
import os
import re
import subprocess

import pytest
from conftest import BINARY, HANG_LIMIT, eventually, run
from test_path import PYTHON, places, zombie  # noqa: F401

# A child makes a call. The parent prints the child's process id, and waits for the end of its standard input.
CHILD = """
import os, sys
child = os.fork()
if child == 0:
    file = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR)
    os.sync() if sys.argv[2] == "sync" else os.fsync(file)
    os._exit(0)
print(child, flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def started(tmp_path, words, program):
    """Starts a program. Yields the process, and the function that tells which calls are in flight."""
    api = ["--api", f"unix:{tmp_path}/api.sock"]
    process = subprocess.Popen(
        [BINARY, "run", *api, *words, "--", *map(str, program)],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        yield process, lambda: json.loads(run(BINARY, "inflight", "--json", *api).stdout)["ios"]
        process.stdin.close()
        assert process.wait(HANG_LIMIT) == 0
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("rule", ["--hang", "-D 1h:1", "-D 1h --mode floor"])
@pytest.mark.parametrize("call", ["fsync", "sync"])
def test_the_call_of_a_killed_thread_ends(places, tmp_path, rule, call):  # noqa: F811
    disks = [
        word for name, place in zip("ab", places) for word in ("-d", f"{name}=path:{place}", "-r", f"{name} {rule}")
    ]
    with started(tmp_path, disks, [PYTHON, "-c", CHILD, places[0] / "f", call]) as (process, in_flight):
        child = int(process.stdout.readline())
        calls = 2 if call == "sync" else 1
        eventually(lambda: len(in_flight()) == calls, "the call in flight")
        os.kill(child, 9)
        eventually(lambda: not in_flight(), "the end of the call")


# Handles SIGTERM, and makes a call.
HANDLES = """
import os, signal, sys
signal.signal(signal.SIGTERM, lambda *_: print("heard", flush=True) or sys.exit(3))
file = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR)
os.fsync(file)
"""


def test_a_signal_that_waits_for_a_held_call_is_explained(places, tmp_path):  # noqa: F811
    wal, _ = places
    api = ["--api", f"unix:{tmp_path}/api.sock"]
    process = subprocess.Popen(
        [BINARY, "run", *api, "-d", f"wal=path:{wal}", "-r", "--hang", "--", PYTHON, "-c", HANDLES, wal / "f"],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        at_once = process.stderr.readline()
        eventually(lambda: '"wal"' in run(BINARY, "inflight", "--json", *api, code=None).stdout, "the call in flight")
        process.terminate()
        assert f"a call that 'wal' hangs ends with 'dashpot clear wal --release --api {api[1]}'" in at_once
        explained = process.stderr.readline()
        assert "'wal' has held a call of the program for" in explained
        run(BINARY, *re.search(r"'dashpot (clear all .*?)'", explained).group(1).split())
        assert process.stdout.readline() == "heard\n"
        assert process.wait(HANG_LIMIT) == 3
    finally:
        process.kill()
        process.wait()


# A child's call is held for a while. Then the child is killed, and another child with the same process id makes the
# same call. Prints how long the second call takes.
REUSED = """
import json, os, subprocess, sys, time

def begin():
    child = os.fork()
    if child == 0:
        file = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR)
        begin = time.monotonic_ns()
        os.fsync(file)
        print(time.monotonic_ns() - begin, flush=True)
        os._exit(0)
    return child

def has_waited():
    calls = json.loads(subprocess.run([sys.argv[2], "inflight", "--json"], capture_output=True).stdout)["ios"]
    return any(call["age_ns"] > 5e8 for call in calls)

first = begin()
while not has_waited():
    pass
os.kill(first, 9)
os.waitpid(first, 0)
with open("/proc/sys/kernel/ns_last_pid", "w") as last:
    last.write(str(first - 1))
second = begin()
assert second == first, (second, first)
os.waitpid(second, 0)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can choose the number of a process")
def test_a_thread_with_the_number_of_a_killed_one_is_held_for_its_whole_time(places):  # noqa: F811
    wal, _ = places
    namespace = ["unshare", "--pid", "--fork", "--mount-proc"]
    done = run(
        *namespace, BINARY, "run", "-d", f"wal=path:{wal}", "-r", "-D 1s", "--", PYTHON, "-c", REUSED, wal / "f", BINARY
    )
    assert int(done.stdout) >= 1_000_000_000


# Makes processes in sessions of their own, which make no call that is held, and writes their numbers.
FAMILY = """
import os, sys, time
log = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY | os.O_APPEND)
for generation in range(4):
    os.setsid() if generation else None
    os.write(log, f"{os.getpid()}\\n".encode())
    if os.fork() and os.fork():
        break
time.sleep(1000)
"""


def test_all_processes_of_a_program_are_killed_with_dashpot(places, tmp_path):  # noqa: F811
    wal, log = places[0], tmp_path / "log"
    process = subprocess.Popen([BINARY, "run", "-d", f"wal=path:{wal}", "--", PYTHON, "-c", FAMILY, log])
    # One process, its two children, and so on.
    eventually(lambda: log.exists() and log.read_text().count("\n") == 15, "all processes")
    process.kill()
    process.wait(HANG_LIMIT)
    pids = log.read_text().split()
    try:
        eventually(lambda: all(zombie(pid) for pid in pids), "the end of all processes")
    finally:
        for pid in pids:
            if not zombie(pid):
                os.kill(int(pid), 9)
