"""Figures of disks and rules, as plain numbers. Latencies are integers in nanoseconds.

A percentile is None if there are too few values for it, as in dashpot's reports.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Optional

Json = Dict[str, Any]


@dataclass(frozen=True)
class Latency:
    """A histogram's figures."""

    count: int
    min_ns: Optional[int]
    mean_ns: Optional[int]
    p50_ns: Optional[int]
    p90_ns: Optional[int]
    p99_ns: Optional[int]
    p99_9_ns: Optional[int]
    max_ns: Optional[int]

    @classmethod
    def of(cls, histogram: Json) -> Latency:
        count = histogram["count"]
        percentiles = {name: histogram.get(name) for name in ("p50_ns", "p90_ns", "p99_ns", "p99_9_ns")}
        return cls(
            count=count,
            min_ns=histogram["min_ns"] if count else None,
            mean_ns=int(histogram["sum_ns"]) // count if count else None,
            max_ns=histogram["max_ns"] if count else None,
            **percentiles,
        )


@dataclass(frozen=True)
class OpLatency:
    """The latencies of one operation of a disk, since the daemon's start.

    `total` counts from the arrival of a request until the transport accepted the reply, `disk` from the
    request's issue until the reply was ready, and `lateness` is dashpot's own error.
    """

    op: str
    completed: int
    failed: int
    bytes: int
    total: Latency
    disk: Latency
    lateness: Latency

    @classmethod
    def of(cls, op: Json) -> OpLatency:
        histograms = {name: Latency.of(op[name]) for name in ("total", "disk", "lateness")}
        return cls(op["op"], op["completed"], op["failed"], op["bytes"], **histograms)


@dataclass(frozen=True)
class Summary:
    """A few figures of a rule's histogram. If there are fewer than 100 values, p99 is the largest value."""

    count: int
    mean_ns: Optional[int]
    p50_ns: Optional[int]
    p99_ns: Optional[int]
    max_ns: Optional[int]

    @classmethod
    def of(cls, summary: Json) -> Summary:
        figures: Any = {name: summary.get(name) for name in cls.__dataclass_fields__}
        return cls(**figures)


@dataclass(frozen=True)
class InFlight:
    """An I/O that has no reply yet."""

    op: str
    offset_bytes: int
    length_bytes: int
    age_ns: int
    wait: str
    wait_ns: int
    remaining_ns: Optional[int]
    rule: Optional[int]
    client: str

    @classmethod
    def of(cls, zio: Json) -> InFlight:
        fields: Any = {name: zio.get(name) for name in cls.__dataclass_fields__}
        return cls(**fields)
