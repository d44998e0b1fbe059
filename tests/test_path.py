"""Path disks: the calls of a program are held, and no others. The programs are real, and their own counts are
compared with dashpot's."""

import json
import os
import pathlib
import random
import re
import signal
import subprocess

import pytest
from conftest import BINARY, HANG_LIMIT, eventually, open_to_all, requires, run

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3"
# Syncs a file this many times, and prints how long each call took.
SYNCS = """
import os, sys, time
file = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR)
for _ in range(int(sys.argv[2])):
    begin = time.monotonic_ns()
    os.fdatasync(file)
    print(time.monotonic_ns() - begin)
"""


@pytest.fixture
def places(tmp_path):
    """Two directories: one that is a path disk, and one that is not."""
    wal, other = tmp_path / "wal", tmp_path / "other"
    wal.mkdir()
    other.mkdir()
    return wal, other


def path_run(wal, *command, rules=("-D 1us",), options=(), code=0, under=(), types="sync"):
    words = [word for rule in rules for word in ("-r", rule)]
    disk = f"wal=path:{wal},types={types}"
    return run(*under, BINARY, "run", "-d", disk, *words, *options, "--", *command, code=code)


def counted(wal, tmp_path, *command, rules=("-D 1us",), under=(), types="sync", together=0):
    """Runs a command, and returns what it printed, and dashpot's rule."""
    listed = tmp_path / "rules.json"
    script = '"$@" && exec "$DASHPOT" list --json >"$LISTED"'
    done = path_run(
        wal,
        "env",
        f"DASHPOT={BINARY}",
        f"LISTED={listed}",
        f"TOGETHER={together}",
        "sh",
        "-c",
        script,
        "sh",
        *command,
        rules=rules,
        under=under,
        types=types,
    )
    (rule,) = json.loads(listed.read_text())
    return done, rule


def test_calls_on_files_of_the_directory_are_held_and_no_others(places, tmp_path):
    wal, other = places
    done, rule = counted(wal, tmp_path, PYTHON, "-c", SYNCS, wal / "f", 20, rules=["wal -D 20ms -T sync"])
    lasted = [int(line) for line in done.stdout.split()]
    assert len(lasted) == 20 and min(lasted) >= 20_000_000
    assert (rule["matched"], rule["held"]) == (20, 20)
    _, rule = counted(wal, tmp_path, PYTHON, "-c", SYNCS, other / "f", 20)
    assert rule["matched"] == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_an_ordinary_user_without_capabilities_can_do_it(places, tmp_path):
    wal, _ = places
    open_to_all(wal)
    copy = tmp_path / "dashpot"
    copy.write_bytes(pathlib.Path(BINARY).read_bytes())
    copy.chmod(0o755)
    user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--bounding-set=-all"]
    done = run(
        *user,
        copy,
        "run",
        "-d",
        f"wal=path:{wal}",
        "-r",
        "-D 20ms",
        "--",
        PYTHON,
        "-c",
        SYNCS,
        wal / "f",
        3,
        env={"TMPDIR": str(tmp_path)},
    )
    lasted = [int(line) for line in done.stdout.split()]
    assert len(lasted) == 3 and min(lasted) >= 20_000_000


# The capabilities that containers give to root by default. CAP_SYS_PTRACE is not among them.
OF_CONTAINERS = "+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,+net_bind_service,+sys_chroot"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_program_that_drops_from_root_is_held_without_ptrace(places, tmp_path):
    wal, _ = places
    open_to_all(wal)
    container = ["setpriv", f"--bounding-set=-all,{OF_CONTAINERS}", "--inh-caps=-all"]
    drop = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all"]
    _, rule = counted(
        wal,
        tmp_path,
        *drop,
        PYTHON,
        "-c",
        SYNCS,
        wal / "f",
        5,
        rules=["-D 20ms"],
        under=container,
    )
    assert (rule["matched"], rule["held"]) == (5, 5)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_names_are_known_that_the_program_reaches_by_a_further_group(places, tmp_path):
    wal, _ = places
    open_to_all(wal)
    (wal / "f").touch()
    os.chown(wal, 0, 4242)
    wal.chmod(0o750)
    container = ["setpriv", f"--bounding-set=-all,{OF_CONTAINERS}", "--inh-caps=-all"]
    drop = ["setpriv", "--reuid", "65534", "--regid", "65534", "--groups", "4242", "--inh-caps=-all"]
    _, rule = counted(wal, tmp_path, *drop, "cat", wal / "f", under=container, types="open")
    assert rule["matched"] == 1


