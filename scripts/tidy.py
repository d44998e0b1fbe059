#!/usr/bin/env python3
"""Checks the house rules that no compiler checks: sizes of functions, dependencies, circles, and names in the docs.

usage: scripts/tidy.py                     check this repository; exit with 1 if a rule is broken
       scripts/tidy.py --print-baseline    print tidy-baseline.toml as the present tree needs it
       --root DIR                          check another tree

tidy.toml has the rules: the bounds, which crate may depend on which, and what a crate may not use.
tidy-baseline.toml has the exceptions. The list of exceptions may only shrink: an exception that nothing needs is an
error, too.
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

from rust_source import (
    PATH,
    TEST_FN,
    Reader,
    arrows_of,
    block_or_semicolon,
    circles_of,
    end_of_block,
    method_calls,
)

BASELINE = "scripts/tidy-baseline.toml"


# ---- The repository ----


def read_toml(file):
    return tomllib.loads(file.read_text()) if file.is_file() else {}


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


class Repository:
    """The tree that is checked, its rules and its exceptions."""

    def __init__(self, root):
        self.root = root
        self.rules = read_toml(root / "scripts/tidy.toml")
        self.baseline = read_toml(root / BASELINE)
        self.crates, self.reader = {}, Reader(tests=False)
        for folder in sorted((root / "crates").iterdir()):
            targets = [folder / "src" / name for name in ("lib.rs", "main.rs")]
            target = next((target for target in targets if target.is_file()), None)
            if target:
                self.crates[folder.name] = self.reader.file(target, folder / "src")
        self.arrows = {name: arrows_of(tree) for name, tree in self.crates.items()}

    def name(self, file):
        return str(file.relative_to(self.root))

    def sources(self):
        """Every source file: Rust, Python and shell."""
        for top in ("crates", "fuzz", "tests", "experiments", "bench", "scripts"):
            for folder, below, files in os.walk(self.root / top):
                below[:] = [name for name in below if name not in ("target", "__pycache__", "node_modules")]
                for name in files:
                    if name.endswith((".rs", ".py")) or (top == "scripts" and "." not in name):
                        yield Path(folder, name)

    def docs(self):
        top = ["README.md", "ARCHITECTURE.md", "SPECIFICATION.md", "CONTRIBUTING.md"]
        yield from (self.root / name for name in top if (self.root / name).is_file())
        yield from sorted((self.root / "docs").rglob("*.md"))

    def manifest(self, crate):
        return read_toml(self.root / "crates" / crate / "Cargo.toml")

    def dependencies(self, crate):
        """The dependencies of a crate's production code: the names of dashpot's crates, without their prefix, and
        those of other crates.
        """
        names = set(self.manifest(crate).get("dependencies", {}))
        ours = {name.removeprefix("dashpot-") for name in names if name.startswith("dashpot-")}
        return ours, {name for name in names if not name.startswith("dashpot-")}

    def mention(self, file, words):
        """`file:line` of the first line of a file's code that has one of these words."""
        code = self.reader.codes[file]
        found = re.search(rf"\b(?:{'|'.join(words)})\b", code)
        return f"{self.name(file)}:{line_of(code, found.end()) if found else 1}"


def against_figures(section, found, listed, bound, remedy, unit="lines"):
    """Compares numbers, {name: (place, number)}, with a bound and the exceptions of a section."""
    for name, (place, number) in sorted(found.items()):
        if number > max(bound, listed.get(name, 0)):
            allowed = f"its exception allows {listed[name]}" if name in listed else f"at most {bound} are allowed"
            yield f"{place}: {number} {unit}, {allowed}; {remedy}"
    for name in sorted(listed):
        if name not in found or found[name][1] <= bound:
            yield f"{BASELINE}: [{section}] '{name}' is not above {bound} {unit} any more; delete it"


# ---- Sizes ----


def function_sizes(repository):
    """The longest function of each name in each file."""
    sizes = {}
    for module in (module for tree in repository.crates.values() for module in tree.all()):
        for found in re.finditer(r"\bfn\s+(\w+)", module.code):
            opening = block_or_semicolon(module.code, found.end())
            if module.code[opening : opening + 1] == "{":
                first = line_of(module.code, found.start())
                lines = line_of(module.code, end_of_block(module.code, opening) - 1) - first + 1
                file, name = repository.name(module.file), found.group(1)
                key = f"{file}: {name}"
                if lines > sizes.get(key, ("", 0))[1]:
                    sizes[key] = (f"{file}:{first}: fn {name}", lines)
    return sizes


def check_function_sizes(repository):
    listed, bound = repository.baseline.get("function-lines", {}), repository.rules["bounds"]["function-lines"]
    remedy = "give a part of it a name, and move that out"
    yield from against_figures("function-lines", function_sizes(repository), listed, bound, remedy)


