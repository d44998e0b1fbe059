"""Path disks: a directory that is mounted at several places, in dashpot's namespace of mounts and in others."""

import os
import shutil

import pytest
from test_path import PYTHON, SYNCS, counted, places  # noqa: F401

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
# For each thing to mount: the words that mount it, and the path of a file below the mount.
WAYS = {
    "the directory": ("--bind wal mnt", "mnt/f"),
    "a directory below it": ("--bind wal/below mnt", "mnt/f"),
    "a directory above it": ("--bind . mnt", "mnt/wal/f"),
    "a file of it": ("--bind wal/f 'other/a b'", "other/a b"),
}


@pytest.fixture
def files(places):  # noqa: F811
    wal, other = places
    for directory in (wal / "below", wal.parent / "mnt"):
        directory.mkdir()
    for file in (wal / "f", wal / "below/f", other / "a b"):
        file.touch()
    return wal


def mounted(files, words):
    """The words that must precede a command to make a mount in a namespace that ends with the command."""
    script = f'cd {files.parent} && mount {words} && exec "$@"'
    return ["unshare", "--mount", "sh", "-c", script, "sh"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("inside", [False, True], ids=["outside", "inside"])
def test_a_file_is_held_at_each_of_its_places(files, tmp_path, way, inside):
    """A file must be held at each place where it is mounted. The mount is made before dashpot starts, or by
    its program, in a namespace that dashpot does not see."""
    words, path = WAYS[way]
    under = mounted(files, words)
    program = [PYTHON, "-c", SYNCS, files.parent / path, 5]
    command = [*under, *program] if inside else program
    _, rule = counted(files, tmp_path, *command, under=[] if inside else under)
    assert (rule["matched"], rule["held"]) == (5, 5)


def test_a_file_that_has_lost_its_name_is_held(files, tmp_path):
    program = "import os; f = os.open('mnt/f', os.O_RDWR); os.unlink('mnt/f'); os.fsync(f)"
    _, rule = counted(files, tmp_path, PYTHON, "-c", program, under=mounted(files, "--bind wal mnt"))
    assert rule["matched"] == 1


NAMES = "import os; os.close(os.open('mnt/n', os.O_CREAT)); os.rename('mnt/n', 'mnt/m'); os.unlink('mnt/m')"


def test_names_are_known_at_each_place(files, tmp_path):
    under = mounted(files, "--bind wal mnt")
    _, rule = counted(files, tmp_path, PYTHON, "-c", NAMES, under=under, types="open,rename,unlink")
    assert rule["matched"] == 3


@pytest.mark.parametrize("words", ["--bind other mnt", "-t tmpfs tmpfs mnt"])
def test_a_file_of_another_directory_is_not_held(files, tmp_path, words):
    program = [PYTHON, "-c", SYNCS, files.parent / "mnt/f", 5]
    _, rule = counted(files, tmp_path, *program, under=mounted(files, words))
    assert rule["matched"] == 0


# Makes a new root, in which a file has the path of a file of the disk.
ENTERED = """
mkdir root && mount $2 root && cd root
for at in usr bin lib lib64; do mkdir -p $at && mount --rbind /$at $at; done
mkdir -p .$1 mnt && $3 && touch .$1/f && pivot_root . mnt && shift 3 && exec "$@"
"""


@pytest.mark.parametrize(
    ("root", "more", "matched"),
    [
        ("-t tmpfs tmpfs", "true", 0),
        ("-t tmpfs tmpfs", "mount --bind $1 .$1", 5),
        ("--rbind /", "true", 5),
    ],
    ids=["another file", "the file", "all files"],
)
def test_a_root_of_a_program_has_its_own_files(files, tmp_path, root, more, matched):
    """A program with a root of its own has other files at the same paths: the path alone does not tell
    whether such a file is the disk's."""
    entered = f"cd {files.parent}" + ENTERED.replace("$2", root).replace("$3", more)
    _, rule = counted(
        files,
        tmp_path,
        "unshare",
        "--mount",
        "sh",
        "-ec",
        entered,
        "sh",
        files,
        root,
        more,
        PYTHON,
        "-c",
        SYNCS,
        files / "f",
        5,
    )
    assert (rule["matched"], rule["held"]) == (matched, matched)


# An overlay over two file systems, in which a file of the lower one has a device number that the directories do not
# have. Another name of that file is in the disk's directory.
OVERLAY = (
    "-t tmpfs lower other && mkdir other/d other/o && touch other/d/f && ln other/d/f other/o/x "
    "&& mount -t tmpfs upper mnt && mkdir mnt/u mnt/w "
    "&& mount -t overlay -o lowerdir=other,upperdir=mnt/u,workdir=mnt/w overlay wal"
)
# Two subvolumes, which have device numbers of their own.
SUBVOLUMES = (
    "-t tmpfs image other && truncate -s 128M other/i && mkfs.btrfs -q other/i >other/said && mount -o loop other/i wal "
    "&& btrfs -q subvolume create wal/d && btrfs -q subvolume create wal/o && touch wal/o/x"
)
# Syncs the file system of a file, and the file.
SYNCS_ALL = """
import ctypes, os, sys
file = os.open(sys.argv[1], os.O_RDONLY)
directory = os.open(os.path.dirname(sys.argv[1]), os.O_RDONLY)
print(int(os.fstat(file).st_dev != os.fstat(directory).st_dev))
assert ctypes.CDLL(None).syncfs(file) == 0
os.fsync(file)
"""


@pytest.mark.parametrize(("words", "matched"), [(OVERLAY, 2), (SUBVOLUMES, 1)], ids=["overlay", "btrfs"])
def test_a_file_system_is_known_whatever_device_numbers_its_files_have(files, tmp_path, words, matched):
    if words == SUBVOLUMES and not (shutil.which("mkfs.btrfs") and shutil.which("btrfs")):
        pytest.skip("apt-get install btrfs-progs")
    program = [PYTHON, "-c", SYNCS_ALL, files / "o/x"]
    done, rule = counted(files / "d", tmp_path, *program, under=mounted(files, words))
    assert done.stdout == ("1\n" if words == OVERLAY else "0\n")
    assert rule["matched"] == matched
