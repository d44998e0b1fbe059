"""Path disks: reads and writes that move fewer bytes than the program has asked for, without an error."""

import json
import os
import pathlib
import re
import sqlite3

import pytest
from conftest import BINARY, open_to_all, run
from test_path import POSTGRES, PYTHON, path_run, places  # noqa: F401
from test_path_types import listed

DATA = bytes(i * 7 % 251 for i in range(8192))

# Makes each kind of call on files in each of two directories. Prints, for each, how many bytes were asked for and
# moved, how far the position went, and whether the bytes are right. It sees them through a mapping.
CALLS = """
import json, mmap, os, sys, threading
data = bytes(i * 7 % 251 for i in range(8192))
moves = {}
def read(name, call, file, buffers, at=5):
    os.lseek(file, at, 0)
    got = call(file, buffers)
    whole = b"".join(map(bytes, buffers))
    right = whole == data[at : at + got] + bytes(len(whole) - got)
    moves.setdefault(name, []).append((len(whole), got, os.lseek(file, 0, 1) - at, right))
def write(name, call, file, buffers, at=3):
    os.ftruncate(file, 0)
    os.lseek(file, at, 0)
    got = call(file, buffers)
    whole = b"".join(buffers)
    right = mmap.mmap(file, 0, prot=mmap.PROT_READ)[:] == bytes(at) + whole[:got]
    moves.setdefault(name, []).append((len(whole), got, os.lseek(file, 0, 1) - at, right))
def buffers():
    return [bytearray(100), bytearray(300)]
def calls(directory):
    file = os.open(directory + "/in", os.O_RDWR)
    out = os.open(directory + "/out", os.O_CREAT | os.O_RDWR)
    read("read", lambda file, buffers: os.readv(file, buffers), file, [bytearray(700)])
    read("readv", os.readv, file, buffers())
    read("preadv", lambda file, buffers: os.preadv(file, buffers, 5), file, buffers())
    write("write", lambda file, buffers: os.write(file, buffers[0]), out, [data[:1000]])
    write("writev", os.writev, out, [data[:10], data[10:1000]])
    write("pwrite", lambda file, buffers: os.pwrite(file, buffers[0], 3), out, [data[:1000]])
    write("pwritev", lambda file, buffers: os.pwritev(file, buffers, 3), out, [data[:10], data[10:1000]])
    end = os.open(directory + "/out", os.O_WRONLY | os.O_APPEND)
    size = os.stat(out).st_size
    moves.setdefault("append", []).append((1000, os.write(end, data[:1000]), os.stat(out).st_size - size, True))
    os.lseek(file, len(data), 0)
    moves.setdefault("end", []).append(len(os.read(file, 10)))
    moves.setdefault("one", []).append(len(os.pread(file, 1, 7)))
for directory in sys.argv[1:]:
    # A thread has the number of another process for the kernel.
    thread = threading.Thread(target=calls, args=[directory])
    thread.start()
    thread.join()
print(json.dumps(moves))
"""


@pytest.fixture
def filled(places):  # noqa: F811
    for place in places:
        (place / "in").write_bytes(DATA)
    return places


def test_fewer_bytes_move_and_the_position_with_them(filled, tmp_path):
    wal, other = filled
    rules = ["--short"]
    done, (rule,) = listed(wal, tmp_path, CALLS, wal, other, types="read,write", rules=rules)
    moves = json.loads(done.stdout)
    assert moves.pop("end") == [0, 0] and moves.pop("one") == [1, 1]
    for name, (inside, outside) in moves.items():
        asked, got, went, right = inside
        assert 1 <= got < asked and right, (name, inside)
        assert went == (0 if name.startswith("p") else got), (name, inside)
        asked, got, went, right = outside
        assert got == asked and right, (name, outside)
    # The read at the end was taken, and had nothing to shorten. The read of one byte cannot be taken.
    counts = [rule[word] for word in ("taken", "injected", "damaged", "spared")]
    assert rule["damage"] == "short" and counts == [len(moves) + 1, len(moves), len(moves), 1]
    assert "could not be shortened" not in done.stderr


def test_the_same_seed_shortens_to_the_same_lengths(filled, tmp_path):
    wal, other = filled
    runs = [
        listed(wal, tmp_path, CALLS, wal, other, types="read,write", rules=["--short"], options=["--seed", seed])[0]
        for seed in ("1", "1", "2")
    ]
    first, again, otherwise = [done.stdout for done in runs]
    assert first == again != otherwise


DIRECT = """
import mmap, os, sys
memory = mmap.mmap(-1, 1 << 16)
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | os.O_DIRECT)
print(*[os.write(file, memory) for _ in range(20)], os.lseek(file, 0, 1))
os.lseek(file, 0, 0)
os.ftruncate(file, 1 << 22)
print(*[os.readv(file, [memory]) for _ in range(20)], os.lseek(file, 0, 1))
small = memoryview(memory)[:512]
try:
    os.pwrite(file, small, 0)
except OSError:
    pass
"""


def test_direct_io_is_shortened_to_whole_blocks(filled, tmp_path):
    wal, _ = filled
    done = path_run(wal, PYTHON, "-c", DIRECT, wal / "f", types="read,write", rules=["--short"], code=None)
    if "Invalid argument" in done.stderr:
        pytest.skip("the file system has no direct I/O")
    for line in done.stdout.splitlines():
        *lengths, position = map(int, line.split())
        assert all(length % 512 == 0 and 512 <= length < 1 << 16 for length in lengths) and sum(lengths) == position
    # A single block cannot be shortened.
    assert "1 read or write could not be shortened" in done.stderr


