"""`attach` on a host that lacks something, or where other programs have taken what it needs: clear
errors, and nothing is half-done."""

import os
import pathlib
import re
import signal

import pytest
from attached import attach, backing, can_attach, can_write, own_loop, remains, sysfs  # noqa: F401 (a fixture)
from conftest import BINARY, eventually, requires, run

pytestmark = can_attach


def in_a_namespace(script, daemon, code):
    """Runs a script as a user would, with mounts that end with the script."""
    environment = {"DASHPOT_API": f"unix:{daemon.api}", "DASHPOT": BINARY}
    return run("unshare", "--mount", "sh", "-ec", script, code=code, env=environment)


# A container without one of the kernel's devices: its /dev has all other devices. Each command is refused in the
# same way, before it makes anything.
A_DEVICE_IS_MISSING = """
mkdir "$0/dev"
mount --rbind /dev "$0/dev"
mount -t tmpfs tmpfs /dev
for name in null fuse loop-control; do
    [ "$name" = "$1" ] || { touch "/dev/$name"; mount --bind "$0/dev/$name" "/dev/$name"; }
done
refused() { ! "$DASHPOT" "$@" 2>&1; }
refused attach d
refused attach d --with loop
refused mount d "$0" --mkfs
refused run --attach -d x=ram,size=1M -- true
refused dmsetup create slow-$$ --table '0 2048 delay ram:1M 0 10'
"$DASHPOT" doctor | grep '^attach: a /dev/loop'
"""


@requires("unshare")
@pytest.mark.parametrize("node, module", [("fuse", "fuse"), ("loop-control", "loop")])
def test_without_a_device_of_the_kernel_it_says_what_helps_and_what_works_without(
    daemon, attach, tmp_path, node, module
):
    script = ["unshare", "--mount", "sh", "-ec", A_DEVICE_IS_MISSING, tmp_path, node]
    said = run(*script, env={"DASHPOT_API": f"unix:{daemon.api}", "DASHPOT": BINARY}).stdout
    *refused, doctor = [line for line in said.splitlines() if "/dev/" in line]
    assert len(refused) == 5, said
    for line in refused:
        assert f"/dev/{node} is not there: modprobe {module}, as root" in line, said
        assert "programs that speak NBD need no block device" in line, said
    assert f"no     /dev/{node} is not there; modprobe {module}, as root" in doctor
    assert not remains() and not daemon.disk()["clients"]
    daemon.cli("detach", attach(daemon))


@requires("setpriv")
def test_root_without_the_right_to_mount_is_told_so_before_anything_is_made(daemon, attach):
    """Root without the right to mount, as in most containers, must get an error before anything is made."""
    environment = {"DASHPOT_API": f"unix:{daemon.api}"}
    under = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", BINARY]
    refused = run(*under, "attach", "d", "--with", "loop", code=1, env=environment).stderr
    why = "mounting a file and making a loop device needs CAP_SYS_ADMIN, which root lacks here"
    assert f"{why}: a container needs --privileged; programs that speak NBD need no block device" in refused
    assert f"{why}; a container needs --privileged" in run(*under, "doctor", env=environment).stdout
    assert not remains()


# Keeps `losetup` from finding a free loop device: hides the node that makes new devices, and the nodes of all
# existing devices, as if they were in use.
NO_DEVICE_IS_FREE = """
mount --bind /dev/null /dev/loop-control
for node in /dev/loop[0-9]*; do mount --bind /dev/null "$node"; done
"$DASHPOT" attach d --with loop
"""


@requires("unshare")
def test_without_a_free_loop_device_it_says_so_and_leaves_nothing(daemon, attach):
    refused = in_a_namespace(NO_DEVICE_IS_FREE, daemon, code=1).stderr
    assert "no loop device is free" in refused and "losetup --list" in refused, refused
    assert not remains()
    eventually(lambda: not daemon.disk()["clients"], "no client")
    daemon.cli("detach", attach(daemon))


# A container often has the nodes that the host had when the container was started, and no node of a newer
# device.
A_NODE_IS_MISSING = """
mkdir "$0/dev"
mount --rbind /dev "$0/dev"
mount -t tmpfs tmpfs /dev
for name in null fuse loop-control; do
    touch "/dev/$name"
    mount --bind "$0/dev/$name" "/dev/$name"
done
"$DASHPOT" attach d --with loop
"""

# Without sysfs, losetup still makes the device.
SYSFS_IS_MISSING = """
mount -t tmpfs tmpfs /sys
"$DASHPOT" attach d --with loop
"""


@requires("unshare")
def test_a_device_without_a_node_or_without_sysfs_is_refused_with_the_remedy(daemon, attach, tmp_path):
    script = ["unshare", "--mount", "sh", "-ec", A_NODE_IS_MISSING, tmp_path]
    environment = {"DASHPOT_API": f"unix:{daemon.api}", "DASHPOT": BINARY}
    refused = run(*script, code=1, env=environment).stderr
    assert re.search(r"(/dev/loop\d+) is free, but has no node here: .* mknod \1 b 7 \d+\n", refused), refused
    refused = in_a_namespace(SYSFS_IS_MISSING, daemon, code=1).stderr
    assert "cannot see the file of the loop device in /sys: mount sysfs there" in refused, refused
    assert not remains()
    eventually(lambda: not daemon.disk()["clients"], "no client")
    daemon.cli("detach", attach(daemon))


