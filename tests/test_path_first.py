"""Path disks: dashpot as the first process of a container; kernels where signals interrupt held calls; and
programs that have as many threads and children as they may."""

import errno
import json
import os
import pathlib
import signal
import subprocess

import pytest
from conftest import BINARY, HANG_LIMIT, eventually, open_to_all, run
from test_path import PYTHON, counted, path_run, places  # noqa: F401

# A container has its own namespaces, in which dashpot is the first process.
CONTAINER = ["unshare", "--pid", "--fork", "--mount-proc", "--ipc", "--uts"]
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make namespaces")

# Leaves orphans behind, some of them in a group of their own. Dashpot becomes their parent. Waits until dashpot has
# reaped all of them, and then syncs.
ORPHANS = """
import os, sys
dashpot = os.getppid()
adopted, adopts = os.pipe()
for number in range(20):
    if os.fork() == 0:
        child = os.getpid()
        if os.fork() == 0:
            if number % 2:
                os.setsid()
            while os.getppid() == child:
                pass
            os._exit(os.write(adopts, b"1" if os.getppid() == dashpot else b"0"))
        os._exit(0)
    os.wait()
os.close(adopts)
assert os.fdopen(adopted).read() == "1" * 20
def is_orphan(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rsplit(") ", 1)[1].split()[:2] == ["Z", str(dashpot)]
    except OSError:
        return False
while any(map(is_orphan, filter(str.isdigit, os.listdir("/proc")))):
    pass
os.fsync(os.open(sys.argv[1], os.O_CREAT | os.O_RDWR))
names = sorted(name for name in os.environ if name.startswith("DASHPOT"))
print(dashpot > 1, names, sorted(map(int, os.listdir("/proc/self/fd")))[:4])
sys.exit(7)
"""


@ROOT
@pytest.mark.parametrize("under", [[], CONTAINER], ids=["outside", "container"])
def test_orphans_are_reaped(places, under):  # noqa: F811
    wal, _ = places
    done = path_run(wal, PYTHON, "-c", ORPHANS, wal / "f", under=under, code=7)
    # The program gets the variables of its caller and two more, but no additional descriptor. Descriptor 3 is open
    # only because the program lists its descriptors.
    names = {"DASHPOT_API", "DASHPOT_URI"} | {name for name in os.environ if name.startswith("DASHPOT")}
    assert done.stdout == f"True {sorted(names)} [0, 1, 2, 3]\n"


@ROOT
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_the_first_process_passes_signals_on_and_ends_with_the_status(places, tmp_path, sent):  # noqa: F811
    wal, _ = places
    ready = tmp_path / "ready"
    process = subprocess.Popen(
        [*CONTAINER, BINARY, "run", "-d", f"wal=path:{wal}", "--", "sh", "-c", f"echo >{ready}; exec sleep 1000"],
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    eventually(ready.exists, "the program")
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(children[0]), sent)
    assert process.wait(HANG_LIMIT) == 128 + sent


