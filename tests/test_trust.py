"""Nothing that another user can make first is trusted.

Each test runs in a mount namespace with a /tmp and a /run of its own, where a stranger makes the files that
dashpot looks for. A stranger's daemon here is a socket that counts the bytes which it is sent.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import pytest
from conftest import BINARY, HANG_LIMIT, ROOT, requires

pytestmark = [
    requires("unshare"),
    requires("setpriv"),
    pytest.mark.skipif(os.geteuid() != 0, reason="takes root, to be two users: run the tests as root"),
]

STRANGER, VICTIM = 61_001, 61_002

# Listens at a socket as a stranger. Each caller's first bytes go to the standard output.
LISTENS = """
import os, select, socket, sys
os.setgid(int(sys.argv[1])); os.setuid(int(sys.argv[1]))
os.umask(0)
for path in sys.argv[2:]:
    os.makedirs(os.path.dirname(path), exist_ok=True)
listeners = []
for path in sys.argv[2:]:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    listeners.append(listener)
os.write(1, b"listens\\n")
if os.fork() == 0:
    while True:
        for ready in select.select(listeners, [], [])[0]:
            caller, _ = ready.accept()
            caller.settimeout(30)
            got = caller.recv(100)
            if got:
                os.write(1, b"got " + repr(got).encode() + b"\\n")
            caller.close()
"""

# A /tmp and a /run of the test's own. Then the test's script runs, and everything that it started ends.
NAMESPACE = """
set -e
mount -t tmpfs -o mode=1777 tmpfs /tmp
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/own; chmod 755 /run /run/own
"""


def alone(script, *words, code=0, timeout=HANG_LIMIT, given=None):
    """Runs a shell script in namespaces of its own, and returns its output. `words` are its $1, $2, …"""
    command = [
        "unshare",
        "-m",
        "-p",
        "-f",
        "--mount-proc",
        "--kill-child",
        "sh",
        "-c",
        NAMESPACE + script,
        "sh",
        *map(str, words),
    ]
    environment = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
    # A checkout below /tmp would be hidden, so the script begins elsewhere.
    done = subprocess.run(
        command, input=given, capture_output=True, text=True, timeout=timeout, env=environment, cwd="/"
    )
    assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture(scope="module")
def place():
    """A copy of the program that every user can run: the build may lie in a directory of root's."""
    directory = pathlib.Path(tempfile.mkdtemp(dir="/var/tmp"))
    directory.chmod(0o755)
    shutil.copy(BINARY, directory / "dashpot")
    shutil.copytree(ROOT / "python/src/dashpot", directory / "python/dashpot")
    (directory / "listens").write_text(LISTENS)
    yield directory
    shutil.rmtree(directory)


# The words that a command needs after its name. A command that is not here is called with its name alone.
WORDS = {
    "inject": "db -D 1ms",
    "update": "1 -D 1ms",
    "clear": "all",
    "suspend": "db",
    "resume": "db",
    "crash": "db",
    "get": "tank",
    "set": "tank zfs_dirty_data_max=1G",
    "check": "db.read.p99<1s",
    "attach": "db",
    "mount": "db /mnt",
    "detach": "db",
    "renew": "1",
    "faults": "db",
    "scenario": "stop db",
    "record": "-o /tmp/rec --for 1s",
    "stat": "disk.ops",
    "amplification": "",
    "zinject": "-d db -D 10:1 tank",
}
# Commands that ask no daemon, or that start one of their own.
OTHERS = {
    "help",
    "run",
    "serve",
    "sim",
    "load",
    "doctor",
    "dmsetup",
    "stats",
    "man",
    "completions",
    "version",
    "diff",
    "observe",
    "view",
    "install",
    "dashpot",
}


def commands():
    text = subprocess.run([BINARY, "help"], capture_output=True, text=True).stdout
    return [name for name in re.findall(r"^  ([a-z][a-z-]*)(?:\s|$)", text, re.M) if name not in OTHERS]


def test_each_command_that_looks_for_a_daemon_sends_a_stranger_nothing(place):
    """A user without a runtime directory looks below /tmp, where a stranger was first."""
    names = commands()
    assert len(names) > 20 and {"status", "mount", "attach", "record", "iolatency"} <= set(names)
    script = f"""
    python3 {place}/listens {STRANGER} /tmp/dashpot-{VICTIM}/api.sock /tmp/dashpot-{VICTIM}/api.fd /tmp/db.sock >/tmp/heard
    while read -r name words; do
        for api in X=1 DASHPOT_API=unix:/tmp/db.sock; do
            status=0
            setpriv --reuid={VICTIM} --regid={VICTIM} --clear-groups env $api {place}/dashpot $name $words </dev/null >/tmp/said 2>&1 || status=$?
            echo "$name:$status:$(tr '\\n' ' ' </tmp/said)"
        done
    done
    echo heard; cat /tmp/heard
    """
    given = "".join(f"{name} {WORDS.get(name, '')}\n" for name in names)
    done = alone(script, given=given)
    lines, heard = done.stdout.split("heard\n", 1)
    assert heard == "listens\n", "a stranger was sent something"
    said = [line.split(":", 2) for line in lines.splitlines()]
    assert len(said) == 2 * len(names)
    # These look for a daemon only as root, or on a terminal.
    refused = {name for name, _, text in said if "needs root" in text or "needs a terminal" in text}
    assert refused <= {"attach", "mount", "detach", "top"}
    for name, status, text in said:
        assert status == "1", (name, status, text)
        if name not in refused:
            assert f"user {STRANGER} listens at unix:/tmp/d" in text and "nothing was sent" in text, (name, text)


