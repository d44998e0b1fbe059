"""Tests which wheel of a release pip takes on which system, and how soon a user's first test reports that the database
runs without fsync.
"""

import json
import os
import pwd
import sys
import time

import pytest

from conftest import requires
from packages import OUT, needs_root, one, run
from test_python_postgresql import AS_POSTGRES, POSTGRES
from test_roots import musl

# A user may need at most this many seconds from an empty directory to the failing test, apart from downloads.
A_MINUTE = 60
DOWNLOAD = ["download", "--no-index", "--no-deps", "--only-binary=:all:", "--find-links", OUT]
# Prints the platforms of pip's own list for a machine whose C library is musl, the most wanted first. pip asks the C
# library for its version, and so does this script.
ALPINE = """
import json, subprocess, sys
from pip._vendor.packaging import _musllinux
said = subprocess.run([sys.argv[1]], stderr=subprocess.PIPE, text=True).stderr
_musllinux._get_musl_version = lambda program: _musllinux._parse_musl_version(said)
architecture = sys.argv[2]
asked = [[architecture]] if _musllinux.platform_tags.__code__.co_varnames[0] == "archs" else [architecture]
print(json.dumps(list(_musllinux.platform_tags(*asked))))
"""


@pytest.fixture(scope="module")
def pip(tmp_path_factory):
    """pip in a fresh environment that has Debian's pytest, too."""
    for kind in ("any", "*x86_64", "*aarch64"):
        one(f"dashpot-*-py3-none-{kind}.whl")
    venv = tmp_path_factory.mktemp("venv") / "v"
    run("/usr/bin/python3", "-m", "venv", "--system-site-packages", venv)
    return [venv / "bin/python", "-m", "pip", "--disable-pip-version-check"]


def taken(pip, platforms, directory):
    """The end of the name of the wheel that pip takes on a system with these platforms."""
    words = [word for platform in platforms for word in ("--platform", platform)]
    run(*pip, *DOWNLOAD, "--dest", directory, *words, "dashpot")
    (wheel,) = directory.iterdir()
    return wheel.stem.split("-")[-1]


@pytest.mark.parametrize("platform, architecture", [
    ("manylinux2014_x86_64", "x86_64"), ("manylinux_2_17_x86_64", "x86_64"), ("manylinux_2_17_aarch64", "aarch64"),
    ("musllinux_1_1_aarch64", "aarch64"), ("macosx_11_0_arm64", "any"), ("win_amd64", "any"), ("linux_riscv64", "any"),
])
def test_pip_takes_the_wheel_of_its_system(pip, platform, architecture, tmp_path):
    assert taken(pip, [platform], tmp_path).endswith(architecture)


@requires("apt-get")
@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_pip_takes_the_wheel_with_the_program_beside_musl(pip, architecture, tmp_path):
    """On a system with musl, pip must take the wheel with the program. ALPINE lists the platforms that pip finds
    there, although the Python that runs ALPINE is linked with this host's glibc."""
    platforms = json.loads(run(pip[0], "-c", ALPINE, musl(), architecture).stdout)
    assert platforms[0] == f"musllinux_1_2_{architecture}"
    assert taken(pip, platforms, tmp_path).endswith(f"musllinux_1_1_{architecture}")


SUITE = """
import os, subprocess
import dashpot as library
import pytest

DATA = os.environ["DATA"]

@pytest.fixture(scope="session")
def dashpot():
    postgres = [*os.environ["AS_POSTGRES"].split(), "postgres", "-D", DATA, "-k", DATA, "-h", "", "-c", "fsync=off"]
    with library.run(f"wal=path:{DATA}/pg_wal", command=postgres) as daemon:
        while subprocess.run(["pg_isready", "-q", "-h", DATA]).returncode:
            assert daemon.process.poll() is None, daemon.output()
        yield daemon

@pytest.mark.slow_disk("-D 20ms -T sync")
def test_commits_wait_for_the_log(dashpot):
    command = ["psql", "-qX", "-h", DATA, "-U", "postgres", "-c", "create table t (a int)", "postgres"]
    subprocess.run(command, check=True)
"""


@needs_root
@pytest.mark.skipif(not POSTGRES, reason="postgresql is missing: make deps")
def test_a_wrong_database_is_found_within_a_minute(tmp_path):
    """Does all that a user does, starting with an empty directory: makes an environment, installs the wheel,
    makes a cluster without fsync, and runs a test.
    """
    one("dashpot-*-py3-none-any.whl")
    for place in (tmp_path, *tmp_path.parents[:2]):
        place.chmod(0o755)
    data, user = tmp_path / "data", pwd.getpwnam("postgres")
    data.mkdir()
    os.chown(data, user.pw_uid, user.pw_gid)
    (tmp_path / "test_it.py").write_text(SUITE)
    path = f"{tmp_path}/v/bin:{POSTGRES[-1]}:/usr/bin:/bin:/usr/sbin"
    environment = {"PATH": path, "DATA": str(data), "AS_POSTGRES": " ".join(AS_POSTGRES), "TMPDIR": str(tmp_path)}

    began = time.monotonic()
    run("/usr/bin/python3", "-m", "venv", "--system-site-packages", tmp_path / "v", env=environment)
    run("pip", "install", "--no-index", "--find-links", OUT, "dashpot", env=environment)
    run(*AS_POSTGRES, "initdb", "-D", data, env=environment)
    said = run("python", "-m", "pytest", tmp_path / "test_it.py", cwd=tmp_path, env=environment, code=1).stdout
    took = time.monotonic() - began

    assert "NothingInjected: rule '-D 20ms -T sync' of disk 'wal' injected nothing" in said and "fsync=off" in said, said
    sys.stderr.write(f"from nothing to NothingInjected: {took:.1f} s\n")
    assert took <= A_MINUTE