# ---- Crates and files ----


def check_crates(repository):
    rules = repository.rules["crates"]
    for crate in sorted(repository.crates.keys() ^ rules.keys()):
        what = "is missing; add it" if crate in repository.crates else "is of no crate; delete it"
        yield f"scripts/tidy.toml: [crates.{crate}] {what}"
    for crate in sorted(repository.crates.keys() & rules.keys()):
        rule, place = rules[crate], f"crates/{crate}/Cargo.toml"
        ours, others = repository.dependencies(crate)
        for name in sorted(ours - rule["depends"].keys()):
            yield f"{place}: {crate} may not depend on {name}; hand it what it needs, or give the reason in tidy.toml"
        for name in sorted(rule["depends"].keys() - ours):
            yield f"scripts/tidy.toml: {crate} does not depend on {name} any more; delete it from [crates.{crate}]"
        for name in sorted(others & set(rule.get("not", []))):
            yield f"{place}: {crate} may not use {name} (tidy.toml); do that in a crate that may"
        for name in sorted(others - set(rule.get("only", others))):
            yield f"{place}: {crate} may not use {name} (tidy.toml names all that it may); do that in a crate that may"
        yield from check_paths(repository, crate, rule.get("no-paths", []))


def check_layers(repository):
    """Checks that the table of crates in ARCHITECTURE.md has every crate, below all crates that depend on
    it."""
    file = repository.root / "ARCHITECTURE.md"
    names = re.findall(r"^\| `([a-z]+)` \|", file.read_text() if file.is_file() else "", re.MULTILINE)
    rows = {name: row for row, name in enumerate(names)}
    for crate in sorted(repository.crates):
        if crate not in rows:
            yield f"ARCHITECTURE.md: its table of crates lacks {crate}; add what it is, and what it may not"
        for name in sorted(repository.dependencies(crate)[0] & rows.keys()):
            if rows[name] < rows.get(crate, -1):
                yield f"ARCHITECTURE.md: {crate} depends on {name}, which is above it in the table; move the row"


def check_paths(repository, crate, paths):
    """Checks that no module names a path that its crate may not name."""
    banned = [tuple(path.split("::")) for path in paths]
    for module in repository.crates[crate].all():
        named = list(module.uses.values()) + module.globs
        named += [tuple(re.findall(r"\w+", found)) for found in PATH.findall(module.code)]
        for path in sorted(set(named)):
            if any(path[: len(ban)] == ban for ban in banned):
                place = repository.mention(module.file, path[-1:])
                yield f"{place}: {crate} may not use {'::'.join(path)} (tidy.toml); let its caller do that"


def check_boundaries(repository):
    """Checks each folder with a boundary: no file outside the folder may name a file in one of its subfolders."""
    for name in repository.rules.get("boundaries", {}).get("folders", []):
        folder, found = repository.root / name, set()
        crate = folder.relative_to(repository.root / "crates").parts[0]
        for one, other in repository.arrows.get(crate, ()):
            if folder not in one.parents and folder in other.parents and other.parent != folder:
                found.add((one, other.relative_to(folder).parts[0]))
        for one, inner in sorted(found):
            place = repository.mention(one, [inner])
            yield f"{place}: names {inner}, which is inside {name}; let a file of that folder do it"


def circles(repository):
    """The circles of imports, each as the names of its files."""
    found = [circle for crate in sorted(repository.arrows) for circle in circles_of(repository.arrows[crate])]
    return [[repository.name(file) for file in circle] for circle in found]


def check_circles(repository):
    listed = [set(circle) for circle in repository.baseline.get("import-circles", [])]
    left = [set(circle) for circle in listed]
    for circle in circles(repository):
        inside = next((at for at, known in enumerate(listed) if known.issuperset(circle)), None)
        if inside is None:
            files = f"{len(circle)} files import each other in a circle: {', '.join(circle)}"
            yield f"{circle[0]}:1: {files}; move what they share into a file below them"
        else:
            left[inside] -= set(circle)
    for name in sorted(set().union(*left)):
        yield f"{BASELINE}: '{name}' is in no circle of imports any more; delete it from import-circles"


def method_circles(repository):
    """The number of files in the largest circle of method calls of each type, {name: (place, files)}."""
    found = {}
    for crate, tree in sorted(repository.crates.items()):
        for name, calls in method_calls(tree):
            circle = max(circles_of(calls), key=len, default=[])
            if circle:
                found[f"{crate}: {name}"] = (f"{repository.name(circle[0])}:1: impl {name}", len(circle))
    return found