# If a process changes its user and then executes no other program, only a tracer may read its memory.
CHANGES = "import os; os.setgid(65534); os.setuid(65534)\n" + SYNCS


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_call_that_cannot_be_seen_goes_on_and_is_said(places, tmp_path):
    wal, _ = places
    open_to_all(wal)
    container = ["setpriv", f"--bounding-set=-all,{OF_CONTAINERS}", "--inh-caps=-all"]
    done, rule = counted(wal, tmp_path, PYTHON, "-c", CHANGES, wal / "f", 3, under=container)
    assert rule["matched"] == 0
    assert "its file is not known" in done.stderr and "3 calls were not held" in done.stderr


def test_the_program_hears_the_error(places, tmp_path):
    wal, _ = places
    done = path_run(wal, PYTHON, "-c", SYNCS, wal / "f", 3, rules=["-e ENOSPC --first 1"], code=1)
    assert "[Errno 28]" in done.stderr


def test_the_status_is_the_programs(places):
    wal, _ = places
    path_run(wal, "sh", "-c", "exit 7", code=7)
    path_run(wal, "sh", "-c", "kill -TERM $$", code=128 + signal.SIGTERM)
    path_run(wal, "/nowhere/at/all", code=127)


@pytest.mark.parametrize("_", range(6))
def test_random_histories_of_files_are_followed(places, tmp_path, _):
    wal, other = places
    seed = random.randrange(1 << 32)
    history = [PYTHON, HERE / "path_history.py", seed, wal, other, 60, 3]
    print("reproduce:", *history)
    done, rule = counted(wal, tmp_path, *history)
    counts = [[int(word) for word in line.split()] for line in done.stdout.splitlines()]
    inside, outside = map(sum, zip(*counts))
    assert inside > 0 and outside > 0
    assert rule["matched"] == inside, done.stdout
    assert done.stderr.startswith("dashpot: rule on wal: ") and done.stderr.count("\n") == 1


# Starts a command on a suspended disk, and resumes the disk once it holds one call of each of the command's
# threads.
TOGETHER = """
"$DASHPOT" suspend wal --now >/dev/null
"$@" &
until "$DASHPOT" status --json | grep -q '"in_flight": '"$TOGETHER,"; do sleep 0.01; done
"$DASHPOT" resume wal >/dev/null
wait $!
"""


@requires("fio")
def test_every_sync_of_many_threads_is_held_and_no_byte_is_wrong(places, tmp_path):
    wal, _ = places
    done, rule = counted(
        wal,
        tmp_path,
        "sh",
        "-ec",
        TOGETHER,
        "sh",
        "fio",
        "--name=w",
        f"--directory={wal}",
        "--ioengine=psync",
        "--rw=randwrite",
        "--bs=4k",
        "--size=32k",
        "--fsync=1",
        "--numjobs=64",
        "--thread",
        "--verify=crc32c",
        "--verify_state_save=0",
        "--fallocate=none",
        "--output-format=json",
        rules=["-D 5ms"],
        together=64,
    )
    jobs = json.loads(done.stdout[done.stdout.index("{") :])["jobs"]
    assert len(jobs) == 64 and not any(job["error"] for job in jobs)
    syncs = sum(job["sync"]["total_ios"] for job in jobs)
    # fio does not sync after its last write.
    assert rule["matched"] == rule["held"] == syncs == 64 * 7
    assert rule["depth"]["most"] == 64


THREADS = """
import os, sys, threading
file = os.open(sys.argv[1] + "/f", os.O_CREAT | os.O_RDWR)
threads = [threading.Thread(target=os.fsync, args=[file]) for _ in range(200)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""

CHILDREN = """
import os, sys
for _ in range(1000):
    children = []
    for at in range(10):
        if (child := os.fork()) == 0:
            os.fsync(os.open(f"{sys.argv[1]}/{at}", os.O_CREAT | os.O_RDWR))
            os._exit(0)
        children.append(child)
    assert not any(os.waitpid(child, 0)[1] for child in children)
