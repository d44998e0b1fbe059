"""A scenario that runs while a `with` block runs."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, List, Optional, Type, Union

from ._errors import DashpotError
from ._figures import Json
from ._http import Lease, segment

if TYPE_CHECKING:
    from ._daemon import Daemon


class Scenario:
    """Rules in time on a disk, as `dashpot scenario run` makes them.

    In `with`, the steps at the beginning are in force at the start of the block. At its end the scenario is stopped,
    and what it did is undone; if this process is killed, the daemon undoes it, too. A block that ends without an
    exception raises `DashpotError` if a step failed.
    """

    def __init__(
        self, daemon: Daemon, disk: str, scenario: Union[str, os.PathLike[str]], speed: Optional[float]
    ) -> None:
        self.name = os.fspath(scenario)
        self._daemon = daemon
        self._disk = disk
        # A str is the name of a scenario that dashpot comes with, and a Path that of a file.
        self._text = None if isinstance(scenario, str) else Path(scenario).read_text()
        self._speed = speed
        self._id: Optional[int] = None
        self._lease: Optional[Lease] = None

    def state(self) -> Json:
        """The scenario as the API describes it, with the steps that were made last."""
        runs: List[Json] = self._daemon.api.get("/v1/scenarios")
        found = [run for run in runs if run["id"] == self._id]
        if not found:
            raise DashpotError(f"the scenario '{self.name}' is not known", "use it in a `with` block")
        return found[0]

    def __enter__(self) -> Scenario:
        speed = None if self._speed is None else str(self._speed)
        wanted = {"name": self.name, "scenario": self._text, "disks": [self._disk], "speed": speed}
        begun, self._lease = self._daemon.api.lease("/v1/scenarios", wanted)
        self._id = begun["id"]
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        with suppress(DashpotError):
            # It may have ended by itself.
            self._daemon.api.send("DELETE", f"/v1/disks/{segment(self._disk)}/scenario?run={self._id}")
        if self._lease is not None:
            self._lease.close()
        if error is None and self.state()["error"] is not None:
            raise DashpotError(f"the scenario '{self.name}' failed: {self.state()['error']}")
