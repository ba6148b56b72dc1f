#!/usr/bin/env python3
"""Make the training data: one .npz of token ids and indices, no text in it.

    prepare.py --bench DIR --gathered gathered.jsonl.gz --words DIR --vocab vocab.txt --out DIR

Writes DIR/data.npz and DIR/student-vocab.txt, the vocabulary of the student:
the teachers' one with whole words in place of rows that English never uses.

Reads only DIR/train for training; DIR/dev is read to remove texts that share a
run of eight words with it and to store the dev sets for the final report.
Standard library and numpy; random choices come from fixed seeds.
"""
import argparse
import gzip
import json
import math
import os
import random

import numpy as np

import asks
from texts import doc_text, runs, sentences, split_name, terms
from wordpiece import UNK, WordPiece

TRAIN = ("metatool", "apibank", "clinc150", "toollinkos", "banking77", "bfcl-bynames", "sealtools")
DEV = ("acebench-en", "restbench", "bfcl-multiturn")
CUT = 128          # tokens kept in training; evaluation uses up to EVAL_CUT
EVAL_CUT = 256
K1, B = 1.2, 0.75
NEGATIVES = 12


def read(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f if line.strip()]


PROSE, NAME, CATEGORY, PARAMETERS = 0, 1, 2, 3


def fields(text, name):
    """A document's text cut into its fields; the parts joined are the text."""
    rest, out = text[len(name):], [(name, NAME)]
    tail = []
    i = rest.rfind(" Parameters: ")
    if i >= 0:
        rest, tail = rest[:i], [(rest[i:], PARAMETERS)]
    i = rest.rfind(" Category: ")
    if i >= 0:
        rest, tail = rest[:i], [(rest[i:], CATEGORY)] + tail
    return out + [(rest, PROSE)] + tail


class Texts:
    """Every distinct text once, as token ids, with the origins it came from."""

    def __init__(self, teacher, student):
        """Tokenizers of the teachers and of the student."""
        self.teacher, self.student, self.index, self.cache = teacher, student, {}, {}
        self.tokens, self.own, self.field, self.words, self.wfield, self.origin = [], [], [], [], [], []

    def word(self, w):
        """(teacher's pieces, student's pieces, the student's piece each piece of the teacher falls into)."""
        got = self.cache.get(w)
        if got is None:
            t, s = self.teacher.pieces(w), self.student.pieces(w)
            own = s if t == s else align(self.teacher.spell(t), self.student.spell(s), s) if UNK not in t + s else [s[0]] * len(t)
            got = self.cache[w] = (t, s, own)
        return got

    def add(self, text, origin, cut=CUT, name=""):
        """Index of text; origin is a bit mask, 0 for texts that never enter the pool.

        name is the split name a document's text starts with, if it is one.
        """
        key = (text, cut)
        i = self.index.get(key)
        if i is None:
            i = len(self.tokens)
            self.index[key] = i
            t, o, f, s, g = [], [], [], [], []
            for part, kind in fields(text, name) if name else [(text, PROSE)]:
                for w in self.teacher.split(part):
                    pieces, words, own = self.word(w)
                    t += pieces
                    o += own
                    f += [kind] * len(pieces)
                    s += words
                    g += [kind] * len(words)
            for to, values, kind in ((self.tokens, t, np.uint16), (self.own, o, np.uint16), (self.field, f, np.uint8),
                                     (self.words, s, np.uint16), (self.wfield, g, np.uint8)):
                to.append(np.array(values[:cut], kind))
            self.origin.append(0)
        self.origin[i] |= origin
        return i

    def arrays(self):
        tok, own = np.concatenate(self.tokens), np.concatenate(self.own)
        differ = np.nonzero(tok != own)[0]
        ends = lambda lists: np.concatenate([[0], np.cumsum([len(x) for x in lists])]).astype(np.uint32)
        return {"tok": tok, "off": ends(self.tokens), "field": np.concatenate(self.field),
                "own_at": np.diff(differ, prepend=0).astype(np.uint32), "own_id": own[differ],
                "wtok": np.concatenate(self.words), "woff": ends(self.words), "wfield": np.concatenate(self.wfield),
                "origin": np.array(self.origin, np.uint32)}


def align(teacher, student, ids):
    """For each of the teacher's pieces, the student's id at the letter where it starts."""
    out, at, i, end = [], 0, 0, len(student[0])
    for piece in teacher:
        while at >= end and i + 1 < len(student):
            i += 1
            end += len(student[i])
        out.append(ids[i])
        at += len(piece)
    return out


