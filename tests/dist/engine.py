"""Runs podman with images and containers of its own, which are removed afterwards. No image comes from a registry."""

import contextlib
import os
import shutil
import subprocess
import tempfile

import pytest

from conftest import eventually, requires
from packages import LIMIT, needs_root, one, run

# A sandbox may allow no higher limits than these, and podman asks for more. podman's events go to a file, because
# there may be no journal.
SETTINGS = """
[containers]
default_ulimits = ["nofile=1000:1000", "nproc=1000:1000"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
lock_type = "file"
"""
needs_podman = [
    needs_root,
    requires("podman"),
    requires("runc"),
]


class Podman:
    def __init__(self, home):
        self.home = home
        with open(f"{home}/containers.conf", "w") as settings:
            settings.write(SETTINGS)
        self.environment = {**os.environ, "CONTAINERS_CONF": f"{home}/containers.conf", "XDG_RUNTIME_DIR": home}
        places = ["--root", f"{home}/images", "--runroot", f"{home}/state", "--tmpdir", f"{home}/tmp"]
        self.words = ["podman", *places, "--storage-driver", "overlay"]

    def __call__(self, *words, code=0):
        return run(*self.words, *words, code=code, env=self.environment).stdout.strip()

    def load(self):
        """Loads the release's image, and returns the name that the image has in podman."""
        return self("load", "--quiet", "--input", one("dashpot-*.oci.tar")).split(": ")[1]

    def load_another(self, name, root):
        """Makes an image of a folder."""
        packed = f"{self.home}/root.tar"
        run("tar", "--create", "--file", packed, "--directory", root, ".")
        self("import", "--quiet", packed, name)
        os.unlink(packed)

    def start(self, *words):
        """Starts a container that reaches no network, and returns its id."""
        return self("run", "--detach", "--pull", "never", "--network", "none", *words)

    def run(self, *words, code=0):
        return self("run", "--rm", "--pull", "never", "--network", "none", *words, code=code)

    @contextlib.contextmanager
    def service(self):
        """Serves Docker's API at a socket while the block runs, and yields the socket's address."""
        socket = f"{self.home}/docker.sock"
        words = [*self.words, "system", "service", "--time", "0", f"unix://{socket}"]
        served = subprocess.Popen(words, env=self.environment, stderr=subprocess.DEVNULL)
        try:
            eventually(lambda: os.path.exists(socket) or served.poll() is not None, "the service")
            assert served.poll() is None
            yield f"unix://{socket}"
        finally:
            served.terminate()
            served.wait(LIMIT)

    def close(self):
        self("rm", "--all", "--force", "--time", "0", code=None)
        run("umount", f"{self.home}/images/overlay", code=None)


@contextlib.contextmanager
def engine():
    home = tempfile.mkdtemp(prefix="dashpot-podman-")
    podman = Podman(home)
    try:
        why = subprocess.run([*podman.words, "info"], env=podman.environment, capture_output=True, text=True)
        if why.returncode:
            pytest.skip(f"podman does not work here: {why.stderr.strip().splitlines()[-1]}")
        yield podman
    finally:
        podman.close()
        shutil.rmtree(home)
