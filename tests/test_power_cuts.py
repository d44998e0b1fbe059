"""Runs the script of docs/power-cuts.md as it is in the page, and checks that it leaves the rows that the
page says. Runs the README's commands for a file system on a disk, too.
"""

import os
import re
import shutil
import subprocess

import pytest

from conftest import BINARY, HANG_LIMIT, ROOT, requires

PAGE = (ROOT / "docs/power-cuts.md").read_text()
LEFT = dict(re.findall(r"^\| `((?:\w|=|; )+)` \| (\d+) \|$", PAGE, re.MULTILINE))


def why_not():
    if os.geteuid() != 0:
        return "takes root: run the tests as root"
    return None if os.path.exists("/dev/fuse") else "there is no /dev/fuse: modprobe fuse"


pytestmark = [
    pytest.mark.skipif(why_not() is not None, reason=why_not() or ""),
    *map(requires, ["nbdfuse", "losetup", "mkfs.ext4", "sqlite3", "unshare"]),
]


@pytest.mark.parametrize("pragmas", LEFT)
def test_as_many_rows_are_left_as_the_page_says(pragmas, directory):
    script = next(block for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) if "unshare" in block)
    (directory / "power-cut.sh").write_text(script)
    (directory / "bin").mkdir()
    (directory / "bin/dashpot").symlink_to(shutil.which(BINARY))
    words = "; ".join(f"pragma {word}" for word in pragmas.split("; "))
    with open(directory / "said", "w+") as said:
        # The output goes to a file: nbdfuse would keep a pipe open if the script failed.
        code = subprocess.run(
            ["unshare", "--mount", "bash", str(directory / "power-cut.sh"), words], stdin=subprocess.DEVNULL,
            stdout=said, stderr=said, timeout=HANG_LIMIT,
            env={**os.environ, "PATH": f"{directory}/bin:{os.environ['PATH']}", "TMPDIR": str(directory)},
        ).returncode
        said.seek(0)
        text = said.read()
    assert code == 0, text
    assert f"{words}: {LEFT[pragmas]} of 100 rows are left" in text, text


def test_a_file_system_as_the_readme_makes_it(serve, directory):
    daemon = serve("-d", "slow=ram,size=64M")
    readme = (ROOT / "README.md").read_text()
    typed = re.search(r"## A file system on it\n.*?```sh\n(.*?)```\n\n`(.*?)`", readme, re.DOTALL)
    lines = [line.removeprefix("# ") for line in typed[1].splitlines()]
    assert len(lines) == 5
    (directory / "mnt").mkdir()
    # A user types slower than nbdfuse starts.
    waits = [f"{line} until [ -s /tmp/slow ]; do sleep 0.1; done" if line.endswith("&") else line for line in lines]
    written = "echo kept > /mnt/file && sync --file-system /mnt && cat /mnt/file"
    script = "\n".join(["set -e", *waits, written, typed[2]])
    for there, here in [("/tmp/nbd.sock", daemon.nbd), ("/tmp/slow", directory / "slow"), ("/mnt", directory / "mnt")]:
        script = script.replace(there, str(here))
    with open(directory / "said", "w+") as said:
        code = subprocess.run(
            ["unshare", "--mount", "bash", "-c", script], stdin=subprocess.DEVNULL, stdout=said, stderr=said,
            timeout=HANG_LIMIT,
        ).returncode
        said.seek(0)
        text = said.read()
    assert code == 0 and "kept" in text, text
    writes = {op["op"]: op["completed"] for op in daemon.disk("slow")["ops"]}
    assert writes["write"] > 0 and writes["flush"] > 0
