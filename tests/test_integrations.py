"""The files of integrations/ for pipelines: each follows its schema, and its shell steps do what they say."""

import hashlib
import json
import os
import re
import subprocess
import sys

import pytest
from conftest import BINARY, HANG_LIMIT, ROOT, requires, run
from test_generated_clients import TOOLS

sys.path.insert(0, str(ROOT))

from release import archive  # noqa: E402

HERE = ROOT / "integrations"
CHECKER = TOOLS / "venv/bin/check-jsonschema"
needs_checker = pytest.mark.skipif(not CHECKER.exists(), reason="check-jsonschema is missing: make deps")
SCHEMAS = {
    "setup-dashpot/action.yml": "vendor.github-actions",
    "gitlab-ci.yml": "vendor.gitlab-ci",
    "compose.yml": "vendor.compose-spec",
}


@needs_checker
@pytest.mark.parametrize("file, schema", SCHEMAS.items(), ids=SCHEMAS)
def test_each_file_is_what_its_schema_says(file, schema, directory):
    assert "ok" in run(CHECKER, "--builtin-schema", schema, HERE / file).stdout
    broken = directory / "broken.yml"
    broken.write_text(
        (HERE / file)
        .read_text()
        .replace("script:", "scripts:")
        .replace("using:", "usign:")
        .replace("test: [", "tests: [")
    )
    assert run(CHECKER, "--builtin-schema", schema, broken, code=1).returncode == 1


def tarball(directory):
    """A tarball like a release's, in which the program is a script that calls the program of this
    build."""
    program = f'#!/bin/sh\nexec {BINARY} "$@"\n'.encode()
    data = archive.gz(archive.tar([archive.program("bin/dashpot", program)], 0, "dashpot-1-x86_64-linux/"))
    (directory / "d.tar.gz").write_bytes(data)
    return directory / "d.tar.gz", hashlib.sha256(data).hexdigest()


def step(script, *words, **variables):
    return subprocess.run(
        ["bash", HERE / "setup-dashpot" / script, *words],
        env={"PATH": os.environ["PATH"], **variables},
        capture_output=True,
        text=True,
        timeout=HANG_LIMIT,
    )


def test_the_action_installs_and_reports(directory):
    packed, digest = tarball(directory)
    path, summary = directory / "path", directory / "summary"
    runner = {"RUNNER_TEMP": str(directory / "temp"), "GITHUB_PATH": str(path), "GITHUB_STEP_SUMMARY": str(summary)}
    done = step("install.sh", packed, f"{digest}  {packed.name}", **runner)
    assert done.returncode == 0 and "dashpot " in done.stdout, done.stderr
    place = path.read_text().strip()
    done = step("doctor.sh", **{**runner, "PATH": f"{place}:{os.environ['PATH']}"})
    assert done.returncode == 0, done.stderr
    assert summary.read_text().startswith("## dashpot on this runner\n```\n") and len(summary.read_text()) > 200


def test_the_action_refuses_another_file(directory):
    packed, _digest = tarball(directory)
    path = directory / "path"
    done = step("install.sh", packed, "0" * 64, RUNNER_TEMP=str(directory / "temp"), GITHUB_PATH=str(path))
    assert done.returncode == 1 and "::error title=setup-dashpot::" in done.stdout and not path.exists()


@requires("nbdcopy")
def test_the_job_of_gitlab_runs_its_script(directory):
    (script,) = re.findall(r"^    - (dashpot run .*)$", (HERE / "gitlab-ci.yml").read_text(), re.MULTILINE)
    (directory / "test.sh").write_text('#!/bin/sh\nhead -c 4096 /dev/zero | nbdcopy --flush - "$DASHPOT_URI"\n')
    (directory / "test.sh").chmod(0o755)
    (directory / "bin").mkdir()
    (directory / "bin/dashpot").symlink_to(BINARY)
    environment = {**os.environ, "PATH": f"{directory}/bin:{os.environ['PATH']}", "DASHPOT_CHECKS": "out"}
    done = subprocess.run(
        ["sh", "-c", script.replace("< 50ms", "< 1m").replace("size=256M", "size=1M")],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=HANG_LIMIT,
    )
    assert done.returncode == 0, done.stderr
    assert 'name="db.flush.p99 &lt; 1m"' in (directory / "out/junit.xml").read_text()


def words_of(instruction):
    (words,) = re.findall(rf"^{instruction} (\[.*\])$", (HERE / "Dockerfile").read_text(), re.MULTILINE)
    return json.loads(words)


def test_the_words_of_the_dockerfile_make_syncs_slow(directory):
    """This test runs the Dockerfile's commands here; `make test-dist` builds the image."""
    (directory / "data").mkdir()
    entry, command = words_of("ENTRYPOINT"), words_of("CMD")
    assert entry[0] == "dashpot" and entry[-1] == "--"
    words = [*entry[1:-1], "--report", directory / "out", "--", *command]
    run(BINARY, *(re.sub(r"(?<![\w/])/data", f"{directory}/data", str(word)) for word in words))
    (rule,) = json.loads((directory / "out/summary.json").read_text())["rules"]
    assert rule["held"] == 1 and (directory / "data/file").exists()


def test_compose_names_what_there_is():
    (command,) = re.findall(r"command: (\[.*\])", (HERE / "compose.yml").read_text())
    command = json.loads(command)
    assert command[0] == "serve" and {"--nbd", "--api", "--allow-host"} <= set(command)


def test_files_name_this_version():
    version = re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
    texts = [(ROOT / name).read_text() for name in ("docs/ci.md", "docs/releasing.md")]
    texts += [path.read_text() for path in HERE.rglob("*") if path.is_file()]
    named = [name for text in texts for name in re.findall(r"\bdashpot[-_:](\d+\.\d+\.\d+)", text)]
    assert len(named) > 4 and set(named) == {version}
