#!/usr/bin/env python3
"""Licences of all dependencies against the list below, and direct dependencies that exist in several versions."""
import collections
import json
import re
import subprocess
import sys

ALLOWED = {
    "MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Zlib", "0BSD",
    "Unicode-3.0", "CC0-1.0", "Unlicense", "BSL-1.0", "MIT-0", "MPL-2.0", "CDLA-Permissive-2.0", "bzip2-1.0.6", "NCSA",
}

# licence text in a file, read by us: Apache-2.0
READ = {"cfg_block"}

# direct dependencies of which others need an older version as well, and who
SEVERAL = {
    "darling": "the derive macros of derive_builder and enumset are on 0.20 and 0.21",
    "prettyplease": "bindgen is on 0.2",
    "rand": "tch and others are on 0.8, tokenizers is on 0.9",
    "safetensors": "tch is on 0.3",
    "syn": "many derive macros are on 2",
    "thiserror": "tch, nvml-wrapper and sysctl are on 1",
}


def allowed(expression):
    """Whether the allowed licences satisfy an SPDX expression: OR binds least, then AND, then WITH."""
    # an old way to write OR
    tokens = re.findall(r"[()]|[^\s()]+", expression.replace("/", " OR "))
    at = 0

    def take(*expected):
        nonlocal at
        if at < len(tokens) and tokens[at] in expected:
            at += 1
            return True
        return False

    def word():
        nonlocal at
        if at == len(tokens) or tokens[at] in ("(", ")", "AND", "OR", "WITH"):
            raise ValueError(f"{expression!r}: expected a licence at word {at + 1}")
        at += 1
        return tokens[at - 1]

    def either():
        found = both()
        while take("OR"):
            found = both() or found
        return found

    def both():
        found = term()
        while take("AND"):
            found = term() and found
        return found

    def term():
        if take("("):
            found = either()
            if not take(")"):
                raise ValueError(f"{expression!r}: expected `)` at word {at + 1}")
            return found
        name = word()
        return (f"{name} WITH {word()}" if take("WITH") else name) in ALLOWED

    found = either()
    if at != len(tokens):
        raise ValueError(f"{expression!r}: {tokens[at]!r} is too much")
    return found


def check_allowed():
    """The parser against expressions of which the answer is known."""
    for expression, expected in {
        "MIT": True,
        "GPL-3.0": False,
        "MIT/GPL-3.0": True,
        "GPL-3.0 OR MIT": True,
        "MIT AND GPL-3.0": False,
        "MIT OR Apache-2.0 AND GPL-3.0": True,
        "(MIT OR Apache-2.0) AND GPL-3.0": False,
        "GPL-3.0 AND (MIT OR Apache-2.0)": False,
        "(MIT OR GPL-3.0) AND Unicode-3.0": True,
        "((MIT))": True,
        "Apache-2.0 WITH LLVM-exception OR GPL-3.0": True,
        "GPL-3.0 WITH LLVM-exception": False,
        "Apache-2.0 WITH other-exception": False,
    }.items():
        if allowed(expression) != expected:
            sys.exit(f"{expression!r} should be {'allowed' if expected else 'refused'}")
    for wrong in ["", "MIT OR", "(MIT", "MIT)", "MIT Apache-2.0", "AND"]:
        try:
            allowed(wrong)
        except ValueError:
            continue
        sys.exit(f"{wrong!r} should be no expression")


def licence_problem(package):
    """What is wrong with a package's licence, if anything is."""
    licence = package["license"]
    try:
        if licence and allowed(licence):
            return None
    except ValueError as error:
        return f"{package['name']} {package['version']}: {error}"
    return f"{package['name']} {package['version']}: licence {licence!r}"


def main():
    check_allowed()
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--all-features"]
    metadata = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    packages = metadata["packages"]
    members = set(metadata["workspace_members"])
    others = [package for package in packages if package["id"] not in members and package["name"] not in READ]
    wrong = [problem for problem in map(licence_problem, others) if problem]

    versions = collections.defaultdict(set)
    for package in packages:
        versions[package["name"]].add(package["version"])
    direct = {
        dependency["name"]
        for package in packages if package["id"] in members
        for dependency in package["dependencies"]
    }
    several = {name: sorted(versions[name]) for name in sorted(direct) if len(versions[name]) > 1}
    wrong += [f"{name} in versions {', '.join(found)}" for name, found in several.items() if name not in SEVERAL]
    wrong += [f"{name} is excused for several versions, but there is one" for name in SEVERAL if name not in several]

    print(f"{len(packages)} packages; direct dependencies in several versions:{'' if several else ' none'}")
    for name, found in several.items():
        print(f"  {name} {', '.join(found)}: {SEVERAL.get(name, 'unexplained')}")
    if wrong:
        sys.exit("\n".join(wrong))


main()
