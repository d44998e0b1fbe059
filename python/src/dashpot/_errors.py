"""The errors of this package. Each message says what is wrong, and how to mend it where that is known."""

from __future__ import annotations

from typing import Optional


class DashpotError(Exception):
    """The daemon refused a request or could not be reached, or this package cannot do what it was asked.

    `remedy` is the advice of the daemon or of this package, and None if there is no advice. `status` is the HTTP status
    if the error comes from an answer of the daemon, and None otherwise.
    """

    def __init__(self, error: str, remedy: Optional[str] = None, status: Optional[int] = None) -> None:
        super().__init__(f"{error}: {remedy}" if remedy else error)
        self.error = error
        self.remedy = remedy
        self.status = status


class NotStarted(DashpotError):
    """dashpot could not be started. The message contains its output, if there was any."""


class NothingInjected(AssertionError):
    """A rule was cleared before it had injected anything, so the tested program has not used a slow disk.

    `reason` is the daemon's explanation.
    """

    def __init__(self, rule: str, disk: str, reason: str, hint: str) -> None:
        super().__init__(f"rule '{rule}' of disk '{disk}' injected nothing: {reason}{hint}")
        self.rule = rule
        self.disk = disk
        self.reason = reason


class CheckFailed(AssertionError):
    """An expectation does not hold. The message has a line for each check, with the observed value."""
