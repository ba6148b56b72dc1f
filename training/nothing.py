#!/usr/bin/env python3
"""How well a reader's similarities tell that nothing fits.

    nothing.py --data DIR --work DIR --variants NAME,...

After reader.py: the vectors of each split are asked about sets which it did not see. A
catalog has 10 to 400 capabilities of the set, or of the set and of others; a message
is asked with its answer there, with the answer and its near twins removed, and of a
catalog of another family. Prints what is held back at the floor that loses 2 % of what is
found, by similarity alone and with what there is elsewhere and the size.
"""
import argparse
import os

import numpy as np
import torch

import teacher as te
import train
from data import DEV, FOLDS, TRAIN, Data, left_out

NEAREST, CHOSEN = 16, 1024
# Kinds of cases: 0 to 2 answerable, removed, foreign; 3 to 5 the same of small catalogs.
OUT = 6  # clinc150's out of scope


def family(name):
    return "dev" if name in DEV else next(i for i, f in enumerate(FOLDS) if name in f)


def cases(data, vec, raw, split, seed=1):
    """Rows (set, kind, similarity, elsewhere, log of the size, right) of the sets that split left out, and of dev."""
    rng = np.random.RandomState(seed)
    there = vec[rng.permutation(data.openapi[data.allowed(data.openapi[:, -2], split)][:, -2])[:CHOSEN]].float()
    names = list(left_out(split)) + list(DEV)
    rows = []
    for name in names:
        s = data.sets[name]
        others = [data.sets[o] for o in TRAIN + DEV if family(o) != family(name)]
        d, r = vec[s.edoc].float(), raw[s.edoc].float()
        asked = rng.permutation(len(s.eval))[:600]
        for small in (0, 1):
            for i in asked:
                q = s.q[s.eval[i]]
                gold = s.golds[s.eval[i]]
                gold = gold[gold >= 0]
                n = int(np.exp(rng.uniform(np.log(10), np.log(200)))) if small else min(400, len(s.edoc))
                mine = rng.permutation(len(s.edoc))[:n if not small else max(3, n // 2)]
                mine = np.unique(np.concatenate([mine, gold]))
                docs, raws = d[mine], r[mine]
                if small:
                    o = others[rng.randint(len(others))]
                    at = rng.randint(max(1, len(o.edoc) - n // 2))
                    more = o.edoc[at:at + n // 2]
                    docs, raws = torch.cat([docs, vec[more].float()]), torch.cat([raws, raw[more].float()])
                is_gold = torch.zeros(len(docs), dtype=torch.bool, device=docs.device)
                is_gold[:len(mine)] = torch.from_numpy(np.isin(mine, gold)).to(docs.device)
                near = (raws @ raws[is_gold].T > 0.85).any(1) | is_gold
                f = others[rng.randint(len(others))]
                foreign = f.q[f.eval[rng.randint(len(f.eval))]]
                m = vec[[q, foreign]].float()
                sim = m @ docs.T
                away = (m @ there.T).topk(NEAREST, 1).values.mean(1)
                size = np.log(len(docs))
                best = sim[0].argmax()
                rows.append((name, 3 * small, sim[0, best].item(), away[0].item(), size, bool(is_gold[best])))
                rows.append((name, 3 * small + 1, sim[0].masked_fill(near, -1).max().item(), away[0].item(), size, False))
                rows.append((name, 3 * small + 2, sim[1].max().item(), away[1].item(), size, False))
        if name == "clinc150":
            m = vec[data.nothing].float()
            best, away = (m @ d.T).max(1).values.tolist(), (m @ there.T).topk(NEAREST, 1).values.mean(1).tolist()
            rows += [(name, OUT, b, e, np.log(len(d)), False) for b, e in zip(best, away)]
    return rows


def floor(score, rows, share=0.02):
    found = {n: np.sort(score[(rows["set"] == n) & np.isin(rows["kind"], (0, 3)) & rows["right"]]) for n in np.unique(rows["set"])}
    tried = np.sort(np.concatenate(list(found.values())))
    low, high = 0, len(tried) - 1
    while low < high:
        mid = (low + high + 1) // 2
        lost = np.mean([(v < tried[mid]).mean() for v in found.values()])
        low, high = (mid, high) if lost <= share else (low, mid - 1)
    return tried[low]


def show(label, rows, score):
    at = floor(score, rows)
    out = []
    for kind in (1, 2, 4, 5):
        out.append(100 * np.mean([(score[(rows["set"] == n) & (rows["kind"] == kind)] < at).mean() for n in np.unique(rows["set"])]))
    out_of_scope = score[rows["kind"] == OUT]
    if len(out_of_scope):
        found = np.sort(score[(rows["set"] == "clinc150") & (rows["kind"] == 0) & rows["right"]])
        label += f" (out of scope, at clinc150's own floor: {100 * (out_of_scope < found[int(0.02 * len(found))]).mean():.0f})"
    print(f"{label:44s} removed {out[0]:.0f} foreign {out[1]:.0f} small removed {out[2]:.0f} small foreign {out[3]:.0f}", flush=True)


def fit(x, y, w):
    mean, dev = x.mean(0), x.std(0) + 1e-6
    z = np.concatenate([(x - mean) / dev, np.ones((len(x), 1))], 1)
    b = np.zeros(z.shape[1])
    for _ in range(30):
        p = 1 / (1 + np.exp(-z @ b))
        h = (z * (w * p * (1 - p))[:, None]).T @ z + 1e-6 * np.eye(len(b))
        b -= np.linalg.solve(h, z.T @ (w * (p - y)))
    return b[:-1] / dev


def table(rows):
    kinds = [("set", "U20"), ("kind", int), ("sim", float), ("away", float), ("size", float), ("right", bool)]
    return np.array(rows, dtype=kinds)


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--data", required=True)
    ap.add_argument("--work", required=True)
    ap.add_argument("--variants", required=True)
    ap.add_argument("--splits", default="fold0,fold1,fold2,fold3,full")
    a = ap.parse_args()
    data = Data(os.path.join(a.data, "data.npz"), train.device())
    raw = train.load(os.path.join(a.work, "minilm.npy"), data.device)
    for variant in a.variants.split(","):
        left, dev = [], []
        for split in a.splits.split(","):
            vec = train.load(os.path.join(a.work, "reader", f"all-{variant}-{split}.npy"), data.device)
            got = cases(data, vec, raw, split)
            left += [r for r in got if r[0] not in DEV]
            if split == a.splits.split(",")[-1]:
                dev += [r for r in got if r[0] in DEV]
        left, dev = table(left), table(dev)
        x = np.stack([left["sim"], left["away"], left["size"]], 1)
        ok = np.isin(left["kind"], (0, 3))
        x, ok, left_w = x[left["kind"] != OUT], ok[left["kind"] != OUT], left[left["kind"] != OUT]
        w = np.where(ok, 1.0, 0.5) * (~ok | left_w["right"])
        b = fit(x, ok.astype(float), w)
        b0 = fit(x[:, [0, 2]], ok.astype(float), w)
        for label, rows in (("left out", left), ("dev", dev)):
            show(f"{variant}, {label}, similarity", rows, rows["sim"])
            show(f"{variant}, {label}, similarity, size", rows, rows["sim"] * b0[0] + rows["size"] * b0[1])
            show(f"{variant}, {label}, and elsewhere", rows, rows["sim"] * b[0] + rows["away"] * b[1] + rows["size"] * b[2])


if __name__ == "__main__":
    main()
