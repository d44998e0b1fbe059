"""Mounts tracefs for the tests, in a mount namespace of their own, so that the machine itself does not
change.

`usage: tracefs.py COMMAND...` runs a command in such a namespace. `conftest.py` calls `mount` when pytest is started
directly.
"""

import ctypes
import os
import pathlib
import subprocess
import sys

TRACEFS = pathlib.Path("/sys/kernel/tracing")
CLONE_NEWNS = 0x00020000  # of linux/sched.h; os.unshare came with Python 3.12
REMEDY = "mount it: mount -t tracefs nodev /sys/kernel/tracing"

# The reason that there is no tracefs; None if there is one.
complaint = None


def mount():
    """Mounts tracefs for this process and its children only, if it is missing and this user may mount it."""
    global complaint
    if (TRACEFS / "events/block").is_dir():
        return
    if os.geteuid() != 0:
        complaint = "takes root: run the tests as root"
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) != 0:
        complaint = (
            f"tracefs is not mounted, and a mount namespace is refused ({os.strerror(ctypes.get_errno())}); {REMEDY}"
        )
        return
    # Mounts and unmounts on the machine still take effect in this namespace, but those in this namespace do not reach
    # the machine.
    for words in (["mount", "--make-rslave", "/"], ["mount", "-t", "tracefs", "nodev", str(TRACEFS)]):
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode != 0:
            complaint = f"tracefs is not mounted, and cannot be: {done.stderr.strip()}; {REMEDY}"
            return


if __name__ == "__main__":
    mount()
    os.execvp(sys.argv[1], sys.argv[1:])