"""


def test_short_lived_children_are_held(places, tmp_path):
    wal, _ = places
    _, rule = counted(wal, tmp_path, PYTHON, "-c", CHILDREN, wal, rules=["-D 300us"])
    assert rule["matched"] == rule["held"] == 10_000


def test_two_hundred_threads_are_held_at_once(places, tmp_path):
    wal, _ = places
    _, rule = counted(
        wal, tmp_path, "sh", "-ec", TOGETHER, "sh", PYTHON, "-c", THREADS, wal, rules=["-D 300us"], together=200
    )
    assert rule["matched"] == rule["held"] == rule["depth"]["most"] == 200


POSTGRES = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))

# First the log is slow, and then it fails: PostgreSQL must stop, and must recover.
CLUSTER = """
set -eu
start() { pg_ctl -D data -w -o "-k $PWD -h ''" -l log start >>pg_ctl.log; }
start
psql -q -h "$PWD" -c 'create table t as select 1 as a' postgres
"$DASHPOT" list --json >slow.json
"$DASHPOT" inject wal -e EIO --first 1
! psql -q -h "$PWD" -c 'insert into t values (2)' postgres
until grep -q 'database system is ready' crashed.log 2>/dev/null; do
    sed '1,/PANIC/d' log >crashed.log; sleep 0.1
done
psql -At -h "$PWD" -c 'select count(*) from t where a = 1' postgres
pg_ctl -D data -m fast stop >>pg_ctl.log
"""


@pytest.mark.skipif(not POSTGRES or os.geteuid() != 0, reason="postgresql is missing, or this is not root")
def test_postgresql_waits_for_its_log_and_panics_when_it_fails(places, tmp_path):
    open_to_all(tmp_path)
    copy = tmp_path / "dashpot"
    copy.write_bytes(pathlib.Path(BINARY).read_bytes())
    copy.chmod(0o755)
    user = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups", "--bounding-set=-all"]
    env = {"PATH": f"{POSTGRES[-1]}:{os.environ['PATH']}", "DASHPOT": str(copy), "TMPDIR": str(tmp_path)}
    script = f"cd {tmp_path} && initdb -D data >/dev/null 2>&1 && echo wal_sync_method=fdatasync >>data/postgresql.conf"
    run(*user, "sh", "-c", script, env=env)
    wal = tmp_path / "data" / "pg_wal"
    done = run(
        *user,
        copy,
        "run",
        "-d",
        f"wal=path:{wal}",
        "-r",
        "-D 20ms",
        "--",
        "sh",
        "-c",
        f"cd {tmp_path}\n{CLUSTER}",
        env=env,
    )
    (slow,) = json.loads((tmp_path / "slow.json").read_text())
    assert slow["matched"] == slow["held"] > 0
    assert "PANIC" in (tmp_path / "log").read_text()
    assert done.stdout.splitlines()[-1] == "1"


GO = """
package main

import ("os"; "sync")

func main() {
    var group sync.WaitGroup
    for i := 0; i < 16; i++ {
        group.Add(1)
        go func() {
            defer group.Done()
            file, _ := os.CreateTemp(os.Args[1], "wal")
            for j := 0; j < 10; j++ { file.Sync() }
        }()
    }
    group.Wait()
}
"""


@requires("go")
def test_every_sync_of_a_static_go_program_is_held(places, tmp_path):
    wal, _ = places
    source, program = tmp_path / "wal.go", tmp_path / "goprogram"
    source.write_text(GO)
    run("go", "build", "-o", program, source, env={"CGO_ENABLED": "0"})
    _, rule = counted(wal, tmp_path, program, wal, rules=["-D 20ms"])
    assert (rule["matched"], rule["held"]) == (160, 160)


FOREIGN = """
#include <stdio.h>
int main() {
    int result = 118;
    __asm__ volatile("int $0x80" : "+a"(result) : "b"(1) : "memory", "r8", "r9", "r10", "r11");
    printf("%d\\n", result);
}
"""


@requires("gcc")
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="int 0x80 is of x86-64")
def test_a_32_bit_call_is_refused_by_name(places, tmp_path):
    wal, _ = places
    source, program = tmp_path / "foreign.c", tmp_path / "foreign"
    source.write_text(FOREIGN)
    run("gcc", "-o", program, source)
    if run(program, code=None).returncode:
        pytest.skip("this kernel has no 32-bit programs")
    done = path_run(wal, program)
    assert done.stdout == "-38\n"
    assert "fsync of foreign" in done.stderr and "ENOSYS" in done.stderr


# A program whose first call hangs until dashpot is killed, and that then makes a second call. The program has its own
# session, so that not even a signal to dashpot's group reaches the program.
LOSS = """
import os, sys, threading, time
os.setsid()
file = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR)
log = open(sys.argv[2], "w", buffering=1)
def sync():
    try:
        os.fsync(file)
        log.write("0\\n")
    except OSError as error:
        log.write(f"{error.errno}\\n")
