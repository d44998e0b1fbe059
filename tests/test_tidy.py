"""scripts/tidy.py notices each broken rule, in a small repository that otherwise keeps all rules."""

import os
import sys

import pytest
from conftest import ROOT, run

TREE = {
    "scripts/tidy.toml": """
        [bounds]
        function-lines = 5
        doc-columns = 60
        [crates.base]
        depends = {}
        only = []
        no-paths = ["std::fs"]
        [crates.top]
        depends = { base = "what is shown" }
        not = ["tokio"]
        [boundaries]
        folders = ["crates/top/src/high"]
        """,
    "crates/base/Cargo.toml": "[dependencies]\n",
    "crates/base/src/lib.rs": "//! Words.\nmod word;\npub use word::Word;\n",
    "crates/base/src/word.rs": """
        //! use std::fs in a comment is not a use of it, and neither is "crate::word" in a string.
        pub struct Word(pub &'static str);
        #[cfg(test)]
        mod tests {
            use std::fs;
            #[test]
            fn a_word_is_kept() { fs::read("{").ok(); }
        }
        """,
    "crates/top/Cargo.toml": "[dependencies]\ndashpot-base.workspace = true\nanyhow = '1'\n",
    "crates/top/src/main.rs": "mod low;\nmod high;\nfn main() { high::show(); }\n",
    "crates/top/src/low.rs": "pub fn word() -> u8 { 1 }\n",
    "crates/top/src/high/mod.rs": "mod deep;\nmod inner;\npub use inner::Inner;\npub fn show() { crate::low::word(); }\n",
    "crates/top/src/high/deep/mod.rs": "pub fn hidden() {}\n",
    "crates/top/src/high/inner.rs": "pub struct Inner;\nfn word() { super::super::low::word(); }\n",
    "crates/top/tests/whole.rs": "#[test]\nfn it_runs() {}\n",
    "tests/test_words.py": "# A test.\ndef test_a_word(): pass\n",
    "docs/words.md": "```\n$ dashpot list --json | grep --color x\n```\n",
    "ARCHITECTURE.md": "See `crates/base/src/word.rs` and `high/inner.rs`.\n| `top` | x |\n| `base` | y |\n",
    "SPECIFICATION.md": """
        | promise | kept by |
        |---|---|
        | words are kept | base `word`, `word::tests::a_word_is_kept`, `tests/test_words.py: test_a_word` |
        | the whole runs | top `whole`, `tests/test_words.py: test_a_…` |
        """,
    "target/debug/dashpot": """#!/bin/sh
        echo 'Commands:'
        echo '  list  Lists'
        echo 'Options:'
        echo '      --json  As JSON'
        """,
}


def lines(text):
    """Text without the indentation that it has in this file."""
    return "".join(f"{line.strip()}\n" for line in text.strip("\n").splitlines() if line.strip())


def write(root, name, text):
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    if name.startswith("target/"):
        file.chmod(0o755)


def tidy(root, *words, code):
    environment = {"CARGO_TARGET_DIR": str(root / "target")}
    return run(sys.executable, ROOT / "scripts/tidy.py", "--root", root, *words, code=code, env=environment).stdout


@pytest.fixture
def tree(tmp_path):
    """A repository in which every rule holds, with the exceptions that it needs."""
    for name, text in TREE.items():
        write(tmp_path, name, lines(text))
    write(tmp_path, "scripts/tidy-baseline.toml", tidy(tmp_path, "--print-baseline", code=0))
    return tmp_path


def test_a_tree_that_keeps_the_rules_passes(tree):
    assert tidy(tree, code=0) == "tidy: every rule holds\n"


