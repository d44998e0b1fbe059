"""Runs the script of docs/power-cuts.md as it is in the page, and checks that as many rows are left as the page says."""

import os
import re
import shutil
import subprocess

import pytest
from attached import can_attach
from conftest import BINARY, HANG_LIMIT, ROOT, requires

PAGE = (ROOT / "docs/power-cuts.md").read_text()
LEFT = dict(re.findall(r"^\| `((?:\w|=|; )+)` \| (\d+) \|$", PAGE, re.MULTILINE))


pytestmark = [*can_attach, *map(requires, ["mkfs.ext4", "sqlite3", "unshare"])]


@pytest.mark.parametrize("pragmas", LEFT)
def test_as_many_rows_are_left_as_the_page_says(pragmas, directory):
    script = next(block for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) if "unshare" in block)
    (directory / "power-cut.sh").write_text(script)
    (directory / "bin").mkdir()
    (directory / "bin/dashpot").symlink_to(shutil.which(BINARY))
    words = "; ".join(f"pragma {word}" for word in pragmas.split("; "))
    with open(directory / "said", "w+") as said:
        # The output goes to a file: a daemon that the script leaves behind would keep a pipe open.
        code = subprocess.run(
            ["unshare", "--mount", "bash", str(directory / "power-cut.sh"), words],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            timeout=HANG_LIMIT,
            env={**os.environ, "PATH": f"{directory}/bin:{os.environ['PATH']}", "TMPDIR": str(directory)},
        ).returncode
        said.seek(0)
        text = said.read()
    assert code == 0, text
    assert f"{words}: {LEFT[pragmas]} of 100 rows are left" in text, text
