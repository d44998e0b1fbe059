"""PostgreSQL on slow files, in tests that use the pytest plugin: a test of a database without fsync must not
pass silently."""

import os
import pathlib
import pwd

import pytest
from conftest import run
from test_python_pytest import Suite

POSTGRES = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))
pytestmark = pytest.mark.skipif(not POSTGRES or os.geteuid() != 0, reason="postgresql is missing, or this is not root")
AS_POSTGRES = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"]

# A suite that redefines the fixture `dashpot`, so that it starts the database.
SUITE = """
import subprocess
import dashpot as library

DATA, AS_POSTGRES = os.environ["DATA"], os.environ["AS_POSTGRES"].split()

def psql(script):
    command = [*AS_POSTGRES, "psql", "-qX", "-h", DATA, "-v", "ON_ERROR_STOP=1", "postgres"]
    return subprocess.run(command, input=script, text=True, capture_output=True)

@pytest.fixture(scope="session")
def dashpot():
    postgres = [*AS_POSTGRES, "postgres", "-D", DATA, "-k", DATA, "-h", ""]
    with library.run(f"wal=path:{DATA}/pg_wal", command=postgres) as daemon:
        while psql("create table if not exists t (a int)").returncode:
            assert daemon.process.poll() is None, daemon.output()
        yield daemon

def commits():
    assert psql("insert into t values (1);\\n" * 20).returncode == 0

def in_time(dashpot):
    try:
        with dashpot.checking("wal.sync.p90 < 50ms"):
            commits()
    except library.CheckFailed as error:
        print(error)
        return False
    return True

@pytest.mark.slow_disk("-D 20ms -T sync")
def test_in_time_at_20_ms(dashpot):
    # On a busy host, the syncs of one attempt may take longer.
    assert any(in_time(dashpot) for attempt in range(20))

@pytest.mark.slow_disk("-D 100ms -T sync")
def test_too_slow_at_100_ms(dashpot):
    with pytest.raises(library.CheckFailed, match="FAIL.*wal.sync.p99 < 50ms"):
        with dashpot.checking("wal.sync.p99 < 50ms"):
            commits()
"""


@pytest.fixture
def suite(directory):
    """The tests, and a cluster."""
    suite = Suite(directory)
    data = directory / "data"
    data.mkdir()
    user = pwd.getpwnam("postgres")
    os.chown(data, user.pw_uid, user.pw_gid)
    directory.chmod(0o755)
    suite.env.update(DATA=str(data), AS_POSTGRES=" ".join(AS_POSTGRES), PATH=f"{POSTGRES[-1]}:{os.environ['PATH']}")
    run(*AS_POSTGRES, "initdb", "-D", data, "--no-sync", env=suite.env)
    with open(data / "postgresql.conf", "a") as settings:
        # The shutdown must not wait for the slow syncs of an autovacuum.
        settings.write("wal_sync_method = fdatasync\nautovacuum = off\n")
    suite.write(SUITE)
    return suite


def test_a_slow_log_is_seen_and_checked(suite):
    assert "2 passed" in suite.run()
    assert suite.left() == ([], [])


def test_without_fsync_the_tests_fail_with_the_reason(suite):
    with open(pathlib.Path(suite.env["DATA"]) / "postgresql.conf", "a") as settings:
        settings.write("fsync = off\n")
    printed = suite.run(code=1)
    assert "2 failed" in printed and "no sync seen" in printed
    assert "NothingInjected: rule '-D 100ms -T sync' of disk 'wal' injected nothing" in printed
    assert "nothing had matched: -T sync" in printed and "fsync=off" in printed