# Each entry breaks one rule by appending to one file: (file, appended text, message).
BROKEN = {
    "a long function": (
        "crates/top/src/low.rs",
        "pub fn long() {\n\n\n\n\n}\n",
        "crates/top/src/low.rs:2: fn long: 6 lines, at most 5 are allowed; give",
    ),
    "an arrow between crates": (
        "crates/base/Cargo.toml",
        "dashpot-top.workspace = true\n",
        "crates/base/Cargo.toml: base may not depend on top",
    ),
    "a banned dependency": ("crates/top/Cargo.toml", "tokio = '1'\n", "crates/top/Cargo.toml: top may not use tokio"),
    "a dependency of a crate that may have none": (
        "crates/base/Cargo.toml",
        "serde = '1'\n",
        "crates/base/Cargo.toml: base may not use serde",
    ),
    "a banned import": (
        "crates/base/src/word.rs",
        "use std::{fmt, fs::File};\n",
        "crates/base/src/word.rs:9: base may not use std::fs::File",
    ),
    "a banned path": (
        "crates/base/src/word.rs",
        "fn f() { std::fs::read(0); }\n",
        "crates/base/src/word.rs:9: base may not use std::fs::read",
    ),
    "a name from inside a boundary": (
        "crates/top/src/low.rs",
        "fn f() { crate::high::deep::hidden(); }\n",
        "crates/top/src/low.rs:2: names deep, which is inside crates/top/src/high",
    ),
    "a circle": (
        "crates/top/src/high/inner.rs",
        "use super::show;\npub fn f() {}\n",
        None,
    ),
    "a long line of docs": (
        "ARCHITECTURE.md",
        f"{'a ' * 31}\n",
        "ARCHITECTURE.md:4: 62 columns, at most 60 are allowed",
    ),
    "a Python test that is gone": (
        "SPECIFICATION.md",
        "| p | `tests/test_words.py: test_other` |\n",
        "SPECIFICATION.md:5: no test 'test_other' in tests/test_words.py",
    ),
    "a second Python test that is gone": (
        "SPECIFICATION.md",
        "| p | `tests/test_words.py: test_a_word`, `test_b` |\n",
        "SPECIFICATION.md:5: no test 'test_b' in tests/test_words.py",
    ),
    "a file of tests that is gone": (
        "SPECIFICATION.md",
        "\nKept by\n`tests/test_gone.py`.\n",
        "SPECIFICATION.md:7: no test '' in tests/test_gone.py",
    ),
    "a Rust test that is gone": (
        "SPECIFICATION.md",
        "| p | base `word::gone` |\n",
        "SPECIFICATION.md:5: base has no test 'word::gone'",
    ),
    "a part of a test's name": (
        "SPECIFICATION.md",
        "| p | base `wor` |\n",
        "SPECIFICATION.md:5: base has no test 'wor'",
    ),
    "a Rust test of no crate": (
        "SPECIFICATION.md",
        "| p | `word::tests` |\n",
        "SPECIFICATION.md:5: whose test is 'word::tests'?",
    ),
    "a file that is gone": (
        "SPECIFICATION.md",
        "| p | `high/gone.rs` |\n",
        "SPECIFICATION.md:5: there is no file 'high/gone.rs'",
    ),
    "a path that is gone": (
        "ARCHITECTURE.md",
        "`crates/gone/src`\n",
        "ARCHITECTURE.md:4: there is no 'crates/gone/src'",
    ),
    "a Rust file that is gone": (
        "docs/decisions/a.md",
        "`high/gone.rs`\n",
        "docs/decisions/a.md:1: there is no 'high/gone.rs'",
    ),
    "a command that is gone": ("docs/words.md", "`dashpot gone`\n", "docs/words.md:4: there is no `dashpot gone`"),
    "an option that is gone": (
        "docs/words.md",
        "```\ndashpot list \\\n  --jason\n```\n",
        "docs/words.md:5: `dashpot list` has no --jason",
    ),
    "an option that is gone, after an empty line": (
        "docs/words.md",
        "\n    dashpot list --jason\n",
        "docs/words.md:5: `dashpot list` has no --jason",
    ),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_what_is_broken_is_named(tree, broken):
    name, more, said = BROKEN[broken]
    file = tree / name
    write(tree, name, (file.read_text() if file.exists() else "") + more)
    if broken == "a circle":
        write(tree, "crates/top/src/high/mod.rs", "mod inner;\npub fn show() { inner::f(); }\n")
        said = "crates/top/src/high/inner.rs:1: 2 files import each other in a circle: crates/top/src/high/inner.rs, crates"
    assert f"tidy: {said}" in tidy(tree, code=1) or f": {said}" in tidy(tree, code=1)


def test_an_arrow_that_is_gone_is_named(tree):
    write(tree, "crates/top/Cargo.toml", "[dependencies]\n")
    assert "scripts/tidy.toml: top does not depend on base any more" in tidy(tree, code=1)


def test_a_crate_that_is_in_no_row_or_above_its_users_is_named(tree):
    write(tree, "ARCHITECTURE.md", "| `base` | y |\n| `top` | x |\n")
    assert "ARCHITECTURE.md: top depends on base, which is above it in the table" in tidy(tree, code=1)
    write(tree, "ARCHITECTURE.md", "| `base` | y |\n")
    assert "ARCHITECTURE.md: its table of crates lacks top" in tidy(tree, code=1)


def test_a_crate_without_rules_and_rules_without_a_crate_are_named(tree):
    (tree / "crates/top").rename(tree / "crates/new")
    said = tidy(tree, code=1)
    assert "[crates.new] is missing; add it" in said
    assert "[crates.top] is of no crate; delete it" in said


EXCEPTIONS = """
import-circles = [["crates/top/src/low.rs", "crates/top/src/high/mod.rs"]]
[function-lines]
"crates/top/src/low.rs: word" = 9
[method-circles]
"top: Inner" = 2
"""


def test_an_exception_that_nothing_needs_is_named(tree):
    write(tree, "scripts/tidy-baseline.toml", EXCEPTIONS)
    said = tidy(tree, code=1)
    for stale in [
        "'crates/top/src/low.rs' is in no circle of imports any more",
        "'crates/top/src/high/mod.rs' is in no circle of imports any more",
        "[function-lines] 'crates/top/src/low.rs: word' is not above 5 lines any more",
        "[method-circles] 'top: Inner' is not above 1 files whose methods call each other in a circle any more",
    ]:
        assert f"tidy: scripts/tidy-baseline.toml: {stale}" in said
    assert said.endswith("tidy: 4 violations\n")


def circle(tree, third=""):
    """Gives a type methods in two files, or three, that call each other."""
    write(
        tree,
        "crates/top/src/high/deep/mod.rs",
        "use super::Inner;\nimpl Inner {\n    pub fn a(&self) { self.b(); }\n}\n",
    )
    called = "self.c();" if third else "self.a();"
    write(
        tree,
        "crates/top/src/high/inner.rs",
        f"pub struct Inner;\nimpl Inner {{\n    pub fn b(&self) {{ {called} }}\n}}\n",
    )
    write(
        tree,
        "crates/top/src/high/mod.rs",
        f"mod deep;\nmod inner;\n{'mod third;' if third else ''}\npub use inner::Inner;\n",
    )
    write(tree, "crates/top/src/high/third.rs", third)


def test_methods_of_a_type_that_call_each_other_across_files_are_named(tree):
    circle(tree)
    said = tidy(tree, code=1)
    assert "crates/top/src/high/deep/mod.rs:1: impl Inner: 2 files whose methods call each other in a circle" in said


def test_an_exception_does_not_let_its_circle_grow(tree):
    circle(tree)
    write(tree, "scripts/tidy-baseline.toml", tidy(tree, "--print-baseline", code=0))
    tidy(tree, code=0)
    circle(tree, third="use super::Inner;\nimpl Inner {\n    pub fn c(&self) { self.a(); }\n}\n")
    assert "impl Inner: 3 files whose methods call each other in a circle, its exception allows 2" in tidy(tree, code=1)


def test_without_the_program_its_check_is_skipped_by_name(tree):
    os.remove(tree / "target/debug/dashpot")
    assert "tidy: skipped: the docs' commands: " in tidy(tree, code=0)
