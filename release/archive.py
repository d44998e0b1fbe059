"""The files and directories of an archive, and tar archives of them."""

import gzip
import io
import tarfile
from dataclasses import dataclass
from pathlib import PurePosixPath


@dataclass(frozen=True)
class Entry:
    """A file, or a directory (without data)."""

    path: str
    data: bytes = b""
    mode: int = 0o644
    is_directory: bool = False


def program(path, data):
    return Entry(path, data, 0o755)


def directory(path, mode=0o755):
    return Entry(path, b"", mode, True)


def with_parents(entries):
    """The entries in the order of their paths, each after the directories that contain it."""
    found = {entry.path: entry for entry in entries}
    for entry in entries:
        for parent in PurePosixPath(entry.path).parents:
            if str(parent) != ".":
                found.setdefault(str(parent), directory(str(parent)))
    return [found[path] for path in sorted(found)]


def tar(entries, epoch, prefix=""):
    """A tar archive. Every entry belongs to root and has the time `epoch`."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for entry in entries:
            info = tarfile.TarInfo(prefix + entry.path)
            info.mode, info.mtime, info.size = entry.mode, epoch, len(entry.data)
            info.uname = info.gname = "root"
            info.type = tarfile.DIRTYPE if entry.is_directory else tarfile.REGTYPE
            archive.addfile(info, None if entry.is_directory else io.BytesIO(entry.data))
    return made.getvalue()


def gz(data):
    return gzip.compress(data, 9, mtime=0)
