"""Containers whose program runs on slow files: a helper for the library `testcontainers`.

    from testcontainers.core.container import DockerContainer
    from dashpot.testcontainers import slow

    with slow(DockerContainer("postgres:17"), "db=path:/var/lib/postgresql/data", "db -D 20ms -T sync") as container:
        ...

The program dashpot is copied into the container, and becomes its entry point; the image stays as it is. The rules are
armed from the start of the container to its end, because a path disk exists only as long as the program that dashpot
starts. This module imports nothing of `testcontainers`: it uses the container that it gets.
"""

from __future__ import annotations

import json
import platform
import secrets
import shlex
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Dict, List, Optional, Sequence, Type, Union

from ._binary import find_program
from ._errors import DashpotError, NothingInjected
from ._figures import Json

__all__ = ["SlowContainer", "slow"]

_PROGRAM = "/dashpot"
# How many seconds a program has to end after SIGTERM. These are more than Docker's ten, because a database's files
# are still slow while it shuts down. The helper always gives this time, because otherwise podman would kill the
# container at once.
_TO_END = 60
# The names of machines that `uname -m` prints, and the names that images have for them.
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


def slow(
    container: Any, disk: str, *rules: str, program: Optional[str] = None, allow_idle: bool = False
) -> SlowContainer:
    """Makes a container that has not started yet run on slow files, for the length of a `with` block.

    `disk` is in the words of `-d` ("db=path:/var/lib/db"), and each rule in those of `-r` ("db -D 20ms").
    `program` is the path of dashpot for the container's machine, linked statically if the image has another C
    library; the default is the program of this package. A block that ends without an exception raises
    `NothingInjected` if a rule injected nothing, unless `allow_idle` is set.
    """
    return SlowContainer(container, disk, rules, program or find_program(), allow_idle)


class SlowContainer:
    """A container with dashpot around its program. `with` starts it, and yields the container itself."""

    def __init__(self, container: Any, disk: str, rules: Sequence[str], program: str, allow_idle: bool) -> None:
        self.container = container
        self.allow_idle = allow_idle
        self._report = f"/tmp/dashpot-report-{secrets.token_hex(4)}"
        self._rules: List[Json] = []
        words = [word for rule in rules for word in ("-r", rule)]
        self._run = [_PROGRAM, "run", "-d", disk, *words, "--report", self._report, "--"]
        container.with_copy_into_container(Path(program), _PROGRAM, 0o755)
        # The containers of testcontainers' modules choose their command in `_configure`, when they start.
        self._configure = container._configure
        container._configure = self._wrap

    def __enter__(self) -> Any:
        self.container.__enter__()
        return self.container

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        try:
            if error is None:
                self._end()
        finally:
            self.container.__exit__(kind, error, trace)

    def rules(self) -> List[Json]:
        """The rules with what they did, after the block: matched, injected, held, late, why_nothing."""
        return self._rules

    def _wrap(self) -> None:
        """Puts dashpot before the words that the container would have run."""
        self._configure()
        image = self._image()
        described: Dict[str, Any] = image.attrs
        ours, theirs = _MACHINES.get(platform.machine()), described.get("Architecture")
        if theirs != ours:
            raise DashpotError(
                f"the image is for {theirs}, and this program for {ours}", "pull the image for this machine"
            )
        given = self.container._kwargs.get("entrypoint")
        entry = _words(given) if given else _words(described["Config"].get("Entrypoint"))
        # As in Docker, if the caller gives an entry point, the image's command is left out.
        default = None if given else described["Config"].get("Cmd")
        command = _words(self.container._command or default)
        if not entry + command:
            raise DashpotError("neither the image nor the container has a command", "give the container one")
        if not self.allow_idle and any("fsync=off" in word for word in entry + command):
            raise DashpotError(
                f"'{shlex.join(entry + command)}' never syncs its files, so they cannot be slow",
                "leave fsync=off out, or say allow_idle=True",
            )
        self.container._kwargs = {**self.container._kwargs, "entrypoint": self._run}
        self.container._command = [*entry, *command]

    def _image(self) -> Any:
        images = self.container.get_docker_client().client.images
        found = images.list(name=self.container.image)
        return found[0] if found else images.pull(self.container.image)

    def _end(self) -> None:
        """Ends the program as `docker stop` does, and reads dashpot's report about the rules."""
        self.container.get_wrapped_container().stop(timeout=_TO_END)
        with tempfile.TemporaryDirectory(prefix="dashpot-") as directory:
            summary = Path(directory) / "summary.json"
            try:
                self.container.copy_from_container(f"{self._report}/summary.json", summary)
            except Exception as error:
                said = self.container.get_wrapped_container().logs().decode(errors="replace")
                raise DashpotError(f"dashpot left no report in the container ({error}), which said:\n{said}") from error
            self._rules = json.loads(summary.read_text())["rules"]
        for rule in self._rules:
            if rule["why_nothing"] is not None and not self.allow_idle:
                raise NothingInjected(rule["rule"], rule["disk"], rule["why_nothing"], "")


def _words(said: Union[str, Sequence[str], None]) -> List[str]:
    """A command as words: Docker splits a string as a shell does."""
    return shlex.split(said) if isinstance(said, str) else list(said or [])
