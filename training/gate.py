#!/usr/bin/env python3
"""Fit the last step of the gate: whether anything fits, given what there is elsewhere.

    KEN_BENCH=DIR python3 training/gate.py --work .train/gate

One command from data to weights. It asks `scripts/fit cases` for the
cases (what the search says of each message asked of each catalog, and the second
reader's vectors), chooses the capabilities that stand for what there is
elsewhere, fits four weights, and writes into internal/find/ranking:

    elsewhere.bin           the vectors of the chosen, 384 bytes each
    elsewhere_weights.go    the weights

Every table is of gates that were fitted without the family of the set that is
asked, with what is elsewhere taken of other families than those of the catalog
and of the message. The dev sets are measured and never fitted or chosen by.
Seeds are fixed. Needs numpy and Go.
"""
import argparse
import json
import os
import subprocess

import numpy as np

CHOSEN = 1024   # capabilities that stand for all others
NEAREST = 16    # of them, whose mean similarity counts
MOST = 400      # capabilities of a catalog: the cases have no larger ones
USUAL = 150     # capabilities of a catalog: below, the size counts in the chance of the first hit
EMPTY = 0.004   # share of what is found that the usual floor of 0.3 may lose: as much as before this step
KINDS = ["own", "removed", "foreign", "out of scope", "talk", "small", "small removed", "small foreign", "small out", "small talk"]
WEIGHTS = dict(zip(KINDS, [1, .3, .3, .5, .15, 1, .4, .4, .2, .15]))
NAMES = ["base", "similarity", "elsewhere", "count"]
SIGNS = np.array([1, 1, -1, 0])  # what a weight may be; 0: anything
SIZES = [(10, 25), (26, 60), (61, 150), (151, 400)]


class Cases:
    def __init__(self, work):
        rows = [json.loads(l) for l in open(os.path.join(work, "cases.jsonl"))]
        take = lambda k: np.array([r[k] for r in rows])
        self.kind, self.set, self.family, self.by = take("kind"), take("set"), take("family"), take("from")
        self.n, self.logit = take("n").astype(float), take("logit")
        self.hit = np.array([r["chance"][0] for r in rows])  # of the first hit, in log-odds
        self.right, self.first = take("right"), take("first")
        self.similarity = np.array([r["e"][0] for r in rows])
        self.answerable = np.isin(self.kind, ["own", "small"])
        self.dev = self.family == "dev"
        queries, vectors = zip(*((r["query"], unit(r["v"])) for r in map(json.loads, open(os.path.join(work, "messages.jsonl")))))
        at = {q: i for i, q in enumerate(queries)}
        self.message, self.messages = np.array([at[r["query"]] for r in rows]), np.array(vectors)

    def elsewhere(self, vectors, families):
        """The mean similarity of the nearest that are of neither family."""
        s, out = self.messages @ vectors.T, np.zeros(len(self.n))
        for a in np.unique(self.family):
            for b in np.unique(self.by[self.family == a]):
                m = (self.family == a) & (self.by == b)
                t = s[:, (families != a) & (families != b)]
                out[m] = np.partition(t, t.shape[1] - NEAREST, axis=1)[:, -NEAREST:].mean(1)[self.message[m]]
        return out

    def weights(self, mask):
        w = np.zeros(len(self.n))
        for s in np.unique(self.set[mask]):
            for k in KINDS:
                m = mask & (self.set == s) & (self.kind == k)
                if m.any():
                    w[m] = WEIGHTS[k] / m.sum()
        return w

    def lost(self, score, mask, floor):
        """The share of what is found that lies below a floor, each set counting the same."""
        m = mask & self.answerable & self.right
        return np.mean([(score[m & (self.set == s)] < floor).mean() for s in np.unique(self.set[m])])

    def floor(self, score, mask, share):
        tried = np.sort(score[mask & self.answerable & self.right])
        low, high = 0, len(tried) - 1
        while low < high:
            mid = (low + high + 1) // 2
            low, high = (mid, high) if self.lost(score, mask, tried[mid]) <= share else (low, mid - 1)
        return tried[low]

    def held(self, score, mask, floor, kind):
        m = mask & (self.kind == kind)
        return 100 * np.mean([(score[m & (self.set == s)] < floor).mean() for s in np.unique(self.set[m])]) if m.any() else float("nan")


def unit(v):
    v = np.array(v, np.float32)
    return v / max(np.linalg.norm(v), 1e-9)


