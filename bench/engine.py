"""Measures the engine alone with criterion, in nanoseconds per zio."""

import json
import pathlib
import subprocess

import process
from table import print_table

ROOT = pathlib.Path(__file__).parent.parent
QUICK = ["--warm-up-time", "0.3", "--measurement-time", "1", "--sample-size", "10"]
# The promised bound of each benchmark, in nanoseconds.
BOUNDS = {"zio/in_flight/32": 40, "zio/in_flight/100000": 200}


def run(bench):
    bench.progress.begin("engine", 1)
    bench.progress.step("cargo bench -p dashpot-engine")
    figures = measure(bench)
    bench.progress.end()
    bench.figures["engine"] = figures
    rows = [[name, f"{median:.1f} [{least:.1f}..{most:.1f}]"] for name, (median, least, most) in figures.items()]
    print_table("engine: ns (median and its confidence interval)", ["benchmark", "ns"], rows)
    for name, bound in BOUNDS.items():
        if name in figures:
            bench.at_most("engine, whole path: ns per zio", name, figures[name][0], bound)


def measure(bench):
    """For each benchmark, the median and its confidence interval, in nanoseconds."""
    target = target_directory() / "criterion"
    stamp = lambda: {path: path.stat().st_mtime_ns for path in target.glob("**/new/estimates.json")}
    before = stamp()
    command = ["cargo", "bench", "--quiet", "-p", "dashpot-engine", "--", "--noplot", *(QUICK if bench.quick else [])]
    cargo = process.start(command, cwd=ROOT)
    try:
        _, errors = cargo.communicate()
    finally:
        process.stop(cargo)
    if cargo.returncode:
        raise RuntimeError(f"cargo bench: {errors.strip()[-600:]}")
    fresh = sorted(path for path, when in stamp().items() if before.get(path) != when)
    if not fresh:
        raise RuntimeError(f"cargo bench left no estimates in {target}")
    return {str(path.parent.parent.relative_to(target)): read(path) for path in fresh}


def target_directory():
    metadata = subprocess.run(
        ["cargo", "metadata", "--no-deps", "--format-version", "1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return pathlib.Path(json.loads(metadata.stdout)["target_directory"])


def read(path):
    median = json.loads(path.read_text())["median"]
    interval = median["confidence_interval"]
    return [round(ns, 2) for ns in (median["point_estimate"], interval["lower_bound"], interval["upper_bound"])]