# Each time `attach` has found a free device, another program takes it before `attach` can.
ANOTHER_IS_FASTER = """
mkdir "$0/bin"
real=$(command -v losetup)
cat >"$0/bin/losetup" <<END
#!/bin/sh
[ "\\$*" = --find ] || exec $real "\\$@"
echo x >>"$0/asked"
[ -e "$0/free" ] && [ \\$(wc -l <"$0/asked") -gt 2 ] && exec $real --find
echo "$1"
END
chmod +x "$0/bin/losetup"
PATH=$0/bin:$PATH exec "$DASHPOT" attach d --with loop
"""


@pytest.mark.parametrize("gets_one", [False, True])
def test_a_node_that_another_program_takes_first(daemon, attach, tmp_path, gets_one):
    """If another program takes the free device first, `attach` takes the next one. If another program takes
    every device, `attach` gives up, and leaves nothing."""
    file = tmp_path / "taken.img"
    file.write_bytes(bytes(1 << 20))
    if gets_one:
        (tmp_path / "free").touch()
    node = run("losetup", "--find", "--show", file).stdout.strip()
    try:
        environment = {"DASHPOT_API": f"unix:{daemon.api}", "DASHPOT": BINARY}
        code = 0 if gets_one else 1
        done = run("sh", "-ec", ANOTHER_IS_FASTER, tmp_path, node, code=code, env=environment)
        assert backing(pathlib.Path("/sys/block") / os.path.basename(node)) == str(file)
        if gets_one:
            daemon.cli("detach", done.stdout.strip())
        else:
            assert "other programs took every device that was free: try again" in done.stderr
        assert not remains()
        eventually(lambda: not daemon.disk()["clients"], "no client")
    finally:
        run("losetup", "--detach", node)


# As soon as `detach` has freed its node, another `attach` makes a device of the node. `detach` goes on only when that
# `attach` has ended.
ANOTHER_TAKES_THE_FREE_NODE = """
mkdir "$0/bin"
real=$(command -v losetup)
cat >"$0/bin/losetup" <<END
#!/bin/sh
[ "\\$1" = --detach ] || exec $real "\\$@"
$real "\\$@"
PATH=$PATH "$DASHPOT" attach e --with loop >"$0/e" 2>&1 || true
END
chmod +x "$0/bin/losetup"
PATH=$0/bin:$PATH exec "$DASHPOT" detach d
"""


def test_the_next_attachment_waits_until_settings_are_restored(serve, attach, own_loop, tmp_path):
    """An `attach` that did not wait would note the settings of the last user as those to restore."""
    setting = pathlib.Path("/sys/block", os.path.basename(own_loop), "queue/max_sectors_kb")
    eventually(lambda: can_write(setting, "512"), setting)
    daemon = serve("-d", "d=ram,size=8M", "-d", "e=ram,size=8M")
    assert attach(daemon, "d") == own_loop
    environment = {"DASHPOT_API": f"unix:{daemon.api}", "DASHPOT": BINARY}
    run("sh", "-ec", ANOTHER_TAKES_THE_FREE_NODE, tmp_path, env=environment)
    refused = (tmp_path / "e").read_text()
    assert f"another command attaches or detaches {own_loop}: wait for it, or end it" in refused
    assert not remains() and sysfs(own_loop, "queue/max_sectors_kb") == "512"
    assert attach(daemon, "e") == own_loop and sysfs(own_loop, "queue/max_sectors_kb") == "1024"
    daemon.cli("detach", "e")
    assert sysfs(own_loop, "queue/max_sectors_kb") == "512"


@pytest.mark.parametrize("command", ["attach", "stale"])
def test_daemons_that_do_not_answer_are_named_and_keep_their_devices(serve, attach, command):
    """The message must name each unresponsive daemon only once, however many devices it has."""
    daemon = serve("-d", "mine=ram,size=8M")
    others = [serve("-d", f"a{at}=ram,size=8M", "-d", f"b{at}=ram,size=8M") for at in range(2)]
    nodes = [attach(other, f"{disk}{at}") for at, other in enumerate(others) for disk in "ab"]
    for other in others:
        os.kill(other.pid, signal.SIGSTOP)
    try:
        words = ["attach", "mine", "--with", "loop"] if command == "attach" else ["detach", "--stale"]
        said = daemon.cli(*words).stderr.splitlines()
        for other in others:
            (line,) = [line for line in said if str(other.api) in line]
            assert f"process {other.pid}" in line and f"'kill -CONT {other.pid}'" in line
            assert line.endswith("its devices stay as they are")
    finally:
        for other in others:
            os.kill(other.pid, signal.SIGCONT)
    for node in nodes:
        run("dd", f"if={node}", "of=/dev/null", "bs=4k", "count=1", "iflag=direct")
    for one in [daemon, *others]:
        one.cli("detach", "all")
    assert not remains()
