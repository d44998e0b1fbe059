"""Starts containers with runc, as Docker would: namespaces, capabilities and a profile of system calls. The
root has this host's programs, and a program can write only to `/work`.

The profile is Podman's, from Debian's package; Podman derives it from Docker's.
"""

import json
import os
import pathlib
import platform
import shutil
import subprocess
import tempfile

import pytest
from conftest import BINARY, HANG_LIMIT, requires, run

PROFILE = pathlib.Path("/usr/share/containers/seccomp.json")
# Docker's default capabilities. CAP_SYS_PTRACE is not among them.
CAPABILITIES = [
    f"CAP_{name}"
    for name in "CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD NET_RAW SETGID SETUID SETFCAP SETPCAP NET_BIND_SERVICE "
    "SYS_CHROOT KILL AUDIT_WRITE".split()
]
ARCHITECTURES = {"x86_64": ("amd64", "SCMP_ARCH_X86_64"), "aarch64": ("arm64", "SCMP_ARCH_AARCH64")}
# The program's place in a container.
DASHPOT = "/dashpot"

can_run_containers = [
    requires("runc"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a container here"),
    pytest.mark.skipif(not PROFILE.exists(), reason="golang-github-containers-common is missing: make deps"),
]


def profile():
    """Podman's profile in the form that runc takes: the rows for this machine and these capabilities."""
    written = json.loads(PROFILE.read_text())
    architecture, name = ARCHITECTURES[platform.machine()]
    others = next(row["subArchitectures"] for row in written["archMap"] if row["architecture"] == name)

    def applies(row):
        includes, excludes = row.get("includes", {}), row.get("excludes", {})
        return (
            set(includes.get("caps", [])) <= set(CAPABILITIES)
            and architecture in includes.get("arches", [architecture])
            and not set(excludes.get("caps", [])) & set(CAPABILITIES)
            and architecture not in excludes.get("arches", [])
        )

    keys = ("names", "action", "args", "errnoRet")
    rows = [{key: row[key] for key in keys if row.get(key)} for row in written["syscalls"] if applies(row)]
    return {
        "defaultAction": written["defaultAction"],
        "defaultErrnoRet": written["defaultErrnoRet"],
        "architectures": [name, *others],
        "syscalls": rows,
    }


class Container:
    """One container. `work` is the only directory to which the container can write."""

    def __init__(self, home):
        self.home, self.name = home, f"{home.name}-container"
        self.work, self.root = home / "work", home / "rootfs"
        for directory in ("usr", "proc", "dev", "sys", "tmp", "work", "etc"):
            (self.root / directory).mkdir(parents=True)
        (self.root / "dashpot").touch()
        for name in ("bin", "lib", "lib64", "sbin"):
            (self.root / name).symlink_to(f"usr/{name}")
        self.work.mkdir()
        self.work.chmod(0o777)
        run("runc", "spec", "--bundle", home)
        self.started = None
        # A test may set this to change the configuration, for a container that is not like Docker's.
        self.adapt = lambda config: None

    def start(self, *command):
        """Starts a command as the first process of the container."""
        path = self.home / "config.json"
        config = json.loads(path.read_text())
        process = config["process"]
        process.update(terminal=False, args=[str(word) for word in command], noNewPrivileges=False)
        process["env"] += [f"DASHPOT={DASHPOT}"]
        process["capabilities"] = {kind: CAPABILITIES for kind in ("bounding", "effective", "permitted")}
        config["root"] = {"path": "rootfs", "readonly": True}
        read_only = [("/usr", "/usr"), (os.path.abspath(BINARY), DASHPOT)]
        binds = [*((*pair, "ro") for pair in read_only), (str(self.work), "/work", "rw")]
        config["mounts"] = (
            [mount for mount in config["mounts"] if mount["destination"] != "/work"]
            + [
                {"destination": at, "type": "bind", "source": source, "options": ["rbind", access]}
                for source, at, access in binds
            ]
            + [{"destination": "/tmp", "type": "tmpfs", "source": "tmpfs"}]
        )
        config["linux"]["seccomp"] = profile()
        self.adapt(config)
        path.write_text(json.dumps(config))
        self.started = subprocess.Popen(
            [*self._runc(), "run", "--bundle", self.home, self.name],
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def end(self):
        """Waits for the end of the container, and returns its exit status and what it printed."""
        out, err = self.started.communicate(timeout=HANG_LIMIT)
        return self.started.returncode, out, err

    def run(self, *command, code=0):
        self.start(*command)
        status, out, err = self.end()
        assert status == code, f"{command}\nexit {status}\n{out}\n{err}"
        return out, err

    def kill(self, signal):
        run(*self._runc(), "kill", self.name, signal)

    def processes(self):
        """The processes of this host that are in the container: the paths of their cgroups have the container's name."""
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if self.name in (process / "cgroup").read_text():
                    yield (process / "cmdline").read_text()
            except OSError:
                pass

    def remove(self):
        run(*self._runc(), "delete", "--force", self.name, code=None)

    def _runc(self):
        return ["runc", "--root", self.home / "state"]


@pytest.fixture
def container():
    home = pathlib.Path(tempfile.mkdtemp(prefix="dashpot-"))
    it = Container(home)
    it.start("true")
    status, _, err = it.end()
    try:
        if status:
            pytest.skip(f"runc starts no container here: {err.strip().splitlines()[-1]}")
        yield it
    finally:
        it.remove()
        shutil.rmtree(home)