def fit(x, y, w, steps=400, decay=3e-4):
    """A logistic regression whose weights keep their signs."""
    w = w / w.sum()
    mean = w @ x
    dev = np.sqrt(w @ (x - mean) ** 2) + 1e-6
    z, at = (x - mean) / dev, np.zeros(x.shape[1] + 1)
    m, v = at.copy(), at.copy()
    for t in range(1, steps + 1):
        wrong = (1 / (1 + np.exp(-(z @ at[:-1] + at[-1]))) - y) * w
        g = np.append(z.T @ wrong + decay * at[:-1], wrong.sum())
        m, v = .9 * m + .1 * g, .99 * v + .01 * g * g
        at -= .1 * (1 - t / (steps + 1)) * (m / (1 - .9 ** t)) / (np.sqrt(v / (1 - .99 ** t)) + 1e-8)
        at[:-1] = np.where(SIGNS * at[:-1] < 0, 0, at[:-1])
    return at[:-1] / dev, at[-1] - (at[:-1] * mean / dev).sum()


def sized(c):
    """What is added to the chance of the first hit in catalogs that are smaller than usual ones."""
    small = np.maximum(0, np.log(USUAL / c.n)) / 4
    return np.stack([small, c.hit * small], 1)


def chances(c, mask):
    """Fit the chance of the first hit of answerable messages."""
    each = np.zeros(len(c.n))
    for s in np.unique(c.set[mask]):
        for k in ("own", "small"):
            m = mask & (c.set == s) & (c.kind == k)
            each[m] = 1 / m.sum()
    m = each > 0
    x, y, w, at = sized(c)[m], c.first[m].astype(float), each[m] / each[m].sum(), np.zeros(2)
    for _ in range(50):  # Newton's method
        p = 1 / (1 + np.exp(-(c.hit[m] + x @ at)))
        at -= np.linalg.solve((x * (w * p * (1 - p))[:, None]).T @ x + 1e-6 * np.eye(2), x.T @ ((p - y) * w))
    return at


