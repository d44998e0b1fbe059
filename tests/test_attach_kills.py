"""Kills the daemon, the helper, or both at random moments, while a file system on an attached disk is under load.

The helper is the `mount` that makes the device, a `detach` that takes it away, or the root process that stays
beside `run --mount` under sudo.
"""

import os
import pathlib
import random
import signal
import subprocess
import time

import pytest
from attached import BASE, attach, can_attach, can_write, own_loop, remains  # noqa: F401 (a fixture)
from conftest import BINARY, HANG_LIMIT, eventually, requires, run

pytestmark = [*can_attach, requires("fio"), requires("mkfs.ext4"), requires("ps")]
# KILLS=50 makes more rounds, to look for rare failures.
ROUNDS = int(os.environ.get("KILLS", 1))
RULES = [[], ["-D", "5ms"], ["-D", "20ms:4", "-T", "write,flush"], ["--hang", "-T", "write"], ["--hang", "-T", "flush"]]


@pytest.fixture
def rng():
    seed = int(os.environ.get("SEED", random.randrange(1 << 32)))
    print(f"to reproduce: SEED={seed}")
    return random.Random(seed)


def uninterruptible():
    """The processes and kernel threads that are waiting for I/O."""
    waiting = set()
    for stat in pathlib.Path("/proc").glob("[0-9]*/task/*/stat"):
        try:
            words = stat.read_text()
        except OSError:
            continue
        if words.rsplit(") ", 1)[1].startswith("D"):
            waiting.add((stat.parent.name, words.split(" (", 1)[1].rsplit(")", 1)[0]))
    return waiting


def none_waits_for_ever():
    """Checks that each process that waits for I/O goes on."""
    waiting = uninterruptible()

    def all_went_on():
        waiting.intersection_update(uninterruptible())
        return not waiting

    eventually(all_went_on, f"the end of the wait for I/O of {waiting}")


