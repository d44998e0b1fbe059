"""A program with a random history of its files: it opens, copies, closes, forks, executes itself, renames,
links, unlinks and syncs. The program knows where each file is, and writes how many syncs were of files in the
directory INSIDE, and how many were not.

    path_history.py SEED INSIDE OUTSIDE STEPS DEPTH FD:PLACE:PATH…
"""

import os
import random
import sys
import threading

seed, inside, outside, steps, depth = int(sys.argv[1]), *sys.argv[2:4], *map(int, sys.argv[4:6])
draws = random.Random(seed)
# `opened` has the key of each descriptor's file. `files` says, for each file, whether it is in INSIDE, its path if
# it has one, and whether it has another name in INSIDE.
opened, files = {}, {}
for word in sys.argv[6:]:
    descriptor, place, path = word.split(":", 2)
    files[descriptor] = [place.startswith("in"), path or None, place.endswith("+")]
    opened[int(descriptor)] = descriptor
counts = [0, 0]


def open_file():
    is_inside = draws.random() < 0.5
    directory = inside if is_inside else outside
    if draws.random() < 0.3:
        directory += "/below"
        os.makedirs(directory, exist_ok=True)
    path = f"{directory}/{os.getpid()}-{draws.getrandbits(40)}"
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR)
    key = f"{path}"
    files[key] = [is_inside, path, False]
    opened[descriptor] = key


def sync():
    descriptor = draws.choice(list(opened))
    call = draws.choice([os.fsync, os.fdatasync])
    if draws.random() < 0.3:
        thread = threading.Thread(target=call, args=[descriptor])
        thread.start()
        thread.join()
    else:
        call(descriptor)
    is_inside, _, has_name_inside = files[opened[descriptor]]
    counts[0 if is_inside or has_name_inside else 1] += 1


def copy():
    descriptor = draws.choice(list(opened))
    if draws.random() < 0.5 or len(opened) < 2:
        opened[os.dup(descriptor)] = opened[descriptor]
    else:
        other = draws.choice(list(opened))
        os.dup2(descriptor, other)
        opened[other] = opened[descriptor]


def close():
    if len(opened) > 1:
        descriptor = draws.choice(list(opened))
        os.close(descriptor)
        del opened[descriptor]


def rename():
    file = files[draws.choice(list(opened.values()))]
    if file[1]:
        file[0] = draws.random() < 0.5
        path = f"{inside if file[0] else outside}/{os.getpid()}-{draws.getrandbits(40)} r"
        os.rename(file[1], path)
        file[1] = path


def link():
    """Gives a file an additional name, which the file keeps."""
    file = files[draws.choice(list(opened.values()))]
    if file[1] and not os.environ.get("NO_LINKS"):
        is_inside = draws.random() < 0.5
        os.link(file[1], f"{inside if is_inside else outside}/{os.getpid()}-{draws.getrandbits(40)} l")
        file[2] = file[2] or is_inside


def unlink():
    file = files[draws.choice(list(opened.values()))]
    if file[1]:
        os.unlink(file[1])
        file[1] = None


def fork():
    """Only the child goes on with the history, and its parent waits for it."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        # The child may have moved the files. The parent ends now, so it need not learn what the child did with its
        # files.
        os._exit(0)


def execute():
    words = []
    for descriptor, key in opened.items():
        os.set_inheritable(descriptor, True)
        is_inside, path, has_name_inside = files[key]
        words.append(f"{descriptor}:{'in' if is_inside else 'out'}{'+' if has_name_inside else ''}:{path or ''}")
    # The new program would take two descriptors of one file for two files, and would not know that a rename of one
    # moves both. The caller has therefore left only one descriptor of each file open.
    print(*counts, flush=True)
    os.execv(
        sys.executable,
        [sys.executable, __file__, str(draws.getrandbits(32)), inside, outside, str(steps), str(depth - 1), *words],
    )


open_file()
for step in range(steps):
    acts = [open_file, sync, sync, sync, copy, close, rename, link, unlink, fork]
    draws.choice(acts)()
if depth > 0:
    keys = list(opened.values())
    for descriptor in list(opened):
        if keys.count(opened[descriptor]) > 1:
            keys.remove(opened[descriptor])
            os.close(descriptor)
            del opened[descriptor]
    execute()
print(*counts, flush=True)
