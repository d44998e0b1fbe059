"""The experiments of the article "Emulate a slow block device with dm-delay" (2023): reads of 50 ms
and writes of 100 ms at a depth of 128, suspension while a client runs, and a RAM disk.

fio is the client, as in the article, over NBD. The median is the one that dashpot measures, because its buckets are
narrower than fio's; the rate is the one that fio measures.
"""

import json
import subprocess

from lab import beside, daemon, title

DEPTH = 128
SECONDS = 8


class Fio:
    """Runs fio, which loads a disk at the article's depth."""

    def __init__(self, uri, direction, seconds=SECONDS):
        self.direction = direction
        self.process = subprocess.Popen(
            [
                "fio",
                "--name=job1",
                "--ioengine=nbd",
                f"--uri={uri}",
                f"--rw={direction}",
                "--blocksize=4k",
                f"--iodepth={DEPTH}",
                "--size=1G",
                "--time_based",
                f"--runtime={seconds}",
                "--output-format=json",
            ],
            stdout=subprocess.PIPE,
            text=True,
        )

    def iops(self):
        text, _ = self.process.communicate()
        assert self.process.returncode == 0
        (job,) = json.loads(text[text.index("{") :])["jobs"]
        return job[self.direction]["iops"]


def run(claims):
    with daemon("sdc=ram,size=1G") as lab:
        title("dm-delay: a RAM disk, at a depth of 128")
        fast = Fio(lab.uri("sdc"), "read").iops()
        print(f"\n  fio: {fast:.0f} IOPS (the article's NVMe disk: 245,000)")
        delayed(claims, lab, "read", 50, 2559)
        delayed(claims, lab, "write", 100, 1259)
        claims("a RAM disk is fast: ten times the IOPS of the slow one", fast >= 10 * 2560)
        suspended(claims, lab)


def delayed(claims, lab, direction, delay_ms, article):
    title(f"dm-delay: {direction}s of {delay_ms} ms, at a depth of {DEPTH}")
    lab.ask("reset")
    lab.command("inject", "sdc", "-D", f"{delay_ms}ms", "-T", direction)
    fio = Fio(lab.uri("sdc"), direction)
    table = iostat(lab, 3)
    iops = fio.iops()
    print("\n" + table)
    lab.command("list")
    (rule,) = lab.json("list")
    beside(
        f"median {rule['achieved']['p50_ns'] / 1e6:.3f} ms\n{iops:.0f} IOPS (fio)",
        f"median {delay_ms}.07 ms\n{article} IOPS (fio)",
    )
    claims.near("the median in ms", rule["achieved"]["p50_ns"] / 1e6, delay_ms, 0.01)
    claims.near("IOPS", iops, DEPTH * 1000 / delay_ms, 0.05)
    claims("every I/O was held", rule["held"] == rule["matched"])


def iostat(lab, seconds):
    """iostat's reports, one for each second. Leaves out the first report, which covers the time since the daemon's
    start."""
    return lab.ask("iostat", "-x", "1", str(seconds + 1)).split("\n\n", 1)[1]


def completed(lab):
    (disk,) = lab.json("status")["disks"]
    return sum(op["completed"] for op in disk["ops"])


def suspended(claims, lab):
    title("dm-delay: suspended and resumed while fio writes")
    lab.ask("reset")
    lab.command("inject", "sdc", "-D", "100ms", "-T", "write")
    fio = Fio(lab.uri("sdc"), "write", seconds=2 * SECONDS)
    iostat(lab, 1)
    lab.command("suspend", "sdc")
    before = completed(lab)
    quiet = iostat(lab, 2)
    after = completed(lab)
    lab.command("resume", "sdc")
    busy = iostat(lab, 3)
    print("\n  suspended:\n\n" + quiet + "\n  resumed:\n\n" + busy)
    assert fio.iops() > 0
    claims("nothing completes while the disk is suspended", before == after)
    rates = [float(line.split()[7]) for line in busy.splitlines() if line.startswith("sdc ")]
    claims.near("IOPS after it was resumed", max(rates), 1280, 0.05)