def check_method_circles(repository):
    listed = repository.baseline.get("method-circles", {})
    remedy = "give a part of its state an owner with private fields, which calls nothing above it"
    unit = "files whose methods call each other in a circle"
    yield from against_figures("method-circles", method_circles(repository), listed, 1, remedy, unit)


# ---- Names in the docs ----


def check_doc_lines(repository):
    bound = repository.rules["bounds"]["doc-columns"]
    for file in repository.docs():
        code = False
        for number, line in enumerate(file.read_text().splitlines(), 1):
            fence = line.lstrip().startswith("```")
            code ^= fence
            exempt = code or fence or line.startswith(("|", "    ")) or re.search(r"\]\(|https?://", line)
            if len(line) > bound and not exempt:
                place = f"{repository.name(file)}:{number}"
                yield f"{place}: {len(line)} columns, at most {bound} are allowed; break the line"


def test_names(repository, crate):
    """The full names of a crate's tests, as cargo has them. In tests/, the names begin with that of the target."""
    folder, names = repository.root / "crates" / crate, set()
    targets = [(folder / "src" / name, folder / "src", ()) for name in ("lib.rs", "main.rs")]
    for file in (folder / "tests").glob("*"):
        root = file / "main.rs" if file.is_dir() else file
        targets.append((root, root.parent, (file.stem,)))
    for root, below, prefix in targets:
        if root.suffix == ".rs" and root.is_file():
            for module in Reader(tests=True).file(root, below).all():
                names |= {"::".join((*prefix, *module.path, test)) for test in TEST_FN.findall(module.code)}
    return names


def proofs(text, crates):
    """The tests that a specification names, as (line, crate or None, Python file or None, name)."""
    kept_by = re.compile(r"^\|[^|]*\|(.*)$|^Kept by(?:.|\n(?!\n))*", re.MULTILINE)
    token = re.compile(rf"(?:\b({'|'.join(crates)})\s+)?`([^`]+)`")
    for part in kept_by.finditer(text):
        crate, file, end = None, None, 0
        for found in token.finditer(part.group()):
            between = part.group()[end : found.start()]
            chained = re.fullmatch(r"(?:\s*\([^)]*\))?[,;]?\s*(?:and\s+)?", between)
            crate, end = found.group(1) or (crate if chained else None), found.end()
            named = re.match(r"(tests/\w+\.py)(?::\s*(\w+…?))?", found.group(2))
            crate, file = (None, named.group(1)) if named else (crate, file)
            name = (named.group(2) or "") if named else found.group(2)
            yield line_of(text, part.start() + found.start()), crate, file, name


def check_specification(repository):
    """Checks that every test and every file that the specification names exists."""
    root, file = repository.root, repository.root / "SPECIFICATION.md"
    tests = {}
    for line, crate, python, name in proofs(file.read_text(), repository.crates) if file.is_file() else ():
        place = f"SPECIFICATION.md:{line}"
        if name == "" or name.startswith("test_"):
            text = (root / python).read_text() if python and (root / python).is_file() else ""
            whole = "" if name.endswith("…") or not name else r"\b"
            if not re.search(rf"^ *(?:async )?def {name.removesuffix('…')}{whole}", text, re.MULTILINE):
                yield f"{place}: no test '{name}' in {python or 'any file'}; name the one that keeps the promise"
        elif re.fullmatch(r"[\w.-]+/[\w./-]*", name):
            if not any(any(root.glob(f"{below}{name}")) for below in ("", "crates/*/", "crates/*/src/")):
                yield f"{place}: there is no file '{name}'; name the one that is meant"
        elif crate is None and re.fullmatch(r"[a-z]\w*(::\w+)+", name):
            yield f"{place}: whose test is '{name}'? Put its crate before it: {', '.join(repository.crates)}"
        elif crate and re.fullmatch(r"\w+(::\w+)*", name):
            tests[crate] = tests.get(crate) or test_names(repository, crate)
            if not any(f"::{name}::" in f"::{test}::" for test in tests[crate]):
                yield f"{place}: {crate} has no test '{name}'; name the one that keeps the promise"


def check_named_files(repository):
    """Checks that every path that the pages for developers name exists. For a Rust file, a page may name only the end
    of the path.
    """
    below = "crates|docs|scripts|tests|web|fuzz|labs|bench|experiments|monitoring"
    named = re.compile(rf"[`(]((?:{below})/[\w./-]*|[\w./-]+\.rs\b)")
    rust = [f"/{repository.name(file)}" for file in repository.sources() if file.suffix == ".rs"]
    pages = ("ARCHITECTURE.md", "CONTRIBUTING.md", "life-of-an-io.md", "data-path.md", "where.md")
    for page in (page for page in repository.docs() if page.name in pages or page.parent.name == "decisions"):
        text = page.read_text()
        for found in named.finditer(text):
            name = found.group(1)
            if not (repository.root / name).exists() and not any(file.endswith(f"/{name}") for file in rust):
                place = f"{repository.name(page)}:{line_of(text, found.start())}"
                yield f"{place}: there is no '{name}'; name the file that has replaced it"


