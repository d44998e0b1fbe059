"""On a host or in a container whose root is read-only, each refusal names what makes the command work."""

import os

import pytest
from conftest import BINARY, run

# Runs a command below a read-only root. Only /dev/shm can be written there.
READ_ONLY = """
set -e
mount --make-rprivate /
mount --rbind / "$0"
mount -o remount,bind,ro "$0"
for place in tmp run; do mount -t tmpfs -o ro tmpfs "$0/$place"; done
mount --bind "$BUILD" "$0/mnt"
mount -t tmpfs tmpfs "$0/dev/shm"
exec chroot "$0" "$@"
"""


@pytest.fixture
def read_only(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can make the root read-only")
    root = tmp_path / "root"
    root.mkdir()
    binary = os.path.realpath(BINARY)

    def do(*words, code=1, **variables):
        env = {"BUILD": os.path.dirname(binary), "TMPDIR": "/tmp", "XDG_RUNTIME_DIR": "", **variables}
        words = ["unshare", "-m", "sh", "-c", READ_ONLY, root, f"/mnt/{os.path.basename(binary)}", *words]
        return run(*words, code=code, env=env)

    return do


DISK = ["-d", "d=ram,size=1M"]
PRIVATE, RUNTIME = "set TMPDIR to a directory", "set XDG_RUNTIME_DIR to a directory"


@pytest.mark.parametrize(
    "words, remedies",
    [
        (["run", *DISK, "--", "true"], [PRIVATE, "--tmpfs /tmp"]),
        (["serve", *DISK, "--api", "unix:-", "--nbd", "tcp:127.0.0.1:0"], [PRIVATE]),
        (["serve", *DISK], [RUNTIME, "--tmpfs /tmp"]),
        (["serve", *DISK, "--api", "tcp:127.0.0.1:0"], [RUNTIME]),
        (["serve", *DISK, "--api", "unix:/etc/a.sock"], ["--api unix:/etc/a.sock", "name a path in a directory"]),
        (["serve", *DISK, "--nbd", "unix:/etc/n.sock", "--api", "unix:/dev/shm/a"], ["choose another address"]),
        (["serve", *DISK, "--attach", "--api", "unix:/dev/shm/a", "--nbd", "tcp:127.0.0.1:0"], ["--tmpfs /run"]),
    ],
)
def test_a_refusal_names_the_remedy(read_only, words, remedies):
    code = 125 if words[0] == "run" else 1
    said = read_only(*words, code=code).stderr
    for remedy in ["Read-only file system", *remedies]:
        assert remedy in said


def test_the_remedies_work(read_only):
    read_only("run", *DISK, "--", "true", code=0, TMPDIR="/dev/shm")
    serve = f"/mnt/{os.path.basename(BINARY)} serve -d d=ram,size=1M --api tcp:127.0.0.1:0 & "
    words = "until test -e /dev/shm/dashpot/api-*.token; do sleep 0.01; done; kill $!; wait $!"
    read_only("run", *DISK, "--", "sh", "-c", serve + words, code=0, TMPDIR="/dev/shm", XDG_RUNTIME_DIR="/dev/shm")
