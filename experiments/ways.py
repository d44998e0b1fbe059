"""Measures the cost of each way to a block device, and whether its I/Os are early: `dashpot attach` with each
driver, beside nbdfuse with a loop device, which was the way before `attach`, and beside the kernel's own
dm-delay.

`ways.sh` measures the ways in turns: here over RAM disks of dashpot, and in the tests' guest, whose kernel has the
other drivers, over RAM disks of the kernel. The guest is emulated, so only its ratios mean something, roughly.
The CPU time is the whole machine's, including fio's share, so other work on the machine counts, too.
"""

import os
import shutil
import statistics
import subprocess
from pathlib import Path

from lab import DASHPOT, title

HERE = Path(__file__).resolve().parent
GUEST = HERE.parent / "scripts/guest"
DELAY_US = 100_000
BESIDE = "nbdfuse"
KERNELS = ("ram", "dm-delay")
NAMES = {"ram": "brd alone", "dm-delay": "dm-delay on brd", "nbdfuse": "nbdfuse + loop"}
TOOLS = ["fio", "nbdfuse", "losetup", "unshare"]
IN_GUEST = """
modprobe -a loop nbd ublk_drv dm-delay fuse
modprobe brd rd_nr=6 rd_size=32768
export DM_DISABLE_UDEV=1 BELOW=brd
"""


def run(claims):
    title("ways to a block device: reads of 4 KiB without a delay, 32 at a time, and 64 with 100 ms")
    report(claims, "here, over RAM disks of dashpot", here(["loop", "nbdfuse"], 5))
    report(
        claims,
        "in an emulated guest, over RAM disks of the kernel (brd)",
        in_guest(["ram", "dm-delay", "loop", "nbd", "ublk", "nbdfuse"], 3),
    )


def here(ways, rounds):
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    missing += [node for node in ("/dev/fuse", "/dev/loop-control") if not os.path.exists(node)]
    if missing or os.geteuid() != 0:
        return f"skipped: {', '.join(missing) or 'root'} is missing"
    with_dashpot = {**os.environ, "PATH": f"{Path(DASHPOT).parent}:{os.environ['PATH']}"}
    return measured(["unshare", "--mount", "bash", HERE / "ways.sh", str(rounds), "3", *ways], with_dashpot)


def in_guest(ways, rounds):
    environment = {**os.environ, "DASHPOT": DASHPOT, "GUEST_SECONDS": "600"}
    if shutil.which("qemu-system-x86_64") is None:
        return "skipped: qemu-system-x86_64 is missing: make deps"
    built = subprocess.run([GUEST, "build"], capture_output=True, text=True, env=environment)
    if built.returncode != 0:
        return f"skipped: {built.stderr.strip()}"
    script = f"{IN_GUEST}set -- {rounds} 4 {' '.join(ways)}\n" + (HERE / "ways.sh").read_text()
    return measured([GUEST, "run"], environment, script)


def measured(command, environment, script=None):
    """The lines of `ways.sh`, as lists of words."""
    done = subprocess.run(command, capture_output=True, text=True, env=environment, input=script)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return [words for line in done.stdout.splitlines() if (words := line.split())[:1] in (["cost"], ["delay"])]


def report(claims, where, lines):
    if isinstance(lines, str):
        print(f"\n  {where}: {lines}")
        return
    ways = list(dict.fromkeys(way for _, way, *_ in lines))
    iops, cpu = [
        {way: [float(words[at]) for words in lines if words[:2] == ["cost", way]] for way in ways} for at in (2, 3)
    ]
    delayed = {words[1]: [float(word) for word in words[2:]] for words in lines if words[0] == "delay"}
    print(f"\n  {where}\n\n  {'':<16}{'IOPS':>8}{'':>8}{'CPU of an I/O':>16}{'':>7}{'100 ms: first':>14}{'median':>11}")
    for way in ways:
        first, median = [f"{us / 1000:.2f}" for us in delayed.get(way, [])] or ["-", "-"]
        print(
            f"  {NAMES.get(way, way):<16}{statistics.median(iops[way]):>8.0f}{ratio(iops, way):>7.2f}x"
            f"{statistics.median(cpu[way]):>13.1f} us{ratio(cpu, way):>6.2f}x{first:>11} ms{median:>8} ms"
        )
    print()
    ours = [way for way in ways if way not in KERNELS]
    claims("no delayed I/O of dashpot's is early", all(delayed[way][0] >= DELAY_US for way in ours))
    for way in ours:
        if way != BESIDE:
            claims(
                f"{way} serves more IOPS than nbdfuse + loop, for less CPU time", ratio(iops, way) > 1 > ratio(cpu, way)
            )


def ratio(figures, way):
    """The median of the ratios to nbdfuse, each within one round."""
    return statistics.median(one / other for one, other in zip(figures[way], figures[BESIDE], strict=True))
