#!/usr/bin/env python3
"""Licences of all dependencies against the list below, and direct dependencies that exist in two major versions."""
import collections
import json
import subprocess
import sys

# each term may stand in an OR; all terms of an AND must be here
ALLOWED = {
    "MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Zlib", "0BSD",
    "Unicode-3.0", "CC0-1.0", "Unlicense", "BSL-1.0", "MIT-0", "MPL-2.0", "CDLA-Permissive-2.0", "bzip2-1.0.6",
}


# licence text in a file, read by us: Apache-2.0
READ = {"cfg_block"}


def allowed(expression):
    expression = expression.replace("/", " OR ").replace("(", "").replace(")", "")
    return any(all(term.strip() in ALLOWED for term in choice.split(" AND ")) for choice in expression.split(" OR "))


metadata = json.loads(subprocess.run(
    ["cargo", "metadata", "--format-version", "1", "--locked", "--all-features"], check=True, capture_output=True).stdout)
members = set(metadata["workspace_members"])
wrong = []
versions = collections.defaultdict(set)
for package in metadata["packages"]:
    versions[package["name"]].add(package["version"])
    if package["id"] not in members and package["name"] not in READ and not allowed(package["license"] or ""):
        wrong.append(f"{package['name']} {package['version']}: licence {package['license']!r}")
direct = {
    dependency["name"]
    for package in metadata["packages"] if package["id"] in members
    for dependency in package["dependencies"]
}
# Burn's own macros are on syn 2 and its tensors on an older rand: nothing that we can choose
BURNS = {"prettyplease", "safetensors", "syn", "rand", "thiserror", "dashmap", "darling", "proptest", "tempfile"}
twice = {name: sorted(versions[name]) for name in sorted(direct) if len(versions[name]) > 1}
wrong += [f"{name} in versions {', '.join(found)}" for name, found in twice.items() if name not in BURNS]
print(f"{len(metadata['packages'])} packages; direct dependencies in several versions: {twice or 'none'}")
if wrong:
    sys.exit("\n".join(wrong))
