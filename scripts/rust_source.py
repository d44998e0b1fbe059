"""Reads Rust: the modules of a crate, the imports of each file, circles of imports, and the calls between the files of
one type's methods.

This module reads paths, not types. It sees calls of methods only on `self`, and no path that a macro builds.
"""

import re

COMMENT = r"//[^\n]*|/\*.*?\*/"
STRING = r'''\bb?r(?P<hashes>#*)".*?"(?P=hashes)|b?"(?:\\.|[^"\\])*"'''
CHARACTER = r"'(?:\\(?:u\{\w*\}|x\w\w|.)|[^\\'\n])'"
NOISE = re.compile(f"{COMMENT}|{STRING}|{CHARACTER}", re.DOTALL)
CFG_TEST = re.compile(r"#\[cfg\((?:test|(?:any|all)\([^\]]*\btest\b[^\]]*)\)\]")
MOD = re.compile(r"\bmod\s+(\w+)\s*([;{])")
USE = re.compile(r"(\bpub(?:\s*\([^)]*\))?\s+)?\buse\s+([^;]+);")
PATH = re.compile(r"(?<![\w:.])[A-Za-z_]\w*(?:\s*::\s*\w+)+")
IMPL = re.compile(r"\bimpl\b([^{;]*)\{")
GENERICS = re.compile(r"^\s*<(?:[^<>]|<[^<>]*>)*>")
CALL = re.compile(r"\b(?:self\s*\.\s*|Self::)(\w+)\s*\(")
TEST_FN = re.compile(r"#\[(?:\w+::)?test\b[^\]]*\](?:\s*#\[[^\]]*\])*\s*(?:async\s+)?fn\s+(\$?\w+)")
PATH_ATTRIBUTE = re.compile(r'#\[path\s*=\s*"([^"]+)"\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))?\s*)?$')


# ---- Source and modules ----


def blank(text):
    """The text with spaces for everything but line breaks."""
    return re.sub(r"[^\n]", " ", text)


def blank_span(text, start, end):
    return text[:start] + blank(text[start:end]) + text[end:]


def end_of_block(code, opening):
    """The offset after the brace that closes the brace at `opening`."""
    depth = 0
    for found in re.compile(r"[{}]").finditer(code, opening):
        depth += 1 if found.group() == "{" else -1
        if depth == 0:
            return found.end()
    return len(code)


def block_or_semicolon(code, start):
    """The offset of the first `{` or `;` from `start` on that is not inside brackets."""
    depth = 0
    for found in re.compile(r"[][(){;]").finditer(code, start):
        if found.group() in "([":
            depth += 1
        elif found.group() in ")]":
            depth -= 1
        elif depth == 0:
            return found.start()
    return len(code)


def end_of_item(code, start):
    at = block_or_semicolon(code, start)
    return end_of_block(code, at) if code[at : at + 1] == "{" else at + 1


def without_tests(code):
    """The code, with each item after `#[cfg(test)]` blanked."""
    while found := CFG_TEST.search(code):
        code = blank_span(code, found.start(), end_of_item(code, found.end()))
    return code


def imports(tree, prefix=()):
    """The leaves of a `use` tree as pairs of path and name in scope; the name of a glob is `*`."""
    brace = tree.find("{")
    if brace < 0:
        words, _, alias = tree.strip().partition(" as ")
        path = prefix + tuple(re.findall(r"\w+|\*", words))
        path = path[:-1] if path[-1] == "self" and len(path) > 1 else path
        yield path, alias.strip() or path[-1]
        return
    head = prefix + tuple(re.findall(r"\w+", tree[:brace]))
    depth, begin = 0, brace + 1
    for at in range(brace, len(tree)):
        depth += {"{": 1, "}": -1}.get(tree[at], 0)
        if (depth == 1 and tree[at] == ",") or depth == 0:
            if tree[begin:at].strip():
                yield from imports(tree[begin:at], head)
            begin = at + 1
        if depth == 0:
            return


class Module:
    """A module: its file, the modules in it, its imports, and its code without those modules and imports."""

    def __init__(self, path, file, parent):
        self.path, self.file, self.parent = path, file, parent
        self.children, self.uses, self.globs, self.exported = {}, {}, [], set()
        self.code = ""

    def all(self):
        yield self
        for child in self.children.values():
            yield from child.all()


