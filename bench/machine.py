"""The time, the build and the machine of a run."""

import datetime
import os
import pathlib
import platform
import shutil
import subprocess

ROOT = pathlib.Path(__file__).parent.parent
VERSIONS = {"nbdkit": ["nbdkit", "--version"], "qemu": ["qemu-nbd", "--version"], "rustc": ["rustc", "--version"]}


def describe():
    now = datetime.datetime.now(datetime.timezone.utc)
    return {
        "date": now.isoformat(timespec="seconds"),
        "commit": first_line("git", "rev-parse", "--short=12", "HEAD"),
        "dirty": bool(first_line("git", "status", "--porcelain", "--untracked-files=no")),
        "machine": {
            "cpu": cpu_model(),
            "cpus": len(os.sched_getaffinity(0)),
            "kernel": platform.release(),
            "load_average": os.getloadavg()[0],
        },
        "versions": {name: first_line(*argv) for name, argv in VERSIONS.items() if shutil.which(argv[0])},
    }


def cpu_model():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def first_line(*argv):
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True)
    return done.stdout.partition("\n")[0].strip()
