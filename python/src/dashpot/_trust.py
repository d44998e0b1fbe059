"""The users whom a process may trust at a path: the program's own rule (`Trusted` in its crate `sys`)."""

from __future__ import annotations

import os
import stat
from typing import Optional


def stranger(path: str, uid: int) -> Optional[int]:
    """The user, if any user can have made a file of theirs at this path. A directory that only trusted users can
    write leads to its owner, as `/run/user/1000` leads to user 1000, and `/tmp/api.sock` to nobody."""
    return uid if uid not in _trusted(path) else None


def _trusted(path: str) -> set[int]:
    own = os.geteuid()
    users = {0, own}
    if own == 0 and os.environ.get("SUDO_UID", "").isdigit():
        users.add(int(os.environ["SUDO_UID"]))
    at, rest, links, is_shared = "", ["/", *os.path.join(os.getcwd(), path).split("/")], 0, False
    while rest:
        part = rest.pop(0)
        here = os.path.dirname(at) or "/" if part == ".." else os.path.join(at, part)
        try:
            found = os.lstat(here)
        except FileNotFoundError:
            if rest:
                raise
            break
        if found.st_uid not in users:
            if is_shared:
                # The stranger decides where the rest of the way leads.
                return set()
            if not _is_unmapped(found.st_uid):
                users.add(found.st_uid)
        if stat.S_ISLNK(found.st_mode):
            links += 1
            if links > 40:
                raise OSError(f"too many links: {path}")
            to = os.readlink(here)
            rest = [*(["/"] if to.startswith("/") else []), *to.split("/"), *rest]
        else:
            at, is_shared = here, bool(found.st_mode & 0o022)
    return users


def _is_unmapped(uid: int) -> bool:
    """Whether the kernel shows this number also for users who have none in this user namespace."""
    if uid != 65534:
        return False
    with open("/proc/self/uid_map") as lines:
        return lines.read().split() != ["0", "0", "4294967295"]
