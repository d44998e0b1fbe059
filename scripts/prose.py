"""Finds headless sentences. A headless sentence begins with "who", "what" or "nobody" in place of a noun.

This module reads comments, docstrings, pages, and strings that begin with such a word. A question may begin with such
a word, and so may words in quotation marks.
"""

import ast
import os
import re
from pathlib import Path

WORDS = "What|Whatever|Which|Whichever|Who|Whoever|Whom|Whose|Nobody"
COMMENT = re.compile(r'^\s*(?://[/!]?|/?\*+|#+|"""|<!--)(.*)$')
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
TRAILING = re.compile(r"\s(?://|#) (.*)$")
STRING = re.compile(rf'"((?:{WORDS})\s+\w[^"]*)"')
# The beginning of a sentence: after a paragraph, a sentence, the edge of a table's cell, or the mark of a heading or
# of a list item.
BEGIN = r"(?:\A|\n[ \t]*\n|[.:!?][\"')*]*\s|\||\n[ \t]*(?:[-*#>]+|\d+\.)[ \t])[\s*_]*"
SENTENCE = re.compile(rf"{BEGIN}((?:{WORDS})\s+\w(?:(?!\n[ \t]*\n)[^?!.|]|\.(?=\w))*)(\?)?")
FOLDERS = "bench crates docs experiments fuzz labs monitoring python scripts tests web/src".split()
SUFFIXES = (".css", ".md", ".py", ".rs", ".toml", ".ts", ".tsx", ".yml")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def of_line(line):
    """The prose of a line of code: its comment, or a string in it."""
    found = COMMENT.match(line) or TRAILING.search(line) or STRING.search(line)
    return found.group(1) if found else ""


def of_python(text):
    """The prose of Python code: its docstrings, and the prose of its other lines."""
    lines = text.split("\n")
    prose = [of_line(line) for line in lines]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            docstring = node.body[0].value
            for at in range(docstring.lineno - 1, docstring.end_lineno):
                prose[at] = lines[at].strip().removeprefix('"""')
    return "\n".join(prose)


def of_file(text, suffix):
    """The prose of a page or of source code. Each line of prose keeps its line number."""
    if suffix == ".md":
        return FENCE.sub(lambda code: re.sub(r"[^\n]", "", code.group()), text)
    if suffix == ".py":
        return of_python(text)
    return "\n".join(of_line(line) for line in text.splitlines())


def headless(text, suffix):
    """The headless sentences of a file, as (line, sentence)."""
    prose = of_file(text, suffix)
    for found in SENTENCE.finditer(prose):
        if not found.group(2):
            yield prose.count("\n", 0, found.start(1)) + 1, " ".join(found.group(1).split())


def files(root):
    """The files with prose, of the folders and of the root."""
    yield from sorted(root.glob("*.md"))
    for top in FOLDERS:
        for folder, below, names in os.walk(root / top):
            below[:] = [name for name in below if name not in ("target", "__pycache__", "node_modules")]
            for name in sorted(names):
                if name.endswith(SUFFIXES) or (top == "scripts" and "." not in name):
                    yield Path(folder, name)


def check_headless(repository):
    """No sentence or heading begins with "who", "what" or "nobody" in place of a noun."""
    for file in files(repository.root):
        for line, sentence in headless(file.read_text(), file.suffix):
            words = sentence.split()
            wrong = f"'{' '.join(words[:6])} …' begins with a headless {words[0].lower()}"
            yield f"{repository.name(file)}:{line}: {wrong}; name the actor or the thing"
