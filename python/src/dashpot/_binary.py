"""Finds the program `dashpot`."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Iterator

from ._errors import NotStarted


def find_program() -> str:
    """The path of the program: $DASHPOT, or the program that came with this package, or the first on $PATH."""
    given = os.environ.get("DASHPOT")
    if given:
        if shutil.which(given) is None:
            raise NotStarted(f"$DASHPOT is {given!r}, which is no program", "unset it, or name the program")
        return given
    for place in _installed():
        if os.access(place, os.X_OK):
            return str(place)
    found = shutil.which("dashpot")
    if found is None:
        raise NotStarted("the program dashpot is neither in this package nor on $PATH", _remedy())
    return found


def _installed() -> Iterator[Path]:
    """The paths at which pip puts the program of the Linux wheel."""
    yield Path(sysconfig.get_path("scripts")) / "dashpot"
    user = sysconfig.get_preferred_scheme("user") if sys.version_info >= (3, 10) else "posix_user"
    yield Path(sysconfig.get_path("scripts", scheme=user)) / "dashpot"
    # pip install --target DIR
    yield Path(__file__).parent.parent / "bin" / "dashpot"


def _remedy() -> str:
    if sys.platform == "linux":
        return "install it, or set $DASHPOT to its path"
    return "it runs on Linux only: run it in a container, and use dashpot.connect()"
