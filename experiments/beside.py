"""OpenZFS beside the simulation of the same lab: what was measured, and the labs.

A run of OpenZFS takes an emulated guest and minutes, so its figures are kept here. `throttle.py beside` simulates the
labs and prints both. The guest had a virtual clock (QEMU's `-accel tcg,thread=single -icount shift=0,sleep=off`): time
passes with the guest's instructions, and its idle time is skipped, so nothing on the host moves a latency.
"""

import dataclasses
import math


@dataclasses.dataclass
class Lab:
    """A flood of one zvol: jobs that each write in 16 MiB of their own, and a disk with a rule, as by `zinject -D`."""

    jobs: int
    rule: str
    # What the kernel's ticks and threads added to a delay: zpool iostat's disk_wait with the rule of 20 ms, less 20 ms.
    beyond_us: int
    # Measured with OpenZFS 2.3.2: IOPS, then ms, then MB, then s. A range is of three runs, where they differ.
    iops: str
    mean: str
    deviation: str
    p50: str
    p99: str
    dirty: str
    sync: str

    def name(self):
        delay, lanes = self.rule.split(":")
        return f"{self.jobs} jobs, {lanes} lanes of {delay}"

    def measured(self):
        times = (f"{time} ms" for time in (self.mean, self.deviation, self.p50, self.p99))
        return self.iops, *times, self.dirty, self.sync

    def text(self, overhead):
        """The lab file."""
        workloads = "".join(
            f"""
[workload.job{job}]
target  = "tank/v"
block   = "8K"
pattern = "sequential"
region  = "{16 * job}M..{16 * (job + 1)}M"
inside  = "100us"
"""
            for job in range(self.jobs)
        )
        return f"""[disk.ram0]
store   = "null"
size    = "8G"
service = "{self.beyond_us}us"
lanes   = 64
rules   = ["-D {self.rule} --mode add"]

[pool.tank]
disks = ["ram0"]
ram   = "6G"
aggregation = "off"
zfs_dirty_data_max = "64M"
txg_overhead = "{"on" if overhead else "off"}"

[volume."tank/v"]
size  = "1G"
block_size = "8K"
write = "openzfs"
{workloads}
[sim]
lasts  = "65s"
warmup = "20s"
"""


LABS = [
    Lab(32, "8ms:8", 5_240, "729–734", "43.6–43.9", "5.40–6.06", "43.3", "61.6–62.7", "54.3–56.8", "7.9–9.0"),
    Lab(64, "20ms:16", 5_170, "387–388", "164–165", "94.1–139", "158–160", "709–835", "56.8–59.0", "14.8–15.5"),
    Lab(8, "20ms:16", 5_170, "397–398", "20.1–20.2", "1.32–1.39", "20.1", "23.2–23.5", "61.2–61.9", "17.8–18.4"),
    Lab(16, "16ms:4", 5_200, "242", "66.0–66.2", "6.53–7.50", "64.2–64.8", "93.8–95.9", "62.4–62.6", "28.9–29.6"),
]


def summary(outcome):
    """The figures of all jobs of a simulation together, in the order of `Lab.measured`."""
    writes = [one["client"] for job in outcome["workloads"] for one in job["ops"]]
    count = sum(one["n"] for one in writes)
    mean = sum(one["n"] * one["mean_ns"] for one in writes) / count
    squares = sum(one["n"] * (one["stddev_ns"] ** 2 + one["mean_ns"] ** 2) for one in writes) / count
    deviation = math.sqrt(max(0, squares - mean**2))
    buckets = sorted((bucket["upto_ns"], bucket["count"]) for one in writes for bucket in one["histogram"])
    seconds = (outcome["elapsed_ns"] - outcome["warmup_ns"]) / 1e9
    times = (mean, deviation, percentile(buckets, count, 50), percentile(buckets, count, 99))
    [txgs] = outcome["reports"][0]["output"]
    # The first txg is smaller than the others.
    done = [txg for txg in txgs if txg["state"] == "C"][1:]
    return (
        f"{count / seconds:.0f}",
        *(f"{three(time / 1e6)} ms" for time in times),
        span([txg["dirty_bytes"] / 1e6 for txg in done]),
        span([txg["sync_ns"] / 1e9 for txg in done]),
    )


def percentile(buckets, count, percent):
    seen = 0
    for upto, number in buckets:
        seen += number
        if seen * 100 >= count * percent:
            return upto
    return 0


def three(value):
    """A figure with three digits."""
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}"


def span(values):
    return f"{min(values):.1f}–{max(values):.1f}"
