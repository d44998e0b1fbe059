"""Runs the services of the Debian package with the capabilities and the filter of system calls that their units set.
runc replaces systemd, which does not run here.
"""

import os
import re

import pytest
from conftest import BINARY, ROOT, eventually, requires, run
from containers import DASHPOT, can_run_containers, container  # noqa: F401 (a fixture)
from kernel import takes_a_kernel
from tracefs import TRACEFS

pytestmark = [*can_run_containers, requires("systemd-analyze")]
NOBODY = 65534


def unit(name):
    """Reads a unit: the arguments of its program, and its settings, each with its last value."""
    text = (ROOT / f"release/systemd/{name}.service").read_text()
    settings = dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))
    return settings["ExecStart"].split()[1:], settings


def calls_of(group):
    """The names of the system calls in one of systemd's groups, and in the groups that it contains."""
    names = set()
    for line in run("systemd-analyze", "syscall-filter", group).stdout.splitlines()[1:]:
        name = line.strip()
        if name and not name.startswith("#"):
            names |= calls_of(name) if name.startswith("@") else {name}
    return names


@pytest.fixture
def service(container):  # noqa: F811
    """A container with the capabilities and the system calls that a unit allows. `adapt` makes further changes."""

    def of(settings, adapt):
        allowed = calls_of(settings["SystemCallFilter"])
        assert settings["SystemCallErrorNumber"] == "EPERM"

        def as_the_unit(config):
            config["linux"]["seccomp"] = {
                "defaultAction": "SCMP_ACT_ERRNO",
                "defaultErrnoRet": 1,
                "syscalls": [{"names": sorted(allowed), "action": "SCMP_ACT_ALLOW"}],
            }
            kept = settings["CapabilityBoundingSet"].split()
            config["process"].update(
                noNewPrivileges=True, capabilities={kind: kept for kind in ("bounding", "effective", "permitted")}
            )
            adapt(config)

        container.adapt = as_the_unit
        return container

    return of


def test_the_disks_of_the_service_are_slow_and_not_late(service):
    words, settings = unit("dashpot")
    home = service(settings, lambda config: config["process"].update(user={"uid": NOBODY, "gid": NOBODY}))
    (home.work / "lab.toml").write_text((ROOT / "release/lab.toml").read_text())
    # As systemd makes the unit's RuntimeDirectory.
    home.work.chmod(0o700)
    os.chown(home.work, NOBODY, NOBODY)
    words = [word.replace("/etc/dashpot", "/work").replace("/run/dashpot", "/work") for word in words]
    home.start(DASHPOT, *words)
    at = {"DASHPOT_API": f"unix:{home.work}/api.sock"}
    eventually(lambda: "c1t1d0" in run(BINARY, "status", env=at, code=None).stdout or home.started.poll() is not None)
    assert home.started.poll() is None, home.end()
    run(BINARY, "inject", "c1t1d0", "-D", "2ms", "-T", "read", env=at)
    run(BINARY, "load", f"nbd+unix:///c1t1d0?socket={home.work}/nbd.sock", "--depth", "4", "--time", "500ms")
    run(BINARY, "check", "c1t1d0.read.p50 >= 2ms", "c1t1d0.failed == 0", env=at)
    assert not re.search("cannot|refused|denied", run(BINARY, "status", env=at).stdout)
    home.kill("TERM")
    assert home.end()[0] == 0


@takes_a_kernel
@requires("curl")
def test_the_service_that_observes_sees_the_disks(service):
    words, settings = unit("dashpot-observe")

    def with_the_kernel(config):
        config["mounts"].append(
            {
                "destination": "/sys/kernel/tracing",
                "type": "bind",
                "source": str(TRACEFS),
                "options": ["rbind", "rw"],
            }
        )
        config["mounts"] = [each for each in config["mounts"] if each["destination"] != "/sys/fs/cgroup"]
        config["process"]["env"].append("XDG_RUNTIME_DIR=/work")

    home = service(settings, with_the_kernel)
    at = words.index("--metrics") + 1
    words[at] = "unix:/work/metrics.sock"
    home.start(DASHPOT, *words[:-1], "0.2")
    socket = home.work / "metrics.sock"
    ask = ["curl", "-sf", "--unix-socket", socket, "http://localhost/metrics"]
    # It listens before it watches; the first interval has the first disk.
    first = "dashpot_kernel_disk_present{"
    eventually(lambda: first in run(*ask, code=None).stdout or home.started.poll() is not None)
    assert home.started.poll() is None, home.end()
    # In its container, the service is process 1.
    own = lambda: [name for name in os.listdir(TRACEFS / "instances") if name.startswith("dashpot-1-")]
    assert own()
    home.kill("TERM")
    status, _out, err = home.end()
    # Other tests' disks come and go.
    told = [line for line in err.splitlines() if not re.search("has (appeared|vanished)", line)]
    assert (status, len(told)) == (0, 1), err
    assert not own()