class Reader:
    """Reads the modules of one target, with its tests or without them."""

    def __init__(self, tests):
        self.tests, self.codes = tests, {}

    def file(self, file, folder, path=(), parent=None):
        text = file.read_text()
        code = NOISE.sub(lambda found: blank(found.group()), text)
        code = self.codes[file] = code if self.tests else without_tests(code)
        return self.module(Module(path, file, parent), text, code, folder)

    def module(self, module, text, code, folder):
        """Reads a module. `folder` contains the files of its child modules."""
        at = 0
        while found := MOD.search(code, at):
            name, at = found.group(1), found.end()
            if found.group(2) == "{":
                at = end_of_block(code, found.end() - 1)
                inner = blank(code[: found.end()]) + code[found.end() : at - 1]
                below = Module((*module.path, name), module.file, module)
                child = self.module(below, text, inner, folder / name)
            else:
                child = self.declared(module, name, text[: found.start()], folder)
            if child:
                module.children[name] = child
            code = blank_span(code, found.start(), at)
        for found in USE.finditer(code):
            for path, name in imports(found.group(2)):
                if name == "*":
                    module.globs.append(path[:-1])
                else:
                    module.uses[name] = path
                    module.exported |= {name} if found.group(1) else set()
        module.code = USE.sub(lambda found: blank(found.group()), code)
        return module

    def declared(self, module, name, before, folder):
        """The module that `mod name;` declares, or None if no file has it."""
        attribute = PATH_ATTRIBUTE.search(before)
        if attribute:
            places = [module.file.parent / attribute.group(1)]
        else:
            places = [folder / f"{name}.rs", folder / name / "mod.rs"]
        for file in places:
            if file.is_file():
                return self.file(file, folder / name, (*module.path, name), module)
        return None


# ---- Methods ----


def inherent_impls(code):
    """The type and the body of each `impl` without a trait."""
    for found in IMPL.finditer(code):
        head = GENERICS.sub("", found.group(1))
        name = re.match(r"\s*(?:\w+::)*(\w+)", head)
        if name and not re.search(r"\bfor\b", head):
            yield name.group(1), code[found.end() : end_of_block(code, found.end() - 1)]


def method_calls(root):
    """For each type with methods in several files: the calls between these files, as {(from, to)}."""
    types = {}
    for module in root.all():
        for name, body in inherent_impls(module.code):
            files = types.setdefault(name, {})
            files[module.file] = files.get(module.file, "") + body
    for name, files in sorted(types.items()):
        owner = {method: file for file, body in files.items() for method in re.findall(r"\bfn\s+(\w+)", body)}
        calls = {(file, owner.get(called)) for file, body in files.items() for called in CALL.findall(body)}
        yield name, {(one, other) for one, other in calls if other and one != other}


# ---- Imports between files ----


def start_of(module, path):
    """The module in which a path begins, and the rest of the path; None if the path is another crate's."""
    if path[0] == "crate":
        while module.parent:
            module = module.parent
        return module, path[1:]
    if path[0] == "self":
        return module, path[1:]
    up = 0
    while up < len(path) and path[up] == "super":
        module, up = module.parent, up + 1
        if module is None:
            return None
    if up or path[0] in module.children or path[0] in module.uses:
        return module, path[up:]
    return None


def resolve(module, path, seen=frozenset()):
    """The file of the item that a path names, or None if it names a module or another crate's item."""
    start = start_of(module, path)
    if start is None or (module, path) in seen:
        return None
    seen |= {(module, path)}
    module, path = start
    while path:
        name, rest = path[0], path[1:]
        if name in module.children and (rest or name not in module.uses):
            module, path = module.children[name], rest
        elif name in module.uses:
            target = module.uses[name]
            # In `use name::name`, the first name is another crate.
            return None if target[0] == name else resolve(module, target + rest, seen)
        else:
            return through_globs(module, path, seen) or module.file
    return None


def through_globs(module, path, seen):
    for glob in module.globs:
        start = start_of(module, glob)
        if start and defines(start[0], start[1], path[0]):
            return resolve(module, glob + path, seen)
    return None


def defines(module, path, name):
    """Whether the module at a path below `module` has an item with this name."""
    for part in path:
        if part not in module.children:
            return False
        module = module.children[part]
    item = rf"\b(?:fn|struct|enum|trait|type|const|static|union|macro_rules!)\s+{name}\b"
    return name in module.children or name in module.uses or re.search(item, module.code) is not None


def arrows_of(root):
    """The imports between files, as {(from, to)}. A name that a module re-exports counts only if the module itself
    uses it.
    """
    arrows = set()
    for module in root.all():
        used = set(re.findall(r"\w+", module.code))
        named = [path for name, path in module.uses.items() if name not in module.exported or name in used]
        named += [tuple(re.findall(r"\w+", found)) for found in PATH.findall(module.code)]
        targets = {resolve(module, path) for path in named}
        arrows |= {(module.file, target) for target in targets if target and target != module.file}
    return arrows


def circles_of(arrows):
    """The sets of files in which each file can reach every other one through imports."""
    after = {}
    for source, target in arrows:
        after.setdefault(source, set()).add(target)
    circles, index, low, stack = [], {}, {}, []

    def visit(file):
        index[file] = low[file] = len(index)
        stack.append(file)
        for target in sorted(after.get(file, ())):
            if target not in index:
                visit(target)
            if target in stack:
                low[file] = min(low[file], low[target])
        if low[file] == index[file]:
            circle = stack[stack.index(file) :]
            del stack[stack.index(file) :]
            circles.extend([sorted(circle)] if len(circle) > 1 else [])

    for file in sorted(after):
        if file not in index:
            visit(file)
    return sorted(circles)
