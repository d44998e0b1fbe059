"""`make bench`: measures dashpot beside its peers, prints tables, and appends the figures to bench/runs/."""

import argparse
import json
import pathlib
import signal
import sys
import time

ROOT = pathlib.Path(__file__).parent.parent
# The tests have a client that speaks NBD byte by byte.
sys.path.append(str(ROOT / "tests"))

import accuracy  # noqa: E401
import calls
import capacity
import differences
import engine
import fair
import fresh
import machine
import observe
import page
import questions
import scale
import speed
import volumes

from bench import Bench

PARTS = {
    "speed": speed,
    "accuracy": accuracy,
    "capacity": capacity,
    "scale": scale,
    "fair": fair,
    "fresh": fresh,
    "observe": observe,
    "page": page,
    "engine": engine,
    "questions": questions,
    "differences": differences,
    "volumes": volumes,
    "calls": calls,
}


def main():
    arguments = parse()
    # SIGTERM, which a supervisor sends, ends the bench in the same orderly way as Ctrl-C. (A shell starts its
    # background jobs with SIGINT ignored.)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    header = machine.describe()
    print(
        f"{header['date']}  commit {header['commit']}{' (changed)' if header['dirty'] else ''}  "
        f"{header['machine']['cpus']} x {header['machine']['cpu']}  Linux {header['machine']['kernel']}  "
        f"load {header['machine']['load_average']:.1f}",
        flush=True,
    )
    bench = Bench(arguments.rounds or (2 if arguments.quick else 5), arguments.quick)
    began = time.monotonic()
    for name in arguments.parts or PARTS:
        with bench.guard(name):
            PARTS[name].run(bench)
    summary = summarise(bench)
    path = append(
        {**header, "quick": bench.quick, "rounds": bench.rounds, "seconds": round(time.monotonic() - began), **summary}
    )
    print(f"\nappended to {path.relative_to(ROOT)}")
    return 1 if bench.failures else 0


def parse():
    parser = argparse.ArgumentParser(prog="make bench ARGS=", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} [all]")
    parser.add_argument(
        "--quick", action="store_true", help="2 short rounds: shows that the bench works, and measures nothing"
    )
    parser.add_argument("--rounds", type=int, metavar="N", help="rounds [5]")
    arguments = parser.parse_args()
    unknown = set(arguments.parts) - PARTS.keys()
    if unknown:
        parser.error(f"'{min(unknown)}' is not a part: choose from {', '.join(PARTS)}")
    if arguments.rounds is not None and arguments.rounds < 1:
        parser.error(f"--rounds {arguments.rounds}: give 1 or more")
    return arguments


def summarise(bench):
    verdicts = list(bench.verdicts())
    if verdicts:
        print("\npromises (the hardest place of each; figures are medians)")
    for verdict in verdicts:
        word = "held  " if verdict["held"] == verdict["of"] else "MISSED"
        print(f"  {word} {verdict['held']} of {verdict['of']}  {verdict['promise']}: {verdict['hardest']}")
    print(
        "time that a loop reading the clock lost to others (above 5 % the figures are the machine's): "
        + (", ".join(f"{part} {max(shares):.0%}" for part, shares in bench.lost.items()) or "not looked at")
    )
    for skipped in bench.skipped:
        print(f"  skipped {skipped}")
    for failure in bench.failures:
        print(f"  FAILED {failure}")
    return {
        "parts": bench.figures,
        "promises": verdicts,
        "lost_share": bench.lost,
        "skipped": bench.skipped,
        "failed": bench.failures,
    }


def append(run):
    path = ROOT / "bench" / "runs" / f"{run['date'][:10]}.jsonl"
    path.parent.mkdir(exist_ok=True)
    with open(path, "a") as file:
        file.write(json.dumps(run, separators=(",", ":")) + "\n")
    return path


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("\nbench: stopped, nothing was appended")
