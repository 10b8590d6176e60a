#!/usr/bin/env python3
"""Says which sources of a target can be compiled as one: prints `GROUP PATH` for each source given, a line each.

Two sources go together unless a name that one keeps to itself (in an anonymous namespace, or `static`) is one the other keeps
to itself too, or has from a header. A source with macros of its own stands alone.
"""
import functools
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MOST_LINES = 6000       # of a group: what one compilation takes of memory grows with it

COMMENT_OR_TEXT = re.compile(r'R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
TEST_NAMES = re.compile(r"^TEST\(.*$", re.MULTILINE)
# What a name from a header looks like where it is used: members, qualified names and locals mean the same in any company.
USED = re.compile(r"(?<!\.)(?<!->)(?<!::)\b([A-Z]\w*|k[A-Z]\w*)")
ALIAS = re.compile(r"using (\w+) =")
TYPE = re.compile(r"(?:struct|class|enum class|enum|union|concept) (?:\[\[\w+\]\] )?(\w+)")
INCLUDE = re.compile(r'^#include "(.*?)"', re.MULTILINE)
DECLARED = re.compile(r"^(?:struct|class|enum class|enum|union|using|constexpr [\w:<>]+) (\w+)(?=[ ;{:=\[])", re.MULTILINE)
FUNCTION_OR_VARIABLE = re.compile(r"(\w+)(?:\(|\{| = |;|\[)")


def without_comments_and_texts(text):
    return COMMENT_OR_TEXT.sub(lambda found: '""' + "\n" * found.group().count("\n"), text)


@functools.lru_cache(maxsize=None)
def declared_by(header):
    """The types and constants of a header of the project's and of those it includes."""
    path = os.path.join(ROOT, header)
    if not os.path.exists(path):
        return frozenset()
    with open(path, encoding="utf-8") as file:
        text = file.read()
    return frozenset(DECLARED.findall(text)).union(*map(declared_by, INCLUDE.findall(text)))


class Source:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        code = without_comments_and_texts(text)
        self.path = path
        self.lines = code.count("\n")
        self.used = set(USED.findall(TEST_NAMES.sub("", code))).union(*map(declared_by, INCLUDE.findall(text)))
        self.own = {}           # a name, and for an alias what it stands for: the same alias twice is no conflict
        self.alone = re.search(r"^\s*#\s*(define|undef|pragma)", code, re.MULTILINE) is not None
        anonymous = False
        for raw, line in zip(text.split("\n"), code.split("\n")):
            if raw == "namespace {":
                anonymous = True
            elif raw == "}  // namespace":
                anonymous = False
            elif line[:1].isalpha() and (anonymous or line.startswith(("static ", "constexpr ", "const ", "using "))):
                self._declare(line)

    def _declare(self, line):
        alias = ALIAS.match(line)
        if alias:
            self.own[alias.group(1)] = line
        elif not line.startswith("using "):
            found = TYPE.match(line) or FUNCTION_OR_VARIABLE.search(line)
            if found and not found.group(1).isupper():      # not TEST_F and its like
                self.own[found.group(1)] = ""

    def _may_change(self, other):
        return any((name in other.used or name in other.own) and not (meaning and other.own.get(name) == meaning)
                   for name, meaning in self.own.items())

    def goes_with(self, other):
        return not (self.alone or other.alone or self._may_change(other) or other._may_change(self))


def main():
    groups = []
    for source in map(Source, sorted(sys.argv[1:])):
        for group in groups:
            if sum(other.lines for other in group) + source.lines <= MOST_LINES and all(map(source.goes_with, group)):
                group.append(source)
                break
        else:
            groups.append([source])
    for number, group in enumerate(groups):
        for source in group:
            print(f"{number} {source.path}")


if __name__ == "__main__":
    main()