def useless(token):
    """Rows no English text needs: reserved ones, and letters of other scripts, which words alone rank."""
    return token.startswith("[unused") or any(ord(c) >= 0x250 and not 0x2000 <= ord(c) < 0x2300 for c in token)


def choose_words(wp, sources, common, rows):
    """Whole words for the student: {word: row}.

    sources is an iterable of (origin, text); common maps everyday words to
    how common they are (10 very, 50 hardly).  Only texts outside the labelled
    sets are counted, so that a left-out set has no part in the choice.
    """
    counts, seen = {}, {}
    for origin, text in sources:
        for w in wp.split(text):
            if w.isascii() and w.isalpha() and 3 <= len(w) <= 18:
                counts[w] = counts.get(w, 0) + 1
                if len(seen.setdefault(w, set())) < 4:
                    seen[w].add(origin)
    free = [i for t, i in sorted(wp.vocab.items(), key=lambda x: x[1]) if useless(t)]
    free += list(range(len(wp.vocab), rows))
    scored = []
    for w in sorted(set(counts) | {w for w, level in common.items() if level <= 20}):
        if len(wp.pieces(w)) < 2:
            continue
        n, level = counts.get(w, 0), common.get(w, 99)
        if level > 50 and (n < 8 or len(seen[w]) < 3):
            continue
        if level > 20 and n < 1:
            continue
        # Everyday words count for more than their share of interface texts says.
        scored.append((-(math.log(1 + n) + {10: 3.0, 20: 1.5, 35: 0.5}.get(level, 0.0)), w))
    chosen = sorted(w for _, w in sorted(scored)[:len(free)])
    print(f"vocabulary: {len(scored)} split words would do, {len(chosen)} chosen for {len(free)} free rows")
    return dict(zip(chosen, free))


def student_vocab(wp, slots, rows):
    lines = [""] * rows
    for t, i in wp.vocab.items():
        lines[i] = t
    for i, t in enumerate(lines):
        if useless(t):
            lines[i] = f"[unused{i}]"
    for w, i in slots.items():
        lines[i] = w
    return [t or f"[unused{i}]" for i, t in enumerate(lines)]


def common_words(folder):
    out = {}
    for level in (10, 20, 35, 40, 50):
        for kind in ("english", "american"):
            with open(os.path.join(folder, f"{kind}-words-{level}.json"), encoding="utf-8") as f:
                for w in json.load(f):
                    out.setdefault(w.lower(), level)
    return out


