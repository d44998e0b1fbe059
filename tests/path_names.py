"""A program that makes a directory its root, and opens files there by random names: through absolute and relative
links, from its working directory, from other directories, and by openat2 with a directory as the root of the name.
The program knows where each opened file is. Prints how many of the opened files were in the directory `in`, and how
many were not.

    path_names.py SEED ROOT STEPS
"""

import ctypes
import os
import random
import struct
import sys

seed, root, steps = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
draws = random.Random(seed)
os.chroot(root)
os.chdir("/")
directories = [f"{top}{below}" for top in ("/in", "/out") for below in ("", "/a", "/a/b")]
for directory in directories:
    os.makedirs(directory, exist_ok=True)
    os.mknod(f"{directory}/f")
inside = {os.stat(path).st_ino for it in directories if it.startswith("/in") for path in (it, f"{it}/f")}


def path_to(path, start):
    """A random name for a path: absolute, or relative to a directory. Some names have more `..` than there are
    directories above; such a name leads to the root.
    """
    if draws.random() < 0.4:
        return path
    up = "../" * (start.count("/") + draws.randrange(3))
    return up + path.lstrip("/")


def has_below(base, name):
    """Whether the name leads to a file for a process whose root is this directory."""
    child = os.fork()
    if child == 0:
        os.chroot(base)
        os.chdir("/")
        os._exit(not os.path.exists(name))
    return os.waitpid(child, 0)[1] == 0


libc = ctypes.CDLL(None, use_errno=True)
OPENAT2, RESOLVE_IN_ROOT = 437, 0x10


def open_below(base, name):
    how = struct.pack("QQQ", os.O_RDONLY, 0, RESOLVE_IN_ROOT)
    file = libc.syscall(OPENAT2, base, name.encode(), how, len(how))
    assert file >= 0, (name, ctypes.get_errno())
    return file


links = []
for number in range(40):
    directory = draws.choice(directories)
    target = draws.choice([*directories, *(f"{it}/f" for it in directories), *links])
    link = f"{directory}/l{number}"
    os.symlink(path_to(target, directory), link)
    links.append(link)

counts = [0, 0]
for _ in range(steps):
    os.chdir(draws.choice(directories))
    start = draws.choice(directories)
    name = draws.choice([*links, *(f"{it}/f" for it in directories)])
    if draws.random() < 0.3:
        name += draws.choice(["/f", "/../f", "/../../in/f", "/a/f"])
    way = draws.choice(["absolute", "working", "directory", "below"])
    if way == "below":
        start = draws.choice(["/in", "/out"])
        name = name[name.index("/", 1) :]
    if not (has_below(start, name) if way == "below" else os.path.exists(name)):
        continue
    if way == "absolute":
        file = os.open(name, os.O_RDONLY)
    elif way == "working":
        file = os.open(path_to(name, os.getcwd()), os.O_RDONLY)
    else:
        base = os.open(start, os.O_RDONLY)
        counts[not start.startswith("/in")] += 1
        file = open_below(base, name) if way == "below" else os.open(path_to(name, start), os.O_RDONLY, dir_fd=base)
        os.close(base)
    counts[os.fstat(file).st_ino not in inside] += 1
    os.close(file)
print(*counts)