def ece(c, score, m):
    """How far scores are from the share that is right, in ten bins."""
    bins, s, r = np.minimum((score[m] * 10).astype(int), 9), score[m], c.first[m]
    return sum(abs(s[bins == b].sum() - r[bins == b].sum()) for b in range(10)) / max(m.sum(), 1)


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--work", required=True)
    ap.add_argument("--have", action="store_true", help="the cases are there already")
    a = ap.parse_args()
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    package = os.path.join(here, "internal", "find", "ranking")
    work = os.path.abspath(a.work)
    os.makedirs(work, exist_ok=True)
    if not a.have:
        subprocess.run(["go", "run", "-tags", "fit", "./scripts/fit", "cases", work], cwd=here, check=True)

    c = Cases(work)
    rows = [json.loads(l) for l in open(os.path.join(work, "elsewhere.jsonl"))]
    rows = [r for r in rows if any(r["v"])]
    chosen = [rows[i] for i in np.random.default_rng(0).permutation(len(rows))[:CHOSEN]]
    families = np.array([r["family"] for r in chosen])
    elsewhere = c.elsewhere(np.array([unit(r["v"]) for r in chosen]), families)
    x = np.stack([c.logit, c.similarity, elsewhere, np.log(np.minimum(c.n, MOST) + 1) / 8], 1)
    y = c.right.astype(float)

    new, train = np.zeros(len(y)), ~c.dev
    fitted = train & (c.by != "dev")
    for f in np.unique(c.family[train]):
        others = fitted & (c.family != f) & (c.by != f)
        w, b = fit(x[others], y[others], c.weights(others)[others])
        new[c.family == f] = x[c.family == f] @ w + b
    w, b = fit(x[fitted], y[fitted], c.weights(fitted)[fitted])
    new[c.dev] = x[c.dev] @ w + b
    # The usual floor leaves hardly any answerable message empty.
    shift = np.log(.3 / .7) - c.floor(new, train, EMPTY)
    new, b = new + shift, b + shift

    said = {"before": c.hit, "now": np.zeros(len(y))}
    for f in [*np.unique(c.family[train]), "dev"]:
        cw = chances(c, train & (c.family != f))
        m = c.family == f
        said["now"][m] = c.hit[m] + sized(c)[m] @ cw
    cw = chances(c, train)

    servers = np.isin(c.family, ["npm-mcp", "toucan"])
    print("held back in per cent, mean over sets, at the floor that loses 2 % of what is found (own and small: answerable, less is better)\n")
    print("| sets | gate | " + " | ".join(KINDS) + " |\n|" + "---|" * (len(KINDS) + 2))
    for name, mask in (("training, left out", train & ~servers), ("real servers, left out", servers), ("dev", c.dev)):
        for gate, score in (("before", c.logit), ("now", new)):
            f = c.floor(score, mask, .02)
            print(f"| {name} | {gate} | " + " | ".join(f"{c.held(score, mask, f, k):.0f}" for k in KINDS) + " |")
    print("\nat the floors that are used; not shown: what is found and lies below 0.3, or below 0.6 and is not the first hit\n\n| sets | gate | floor | lost | not shown | " + " | ".join(KINDS) + " |\n|" + "---|" * (len(KINDS) + 5))
    for name, mask in (("training, left out", train & ~servers), ("real servers, left out", servers), ("dev", c.dev)):
        for gate, score in (("before", c.logit), ("now", new)):
            for p in (.3, .6):
                f = np.log(p / (1 - p))
                gone = np.where(c.first & (score > np.log(.3 / .7)), np.inf, score)
                print(f"| {name} | {gate} | {p} | {100 * c.lost(score, mask, f):.1f} | {100 * c.lost(gone, mask, f):.1f} | " + " | ".join(f"{c.held(score, mask, f, k):.0f}" for k in KINDS) + " |")
    print("\nthe frontier: what share is lost where so many are held back\n\n| sets | gate | removed 35 | foreign 85 | out of scope 65 | small removed 60 | small foreign 60 |\n|---|---|---|---|---|---|---|")
    for name, mask in (("training, left out", train & ~servers), ("real servers, left out", servers), ("dev", c.dev)):
        for gate, score in (("before", c.logit), ("now", new)):
            cells = []
            for kind, want in (("removed", 35), ("foreign", 85), ("out of scope", 65), ("small removed", 60), ("small foreign", 60)):
                m = mask & (c.kind == kind)
                if not m.any():
                    cells.append("–")
                    continue
                tried = np.sort(score[m])
                f = next((t for t in tried[::5] if c.held(score, mask, t, kind) >= want), tried[-1])
                cells.append(f"{100 * c.lost(score, mask, f):.1f}")
            print(f"| {name} | {gate} | " + " | ".join(cells) + " |")
    print("\nby the size of the catalog, at a floor of its own for all sets of the row that loses 2 %; calibration error of the first hit\n")
    print("| sets | capabilities | gate | removed | foreign | talk | calibration error |\n|---|---|---|---|---|---|---|")
    for name, mask in (("training and servers, left out", train), ("dev", c.dev)):
        for gate, score in (("before", c.logit), ("now", new)):
            f = c.floor(score, mask, .02)
            for low, high in SIZES:
                m = mask & (c.n >= low) & (c.n <= high)
                part = lambda *kinds: 100 * (score[m & np.isin(c.kind, kinds)] < f).mean()
                chance = 1 / (1 + np.exp(-np.minimum(said[gate], score)))
                print(f"| {name} | {low}–{high} | {gate} | {part('removed', 'small removed'):.0f} | {part('foreign', 'small foreign'):.0f} | {part('talk', 'small talk'):.0f} | {ece(c, chance, m & c.answerable):.3f} |")

    body = b"".join(np.array(r["v"], np.int8).tobytes() for r in chosen)
    with open(os.path.join(package, "elsewhere.bin"), "wb") as f:
        f.write(body)
    with open(os.path.join(package, "elsewhere_weights.go"), "w") as f:
        f.write("package ranking\n\n// Made by training/gate.py.\nvar elsewhereWeights = [elsewhereFeatures]float64{\n")
        f.write(f"\telsewhereBias: {b:.4g},\n" + "".join(f"\telsewhere{n.capitalize()}: {v:.4g},\n" for n, v in zip(NAMES, w)) + "}\n\n")
        f.write("var sizedWeights = [sizedFeatures]float64{\n")
        f.write("".join(f"\tsized{n}: {v:.4g},\n" for n, v in zip(["Small", "Both"], cw)) + "}\n")
    subprocess.run(["gofmt", "-w", os.path.join(package, "elsewhere_weights.go")], check=True)
    print("\nweights:", dict(zip(["bias"] + NAMES, np.round([b, *w], 3))), "chances:", np.round(cw, 3))


if __name__ == "__main__":
    main()
