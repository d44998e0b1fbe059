"""A disk of a daemon."""

from __future__ import annotations

import os
from types import TracebackType
from typing import TYPE_CHECKING, Dict, List, Optional, Type, Union

from ._errors import DashpotError
from ._figures import InFlight, Json, OpLatency
from ._http import segment
from ._rule import Rule
from ._scenario import Scenario

if TYPE_CHECKING:
    from ._daemon import Daemon

_SECOND_NS = 1_000_000_000


class Disk:
    """A disk. `name` is also its NBD export name."""

    def __init__(self, daemon: Daemon, name: str) -> None:
        self.name = name
        self._daemon = daemon
        self._path = f"/v1/disks/{segment(name)}"

    def __repr__(self) -> str:
        return f"<dashpot disk {self.name}>"

    @property
    def uri(self) -> str:
        """The URI at which NBD clients reach the disk."""
        uris: List[str] = self.state()["uris"]
        if not uris:
            raise DashpotError(f"disk '{self.name}' has no URI", "it belongs to a pool or a program")
        return uris[0]

    def state(self) -> Json:
        """The disk and its counters, as `dashpot status --json` shows them."""
        return dict(self._daemon.api.get(f"{self._path}?oldest=0"))

    def rule(self, words: str, *, name: Optional[str] = None, allow_idle: bool = False) -> Rule:
        """A rule in the words of `dashpot inject`, to be used in `with`: `disk.rule("-D 20ms -T flush")`."""
        return Rule(self._daemon, self.name, words, name, allow_idle)

    def hang(self, words: str = "") -> Rule:
        """A rule that holds I/Os until the end of its `with` block: `disk.hang("-T write --first 1")`."""
        return self.rule(f"--hang {words}".rstrip())

    def scenario(self, scenario: Union[str, os.PathLike[str]], *, speed: Optional[float] = None) -> Scenario:
        """Rules in time, to be used in `with`: `disk.scenario("brown-out")`, or `disk.scenario(Path("my.toml"))`."""
        return Scenario(self._daemon, self.name, scenario, speed)

    def inject(self, words: str, *, name: Optional[str] = None) -> List[int]:
        """Arms rules that stay until `clear` or `reset`, and returns their ids, as `dashpot inject` does."""
        armed = self._daemon.api.post(f"{self._path}/rules", {"rule": words, "name": name})
        return [rule["id"] for rule in armed]

    def clear(self, release: bool = True) -> None:
        """Clears the disk's rules. The I/Os held by the rules complete now; without `release`, they complete when they
        are due."""
        query = f"disk={segment(self.name)}&release={str(release).lower()}"
        self._daemon.raise_failed(self._daemon.api.send("DELETE", f"/v1/rules?{query}"))

    def suspend(self, *, seconds: Optional[float] = None, now: bool = False) -> Suspended:
        """Stops the disk's new I/Os, and waits until none is in flight, unless `now` is set.

        The disk goes on after `seconds`, at `resume`, or at the end of a `with` block.
        """
        for_ns = None if seconds is None else round(seconds * _SECOND_NS)
        self._daemon.api.post(f"{self._path}/suspend", {"for_ns": for_ns, "now": now})
        return Suspended(self)

    def resume(self) -> int:
        """Lets the disk go on. Returns the number of I/Os that were waiting."""
        return int(self._daemon.api.post(f"{self._path}/resume")["waiting"])

    def crash(
        self, *, keep: str = "none", then: str = "go_on", seed: int = 0, tear_bytes: Optional[int] = None
    ) -> Json:
        """Cuts the power of a disk on a `lossy` store, as `dashpot crash` does, and returns what was lost.

        `keep` says which unflushed writes survive: none, all or random. `then` is go_on, off or restart.
        """
        how = {"keep": keep, "then": then, "seed": seed, "tear_bytes": tear_bytes}
        return dict(self._daemon.api.post(f"{self._path}/crash", how))

    def latency(self) -> Dict[str, OpLatency]:
        """The latencies of each operation since the daemon's start, by its name: read, write, flush, …"""
        return {op["op"]: OpLatency.of(op) for op in self._daemon.api.get(f"{self._path}/latency")["ops"]}

    @property
    def unheld(self) -> Dict[str, int]:
        """The accesses to a path disk's files that no rule could hold, by kind. Empty if all were held, and for a disk
        with blocks, which nothing goes round: `assert not disk.unheld`."""
        unheld = self.state()["unheld"] or {"ways": []}
        return {way["way"]: way["count"] for way in unheld["ways"]}

    @property
    def interrupted(self) -> Optional[int]:
        """How many calls of a path disk's programs a signal ended before dashpot could hold them, or before their hold
        was over: `assert not disk.interrupted`. None if the kernel is older than Linux 5.19, where dashpot cannot count
        them all, and for a disk with blocks."""
        interrupted = self.state()["interrupted"]
        return None if interrupted is None else int(interrupted)

    def in_flight(self, oldest: int = 10) -> List[InFlight]:
        """The disk's oldest I/Os without a reply."""
        found = self._daemon.api.get(f"{self._path}?oldest={oldest}")
        return [InFlight.of(zio) for zio in found["oldest"]]


class Suspended:
    """A suspended disk. In `with`, the disk resumes at the end of the block."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def __enter__(self) -> Disk:
        return self._disk

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self._disk.resume()