def commands_in(text):
    """The commands of a page that begin with `dashpot`, as (line, words)."""
    text = re.sub(r"\\\n", "  ", text)
    lines = re.finditer(r"^[ \t]*(?:\$ )?(?:sudo )?(dashpot .*)$", text, re.MULTILINE)
    blocks = [span.span() for span in re.finditer(r"^```.*?^```|^    .*$", text, re.MULTILINE | re.DOTALL)]
    spans = [found for found in lines if any(begin <= found.start(1) < end for begin, end in blocks)]
    for found in [*spans, *re.finditer(r"`(dashpot [^`]*)`", text)]:
        yield line_of(text, found.start(1)), found.group(1)


class Help:
    """The program's help about its commands and options."""

    def __init__(self, program):
        self.program, self.options = program, {}
        self.commands = set(re.findall(r"^  ([a-z][\w-]*) ", self.ask(), re.MULTILINE))

    def ask(self, *command):
        asked = subprocess.run([self.program, *command, "--help"], capture_output=True, text=True, check=False)
        return asked.stdout

    def has(self, command, option):
        if command not in self.options:
            self.options[command] = set(
                re.findall(r"(?<![\w-])(?:--[a-z][\w-]*|-[A-Za-z])\b", self.ask(*command.split()))
            )
        return option in self.options[command]

    def nested(self, words):
        """The command of a line of words: `record`, or `record cut` where there is one."""
        command, below = words[1], words[2] if len(words) > 2 else ""
        is_word = re.fullmatch(r"[a-z][a-z-]*", below)
        return f"{command} {below}" if is_word and re.search(rf"^  {below}\s", self.ask(command), re.M) else command


def unknown_words(line, known):
    """The words of a command line that the program does not have."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        words = line.split()
    command = words[1] if len(words) > 1 else "help"
    if re.match(r"[a-z]", command) and command not in known.commands:
        yield f"there is no `dashpot {command}`"
        return
    if re.match(r"[a-z]", command):
        command = known.nested(words)
    for word in words[2:]:
        if re.match(r"--$|[|&;<>]", word):
            return
        option = re.match(r"--[a-z][\w-]*|-[A-Za-z]", word)
        if option and re.match(r"[a-z]", command) and not known.has(command, option.group()):
            yield f"`dashpot {command}` has no {option.group()}"


def check_commands(repository):
    """Checks that the program has every command and option that the pages for users name."""
    target = os.environ.get("CARGO_TARGET_DIR", repository.root / "target")
    program = Path(target, "debug/dashpot")
    if not program.is_file():
        print(f"tidy: skipped: the docs' commands: {program} is missing; `make build` builds it")
        return
    known = Help(program)
    for file in repository.docs():
        if file.name == "README.md" or file.parent == repository.root / "docs":
            for line, command in commands_in(file.read_text()):
                for wrong in unknown_words(command, known):
                    yield f"{repository.name(file)}:{line}: {wrong}; write what `dashpot --help` has"


# ---- All rules ----


CHECKS = [
    check_function_sizes,
    check_crates,
    check_layers,
    check_boundaries,
    check_circles,
    check_method_circles,
    check_doc_lines,
    check_specification,
    check_named_files,
    check_commands,
]


def print_baseline(repository):
    """Prints the exceptions that the present tree needs."""
    print("# The exceptions to tidy.toml. They may only shrink. After files have moved, regenerate the exceptions:")
    print(f"# scripts/tidy.py --print-baseline >{BASELINE}; `git diff` shows whether any grew.")
    print("\nimport-circles = [")
    for circle in circles(repository):
        print("  [")
        for name in circle:
            print(f'    "{name}",')
        print("  ],")
    print("]")
    bounds = {**repository.rules["bounds"], "method-circles": 1}
    figures = {"function-lines": function_sizes, "method-circles": method_circles}
    for section, figures_of in figures.items():
        print(f"\n[{section}]")
        for name, (_, number) in sorted(figures_of(repository).items()):
            if number > bounds[section]:
                print(f'"{name}" = {number}')


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--print-baseline", action="store_true")
    options = parser.parse_args()
    repository = Repository(options.root)
    if options.print_baseline:
        print_baseline(repository)
        return 0
    violations = [violation for check in CHECKS for violation in check(repository)]
    for violation in violations:
        print(f"tidy: {violation}")
    print(f"tidy: {len(violations)} violations" if violations else "tidy: every rule holds")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
