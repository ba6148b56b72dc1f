#!/usr/bin/env python3
"""Collect unlabelled English sentences and name/description pairs from
permissively licensed packages.

    gather.py --npm DIR --gomod DIR --out gathered.jsonl.gz --sources sources.txt

DIR of --npm holds package tarballs (`npm pack`), --gomod is a Go module cache.
A package is read only if its licence file is MIT, Apache-2.0, BSD or ISC by
its wording and its manifest says nothing else; a package without a licence
file is read if its manifest names one of these licences, and is marked so.
Every package that was read is listed with its licence in sources.txt.
Standard library only; the output depends on the input alone.
"""
import argparse
import gzip
import hashlib
import json
import os
import re
import tarfile

from texts import sentences, split_name

ALLOWED = {"MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "0BSD", "BSD"}
REFUSE = re.compile(r"general public license|mozilla public|business source|elastic license|commons clause|"
                    r"creative commons|sustainable use|server side public|eclipse public|all rights reserved\.? *$|"
                    r"proprietary|commercial licen[cs]e", re.I)
# The dev sets are made of these services: nothing about them is read.
DEV_SERVICES = re.compile(r"spotify|themoviedb|tmdb|gorilla", re.I)
MAX_SENTENCES, MAX_PAIRS, MAX_FILE = 1500, 400, 3 << 20


def licence_of(text):
    t = " ".join(text.split())
    if REFUSE.search(t):
        return None
    if "Permission is hereby granted, free of charge" in t:
        return "MIT"
    if "Apache License" in t and "2.0" in t:
        return "Apache-2.0"
    if "Redistribution and use in source and binary forms" in t:
        return "BSD"
    if re.search(r"Permission to use, copy, modify, and(/or)? distribute this software", t):
        return "ISC"
    return None


def declared(manifest):
    lic = manifest.get("license")
    if isinstance(lic, dict):
        lic = lic.get("type")
    if not isinstance(lic, str):
        return None
    lic = re.sub(r"Apache[ -]2(\.0)?$", "Apache-2.0", lic)
    ids = [w for w in re.findall(r"[A-Za-z0-9.\-]+", lic) if w not in ("OR", "AND")]
    return ids[0] if ids and all(i in ALLOWED for i in ids) else "no:" + lic


def npm_files(path):
    """Yield (path in package, text) of the documents in a tarball."""
    with tarfile.open(path) as tar:
        for m in tar:
            if not m.isfile() or m.size > MAX_FILE or m.size == 0:
                continue
            name = m.name.split("/", 1)[-1]
            low = name.lower()
            if "node_modules/" in low or "changelog" in low or "history." in low:
                continue
            base = os.path.basename(low)
            if low.endswith((".md", ".d.ts", ".d.mts")) or low == "package.json" \
                    or ("/" not in low and re.match(r"(licen[cs]e|copying)", base)):
                yield name, tar.extractfile(m).read().decode("utf-8", "replace")


def go_files(root):
    for folder, dirs, files in os.walk(root):
        dirs.sort()
        dirs[:] = [d for d in dirs if d not in ("testdata", "vendor")]
        for f in sorted(files):
            low = f.lower()
            if "changelog" in low:
                continue
            path = os.path.join(folder, f)
            if low.endswith((".md", ".go")) and not low.endswith("_test.go") or \
                    (folder == root and re.match(r"(licen[cs]e|copying)", low)):
                if os.path.getsize(path) <= MAX_FILE:
                    with open(path, encoding="utf-8", errors="replace") as h:
                        yield os.path.relpath(path, root), h.read()


def markdown_text(md):
    md = re.sub(r"```.*?(```|\Z)|~~~.*?(~~~|\Z)", "\n\n", md, flags=re.S)
    md = re.sub(r"<!--.*?-->|<[^>\n]{1,300}>", " ", md, flags=re.S)
    md = re.sub(r"!\[[^\]]*\]\([^)]*\)|\[!\[.*?\]\(.*?\)\]\(.*?\)", " ", md)
    md = re.sub(r"\[([^\]]*)\]\([^)]*\)|\[([^\]]*)\]\[[^\]]*\]", lambda m: m.group(1) or m.group(2) or "", md)
    md = re.sub(r"[*_`]{1,3}([^*_`\n]+)[*_`]{1,3}", r"\1", md)
    for block in re.split(r"\n\s*\n", md):
        for line in re.split(r"\n(?=\s*(?:[-*+]|\d+\.)\s)|(?<=\n)(?=#)", block):
            line = re.sub(r"^\s*(?:[-*+>]|\d+\.|#+)\s*", "", line.strip())
            if "|" in line or line.startswith("    "):
                continue
            yield line


def fit(s):
    """Whether s reads as a short English sentence."""
    if not 12 <= len(s) <= 320 or not s.isascii() or re.search(r"https?:|www\.|[{}<>=;\\]|\$\(|//", s):
        return False
    w = s.split()
    if not 3 <= len(w) <= 45:
        return False
    letters = sum(c.isalpha() or c == " " for c in s)
    return letters >= 0.82 * len(s) and sum(len(x) > 1 and x.strip(".,:()'\"").isalpha() for x in w) >= 0.6 * len(w)


JSDOC = re.compile(r"/\*\*((?:[^*]|\*(?!/))*)\*/\s*((?:export|declare|public|static|abstract|async|readonly|default)\s+)*"
                   r"(?:(?:function|class|interface)\s+)?([A-Za-z_$][\w$]*)\s*(\??\s*[(<:]|extends)([^;{]{0,400})")


def clean_comment(c):
    c = re.sub(r"^\s*\*? ?", "", c, flags=re.M)
    c = re.split(r"^\s*@|^```|<pre|Example", c, maxsplit=1, flags=re.M)[0]
    c = re.sub(r"\{@link(?:code)?\s+([^}|]*)[^}]*\}", r"\1", c)
    c = re.sub(r"<[^>]{1,200}>|[`*]|\[([^\]]*)\]\([^)]*\)", lambda m: m.group(1) or " ", c)
    return " ".join(c.split())


def ts_docs(text):
    """Yield (name, comment, parameters, is callable) of a TypeScript declaration file."""
    for m in JSDOC.finditer(text):
        comment = clean_comment(m.group(1))
        if not comment or len(comment) > 2000:
            continue
        name, mark, rest = m.group(3), m.group(4).strip(), m.group(5)
        call = mark.endswith("(") or name.endswith("Command")
        params = re.findall(r"(\w+)\??\s*:", rest)[:8] if mark.endswith("(") else []
        yield re.sub(r"Command$", "", name), comment, params, call


GODOC = re.compile(r"((?:^//[^\n]*\n)+)func (?:\([^)]*\) )?([A-Z]\w*)\(([^)]*)\)", re.M)


def go_docs(text):
    for m in GODOC.finditer(text):
        comment = " ".join(line[2:].strip() for line in m.group(1).splitlines() if not line.startswith("//go:"))
        params = re.findall(r"(\w+)(?:,| [\w.*\[\]]+)", m.group(3))[:6]
        yield m.group(2), re.sub(rf"^{m.group(2)} ", "", comment), params, True


def read_package(label, files, sink, sources, manifest_licence=True):
    licence = stated = None
    docs, api = [], []
    bad = False
    for name, text in files:
        low = name.lower()
        if low == "package.json":
            try:
                manifest = json.loads(text)
                stated = declared(manifest)
                label = f"npm {manifest['name']}@{manifest['version']}"
            except (ValueError, KeyError):
                bad = True
        elif re.match(r"(licen[cs]e|copying)[^/]*$", low):
            got = licence_of(text)
            if got is None:
                bad = True
            licence = licence or got
        elif low.endswith(".md"):
            docs.append(text)
        else:
            api.append((low, text))
    if stated and stated.startswith("no:"):
        bad = True
    if bad or not (licence or (manifest_licence and stated)):
        return f"left out: {label} (licence {stated or licence or 'not found'})"
    found, pairs = [], []
    for md in docs:
        for line in markdown_text(md):
            found += [s for s in sentences(line) if fit(s)]
    for low, text in api:
        reader = go_docs if low.endswith(".go") else ts_docs
        for name, comment, params, call in reader(text):
            parts = sentences(comment)
            found += [s for s in parts if fit(s)]
            if call and parts and fit(parts[0]) and len(split_name(name).split()) >= 2 and len(name) >= 6:
                pairs.append((name, parts[0], " ".join(parts[1:3])[:300], params))
    add(label, found, pairs, sink)
    sources.append((label, licence or f"{stated} (manifest)", len(found), len(pairs)))
    return None


def pick(items, limit, key):
    """At most limit items, chosen by a hash so that the choice is fixed and spread."""
    if len(items) <= limit:
        return items
    order = sorted(range(len(items)), key=lambda i: hashlib.sha1(key(items[i]).encode()).digest())[:limit]
    return [items[i] for i in sorted(order)]


def add(label, found, pairs, sink):
    new = []
    for s in found:
        k = s.lower()
        if k not in sink["seen"] and not DEV_SERVICES.search(s):
            sink["seen"].add(k)
            new.append(s)
    sink["sentences"] += pick(new, MAX_SENTENCES, str)
    fresh = []
    for p in pairs:
        k = (p[0].lower(), p[1].lower())
        if k not in sink["pairs_seen"] and not DEV_SERVICES.search(p[0] + p[1] + p[2]):
            sink["pairs_seen"].add(k)
            fresh.append(p)
    for p in pick(fresh, MAX_PAIRS, lambda p: p[0] + p[1]):
        sink["pairs"].append((label.rsplit("@", 1)[0],) + p)


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--npm", required=True)
    ap.add_argument("--gomod", required=True)
    ap.add_argument("--out", required=True)
    ap.add_argument("--sources", required=True)
    a = ap.parse_args()
    sink = {"seen": set(), "pairs_seen": set(), "sentences": [], "pairs": []}
    sources, left = [], []
    for tgz in sorted(f for f in os.listdir(a.npm) if f.endswith(".tgz")):
        stem, version = re.match(r"(.+)-(\d+\.\d+\.\d+.*)\.tgz$", tgz).groups()
        if DEV_SERVICES.search(stem):
            continue
        try:
            said = read_package(f"npm {stem}@{version}", npm_files(os.path.join(a.npm, tgz)), sink, sources)
        except (tarfile.TarError, EOFError, OSError) as e:
            said = f"left out: npm {stem}@{version} (unreadable: {e})"
        if said:
            left.append(said)
    for folder, dirs, _ in os.walk(a.gomod):
        dirs.sort()
        rel = os.path.relpath(folder, a.gomod)
        if rel.startswith("cache"):
            dirs[:] = []
        elif "@" in os.path.basename(folder):
            dirs[:] = []
            said = read_package("go " + rel.replace("!", ""), go_files(folder), sink, sources, manifest_licence=False)
            if said:
                left.append(said)
    with gzip.GzipFile(a.out, "wb", mtime=0) as raw:
        for s in sink["sentences"]:
            raw.write((json.dumps({"s": s}) + "\n").encode())
        for group, name, first, rest, params in sink["pairs"]:
            raw.write((json.dumps({"group": group, "name": name, "first": first, "rest": rest, "params": params}) + "\n").encode())
    with open(a.sources, "w") as f:
        f.write("# package\tlicence found\tsentences\tpairs (both before removing doubles and limits)\n")
        for label, lic, n, p in sources:
            f.write(f"{label}\t{lic}\t{n}\t{p}\n")
    print(f"{len(sources)} packages read, {len(left)} left out, {len(sink['sentences'])} sentences, {len(sink['pairs'])} pairs")
    for line in left:
        print(line)


if __name__ == "__main__":
    main()
