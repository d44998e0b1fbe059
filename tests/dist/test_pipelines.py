"""Tries the pipeline files of integrations/ with a real release: an action installs the tarball, and a job of
GitLab the wheel. test_image.py tries the other files.
"""

import os
import re
import subprocess

from conftest import requires
from packages import LIMIT, OUT, one, run
from test_integrations import HERE, step


def test_the_action_installs_the_tarball(tmp_path):
    packed = one(f"dashpot-*-{os.uname().machine}-linux.tar.gz")
    (line,) = [each for each in (OUT / "SHA256SUMS").read_text().splitlines() if each.endswith(f" {packed.name}")]
    paths, summary = tmp_path / "paths", tmp_path / "summary"
    runner = {"RUNNER_TEMP": str(tmp_path), "GITHUB_PATH": str(paths), "GITHUB_STEP_SUMMARY": str(summary)}
    done = step("install.sh", packed, line, **runner)
    assert done.returncode == 0 and "static glibc" in done.stdout, done.stdout + done.stderr
    done = step("doctor.sh", **{**runner, "PATH": f"{paths.read_text().strip()}:{os.environ['PATH']}"})
    assert done.returncode == 0 and "yes" in summary.read_text()


def lines_of(part):
    """The commands of a list in gitlab-ci.yml."""
    (block,) = re.findall(rf"^  {part}:\n((?:    - .*\n?)+)", (HERE / "gitlab-ci.yml").read_text(), re.MULTILINE)
    return [line.strip().removeprefix("- ") for line in block.splitlines()]


@requires("nbdcopy")
def test_the_job_of_gitlab_from_its_first_line_to_its_last(tmp_path):
    """Runs the commands of the GitLab job. The wheel is the release's, and the test of the job writes and
    flushes once."""
    wheel = one(f"dashpot-*manylinux*{os.uname().machine}*.whl")
    run("/usr/bin/python3", "-m", "venv", tmp_path / "v")
    (tmp_path / "test.sh").write_text('#!/bin/sh\nhead -c 4096 /dev/zero | nbdcopy --flush - "$DASHPOT_URI"\n')
    (tmp_path / "test.sh").chmod(0o755)
    # The job allows 50 ms, and a busy host may take longer.
    script = "\n".join(["set -e", *lines_of("before_script"), *lines_of("script")]).replace("< 50ms", "< 1m")
    environment = {"PATH": f"{tmp_path}/v/bin:/usr/bin:/bin", "DASHPOT_CHECKS": "out"}
    environment |= {"PIP_NO_INDEX": "1", "DASHPOT_WHEEL": str(wheel)}
    done = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=LIMIT
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert 'name="db.flush.p99 &lt; 1m"' in (tmp_path / "out/junit.xml").read_text()
