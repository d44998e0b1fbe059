"""Tests which rights of root `attach`, `run --attach` and `serve --attach` need, and which they keep."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest
from attached import attach, can_attach, own_loop, remains  # noqa: F401 (a fixture)
from conftest import BINARY, HANG_LIMIT, eventually, open_to_all, requires, run

pytestmark = can_attach


def test_without_privilege_it_says_what_works_without(daemon, attach):
    nobody = ["setpriv", "--reuid=65534", "--clear-groups", "--bounding-set=-all"]
    refused = run(*nobody, BINARY, "attach", "d", "--api", f"unix:{daemon.api}", code=1).stderr
    assert "needs root" in refused and "NBD" in refused


@pytest.mark.parametrize(
    "command", ["attach d", "mount d /mnt --mkfs", "mount d /mnt --fs xfs", "detach d", "dmsetup ls"]
)
def test_root_is_said_before_tools_with_a_command_that_sudo_finds(command, daemon, directory):
    open_to_all(directory)
    own = directory / "my bin/dashpot"
    own.parent.mkdir(mode=0o755)
    shutil.copy(BINARY, own)
    nobody = ["setpriv", "--reuid=65534", "--clear-groups", "--bounding-set=-all"]
    word, *_ = command.split()
    # The PATH of an ordinary user of Debian has no losetup and no mkfs.ext4.
    environment = {"PATH": "/usr/bin:/bin", "DASHPOT_API": f"unix:{daemon.api}"}
    refused = run(*nobody, own, *command.split(), code=1, env=environment).stderr
    assert f"{word} needs root: sudo '{own}' {word}" in refused and "missing" not in refused, refused


def test_tools_of_root_are_found_whatever_the_path_is(daemon, attach, directory):
    (directory / "mnt").mkdir()
    environment = {"PATH": "/usr/bin:/bin", "DASHPOT_API": f"unix:{daemon.api}"}
    node = run(BINARY, "mount", "d", directory / "mnt", "--mkfs", "--with", "loop", env=environment).stdout.strip()
    assert os.path.ismount(directory / "mnt") and node
    run(BINARY, "detach", "d", env=environment)


@pytest.fixture
def user():
    """The uid of a made-up user, and an environment that names this user as `sudo` names its caller. The user's
    directory exists until the test ends."""
    uid = 50_000 + os.getpid() % 10_000
    own = pathlib.Path(f"/tmp/dashpot-{uid}")
    own.mkdir(mode=0o700)
    os.chown(own, uid, uid)
    yield uid, {"PATH": os.environ["PATH"], "SUDO_UID": str(uid), "SUDO_GID": str(uid)}
    shutil.rmtree(own)


def credentials(pid):
    """The lines of /proc/PID/status, by their names."""
    with open(f"/proc/{pid}/status") as status:
        return {name: value.split() for name, value in (line.split(":", 1) for line in status)}


def test_the_daemon_needs_no_privilege_and_sudo_finds_it(attach, user):
    """Under sudo, commands must find the daemon of the user who called sudo, and that daemon needs no
    privilege."""
    uid, env = user
    nobody = ["setpriv", f"--reuid={uid}", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"]
    daemon = subprocess.Popen([*nobody, BINARY, "serve", "-d", "d=ram,size=8M"], stdout=subprocess.DEVNULL, env=env)
    try:
        eventually(lambda: pathlib.Path(f"/tmp/dashpot-{uid}/api.sock").exists(), "a daemon")
        done = subprocess.run([BINARY, "attach", "d"], env=env, capture_output=True, text=True, timeout=HANG_LIMIT)
        assert done.returncode == 0, done.stderr
        # Only the daemon itself can mark its threads as I/O flushers.
        assert "the daemon may wait for its own device" in done.stderr and "CAP_SYS_RESOURCE" in done.stderr
        node = done.stdout.strip()
        run("dd", f"if={node}", "of=/dev/null", "bs=4k", "count=1", "iflag=direct")
        assert credentials(daemon.pid)["Uid"] == [str(uid)] * 4
        said = run(BINARY, "status", "--api", f"unix:/tmp/dashpot-{uid}/api.sock", env=env).stdout
        assert re.search(r"^serves devices of its own host: memory locked: (yes|no), I/O flusher: no$", said, re.M), (
            said
        )
        subprocess.run([BINARY, "detach", "all"], env=env, check=True, timeout=HANG_LIMIT)
    finally:
        daemon.terminate()
        assert daemon.wait(HANG_LIMIT) == 0


def test_serve_attaches_and_becomes_the_user_again(attach, own_loop, user):
    """The daemon's sockets, device and process are the user's. When the daemon ends, the device is removed, and root
    owns the node again."""
    uid, env = user
    words = ["serve", "--attach", "-d", "d=ram,size=8M", "--ready-file", f"/tmp/dashpot-{uid}/ready"]
    daemon = subprocess.Popen([BINARY, *words], stdout=subprocess.PIPE, text=True, env=env)
    try:
        ready, api = [pathlib.Path(f"/tmp/dashpot-{uid}/{name}") for name in ("ready", "api.sock")]
        eventually(lambda: ready.exists() or daemon.poll() is not None, "ready")
        assert daemon.poll() is None
        assert [path.stat().st_uid for path in (ready, api)] == [uid, uid]
        now = credentials(daemon.pid)
        assert now["Uid"] == now["Gid"] == [str(uid)] * 4 and now["Groups"] == [str(uid)]
        # The daemon keeps at most the right to lock memory (CAP_IPC_LOCK).
        assert int(now["CapEff"][0], 16) & ~(1 << 14) == 0
        status = json.loads(run(BINARY, "status", "--json", "--api", f"unix:{api}", env=env).stdout)
        (attachment,) = status["disks"][0]["attachments"]
        node = attachment["node"]
        as_user = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
        run(*as_user, "dd", "if=/dev/zero", f"of={node}", "bs=4k", "count=1", "oflag=direct")
        reclaim = status["reclaim"]
        assert len(reclaim["lacks"]) == [reclaim["locked"], reclaim["io_flusher"]].count(False)
        assert (int(now["VmLck"][0]) > 0) == reclaim["locked"]
    finally:
        daemon.send_signal(signal.SIGINT)
        said, _ = daemon.communicate(timeout=HANG_LIMIT)
    assert daemon.returncode == 0 and f"d  {node}" in said.splitlines()
    assert not remains() and not api.exists()
    assert os.stat(node).st_uid == 0


def test_a_node_is_given_back_before_another_program_can_take_it(attach, own_loop, user, tmp_path):
    uid, env = user
    owner, tool = tmp_path / "owner", tmp_path / "losetup"
    losetup = shutil.which("losetup", path=env["PATH"])
    tool.write_text(f'#!/bin/sh\n[ "$1" = --detach ] && stat --format %u "$2" >{owner}\nexec {losetup} "$@"\n')
    tool.chmod(0o755)
    env = {**env, "PATH": f"{tmp_path}:{env['PATH']}"}
    words = [BINARY, "run", "--attach", "-d", "d=ram,size=8M", "--", "sh", "-c", 'stat --format %u "$DASHPOT_DEV"']
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=HANG_LIMIT)
    assert done.returncode == 0, done.stderr
    assert (done.stdout.split(), owner.read_text().split()) == ([str(uid)], ["0"])


def test_under_sudo_a_daemon_at_a_tcp_address_is_found_with_its_token(attach, user):
    """Under sudo, the attacher of `serve --attach`, and `attach` itself, must find the daemon's TCP address and
    token."""
    uid, env = user
    ready = pathlib.Path(f"/tmp/dashpot-{uid}/ready")
    words = ["serve", "--attach", "-d", "d=ram,size=8M", "--api", "tcp:127.0.0.1:0", "--ready-file", ready]
    daemon = subprocess.Popen([BINARY, *words], stdout=subprocess.DEVNULL, env=env)
    try:
        eventually(lambda: ready.exists() or daemon.poll() is not None, "ready")
        assert daemon.poll() is None
        (port,) = re.findall(r"127\.0\.0\.1:(\d+)", ready.read_text())
        env = {**env, "DASHPOT_API": f"tcp:127.0.0.1:{port}"}
        subprocess.run([BINARY, "detach", "d"], env=env, check=True, timeout=HANG_LIMIT)
        subprocess.run([BINARY, "attach", "d"], env=env, check=True, timeout=HANG_LIMIT)
        subprocess.run([BINARY, "detach", "d"], env=env, check=True, timeout=HANG_LIMIT)
    finally:
        daemon.terminate()
        assert daemon.wait(HANG_LIMIT) == 0


@requires("mkfs.ext4")
def test_run_becomes_the_user_again_and_so_does_its_command(attach, user, tmp_path):
    uid, env = user
    script = (
        'id -u; id -G; dd if=/dev/zero of="$DASHPOT_DEV" bs=4k count=1 oflag=direct && grep CapEff /proc/self/status'
    )
    words = [BINARY, "run", "--attach", "-d", "d=ram,size=8M", "--", "sh", "-c", script]
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=HANG_LIMIT)
    assert done.returncode == 0, done.stderr
    who, groups, capabilities = done.stdout.splitlines()
    assert (who, groups) == (str(uid), str(uid)) and int(capabilities.split()[1], 16) == 0
    words = [BINARY, "run", "--mount", tmp_path, "-d", "d=ram,size=64M", "--", "touch", tmp_path / "file"]
    for parent in [tmp_path, *tmp_path.parents]:
        if parent.stat().st_uid == 0 and str(parent).startswith("/tmp/"):
            parent.chmod(0o755)
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=HANG_LIMIT)
    assert done.returncode == 0, done.stderr
    assert not remains() and not os.path.ismount(tmp_path)


def test_attaching_at_the_start_without_the_rights_is_refused(attach, user):
    uid, env = user
    nobody = ["setpriv", f"--reuid={uid}", "--clear-groups", "--bounding-set=-all"]
    for words in [["serve", "--attach"], ["run", "--attach", "--", "true"]]:
        asked = [*nobody, BINARY, *words]
        done = subprocess.run(asked, env=env, capture_output=True, text=True, timeout=HANG_LIMIT)
        assert done.returncode != 0 and "needs root: sudo" in done.stderr, done.stderr
    done = subprocess.run(
        [BINARY, "serve", "--attach"], env={**env, "SUDO_UID": "me"}, capture_output=True, text=True, timeout=HANG_LIMIT
    )
    assert done.returncode == 1 and "SUDO_UID=me" in done.stderr
    assert not remains()


def test_a_killed_daemon_that_attached_leaves_nothing_that_stale_does_not_find(attach, user):
    uid, env = user
    ready = pathlib.Path(f"/tmp/dashpot-{uid}/ready")
    words = ["serve", "--attach", "-d", "d=ram,size=8M", "--ready-file", ready]
    daemon = subprocess.Popen([BINARY, *words], stdout=subprocess.DEVNULL, env=env)
    eventually(ready.exists, "ready")
    daemon.kill()
    daemon.wait()
    eventually(lambda: run(BINARY, "detach", "--stale", code=None).stdout.startswith("/dev/"), "the helper lets go")
    assert not remains()


def test_who_serves_its_own_devices_is_locked_in_memory(attach):
    """A daemon that serves its own devices locks its memory. Otherwise it could wait for ever for memory that
    only its own device can free."""
    script = "grep VmLck /proc/$PPID/status; cut -d' ' -f9 /proc/$PPID/stat /proc/self/stat"
    done = run(BINARY, "run", "--attach", "-d", "d=ram,size=8M", "--", "sh", "-c", script)
    locked, server, command = done.stdout.splitlines()
    if "CAP_IPC_LOCK" not in done.stderr:
        assert int(locked.split()[1]) > 0
    # PF_MEMALLOC_NOIO and PF_LOCAL_THROTTLE.
    flusher = 0x80000 | 0x100000
    if "CAP_SYS_RESOURCE" not in done.stderr:
        assert int(server) & flusher == flusher
    assert int(command) & flusher == 0