@pytest.mark.parametrize("sudo", ["", f"SUDO_UID={VICTIM}"])
def test_root_asks_only_daemons_that_no_stranger_can_have_put_there(place, sudo):
    """Root's own place is below /run. Under sudo, the caller's place counts only if it is the caller's."""
    script = f"""
    export {sudo or "X=1"}
    python3 {place}/listens {STRANGER} /tmp/dashpot-0/api.sock /tmp/dashpot-{VICTIM}/api.sock >/tmp/heard
    for words in status 'attach db' 'mount db /mnt' 'record -o /tmp/rec'; do
        {place}/dashpot $words 2>&1 && exit 1
    done
    {place}/dashpot status --api unix:/tmp/dashpot-0/api.sock 2>&1 && exit 1
    cat /tmp/heard
    """
    said = alone(script, code=0).stdout
    assert said.count("no daemon at unix:/run/dashpot/api.sock") == 4, said
    assert f"user {STRANGER} listens at unix:/tmp/dashpot-0/api.sock" in said and "got" not in said


def test_a_directory_that_root_gave_leads_to_its_owner(place):
    """Root may ask the daemon of a service whose directory root has made for it."""
    script = f"""
    install -d -o {STRANGER} -m 700 /run/service
    setpriv --reuid={STRANGER} --clear-groups {place}/dashpot serve -d db=ram,size=8M --nbd unix:/run/service/nbd.sock \\
        --api unix:/run/service/api.sock --ready-file /run/service/ready >/run/own/log 2>&1 &
    until [ -e /run/service/ready ]; do kill -0 $! || {{ cat /run/own/log; exit 1; }}; sleep 0.02; done
    {place}/dashpot status --api unix:/run/service/api.sock
    kill $!; wait $!
    """
    assert "db" in alone(script).stdout


def test_nothing_is_written_into_what_a_stranger_has_made(place):
    """A stranger who makes the directory of a recording first could lead its files anywhere, and the owner of a
    store's file reads and changes the disk."""
    script = f"""
    echo precious >/run/own/precious
    as() {{ setpriv --reuid={STRANGER} --clear-groups "$@"; }}
    as mkdir -m 777 /tmp/rec; as ln -s /run/own/precious /tmp/rec/dashpot.recording
    as truncate -s 8M /tmp/disk.img; as chmod 666 /tmp/disk.img
    {place}/dashpot run -d a=ram,size=8M -- true
    as mkdir -m 777 /tmp/theirs; truncate -s 8M /run/own/disk.img; as ln -s /run/own/disk.img /tmp/theirs/disk.img
    {place}/dashpot serve -d db=file:/tmp/theirs/disk.img --nbd unix:- --api unix:- 2>&1 && exit 1
    as mkdir -m 777 /tmp/report; as ln -s /run/own/precious /tmp/report/junit.xml
    {place}/dashpot run -d a=ram,size=8M --report /tmp/report -- true 2>&1 && exit 1
    {place}/dashpot serve -d db=file:/tmp/disk.img --nbd unix:- --api unix:- 2>&1 && exit 1
    {place}/dashpot serve -d db=ram,size=8M --nbd unix:- --api unix:- --record /tmp/rec 2>&1 && exit 1
    mkdir /run/own/rec; ln -s /run/own/precious /run/own/rec/dashpot.recording
    {place}/dashpot serve -d db=ram,size=8M --nbd unix:- --api unix:- --record /run/own/rec 2>&1 && exit 1
    as mkdir -m 755 /tmp/dashpot-{VICTIM}
    setpriv --reuid={VICTIM} --clear-groups {place}/dashpot serve -d db=ram,size=8M 2>&1 && exit 1
    cat /run/own/precious
    """
    said = alone(script).stdout
    assert f"user {STRANGER} owns /tmp/disk.img" in said and "owns /tmp/theirs/disk.img" in said
    assert "--report /tmp/report: another user than you can have made it" in said
    assert f"/tmp/rec: user {STRANGER} owns this directory" in said
    assert f"/tmp/dashpot-{VICTIM} is not a directory of this user" in said
    assert said.endswith("precious\n")


def test_a_strangers_link_to_a_recording_is_not_followed(place):
    script = f"""
    {place}/dashpot serve -d db=ram,size=8M --nbd unix:/tmp/nbd.sock --api unix:/tmp/api.sock --ready-file /run/own/ready >/run/own/log &
    daemon=$!
    until [ -e /run/own/ready ]; do kill -0 $daemon; sleep 0.02; done
    mkdir /run/own/recording
    link() {{ "$@" ln -sfn /run/own/recording /tmp/api.sock.rec; }}
    report() {{ {place}/dashpot iolatency --last 1m --api unix:/tmp/api.sock 2>&1 || true; }}
    link setpriv --reuid={STRANGER} --clear-groups
    report; echo; echo own
    rm /tmp/api.sock.rec; link env
    report
    kill $daemon; wait $daemon
    """
    theirs, own = alone(script).stdout.split("own\n")
    assert "/run/own/recording" in own, "the owner's link is followed"
    assert "/run/own/recording" not in theirs


def test_the_python_client_sends_a_stranger_nothing(place):
    script = f"""
    python3 {place}/listens {STRANGER} /tmp/dashpot-{VICTIM}/api.sock >/tmp/heard
    cd {place}/python
    setpriv --reuid={VICTIM} --regid={VICTIM} --clear-groups {sys.executable} -c '
import dashpot, dashpot._http as http
try:
    http.Api(http.default_address()).get("/v1/status")
except dashpot.DashpotError as error:
    print(error)
'
    cat /tmp/heard
    """
    said = alone(script).stdout
    assert f"user {STRANGER} listens at unix:/tmp/dashpot-{VICTIM}/api.sock" in said and "got" not in said
