"""Uses dashpot.testcontainers with the real testcontainers library, and with a Docker client of our own, which runs a
"container" as a process of this host. Prints the outcome: slow_container.py SCENARIO DIRECTORY.
"""

import io
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tarfile
import types

os.environ["TESTCONTAINERS_RYUK_DISABLED"] = "true"

import dashpot  # noqa: E402
import testcontainers.core.container as library  # noqa: E402 (the setting comes first)
from dashpot.testcontainers import slow  # noqa: E402

SCENARIO, HOME = sys.argv[1], pathlib.Path(sys.argv[2])
SYNCING = f"dd if=/dev/zero of={HOME}/file bs=8k count=1 conv=fsync 2>/dev/null; echo done; trap 'exit 0' TERM; while :; do sleep 0.1; done"
IDLE = "echo done; trap 'exit 0' TERM; while :; do sleep 0.1; done"
IMAGE = {
    "Architecture": {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()],
    "Config": {"Entrypoint": ["sh", "-c"], "Cmd": [SYNCING]},
}


class Process:
    """A container as the library uses it: its files are those of this host, but /dashpot is below HOME."""

    short_id = "of-a-test"

    def __init__(self, image, command, entrypoint, environment, **others):
        self.words = [*entrypoint, *command]
        self.environment = environment

    def put_archive(self, path, data):
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            (member,) = tar.getmembers()
            assert (path, member.name.lstrip("/"), member.mode) == ("/", "dashpot", 0o755)
            (HOME / "dashpot").write_bytes(tar.extractfile(member).read())
            (HOME / "dashpot").chmod(0o755)
        return True

    def start(self):
        assert self.words[0] == "/dashpot"
        self.log = open(HOME / "log", "w+b")
        self.process = subprocess.Popen(
            [HOME / "dashpot", *self.words[1:]],
            stdout=self.log,
            stderr=self.log,
            env={**os.environ, **self.environment},
        )

    def stop(self, timeout):
        assert timeout >= 10
        self.process.terminate()
        self.process.wait()

    def logs(self):
        return (HOME / "log").read_bytes()

    def get_archive(self, path):
        there = io.BytesIO()
        with tarfile.open(fileobj=there, mode="w") as tar:
            tar.add(path, arcname=pathlib.Path(path).name)
        return [there.getvalue()], {}

    def remove(self, force, v):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.log.close()
        # The /tmp of a real container is removed with the container, but here /tmp is the host's.
        shutil.rmtree(self.words[self.words.index("--report") + 1], ignore_errors=True)


class Client:
    """Takes the place of the library's Docker client."""

    def __init__(self):
        image = types.SimpleNamespace(attrs=IMAGE)
        images = types.SimpleNamespace(
            list=lambda name: [] if SCENARIO == "pulled" else [image], pull=lambda name: image
        )
        self.client = types.SimpleNamespace(images=images, close=lambda: None)

    def create(self, image, command, environment, entrypoint, **others):
        return Process(image, command, entrypoint, environment, **others)

    def start(self, container):
        container.start()


def wait_until_done(container):
    while b"done" not in container.get_wrapped_container().logs():
        assert container.get_wrapped_container().process.poll() is None, container.get_wrapped_container().logs()


def main():
    library.DockerClient = Client
    container = library.DockerContainer("postgres:17").with_env("A", "1")
    allow_idle = False
    if SCENARIO == "idle":
        container.with_command([IDLE])
    elif SCENARIO == "allowed":
        container.with_command([IDLE])
        allow_idle = True
    elif SCENARIO == "fsync":
        container.with_command("postgres -c fsync=off")
    elif SCENARIO == "machine":
        IMAGE["Architecture"] = "riscv64"
    elif SCENARIO == "entry":
        container.with_kwargs(entrypoint=["env"], privileged=False).with_command(["sh", "-c", SYNCING])
    made = slow(container, f"db=path:{HOME}", "db -D 20ms -T sync", allow_idle=allow_idle)
    try:
        with made as started:
            assert started is container
            wait_until_done(container)
            if SCENARIO == "own":
                raise KeyError("the test's own")
        print(json.dumps({"rules": made.rules(), "words": container.get_wrapped_container().words}))
    except (dashpot.NothingInjected, dashpot.DashpotError, KeyError) as error:
        print(json.dumps({"error": type(error).__name__, "said": str(error)}))


main()