def load_set(folder, tiny=False):
    corpus = read(os.path.join(folder, "corpus.jsonl"))
    at = {d["id"]: i for i, d in enumerate(corpus)}
    files = {"queries.jsonl": True}
    for extra in ("queries_train.jsonl", "queries_dev.jsonl"):
        if os.path.exists(os.path.join(folder, extra)):
            files[extra] = False
    queries = []
    for name, evaluated in files.items():
        for q in read(os.path.join(folder, name)):
            gold = sorted({at[g] for g in q["gold"] if g in at})
            if gold:
                queries.append((q["query"], gold, evaluated))
    if tiny:
        queries = queries[::max(1, len(queries) // 40)][:40]
        keep = sorted({g for _, gold, _ in queries for g in gold} | set(range(min(30, len(corpus)))))
        to = {old: new for new, old in enumerate(keep)}
        corpus = [corpus[i] for i in keep]
        queries = [(q, [to[g] for g in gold], True) for q, gold, _ in queries]
    return corpus, queries


def params(doc):
    return [split_name(p["name"]) for p in doc.get("parameters") or []]


def bm25(corpus, queries):
    """Sparse BM25 weights of docs and capped term counts of queries, over one vocabulary."""
    vocab, docs, df = {}, [], {}
    for d in corpus:
        counts = {}
        name = terms(split_name(d["name"]))
        for t in name * 2 + terms(d.get("description") or "") + terms(" ".join(params(d))) + terms(d.get("category") or ""):
            counts[t] = counts.get(t, 0) + 1
        docs.append(counts)
        for t in counts:
            df[t] = df.get(t, 0) + 1
    for t in sorted(df):
        vocab[t] = len(vocab)
    n = len(docs)
    lens = [sum(c.values()) for c in docs]
    mean = max(1e-9, sum(lens) / n)
    rows = []
    for c, length in zip(docs, lens):
        rows.append({vocab[t]: math.log(1 + (n - df[t] + 0.5) / (df[t] + 0.5)) * f * (K1 + 1) / (f + K1 * (1 - B + B * length / mean))
                     for t, f in c.items()})
    wanted = []
    for q in queries:
        c = {}
        for t in terms(q):
            if t in vocab:
                c[vocab[t]] = min(2, c.get(vocab[t], 0) + 1)
        wanted.append(c)
    return rows, wanted, len(vocab)


def csr(rows):
    ptr, ind, val = [0], [], []
    for r in rows:
        for k in sorted(r):
            ind.append(k)
            val.append(r[k])
        ptr.append(len(ind))
    return np.array(ptr, np.uint32), np.array(ind, np.uint32), np.array(val, np.float32)


def dense(rows, width):
    m = np.zeros((len(rows), width), np.float32)
    for i, r in enumerate(rows):
        for k, v in r.items():
            m[i, k] = v
    return m


def ndcg5(scores, gold):
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:5]
    dcg = sum(1 / math.log2(r + 2) for r, i in enumerate(order) if i in gold)
    return dcg / sum(1 / math.log2(r + 2) for r in range(min(5, len(gold))))


def twins(corpus):
    ids = {}
    return np.array([ids.setdefault(split_name(d["name"]).lower(), len(ids)) for d in corpus], np.uint16)


def store_set(out, name, corpus, queries, texts, origin, cut, negatives):
    key = name.replace("-", "_")
    doc, nam, des = [], [], []
    for d in corpus:
        desc = d.get("description") or ""
        doc.append(texts.add(doc_text(d["name"], desc, d.get("category") or "", params(d)), origin, cut, split_name(d["name"])))
        nam.append(texts.add(split_name(d["name"]), origin, cut))
        des.append(texts.add(desc, origin, cut) if len(desc.split()) >= 3 else -1)
    out[f"{key}_doc"], out[f"{key}_name"], out[f"{key}_desc"] = (np.array(x, np.int32) for x in (doc, nam, des))
    out[f"{key}_twin"] = twins(corpus)
    out[f"{key}_q"] = np.array([texts.add(q, origin, cut) for q, _, _ in queries], np.int32)
    out[f"{key}_gold"] = np.array([g for _, gold, _ in queries for g in gold], np.uint16)
    out[f"{key}_goff"] = np.cumsum([0] + [len(gold) for _, gold, _ in queries]).astype(np.uint32)
    out[f"{key}_eval"] = np.array([e for _, _, e in queries], bool)
    rows, wanted, width = bm25(corpus, [q for q, _, _ in queries])
    weights = dense(rows, width)
    total, count, hard = 0.0, 0, []
    keep = [i for i, (_, _, e) in enumerate(queries) if e]
    for lo in range(0, len(queries), 1024):
        block = dense(wanted[lo:lo + 1024], width) @ weights.T
        for i in range(block.shape[0]):
            _, gold, evaluated = queries[lo + i]
            if evaluated:
                total += ndcg5(block[i], set(gold))
                count += 1
            if negatives:
                order = np.argsort(-block[i], kind="stable")[:NEGATIVES + len(gold) + 4]
                names = {out[f"{key}_twin"][g] for g in gold}
                picked = [j for j in order if j not in gold and out[f"{key}_twin"][j] not in names and block[i][j] > 0][:NEGATIVES]
                hard.append(picked + [0xFFFF] * (NEGATIVES - len(picked)))
    if negatives:
        out[f"{key}_hard"] = np.array(hard, np.uint16)
    for label, data in (("bw", rows), ("bq", [wanted[i] for i in keep])):
        ptr, ind, val = csr(data)
        out[f"{key}_{label}_ptr"], out[f"{key}_{label}_ind"], out[f"{key}_{label}_val"] = ptr, ind, val.astype(np.float16 if label == "bq" else np.float32)
    out[f"{key}_terms"] = np.array([width])
    print(f"{name}: {len(corpus)} docs, {len(queries)} queries ({count} evaluated), BM25 NDCG@5 {100 * total / count:.1f}")


def operation_pair(op, rng):
    """(query, second query, reworded query, doc) of an operation, or None if it says too little."""
    first, rest = asks.first_part(op["summary"], op["description"])
    request = asks.imperative(first)
    if not 2 <= len(request.split()) <= 40:
        return None
    rest = " ".join(sentences(rest)[:3])[:400]
    q1 = asks.dress(request, rng)
    doc = split_name(op["name"]) + "."
    if rest:
        doc += " " + rest
    if op.get("path") and rng.random() < 0.5:
        doc += " " + split_name(op["path"].split("#")[0]) + "."
    doc += f" Category: {op['tag'] or op['title']}."
    if op["parameters"]:
        doc += " Parameters: " + ", ".join(split_name(p) for p in op["parameters"][:12]) + "."
    pick = rng.random()
    plain = [split_name(p).lower() for p in op["parameters"] if 2 < len(p) < 25 and not p.lower().startswith(("x-", "$"))]
    if pick < 0.4:
        q2 = asks.dress(request, rng) + rng.choice((" in ", " with ", " on ", " using ")) + op["title"]
    elif pick < 0.7 and len(plain) >= 2:
        q2 = asks.dress(request, rng) + " with " + " and ".join(rng.sample(plain, 2))
    else:
        q2 = asks.name_words(op["name"])
    q3 = asks.dress(asks.questions(asks.reworded(request, rng), rng), rng, 0.6)
    return q1, q2, q3, doc


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--bench", required=True)
    ap.add_argument("--gathered", required=True)
    ap.add_argument("--vocab", required=True)
    ap.add_argument("--out", required=True)
    ap.add_argument("--words", required=True, help="folder of english-words-10.json and the like")
    ap.add_argument("--rows", type=int, default=31_744, help="rows of the student's table; with its vocabulary the file stays below 9 MB")
    ap.add_argument("--free", type=int, default=210_000, help="at most this many free sentences")
    ap.add_argument("--tiny", action="store_true", help="a few rows of everything, to try the code")
    a = ap.parse_args()
    wp, out = WordPiece(a.vocab), {}
    operations = read(os.path.join(a.bench, "train", "openapi", "operations.jsonl"))
    with gzip.open(a.gathered, "rt", encoding="utf-8") as f:
        gathered = [json.loads(line) for line in f]

    def sources():
        for op in operations:
            yield op["api"], " ".join([split_name(op["name"]), op["summary"], op["description"]] + [split_name(p) for p in op["parameters"]])
        for g in gathered:
            yield g.get("group", "free"), g["s"] if "s" in g else f"{split_name(g['name'])} {g['first']} {g['rest']}"
    slots = choose_words(wp, sources(), common_words(a.words), a.rows)
    os.makedirs(a.out, exist_ok=True)
    with open(os.path.join(a.out, "student-vocab.txt"), "w", encoding="utf-8") as f:
        f.write("\n".join(student_vocab(wp, slots, a.rows)) + "\n")
    texts = Texts(wp, WordPiece(os.path.join(a.out, "student-vocab.txt")))
    loaded = {s: load_set(os.path.join(a.bench, "dev", s), a.tiny) for s in DEV}
    dev_runs, set_runs = set(), set()
    for corpus, queries in loaded.values():
        for d in corpus:
            dev_runs.update(runs(split_name(d["name"]) + " " + (d.get("description") or "")))
        for q, _, _ in queries:
            dev_runs.update(runs(q))
    for q in read(os.path.join(a.bench, "dev", "acebench-en", "queries_ctx.jsonl")):
        dev_runs.update(runs(q["query"]))
    shares_dev = lambda t: not dev_runs.isdisjoint(runs(t))

    for i, s in enumerate(TRAIN):
        corpus, queries = load_set(os.path.join(a.bench, "train", s), a.tiny)
        near = sum(shares_dev((d.get("description") or "")) for d in corpus)
        kept = [q for q in queries if not shares_dev(q[0])]
        print(f"{s}: {len(queries) - len(kept)} queries and {near} descriptions share a run with dev; both are left out")
        for d in corpus:
            if shares_dev(split_name(d["name"]) + " " + (d.get("description") or "")):
                d["description"] = ""
            set_runs.update(runs(d.get("description") or ""))
        for q, _, _ in queries:
            set_runs.update(runs(q))
        # One origin bit per set: a fold leaves out every text that carries the bit of a left-out set.
        store_set(out, s, corpus, kept, texts, 1 << i, CUT, True)
    set_runs |= dev_runs
    clean = lambda t: set_runs.isdisjoint(runs(t))

    rng, rows, apis, dropped = random.Random(11), [], {}, 0
    for op in operations[:300 if a.tiny else None]:
        if any(w in (op["api"] + op["title"]).lower() for w in ("spotify", "tmdb", "themoviedb")):
            continue
        pair = operation_pair(op, rng)
        if pair is None:
            continue
        if not all(clean(t) for t in pair):
            dropped += 1
            continue
        rows.append([texts.add(t, 1 << 16) for t in pair[:3]] + [texts.add(pair[3], 1 << 16, CUT, split_name(op["name"]))] + [apis.setdefault(op["api"], len(apis))])
    out["openapi"] = np.array(rows, np.int32)
    print(f"openapi: {len(rows)} operations of {len(apis)} APIs, {dropped} left out for a shared run")

    free, pairs, groups, rng = [], [], {}, random.Random(12)
    for item in gathered:
        if a.tiny and (len(free) >= 300 if "s" in item else len(pairs) >= 100):
            continue
        if "s" in item:
            free.append(item["s"])
            continue
        request = asks.imperative(item["first"])
        doc = split_name(item["name"]) + "."
        if item["rest"]:
            doc += " " + item["rest"]
        doc += " Category: " + split_name(item["group"].split(" ", 1)[1].replace("@", "")) + "."
        if item["params"]:
            doc += " Parameters: " + ", ".join(split_name(p) for p in item["params"]) + "."
        q = asks.dress(request, rng)
        q3 = asks.dress(asks.questions(asks.reworded(request, rng), rng), rng, 0.6)
        if 2 <= len(request.split()) <= 30 and clean(q) and clean(doc):
            pairs.append([texts.add(q, 1 << 17), texts.add(q3, 1 << 17), texts.add(doc, 1 << 17, CUT, split_name(item["name"])),
                          groups.setdefault(item["group"], len(groups))])
    out["extra"] = np.array(pairs, np.int32).reshape(-1, 4)
    free = [s for s in free if clean(s)]
    random.Random(13).shuffle(free)
    for s in free[:a.free]:
        texts.add(s, 1 << 18)
    # Every whole word of the student's vocabulary as a text of its own: rows that texts
    # seldom touch must not be left behind while the others move.
    alone = [t for t in wp.vocab if t.isascii() and t.isalpha() and len(t) > 2] + list(slots)
    for w in sorted(alone)[::40 if a.tiny else 1]:
        texts.add(w, 1 << 19)
    print(f"free: {min(len(free), a.free)} sentences of {len(free)}; extra: {len(pairs)} pairs of {len(groups)} packages")

    for s in DEV:
        store_set(out, s, *loaded[s], texts, 0, EVAL_CUT, False)
    for i, s in enumerate(TRAIN):  # evaluation of a left-out set reads longer texts than training does
        corpus, queries = load_set(os.path.join(a.bench, "train", s), a.tiny)
        key = s.replace("-", "_")
        out[f"{key}_edoc"] = np.array([texts.add(doc_text(d["name"], d.get("description") or "", d.get("category") or "", params(d)),
                                                 0, EVAL_CUT, split_name(d["name"]))
                                       for d in corpus], np.int32)
    # What nothing answers: read by no training, only encoded for the fit of the gate.
    nothing = read(os.path.join(a.bench, "train", "clinc150", "oos.jsonl"))
    out["nothing"] = np.array([texts.add(q["query"], 0, EVAL_CUT) for q in nothing], np.int32)
    # What the rows of reader.py's vectors are of, for the fit of the ranker.
    with open(os.path.join(a.out, "texts.jsonl"), "w", encoding="utf-8") as f:
        for s in TRAIN + DEV:
            corpus, queries = loaded[s] if s in DEV else load_set(os.path.join(a.bench, "train", s), a.tiny)
            for d in corpus:
                f.write(json.dumps({"set": s, "id": d["id"]}) + "\n")
            for q, _, evaluated in queries:
                if evaluated and (s in DEV or not shares_dev(q)):
                    f.write(json.dumps({"set": s, "query": q}) + "\n")
        for q in nothing:
            f.write(json.dumps({"query": q["query"]}) + "\n")
    out.update(texts.arrays())
    path = os.path.join(a.out, "data.npz")
    np.savez_compressed(path, rows=np.array([a.rows]), **out)
    n = len(texts.tokens)
    pool = int((out["origin"] > 0).sum())
    print(f"{path}: {os.path.getsize(path) / 2**20:.1f} MiB, {n} texts, {pool} in the pool, {len(out['tok'])} tokens")


if __name__ == "__main__":
    main()
