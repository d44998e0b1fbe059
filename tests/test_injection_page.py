"""Checks that the pictures and figures of docs/injection.md are those of its labs, and that the commands of
docs/phrase-book.md work."""

import json
import re
import shlex

import pytest
from conftest import BINARY, ROOT, run

PAGE = ROOT / "docs/injection.md"


@pytest.mark.parametrize("name", ["lanes", "times", "modes"])
def test_a_picture_of_the_page_is_that_of_its_lab(name, directory):
    picture = directory / "picture.svg"
    run(
        BINARY, "sim", ROOT / f"labs/injection-{name}.toml", "--report", f"heatmap --min 100us --max 1s --svg {picture}"
    )
    assert f"(pictures/injection-{name}.svg)" in PAGE.read_text()
    assert picture.read_text() == (ROOT / f"docs/pictures/injection-{name}.svg").read_text()


def parts(name):
    """The count and the percentiles for each ten seconds of a lab."""
    lab = ROOT / f"labs/injection-{name}.toml"
    (told,) = json.loads(run(BINARY, "sim", lab, "--json", "--report", "iolatency --percentiles 10").stdout)
    return [interval["latency"] for interval in told["reports"][0]["output"]]


def rows(heading):
    """The rows of the first table below a heading, each a list of its cells."""
    section = PAGE.read_text().split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    table = re.search(r"^\|.*?\n\n", section, re.DOTALL | re.MULTILINE)[0]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in table.strip().splitlines()[2:]]


def test_the_figures_of_the_lanes_are_those_of_the_lab():
    for (_, count, each), part in zip(rows("Lanes"), parts("lanes"), strict=True):
        assert part["n"] == pytest.approx(int(count.replace(",", "")), rel=0.01)
        number, unit = re.match(r"(\d+) ?(us|ms)", each).groups()
        assert part["p50_ns"] == pytest.approx(int(number) * {"us": 1e3, "ms": 1e6}[unit], rel=0.01)


def test_the_figures_of_the_modes_are_those_of_the_lab():
    for (_, *cells), part in zip(rows("Floor and add"), parts("modes"), strict=True):
        for cell, name in zip(cells, ("p50_ns", "p99_ns"), strict=True):
            assert part[name] == pytest.approx(float(cell.removesuffix(" ms")) * 1e6, rel=0.01)


def test_the_figures_of_the_tail_are_those_of_the_lab():
    constant, *_, tail = parts("times")
    assert f"{tail['n']:,} reads instead of {constant['n']:,}" in PAGE.read_text()
    assert tail["p99_ns"] == pytest.approx(10e6, rel=0.01) and tail["n"] == pytest.approx(0.7 * constant["n"], rel=0.01)


def test_the_counters_of_the_page_are_those_of_the_api(daemon):
    daemon.cli("inject", "d", "-D", "1ms")
    (rule,) = daemon.json("list")
    named = {name for cell, *_ in rows("Counters") for name in re.findall(r"`(\w+)`", cell)}
    counted = {name for name, value in rule.items() if type(value) is int and not name.endswith("_ns")}
    assert named == counted - {"id", "group", "stalled", "stalls"}
    assert {"requested", "achieved", "lateness", "stopped", "why_nothing"} <= rule.keys()


def test_the_commands_of_the_phrase_book_work(serve, directory):
    daemon = serve("-d", "db=lossy:ram,size=2G", "-d", "c1t1d0=ram,size=1M")
    text = (ROOT / "docs/phrase-book.md").read_text()
    commands = [words for words in re.findall(r"`(dashpot [^`]*)`", text) if "dmsetup" not in words]
    assert len(commands) > 20
    # Commands that update a rule or resume a disk come after those that arm the rule or suspend the disk.
    for words in commands:
        words = words.replace("/var/lib/db", str(directory / "files"))
        if words.endswith("-- CMD"):
            (directory / "files").mkdir(exist_ok=True)
            daemon.cli(*shlex.split(words.removesuffix("CMD"))[1:], "true")
            continue
        if words.startswith("dashpot update"):
            words = words.replace(" 1 ", f" {min(daemon.rules())} ")
        daemon.cli(*shlex.split(words)[1:])
        if words.endswith("--off"):
            daemon.cli("crash", "db", "--restart")
