"""Cases in a guest of `scripts/guest`, whose kernel has drivers that this host may lack.

A case is a shell script. It runs with `set -eu`, below the definitions of a few functions that all cases
share. When the case ends, the guest ends, too. The clock of an emulated machine means nothing, so no case
asserts a time but "never early".
"""

import os
import shutil
import subprocess

import pytest
from conftest import BINARY, ROOT

TARGET = os.environ.get("CARGO_TARGET_DIR", "target")

# The beginning of every case. A case that succeeds does not print its errors. `eventually` repeats a command until it
# succeeds. If the command never succeeds, the guest's own time limit ends the case.
PROLOGUE = """
set -eu
exec 2>/run/errors
trap '[ $? = 0 ] || cat /run/errors' EXIT
export DASHPOT_API=unix:/run/api.sock
export DM_DISABLE_UDEV=1
modprobe loop; modprobe nbd; modprobe xfs

serve() {
    rm -f /run/ready
    dashpot serve "$@" --api unix:/run/api.sock --nbd unix:/run/nbd.sock --ready-file /run/ready >>/run/log 2>&1 &
    daemon=$!
    eventually test -e /run/ready
}

stop() {
    kill "$daemon"
    wait "$daemon"
}

eventually() {
    until "$@"; do sleep 0.1; done
}

# Fails if its command succeeds, and prints the command's output.
refused() {
    ! "$@" 2>&1
}

# Makes a file system on a node, mounts it at /mnt, writes a file, mounts it again, and finds the file whole.
mount_and_write() {
    mkfs.ext4 -q "$1"
    mount "$1" /mnt
    dd if=/dev/urandom of=/mnt/file bs=1M count=16 status=none
    (cd /mnt && sha256sum file) >/run/sum
    umount /mnt
    mount "$1" /mnt
    check_file
    fstrim /mnt
}

check_file() {
    (cd /mnt && sha256sum -c -s /run/sum)
}

unmount_and_check() {
    umount /mnt
    e2fsck -fn "$1" >/dev/null 2>&1
}

# Fails while the program or the kernel still has a part of an attachment by ublk or nbd.
nothing_left() {
    [ -z "$(ls /run/dashpot-attached)" ]
    [ -z "$(ls /sys/class/ublk-char 2>/dev/null)" ]
    [ -z "$(ls -d /dev/ublkb* /sys/block/nbd*/pid 2>/dev/null)" ]
}

# Checks that no process waits for ever, and that the kernel has logged no fault of its own.
whole() {
    eventually none_waits
    ! dmesg | grep -E 'BUG|Oops|WARNING'
}

none_waits() {
    ! ps -o stat,comm | grep -q '^D'
}

# Checks whether a disk, or an attachment, has this many unfinished I/Os.
in_flight() {
    dashpot status --json | grep -Eq "in_flight.: *$1(,|$)"
}
"""


@pytest.fixture(scope="session", autouse=True)
def prepared():
    """Fetches the kernel and builds the initramfs, or skips the cases and says what is missing."""
    for tool in ["qemu-system-x86_64", "cpio", "busybox", "depmod", "fio", "mkfs.xfs", "dmsetup"]:
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is missing: make deps")
    done = subprocess.run([ROOT / "scripts/guest", "build"], capture_output=True, text=True, env=environment())
    if done.returncode != 0:
        pytest.skip(f"no guest can be built: {done.stderr.strip()}")


@pytest.fixture
def guest():
    """Runs a case in at most this many seconds, and returns its output."""

    def run(script, code=0, seconds=180):
        limited = {**environment(), "GUEST_SECONDS": str(seconds)}
        done = subprocess.run(
            [ROOT / "scripts/guest", "run"], input=PROLOGUE + script, capture_output=True, text=True, env=limited
        )
        console = ROOT / TARGET / "guest/console"
        assert done.returncode == code, f"{done.stdout}\n{done.stderr}\nconsole:\n{console.read_text()[-4000:]}"
        return done.stdout

    return run


def environment():
    return {**os.environ, "DASHPOT": BINARY, "CARGO_TARGET_DIR": TARGET}