def load(at):
    """Makes direct and buffered writes, with flushes, until they fail."""
    words = [
        "fio",
        "--thread",
        f"--directory={at}",
        "--size=4M",
        "--rw=randwrite",
        "--bs=4k",
        "--time_based",
        "--runtime=600",
    ]
    jobs = [
        "--name=direct",
        "--ioengine=libaio",
        "--direct=1",
        "--iodepth=16",
        "--fsync=8",
        "--name=buffered",
        "--fsync=16",
    ]
    return subprocess.Popen([*words, *jobs], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def kill(*victims):
    """Kills all these processes at once, if they are still alive. The caller waits until they have ended."""
    for pid in victims:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def moment(rng, longest=0.5):
    """Lets a random time pass, mostly a short one, so that the kill comes at any step."""
    time.sleep(longest * rng.random() ** 2)


def nothing_stays(serve, at, *programs):
    """Checks that no program waits for ever, and that `detach --stale`, after the next start, finds and removes all
    remains.
    """
    for program in programs:
        program.kill()
        program.wait(HANG_LIMIT)
    none_waits_for_ever()
    again = serve("-d", "d=ram,size=64M")
    node = again.cli("attach", "d", "--with", "loop").stdout.strip()
    run("dd", f"if={node}", "of=/dev/null", "bs=4k", "count=1", "iflag=direct")
    again.cli("detach", "d")

    def all_is_removed():
        # A tool that the killed helper has started, such as mkfs, may still be at work.
        return again.cli("detach", "--stale", code=None).returncode == 0 and not remains()

    eventually(all_is_removed, "nothing left")
    assert not os.path.ismount(at)
    again.stop()


@pytest.mark.parametrize("victims", ["daemon", "helper", "both"])
def test_kills_at_random_moments_leave_nothing(serve, attach, tmp_path, rng, victims):
    """Kills at random moments must leave nothing. The helper is a `mount`, or a `detach` beside a load."""
    for _ in range(ROUNDS):
        daemon = serve("-d", "d=ram,size=64M")
        mounting = daemon.start("mount", "d", tmp_path, "--mkfs", "--with", "loop")
        helper, jobs = mounting, []
        if rng.random() < 0.75:
            assert mounting.wait(HANG_LIMIT) == 0
            jobs = [load(tmp_path)]
            eventually(lambda: daemon.disk()["in_flight"], "I/O of the file system")
            if rule := rng.choice(RULES):
                daemon.cli("inject", "d", *rule)
            moment(rng)
            helper = daemon.start("detach", "d", *rng.choice([[], ["--fail-held"]]))
        moment(rng)
        kill(
            *{"daemon": [daemon.pid], "helper": [helper.pid], "both": rng.sample([daemon.pid, helper.pid], 2)}[victims]
        )
        if victims == "helper":
            # If the killed helper has left a complete attachment, it must work. An incomplete attachment is removed.
            daemon.cli("reset")
        helper.kill()
        daemon.abandon()
        nothing_stays(serve, tmp_path, helper, mounting, *jobs)


@pytest.mark.parametrize("victims", ["daemon", "helper", "both"])
def test_kills_of_run_and_its_helper_leave_nothing(serve, attach, tmp_path, rng, victims):
    for _ in range(ROUNDS):
        script = (
            'touch "$0/begun"; exec fio --thread --name=job --directory="$0" --size=4M --rw=randwrite --direct=1 '
            "--fsync=4 --time_based --runtime=600"
        )
        words = [BINARY, "run", "--mount", tmp_path, "-d", "d=ram,size=64M", "--", "sh", "-c", script, tmp_path]
        own = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if rng.random() < 0.75:
            eventually(lambda: (tmp_path / "begun").exists() or own.poll() is not None, "the load")
        moment(rng)
        helpers, jobs = children(own.pid)
        kill(*{"daemon": [own.pid], "helper": helpers, "both": [*helpers, own.pid]}[victims])
        kill(*jobs)
        eventually(lambda: ends_with_its_command(own), "the end of run")
        # A surviving helper takes some time to notice that the daemon is gone.
        eventually(lambda: not any(map(is_alive, [*helpers, *jobs])), f"the end of {helpers} and {jobs}")
        nothing_stays(serve, tmp_path)


# Settings that `attach` changes, each with a value that `attach` does not choose.
UNUSUAL = {"max_sectors_kb": "512", "scheduler": "mq-deadline", "nr_requests": "64"}


@pytest.mark.parametrize("command", ["attach", "detach"])
@pytest.mark.parametrize("last", [*UNUSUAL, "record"])
def test_settings_that_a_killed_helper_has_changed_are_restored(serve, attach, own_loop, command, last):
    """The settings that a killed helper has changed must be restored. The helper is killed as soon as a setting has
    changed, or, in the case `record`, as soon as it has recorded what it made."""
    queue = pathlib.Path("/sys/block", os.path.basename(own_loop), "queue")
    daemon = serve("-d", "d=ram,size=8M")
    for name, value in UNUSUAL.items():
        eventually(lambda: can_write(queue / name, value), name)
    before = settings(queue)
    helper = daemon.start("attach", "d", "--with", "loop")
    if command == "detach":
        assert helper.wait(HANG_LIMIT) == 0
        helper = daemon.start("detach", "d")
    then = settings(queue)
    while helper.poll() is None and not (
        list(BASE.glob("*/record")) if last == "record" else has_changed(queue, last, then)
    ):
        pass
    kill(helper.pid)
    helper.wait()
    daemon.abandon()
    eventually(lambda: run(BINARY, "detach", "--stale", code=None).returncode == 0 and not remains(), "nothing left")
    assert settings(queue) == before


def settings(queue):
    return {name: chosen((queue / name).read_text()) for name in UNUSUAL}


def chosen(text):
    """The value of a setting. If the kernel lists all possible values, the chosen one is in brackets."""
    return text.partition("[")[2].partition("]")[0] or text.strip()


def has_changed(queue, name, then):
    return chosen((queue / name).read_text()) != then[name]


def ends_with_its_command(own):
    """Kills the command of `run`, if there is one by now, and returns whether `run` has ended. Callers repeat this,
    because the command may begin late.
    """
    kill(*children(own.pid)[1])
    return own.poll() is not None


def children(pid):
    """The children of a process: those that run dashpot, and the others."""
    listed = subprocess.run(
        ["ps", "--ppid", str(pid), "-o", "pid="], capture_output=True, text=True, timeout=HANG_LIMIT
    )
    all_of_them = list(map(int, listed.stdout.split()))
    helpers = [it for it in all_of_them if program(it) == os.path.realpath(BINARY)]
    return helpers, [it for it in all_of_them if it not in helpers]


def program(pid):
    try:
        return os.path.realpath(f"/proc/{pid}/exe", strict=True)
    except OSError:
        return None  # The process has ended.


def is_alive(pid):
    try:
        return not pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].startswith("Z")
    except OSError:
        return False