def test_programs_that_expect_short_calls_lose_nothing(filled, tmp_path):
    wal, _ = filled
    script = 'dd if="$0/in" of="$0/copy" bs=1000 2>&1'
    done = path_run(wal, "sh", "-c", script, wal, types="read,write", rules=["--short"])
    assert (wal / "copy").read_bytes() == DATA
    assert "+0 records" not in done.stdout, "all records that dd has read are short"


SQLITE = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("pragma cache_size = 5")
db.execute("create table t(a integer primary key, b text)")
for start in range(0, 2000, 100):
    with db:
        db.executemany("insert into t values(?, ?)", [(i, "x" * i) for i in range(start, start + 100)])
print(db.execute("select sum(length(b)) from t").fetchone()[0], db.execute("pragma integrity_check").fetchone()[0])
"""


def test_sqlite_survives_short_calls(filled, tmp_path):
    wal, _ = filled
    done, (rule,) = listed(wal, tmp_path, SQLITE, wal / "db", types="read,write", rules=["--short -f 50%"])
    assert done.stdout == "1999000 ok\n" and rule["damaged"] > 100
    assert sqlite3.connect(wal / "db").execute("pragma integrity_check").fetchone() == ("ok",)


# Calls that dashpot cannot shorten: those with flags, and copies.
WHOLE = """
import os, sys
file = os.open(sys.argv[1] + "/in", os.O_RDWR)
copy = os.open(sys.argv[1] + "/copy", os.O_RDWR | os.O_CREAT)
print(os.copy_file_range(file, copy, 5000), os.pwritev(copy, [bytes(100)], 0, os.RWF_APPEND))
"""


def test_calls_that_cannot_be_shortened_go_on_whole_and_are_counted(filled):
    wal, _ = filled
    done = path_run(wal, PYTHON, "-c", WHOLE, wal, types="write", rules=["--short"])
    assert done.stdout == "5000 100\n"
    assert "2 reads and writes could not be shortened" in done.stderr
    assert "injected nothing: what it was to shorten" in done.stderr


def test_what_short_cannot_have_is_refused(places):  # noqa: F811
    wal, _ = places
    for disk, rule, message in [
        (f"d=path:{wal}", "--short", "types=sync,write,read"),
        (f"d=path:{wal},types=all", "--short -T open", "--short is for read,write only"),
        (f"d=path:{wal},types=all", "--short --mode floor", "--mode"),
        (f"d=path:{wal},types=all", "--drop", "above the page cache"),
        ("d=ram", "--short", "only the calls of a program can be short"),
    ]:
        done = run(BINARY, "run", "-d", disk, "-r", rule, "--", "true", code=None)
        assert done.returncode != 0 and message in done.stderr, done.stderr


# A write of a table that is short, and then a read, are errors of the query; the log goes on where a write ended.
CLUSTER = """
set -eu
cd "$1"
ask() { psql -At -h "$PWD" -c "$1" postgres; }
start() { pg_ctl -D data -w -o "-k $PWD -h ''" -l log start >>pg_ctl.log; }
start
ask 'create table t as select generate_series(1, 1000) as a'
"$DASHPOT" inject data --short -T write --name writes >&2
! ask "insert into t select generate_series(1001, 20000)" 2>write
"$DASHPOT" clear all >&2
ask 'select count(*) from t'
pg_ctl -D data -m fast stop >>pg_ctl.log
start
ask 'select 1'
"$DASHPOT" inject data --short -T read --name reads >&2
! ask 'select count(*) from t' 2>read
"$DASHPOT" clear all >&2
"$DASHPOT" inject wal --short -T write --name log >&2
ask 'insert into t select generate_series(1001, 1500)'
"$DASHPOT" list --json >rules.json
pg_ctl -D data -m immediate stop >>pg_ctl.log
"$DASHPOT" clear all >&2
start
ask 'select count(*) from t'
pg_ctl -D data -m fast stop >>pg_ctl.log
"""


@pytest.mark.skipif(not POSTGRES or os.geteuid() != 0, reason="postgresql is missing, or this is not root")
def test_postgresql_fails_queries_and_finishes_its_log(tmp_path):
    open_to_all(tmp_path)
    copy = tmp_path / "dashpot"
    copy.write_bytes(pathlib.Path(BINARY).read_bytes())
    copy.chmod(0o755)
    user = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"]
    env = {"PATH": f"{POSTGRES[-1]}:{os.environ['PATH']}", "DASHPOT": str(copy), "TMPDIR": str(tmp_path)}
    run(*user, "sh", "-c", f"cd {tmp_path} && initdb -D data >/dev/null 2>&1", env=env)
    disks = [
        f"{name}=path:{tmp_path}/data/{place},types=read,write" for name, place in [("data", "base"), ("wal", "pg_wal")]
    ]
    words = [word for disk in disks for word in ("-d", disk)]
    done = run(*user, copy, "run", *words, "--", "sh", "-c", CLUSTER, "sh", tmp_path, env=env)
    assert [line for line in done.stdout.splitlines() if line.isdigit()] == ["1000", "1", "1500"]
    assert "wrote only" in (tmp_path / "write").read_text()
    assert re.search(
        "read only [0-9]+ of 8192 bytes|could not read file .*: read [0-9]+ of 512", (tmp_path / "read").read_text()
    )
    (log,) = json.loads((tmp_path / "rules.json").read_text())
    assert log["damaged"] > 0, log
