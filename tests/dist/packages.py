"""The files of a release, and how the tests try the program of a release in a separate root."""

import os
import pathlib
import re
import shutil
import subprocess
import tarfile

import pytest

from conftest import ROOT

OUT = pathlib.Path(os.environ.get("DIST_OUT", ROOT / "target/dist/out")).resolve()
# A command that takes longer than this many seconds counts as broken.
LIMIT = 600
# The architectures of a release, and what Debian and images call them.
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
EMULATOR = shutil.which("qemu-aarch64-static")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="the test needs root's rights: run it as root")
# Serves a slow disk in the root, reads it from there, and checks that the reads were slow.
CAPTIVE = """
mkdir -p $root/proc && mount -t proc proc $root/proc || exit
cd $root
chroot . $program serve -d db=ram,size=16M -r 'db -D 2ms -T read' \
    --nbd unix:/tmp/nbd.sock --api unix:/tmp/api.sock --ready-file /tmp/ready >/dev/null &
until [ -e tmp/ready ] || ! kill -0 $!; do sleep 0.05; done
chroot . $program load 'nbd+unix:///db?socket=/tmp/nbd.sock' --depth 4 --time 500ms >/dev/null &&
    chroot . $program --api unix:/tmp/api.sock check 'db.read.p50 >= 2ms' 'db.failed == 0'
ended=$?
kill $! && wait $!
exit $ended
"""


@pytest.fixture
def root(tmp_path):
    """A root that is empty except for `/tmp`, where the sockets are; the release's image has this directory, too."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp").chmod(0o1777)
    return tmp_path


def one(pattern):
    """The only file of the release whose name matches the pattern. Skips the test if there is none."""
    found = sorted(OUT.glob(pattern))
    if len(found) != 1:
        pytest.skip(f"{OUT} has {len(found)} files like {pattern}: make dist")
    return found[0]


def run(*words, code=0, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=LIMIT, **more)
    assert code is None or done.returncode == code, f"{words}\nexit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def in_namespaces(script, **variables):
    """Runs a script in new namespaces, so that its programs and mounts end with it."""
    unshare = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--net", "--ipc"]
    return run(*unshare, "sh", "-c", script, env={"PATH": os.environ["PATH"], **variables})


def works(root, program="/dashpot"):
    """Checks that the program prints its version and its abilities, and serves a slow disk."""
    words = program.split()
    version = run("chroot", root, *words, "version").stdout
    assert re.match(r"dashpot \S+\n(x86_64|aarch64)-linux, static glibc", version), version
    assert "yes" in run("chroot", root, *words, "doctor", code=None).stdout
    said = in_namespaces(CAPTIVE, root=str(root), program=program).stdout
    assert [line.split()[0] for line in said.splitlines()] == ["ok", "ok"], said


def emulated(architecture, root):
    """The words that must precede a command of this architecture, so that the command runs in a root."""
    if architecture == os.uname().machine:
        return ""
    if EMULATOR is None:
        pytest.skip("qemu-aarch64-static is missing: make deps")
    shutil.copy(EMULATOR, root / "emulator")
    return "/emulator "


def program_of_the_tarball(architecture):
    """The program's bytes, and the names of all files that are packed with it."""
    with tarfile.open(one(f"dashpot-*-{architecture}-linux.tar.gz")) as packed:
        names = packed.getnames()
        (name,) = [each for each in names if each.endswith("/bin/dashpot")]
        return packed.extractfile(name).read(), names


def install_program(root, architecture=None):
    """Puts the tarball's program, by default the one for this machine, into a root."""
    data, _names = program_of_the_tarball(architecture or os.uname().machine)
    (root / "dashpot").write_bytes(data)
    (root / "dashpot").chmod(0o755)
    return root / "dashpot"
