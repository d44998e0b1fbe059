"""OpenZFS beside the simulation of the same lab: what was measured, and the labs.

A run of OpenZFS takes an emulated guest and minutes, so its figures are kept here. `throttle.py beside` simulates the
labs and prints both.
"""

import dataclasses
import math


@dataclasses.dataclass
class Lab:
    """A flood of one zvol: jobs that each write in 16 MiB of their own, and a disk with some lanes."""

    jobs: int
    lanes: int
    service_us: int
    # Measured with OpenZFS 2.3.2: IOPS, then ms, then MB, then s; a range where there were several runs or txgs.
    iops: str
    mean: str
    deviation: str
    p50: str
    p99: str
    dirty: str
    sync: str

    def name(self):
        return f"{self.jobs} jobs, {self.lanes} lanes, {self.service_us / 1000:.1f} ms"

    def measured(self):
        times = (f"{time} ms" if time else "–" for time in (self.mean, self.deviation, self.p50, self.p99))
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
service = "{self.service_us}us"
lanes   = {self.lanes}

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
    Lab(32, 8, 14_060, "511", "61.6", "43.9", "52.2", "", "57.8–60.5", "10.3–15.0"),
    Lab(64, 16, 29_590, "325", "195", "359", "160", "", "57.5–61.4", "16.7–21.0"),
    Lab(8, 16, 27_970, "359", "21.9", "9.06", "21.1", "", "61.7–61.9", "19.7–20.2"),
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