# Makes seccomp(2) fail with an error if the call has a certain flag, and then executes a program.
SANDBOX = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
flag, error = int(sys.argv[1]), int(sys.argv[2])
steps = [(0x20, 0, 0, 0), (0x15, 0, 3, 317), (0x20, 0, 0, 24), (0x45, 0, 1, flag), (0x06, 0, 0, 0x00050000 | error),
         (0x06, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", len(steps), ctypes.addressof(code)))
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, program) == 0
os.execv(sys.argv[3], sys.argv[3:])
"""
NEW_LISTENER, WAIT_KILLABLE_RECV = 1 << 3, 1 << 5


def sandbox(flag, error):
    return [PYTHON, "-c", SANDBOX, flag, error]


# Kernels before 5.19 refuse this flag.
OLD_KERNEL = sandbox(WAIT_KILLABLE_RECV, errno.EINVAL)
# A signal comes every 3 ms, and after its handler the interrupted call begins again.
INTERRUPTED = """
import os, signal, sys, time
signal.signal(signal.SIGALRM, lambda *_: None)
signal.siginterrupt(signal.SIGALRM, False)
file = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR)
signal.setitimer(signal.ITIMER_REAL, 0.003, 0.003)
begin = time.monotonic_ns()
os.fsync(file)
lasted = time.monotonic_ns() - begin
signal.setitimer(signal.ITIMER_REAL, 0)
print(lasted)
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers of calls are those of x86-64")
@pytest.mark.parametrize("under", [[], OLD_KERNEL])
def test_a_call_that_a_signal_interrupts_keeps_its_deadline(places, tmp_path, under):  # noqa: F811
    wal, _ = places
    done, rule = counted(
        wal,
        tmp_path,
        PYTHON,
        "-c",
        INTERRUPTED,
        wal / "f",
        rules=["-D 60ms"],
        under=under,
    )
    holds = int(done.stdout) // 60_000_000
    # If a hold ends while the signal's handler runs, dashpot cannot answer the call then; when the call begins again,
    # dashpot holds it for the whole time again.
    most = holds if under else 1
    assert 1 <= rule["matched"] == rule["held"] <= most


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers of calls are those of x86-64")
@pytest.mark.parametrize(
    ("error", "why", "change"),
    [
        (errno.EPERM, "a sandbox forbids the filter", "allow seccomp(2)"),
        (errno.ENOSYS, "a sandbox hides it", "use Linux 5.5"),
        (errno.EINVAL, "the kernel has no seccomp user notification", "use Linux 5.5"),
        (errno.EBUSY, "another dashpot, or a container's agent", "start dashpot outside of it"),
    ],
)
def test_where_no_filter_can_be_installed_doctor_and_run_say_so(places, error, why, change):  # noqa: F811
    wal, _ = places
    under = sandbox(NEW_LISTENER, error)
    ways = json.loads(run(*under, BINARY, "doctor", "--json").stdout)["ways"]
    (way,) = [way for way in ways if way["way"].startswith("path:")]
    assert not way["works"] and why in way["why"] and change in way["change"], way
    said = path_run(wal, "true", under=under, code=125).stderr
    assert why in said and change in said, said


# A program that forks until its own limit stops it. Each child syncs, and waits until its parent forks no more.
BOMB = """
import os, resource, sys
limit = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))
wait, end = os.pipe()
started = 0
while True:
    try:
        child = os.fork()
    except BlockingIOError:
        break
    if child == 0:
        os.close(end)
        os.fsync(os.open(f"{sys.argv[1]}/f", os.O_CREAT | os.O_RDWR))
        os.read(wait, 1)
        os._exit(0)
    started += 1
os.close(end)
for _ in range(started):
    os.wait()
print(started)
"""


@ROOT
def test_a_program_that_forks_is_bounded_by_its_own_limit(places, tmp_path):  # noqa: F811
    wal, _ = places
    open_to_all(wal)
    # The limit covers all processes of a user, and does not apply to users with privileges. So use a user without
    # privileges and without other processes.
    user = ["setpriv", "--reuid", "64321", "--regid", "64321", "--clear-groups", "--bounding-set=-all"]
    copy = tmp_path / "dashpot"
    copy.write_bytes(pathlib.Path(BINARY).read_bytes())
    copy.chmod(0o755)
    listed = tmp_path / "rules.json"
    script = f'"$@" && exec {copy} list --json >{listed}'
    done = run(
        *user,
        copy,
        "run",
        "-d",
        f"wal=path:{wal}",
        "-r",
        "-D 5ms",
        "--",
        "sh",
        "-c",
        script,
        "sh",
        PYTHON,
        "-c",
        BOMB,
        wal,
        100,
        env={"TMPDIR": str(tmp_path)},
    )
    started = int(done.stdout)
    (rule,) = json.loads(listed.read_text())
    assert 0 < started < 100 and rule["matched"] == rule["held"] == started
