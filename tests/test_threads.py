"""The processes and the threads that ask the kernel for I/O."""

import contextlib
import json
import signal
import subprocess
import sys

from conftest import BINARY, eventually, run
from kernel import instances_of, is_watching, loop_in_memory, takes_a_kernel

# Its own name, its threads, the writes of each thread, the device. Each thread ends after its last write.
PROGRAM = """
import mmap, os, sys, threading
name, threads, count, path = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
def rename(name):
    with open(f"/proc/self/task/{threading.get_native_id()}/comm", "w") as file:
        file.write(name)
def work(at):
    rename(f"{name}-io-{at}")
    barrier.wait()
    device = os.open(path, os.O_WRONLY | os.O_DIRECT)
    for turn in range(count):
        os.pwrite(device, block, 4096 * (at * count + turn))
    os.close(device)
block, barrier = mmap.mmap(-1, 4096), threading.Barrier(threads + 1)
rename(name)
own = [threading.Thread(target=work, args=[at]) for at in range(threads)]
for thread in own: thread.start()
print(*[thread.native_id for thread in own], flush=True)
sys.stdin.readline()
barrier.wait()
for thread in own: thread.join()
"""
COUNT = 5


class Program:
    """A process with threads that wait until they may write."""

    def __init__(self, name, threads, loop):
        words = [sys.executable, "-c", PROGRAM, name, str(threads), str(COUNT), loop.path]
        self.name = name
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.tids = [int(tid) for tid in self.process.stdout.readline().split()]

    def write(self):
        self.process.communicate("\n")
        assert self.process.returncode == 0

    def ios(self):
        """The process, its id, the thread and its id, of each I/O."""
        own = enumerate(self.tids)
        return [(self.name, self.process.pid, f"{self.name}-io-{at}", tid) for at, tid in own for _ in range(COUNT)]


@contextlib.contextmanager
def watching(*commands):
    """Reports that see all I/Os meanwhile, and their JSON after that."""
    watches = [subprocess.Popen([BINARY, *words], stdout=subprocess.PIPE, text=True) for words in commands]
    for watch in watches:
        eventually(lambda watch=watch: is_watching(watch.pid), "it watches")
    texts = []
    yield texts
    for watch in watches:
        watch.send_signal(signal.SIGINT)
    texts += [watch.communicate()[0] for watch in watches]


def counts(text):
    return {value["value"]: value["count"] for value in json.loads(text.splitlines()[-1])["values"]}


@takes_a_kernel
def test_a_process_is_one_row_and_its_threads_are_many(directory):
    facts = ["process", "pid", "thread", "tid"]
    with loop_in_memory() as loop:
        record = ["record", "-d", loop.path, "-o", directory / "rec"]
        reports = [["stat", f"disk.ops[{fact}]", "-d", loop.path, "--json", "600s"] for fact in facts]
        # One process has its threads before the watch; the other and its threads begin and end during the watch.
        before = Program("before", 3, loop)
        with watching(record, *reports) as texts:
            later = Program("later", 2, loop)
            for program in (later, before):
                program.write()
        expected = sorted(before.ios() + later.ios())
        lines = run(BINARY, "snoop", "--in", directory / "rec", "--json").stdout.splitlines()
        told = sorted(tuple(json.loads(line)[fact] for fact in facts) for line in lines)
        assert told == expected
        for at, (fact, live) in enumerate(zip(facts, texts[1:], strict=True)):
            values = [str(io[at]) for io in expected]
            naive = {value: values.count(value) for value in values}
            assert counts(live) == naive, fact
            recorded = run(BINARY, "stat", f"disk.ops[{fact}]", "--in", directory / "rec", "--json").stdout
            assert counts(recorded) == naive, fact
        assert counts(texts[1]) == {"before": 3 * COUNT, "later": 2 * COUNT}
        one = f"disk.ops[pid={later.process.pid}][thread=*-1][tid]"
        assert counts(run(BINARY, "stat", one, "--in", directory / "rec", "--json").stdout) == {
            str(later.tids[1]): COUNT
        }


@takes_a_kernel
def test_only_questions_about_processes_follow_tasks():
    with loop_in_memory() as loop:
        for fact, follows in [("process", True), ("pid", True), ("thread", False), ("tid", False), ("type", False)]:
            watch = subprocess.Popen(
                [BINARY, "stat", f"disk.ops[{fact}]", "-d", loop.path, "600s"], stdout=subprocess.PIPE, text=True
            )
            eventually(lambda watch=watch: is_watching(watch.pid), "it watches")
            [instance] = instances_of(watch.pid)
            enabled = (instance / "events/task/task_newtask/enable").read_text().strip()
            watch.send_signal(signal.SIGINT)
            watch.communicate()
            assert (enabled == "1") == follows, fact


def test_a_wrong_word_is_answered_with_the_right_one():
    refused = run(BINARY, "iolatency", "-k", "--by", "threads", "1", "1", code=2)
    assert "thread" in refused.stderr