first = threading.Thread(target=sync)
first.start()
log.write(f"{os.getpid()} {os.getppid()}\\n")
first.join()
sync()
log.write("end\\n")
"""


@pytest.mark.parametrize(("on_loss", "left"), [("pass", ["0", "0", "end"]), ("fail", ["5", "5", "end"]), ("kill", [])])
def test_calls_end_as_asked_when_dashpot_is_killed(places, tmp_path, on_loss, left):
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
            "--hang --first 1",
            "--",
            PYTHON,
            "-c",
            LOSS,
            wal / "f",
            log,
        ],
    )
    eventually(lambda: log.exists() and "\n" in log.read_text(), "the program's first line")
    program, parent = map(int, log.read_text().split()[:2])
    assert parent == process.pid
    waits = pathlib.Path(f"/proc/{program}/task")
    eventually(lambda: any("seccomp" in (task / "wchan").read_text() for task in waits.iterdir()), "a held call")
    process.kill()
    process.wait(HANG_LIMIT)
    eventually(lambda: not waits.exists() or zombie(program), "the program's end")
    assert log.read_text().splitlines()[1:] == left


def zombie(pid):
    try:
        return ") Z " in pathlib.Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return True


# A child outlives the program, waits for the end of dashpot, and then syncs.
ORPHAN = """
import os, sys, time
dashpot = os.getppid()
if os.fork():
    sys.exit(0)
while os.path.exists(f"/proc/{dashpot}"):
    time.sleep(0.01)
file = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR)
os.fsync(file)
open(sys.argv[2], "w").write("synced")
"""


def test_a_child_that_outlives_the_program_can_sync(places, tmp_path):
    wal, _ = places
    process = subprocess.Popen(
        [
            BINARY,
            "run",
            "-d",
            f"wal=path:{wal}",
            "-r",
            "-e EIO",
            "--",
            PYTHON,
            "-c",
            ORPHAN,
            wal / "f",
            tmp_path / "log",
        ],
    )
    assert process.wait(HANG_LIMIT) == 0
    eventually(lambda: (tmp_path / "log").exists(), "the child's sync")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "-d", "wal=path:/nowhere", "--", "true"], "name a directory that exists"),
        (["run", "-d", "wal=path:/etc/passwd", "--", "true"], "it is no directory"),
        (["run", "-d", "wal=path:/tmp", "-r", "-D 1ms -T trim", "--", "true"], "a path disk has calls of the types"),
        (
            ["run", "-d", "wal=path:/tmp,types=all", "-r", "-D 1ms --mode floor", "--", "true"],
            "only a sync can be done",
        ),
        (["run", "-d", "wal=path:/tmp,size=1G", "--", "true"], "has no bytes of its own"),
        (["run", "-d", "d=ram", "--on-loss", "pass", "--", "true"], "--on-loss is for the calls of"),
        (
            ["run", "-d", "wal=path:/tmp", "--attach", "--", "true"],
            "--attach: the files of a program are no block device",
        ),
        (["run", "-d", "wal=path:/tmp", "--mount", "/mnt", "--", "true"], "--mount /mnt: the files of a program"),
        (["run", "-d", "wal=path:/tmp,types=write", "-r", "-e EIO --range 1G..", "--", "true"], "'1G..' has no end"),
        (["run", "-d", "wal=path:/tmp,types=", "--", "true"], "is not a type of call: those are"),
        (["serve", "-d", "wal=path:/tmp"], "dashpot run -d 'wal=path:/tmp' -- CMD"),
    ],
)
def test_bad_input_is_refused_with_a_remedy(words, message):
    done = run(BINARY, *words, code=None)
    assert done.returncode != 0
    assert re.search(re.escape(message), done.stderr), done.stderr


def test_a_second_dashpot_inside_says_why_it_cannot(places):
    wal, _ = places
    inner = [BINARY, "run", "-d", f"w=path:{wal}", "--", "true"]
    done = path_run(wal, *inner, code=125)
    why, effect = done.stderr.splitlines()
    assert "another dashpot" in why and "injected nothing: nothing matched yet" in effect
