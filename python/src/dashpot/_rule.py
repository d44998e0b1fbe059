"""A rule that is armed while a `with` block runs."""

from __future__ import annotations

from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, List, Optional, Type

from ._errors import DashpotError, NothingInjected
from ._figures import Json, Summary
from ._http import Lease, segment

if TYPE_CHECKING:
    from ._daemon import Daemon


class Rule:
    """A rule in the words of `dashpot inject`. Several -D in one text are several rules of one group.

    In `with`, the rule is armed at the start of the block and cleared, with its held I/Os released, at the end; if
    this process is killed, the daemon clears it, too. A block that ends without an exception raises
    `NothingInjected` if the rule injected nothing, unless `allow_idle` is set. The figures stay readable
    after the block.
    """

    def __init__(self, daemon: Daemon, disk: str, words: str, name: Optional[str], allow_idle: bool) -> None:
        self.words = words
        self.disk = disk
        self.name = name
        self.allow_idle = allow_idle
        self._daemon = daemon
        self._ids: List[int] = []
        self._lease: Optional[Lease] = None
        self._last: Optional[List[Json]] = None

    @property
    def id(self) -> int:
        """The number by which the daemon's commands name the rule. A group of rules has no number."""
        return int(self._only()["id"])

    @property
    def matched(self) -> int:
        """Number of I/Os that had the rule's operation, range and client."""
        return self._sum("matched")

    @property
    def injected(self) -> int:
        """Number of I/Os whose latency or error the rule decided: those that it held, holds now or failed, those
        aborted while it held them, and those for which the store alone took longer than the rule asked for."""
        return self._sum("injected")

    @property
    def held(self) -> int:
        """Number of I/Os that the rule held beyond the time of the store."""
        return self._sum("held")

    @property
    def failed(self) -> int:
        """Number of I/Os that the rule gave an error."""
        return self._sum("failed")

    @property
    def late(self) -> int:
        """Number of held I/Os that were late by more than 1 ms or 5 % of the delay."""
        return self._sum("late")

    @property
    def requested(self) -> Summary:
        """The service times that the rule asked for."""
        return Summary.of(self._latest()["requested"])

    @property
    def achieved(self) -> Summary:
        """The service times that the held I/Os had, without the wait for a lane."""
        return Summary.of(self._latest()["achieved"])

    @property
    def lateness(self) -> Summary:
        """How late the held I/Os were: dashpot's own error."""
        return Summary.of(self._latest()["lateness"])

    @property
    def why_nothing(self) -> Optional[str]:
        """The daemon's explanation of why the rule has injected nothing; None if it has injected
        something."""
        reasons = [rule["why_nothing"] for rule in self.state()]
        return next((reason for reason in reasons if reason), None) if all(reasons) else None

    def state(self) -> List[Json]:
        """The rules of the group as the API describes them: as they are, or as they were when cleared."""
        if self._last is not None:
            return self._last
        if not self._ids:
            raise DashpotError(f"the rule '{self.words}' is not armed", "use it in a `with` block")
        api = self._daemon.api
        try:
            found = [rule for number in self._ids for rule in api.get(f"/v1/rules/{number}")]
        except DashpotError:
            # The program of the daemon may have ended, and the daemon with it.
            found = self._daemon.outcomes()
            if not found:
                raise
        return [rule for rule in found if rule["id"] in self._ids]

    def update(self, words: str) -> None:
        """Replaces the rule's words at once, as `dashpot update` does. The counters go on, but the latencies
        start again from zero."""
        number = self._only()["id"]
        self._daemon.api.send("PATCH", f"/v1/rules/{number}", {"rule": words})
        self.words = words

    def clear(self, release: bool = True) -> None:
        """Clears the rule. The I/Os held by it complete now; without `release`, they complete when they are due."""
        if self._last is None:
            try:
                for number in self._ids:
                    self._daemon.clear_rule(number, release)
            except DashpotError:
                if not self._daemon.outcomes():
                    raise
            self.remember()
        if self._lease is not None:
            self._lease.close()

    def remember(self) -> None:
        """Keeps a copy of the rule's present figures, because after a reset the daemon no longer has them."""
        self._last = self.state()
        self._daemon.armed.discard(self)

    def __enter__(self) -> Rule:
        if self._ids:
            raise DashpotError(f"the rule '{self.words}' has been armed already", "make another with disk.rule()")
        path = f"/v1/disks/{segment(self.disk)}/leases"
        armed, self._lease = self._daemon.api.lease(path, {"rule": self.words, "name": self.name})
        self._ids = [rule["id"] for rule in armed]
        self._daemon.armed.add(self)
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self._end(failing=error is not None)
        self._daemon.ended_rules.append(self)
        if error is None and not self.allow_idle and self.why_nothing is not None:
            raise NothingInjected(self.words, self.disk, self.why_nothing, _hint(self.state()))

    def _end(self, failing: bool) -> None:
        """Clears the rule. If the `with` block failed, first adds a description of all rules and of the oldest I/Os
        to the daemon's `failures`.
        """
        if failing:
            with suppress(DashpotError):
                self._daemon.failures.append(self._daemon.describe())
        try:
            self.clear()
        except DashpotError:
            # A daemon that has gone has no rules, and its absence must not hide the block's own error.
            if not failing:
                raise
            self._last = self._last or []

    def _only(self) -> Json:
        rules = self.state()
        if len(rules) != 1:
            raise DashpotError(f"'{self.words}' is {len(rules)} rules", "read each of state()")
        return rules[0]

    def _latest(self) -> Json:
        """The API's figures of the rule since its last update."""
        rule = self._only()
        return rule["since_update"] or rule

    def _sum(self, counter: str) -> int:
        return sum(rule[counter] for rule in self.state())


def _hint(rules: List[Json]) -> str:
    """Names the usual causes, if no I/O matched the rules."""
    if any(rule["matched"] for rule in rules):
        return ""
    ops = {op for rule in rules for op in rule["ops"]}
    if "flush" in ops or "sync" in ops:
        return (
            ". Does the program sync? A test database often runs with fsync=off, and files on tmpfs, or outside "
            "the disk, never reach it"
        )
    return ". The page cache may have answered, or the program's files are not on this disk"
