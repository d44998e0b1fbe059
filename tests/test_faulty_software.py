"""What real databases do on a disk that damages data: the tables of docs/faults.md. Each database says for every
transaction that it is durable. After the fault and a new mount, its own check runs, and each acknowledged row is
compared with what was acknowledged.
"""

import contextlib
import glob
import hashlib
import shutil
import sqlite3

import pytest
from attached import attach, can_attach  # noqa: F401 (a fixture)
from conftest import open_to_all, run

pytestmark = can_attach

BEFORE, AFTER = 50, 50
FAULTS = {
    "lost": "--drop",
    "some lost": "--drop --every 3",
    "torn": "--torn 512 --every 5",
    "lie": "--lie",
    "flipped": "--corrupt flip -T write --every 3",
    "zeroes": "--corrupt zero -T write --every 3",
    "misdirected": "--corrupt misdirect -T write --every 4",
    "error": "-D 20ms -e EIO -T write --nth 20",
    "full": "-e ENOSPC -T write --skip 50",
}


def content(key):
    return hashlib.sha512(str(key).encode()).digest() * 40


class Outcome:
    """What a database said and what it had afterwards."""

    def __init__(self, acknowledged, error, check, rows):
        self.acknowledged, self.error, self.check = acknowledged, error, check
        expected = range(BEFORE + acknowledged)
        self.lost = sum(key not in rows for key in expected)
        self.changed = sum(key in rows and rows[key] != content(key) for key in expected)

    def __str__(self):
        return (
            f"acknowledged {self.acknowledged}, lost {self.lost}, changed {self.changed}, "
            f"error {self.error!r}, check {self.check!r}"
        )


@pytest.fixture
def files(serve, attach, directory):  # noqa: F811
    """A file system on a disk with a volatile cache, which can be mounted anew."""
    daemon = serve("-d", "d=lossy:ram,size=256M")
    open_to_all(directory)
    place = directory / "mnt"
    place.mkdir()

    def mount(*options):
        daemon.cli("mount", "d", place, "--with", "loop", *options)
        return place

    yield daemon, mount
    daemon.cli("detach", "all", code=None)


class Postgres:
    """A server below a directory, run as the user of the package."""

    def __init__(self, place):
        self.data, self.place = place / "data", place
        (self.bin,) = glob.glob("/usr/lib/postgresql/*/bin")
        shutil.chown(place, "postgres")

    def run(self, program, *words, code=0, stdin=""):
        user = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"]
        return run(*user, f"{self.bin}/{program}", *words, code=code, stdin=stdin)

    def ctl(self, *words, code=0):
        options = f"-c unix_socket_directories={self.place} -c listen_addresses= -c max_wal_size=32MB"
        return self.run("pg_ctl", "-D", self.data, "-w", "-l", self.place / "log", "-o", options, *words, code=code)

    def sql(self, text, code=None):
        return self.run("psql", "-qAt", "-h", self.place, "-d", "postgres", code=code, stdin=text)

    def insert(self, keys):
        """Inserts rows until an error. Returns how many were acknowledged, and the error."""
        said = self.sql(
            "\\set ON_ERROR_STOP on\n"
            + "".join(f"insert into t values ({key}, '{content(key).hex()}'); select 1;\n" for key in keys)
        )
        return said.stdout.split().count("1"), said.stderr.strip() or None


def mount_anew(daemon, mount, fault):
    """Mounts the file system again, so that the page cache has nothing of it. A lie is found out by a power cut
    only."""
    if fault == "lie":
        daemon.cli("crash", "d", "--keep", "none", "--off")
    daemon.cli("clear", "all", "--release")
    daemon.cli("detach", "all", code=None)
    if fault == "lie":
        daemon.cli("crash", "d", "--restart")
    return mount()


def insert(path, keys):
    """Inserts rows, each in a transaction of its own. Returns how many were acknowledged, and the error."""
    done = 0
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        # With `full`, the end of a transaction is durable with the next one only.
        connection.execute("pragma synchronous = extra")
        connection.execute("create table if not exists t (key integer primary key, content blob)")
        for key in keys:
            connection.execute("insert into t values (?, ?)", (key, content(key)))
            done += 1
    except sqlite3.Error as error:
        return done, str(error)
    finally:
        connection.close()
    return done, None


def read(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        try:
            (check,) = connection.execute("pragma integrity_check(1)").fetchone()
            return check, dict(connection.execute("select key, content from t"))
        except sqlite3.Error as error:
            return str(error), {}


def of_sqlite(daemon, mount, fault):
    place = mount("--mkfs")
    assert insert(place / "t.db", range(BEFORE)) == (BEFORE, None)
    run("sync", "-f", place)
    daemon.cli("inject", "d", *FAULTS[fault].split())
    done, error = insert(place / "t.db", range(BEFORE, BEFORE + AFTER))
    try:
        place = mount_anew(daemon, mount, fault)
    except AssertionError as refused:
        assert "mount" in str(refused)
        return Outcome(done, error, "the file system cannot be mounted", {})
    return Outcome(done, error, *read(place / "t.db"))


def judge(daemon, fault, outcome):
    """No database notices damage while it writes. What was acknowledged before an error is there."""
    damaged = daemon.json("faults", "d")["damaged"]
    if fault in ("error", "full"):
        assert damaged == 0 and outcome.lost == outcome.changed == 0 and outcome.check == "ok", outcome
        return
    assert damaged > 0 and outcome.acknowledged == AFTER and outcome.error is None, outcome
    if fault in ("lost", "lie"):
        assert outcome.lost >= AFTER, outcome


@pytest.mark.parametrize("fault", FAULTS)
def test_sqlite(files, fault):
    daemon, mount = files
    outcome = of_sqlite(daemon, mount, fault)
    print(f"sqlite, {fault}: {outcome}")
    judge(daemon, fault, outcome)


def of_postgres(daemon, mount, fault):
    server = Postgres(mount("--mkfs"))
    server.run("initdb", "--data-checksums", "-D", server.data)
    server.ctl("start")
    server.sql("create table t (key integer primary key, content text)", code=0)
    assert server.insert(range(BEFORE)) == (BEFORE, None)
    server.sql("checkpoint", code=0)
    daemon.cli("inject", "d", *FAULTS[fault].split())
    done, error = server.insert(range(BEFORE, BEFORE + AFTER))
    error = error or server.sql("checkpoint").stderr.strip() or None
    server.ctl("stop", "-m", "immediate", code=None)
    try:
        mount_anew(daemon, mount, fault)
    except AssertionError as refused:
        assert "mount" in str(refused)
        return Outcome(done, error, "the file system cannot be mounted", {})
    if server.ctl("start", code=None).returncode != 0:
        return Outcome(done, error, "the server does not start", {})
    said = server.sql("select key || ' ' || content from t")
    server.ctl("stop", "-m", "immediate", code=None)
    rows = (line.split() for line in said.stdout.splitlines())
    rows = {int(key): bytes.fromhex(text) for key, text in rows}
    return Outcome(done, error, said.stderr.strip() or "ok", rows)


@pytest.mark.skipif(not glob.glob("/usr/lib/postgresql/*/bin/initdb"), reason="postgresql is missing: make deps")
@pytest.mark.parametrize("fault", FAULTS)
def test_postgresql(files, fault):
    daemon, mount = files
    outcome = of_postgres(daemon, mount, fault)
    print(f"postgresql, {fault}: {outcome}")
    judge(daemon, fault, outcome)
