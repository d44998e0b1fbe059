"""The API's document is valid, and good enough for clients that generators make from it.

A validator checks it. Generators make clients in Python, TypeScript and Go from it; the test compiles the last two,
and runs all three against a daemon. `scripts/deps` installs the tools under target/.
"""

import json
import os
import re
import shutil
import subprocess

import pytest
from conftest import ROOT, eventually, run

TOOLS = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "clients"
VALIDATOR = TOOLS / "venv/bin/openapi-spec-validator"
PYTHON_GENERATOR = TOOLS / "venv/bin/openapi-python-client"
TYPESCRIPT = TOOLS / "npm/node_modules/.bin/openapi-typescript"
GO_GENERATOR = TOOLS / "go/oapi-codegen"
DOCUMENT = ROOT / "web/openapi.json"
SOURCES = ROOT / "tests/clients"
# The options without which a question has no meaning.
NEEDED = {
    "get_columns": ["statistic"],
    "list_statistic_ios": ["statistic", "from_ns", "to_ns"],
    "compare_rectangle": ["statistic", "from_ns", "to_ns", "begin_ns", "end_ns", "least"],
}


def needs(*tools):
    """Skips the test if one of the tools is missing, and names the tool."""
    missing = [str(tool) for tool in tools if shutil.which(str(tool)) is None]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} is missing: `make deps` installs it")


@pytest.fixture
def tcp(serve):
    """A daemon with its API on TCP, where any HTTP client reaches it."""
    daemon = serve("-d", "d=ram,size=64M", "-d", "tank/foo=ram,size=1M", "--api", "tcp:127.0.0.1:0")
    found = eventually(lambda: re.search(r"(http://127\.0\.0\.1:\d+)/\S*token=([\w-]+)", daemon.output()))
    daemon.base, daemon.token = found.groups()
    run("nbdcopy", "--no-extents", daemon.uri("d"), "null:")
    return daemon


@needs(VALIDATOR)
def test_the_document_is_valid():
    assert "OK" in run(VALIDATOR, DOCUMENT).stdout


def test_every_answer_is_described_and_every_operation_has_a_name_of_its_own():
    operations = [one for item in json.loads(DOCUMENT.read_text())["paths"].values() for one in item.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names)
    for operation in operations:
        assert all(answer.get("description") for answer in operation["responses"].values()), operation
        for parameter in operation.get("parameters", []):
            needed = parameter["in"] == "path" or parameter["name"] in NEEDED.get(operation["operationId"], ())
            assert parameter["required"] == needed, parameter


@needs(PYTHON_GENERATOR, "nbdcopy")
def test_a_python_client_is_generated_and_runs(tcp, directory):
    generated = run(
        PYTHON_GENERATOR,
        "generate",
        "--path",
        DOCUMENT,
        "--output-path",
        directory / "client",
        "--meta",
        "none",
        "--config",
        SOURCES / "python.yaml",
    )
    assert "Unable" not in generated.stdout + generated.stderr, generated
    environment = {"PYTHONPATH": str(directory), "API": tcp.base, "TOKEN": tcp.token}
    told = run(TOOLS / "venv/bin/python", SOURCES / "use.py", env=environment).stdout
    check(json.loads(told), tcp)


@needs(TYPESCRIPT, "node", "nbdcopy")
def test_a_typescript_client_is_generated_compiles_and_runs(tcp, directory):
    home = directory / "client"
    home.mkdir()
    (home / "node_modules").symlink_to(TOOLS / "npm/node_modules")
    shutil.copy(SOURCES / "package.json", home)
    shutil.copy(SOURCES / "use.ts", home)
    run(TYPESCRIPT, DOCUMENT, "-o", home / "api.ts")
    subprocess.run(
        [TOOLS / "npm/node_modules/.bin/tsc", "--strict", "--module", "nodenext", "--target", "es2022", "use.ts"],
        cwd=home,
        check=True,
    )
    told = run("node", home / "use.js", env={"API": tcp.base, "TOKEN": tcp.token}).stdout
    check(json.loads(told), tcp)


@needs(GO_GENERATOR, "go", "nbdcopy")
def test_a_go_client_is_generated_compiles_and_runs(tcp, directory):
    home = directory / "client"
    shutil.copytree(SOURCES / "go", home)
    run(GO_GENERATOR, "-config", home / "oapi-codegen.yaml", "-o", home / "api.go", DOCUMENT)
    # The modules that the code needs are already in Go's cache: the build downloads nothing, and go.mod does
    # not change.
    offline = {**os.environ, "GOPROXY": "off", "GOFLAGS": "-mod=readonly -buildvcs=false", "GOTOOLCHAIN": "local"}
    subprocess.run(["go", "build", "-o", "use", "."], cwd=home, env=offline, check=True)
    told = run(home / "use", env={"API": tcp.base, "TOKEN": tcp.token}).stdout
    check(json.loads(told), tcp)


def check(told, daemon):
    """Checks what a generated client has reported about a daemon, and what it has left there."""
    assert told["exports"] == ["d", "tank/foo"]
    assert told["refused"] == "no disk 'nothing'"
    assert told["rules"] == ["-D 10ms:1 -T read"]
    assert 0 < told["started_ns"] <= told["now_ns"]
    reads = told["reads"]
    assert reads["count"] == sum(bucket["count"] for bucket in reads["buckets"]) > 0
    edges = [edge for bucket in reads["buckets"] for edge in (bucket["from_ns"], bucket["to_ns"])]
    assert edges == sorted(edges)
    around = [bucket for bucket in reads["buckets"] if bucket["from_ns"] <= reads["p50_ns"] <= bucket["to_ns"]]
    assert len(around) == 1
    assert reads["min_ns"] <= reads["p50_ns"] <= reads["max_ns"]
    assert daemon.process.poll() is None
