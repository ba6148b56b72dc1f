"""The student: one row per token, summed and normalised."""
import math
import time

import numpy as np
import torch
import torch.nn.functional as F

from data import ALONE, PAD, TRAIN, draw_docs, left_out, listwise, set_weights
from teacher import choose_query, in_batch


class Student:
    """Rows, and the weights a token gets by its field and by standing there again."""

    def __init__(self, table, opt):
        # The last row stands for padding and stays zero.
        self.rows, dim = table.shape
        self.table = torch.cat([table, torch.zeros(1, dim, device=table.device)]).requires_grad_(True)
        self.mode = opt["vocab"]
        fixed = [float(x) for x in opt["fields"].split(",")] if opt["fields"] != "learn" else [1.0] * 4
        self.fields = torch.tensor(fixed, device=table.device).log().requires_grad_(opt["fields"] == "learn")
        self.repeat = opt["repeat"]

    def parameters(self):
        return [self.table] + ([self.fields] if self.fields.requires_grad else [])

    def weights(self, view, idx, width):
        # Prose has weight 1: only the ratios matter, since vectors are normalised.
        w = (self.fields - self.fields[0]).exp()[view.kinds[idx, :width].long()]
        if self.repeat != 1:
            w = torch.where(view.again[idx, :width] > 0, self.repeat * w, w)
        return w

    def raw(self, data, idx, cut=128, drop=0.0, gen=None):
        view = data.views[self.mode]
        width = max(1, int(view.lens[idx].max().clamp(max=cut)))
        ids = view.ids[idx, :width].long()
        ids = ids.masked_fill(ids == PAD, self.rows)
        if drop:
            ids = ids.masked_fill(torch.rand(ids.shape, generator=gen, device=ids.device) < drop, self.rows)
        return F.embedding_bag(ids, self.table, mode="sum", padding_idx=self.rows, per_sample_weights=self.weights(view, idx, width))

    def vectors(self, data, idx, cut=128, drop=0.0, gen=None):
        return F.normalize(self.raw(data, idx, cut, drop, gen), dim=-1, eps=1e-6)


def quantise(table):
    """(int8 rows, float32 scale per row): abs-max / 127."""
    scale = table.abs().amax(1) / 127
    q = torch.round(table / scale.clamp(min=1e-12)[:, None]).clamp(-127, 127).to(torch.int8)
    return q, scale


def init_table(data, split, sums, count, single, dim, sif, scale):
    """Contextual mean states, shrunk to single-token states, to dim axes, down-weighted by frequency.

    Returns the rows, the 384 x dim axes and the share of each token in the pool.
    """
    keep = [i for i, n in enumerate(TRAIN + ("rest",)) if n not in left_out(split)]
    total, n = sums[keep].sum(0), count[keep].sum(0)
    rows = (total + 8 * single) / (n + 8)[:, None]
    rows = rows - rows.mean(0)
    cov = (rows.T @ rows).double()
    _, vecs = torch.linalg.eigh(cov.cpu())
    axes = vecs.flip(1)[:, :dim].float().to(rows.device)
    # Signs are fixed so that another library's decomposition gives the same rows.
    axes = axes * torch.sign(axes.gather(0, axes.abs().argmax(0, keepdim=True)))
    p = n / n.sum()
    return scale * (rows @ axes) * (sif / (sif + p))[:, None], axes, n


def kmeans(x, k, rounds, gen):
    """Cluster of each row of x (unit vectors), by cosine."""
    k = min(k, len(x) // 4)
    centres = x[torch.randperm(len(x), generator=gen, device=x.device)[:k]].float()
    for r in range(rounds):
        near = torch.cat([(b.float() @ centres.T).argmax(1) for b in x.split(32768)])
        if r + 1 == rounds:
            return near
        order = torch.argsort(near, stable=True)
        bounds = torch.searchsorted(near[order], torch.arange(k + 1, device=x.device))
        # Prefix sums in float64, so that the result does not depend on the order of additions.
        new = torch.zeros(k, x.shape[1], device=x.device)
        lo, hi = bounds[:-1].tolist(), bounds[1:].tolist()
        for c in range(k):
            new[c] = x[order[lo[c]:hi[c]]].float().sum(0) if hi[c] > lo[c] else centres[c]
        centres = F.normalize(new, dim=-1)


class Batches:
    """Draws pool batches: at random, and in runs of neighbours by cluster."""

    def __init__(self, pool, near, opt, gen):
        self.pool, self.gen, self.size = pool, gen, min(opt["batch"], len(pool))
        shuffled = torch.randperm(len(pool), generator=gen, device=pool.device)
        self.sorted = pool[shuffled[torch.argsort(near[shuffled], stable=True)]]

    def take(self, step):
        if step % 2 == 0:
            at = torch.randint(len(self.pool), (self.size,), generator=self.gen, device=self.pool.device)
            return torch.unique(self.pool[at])
        run = 64
        starts = torch.randint(max(1, len(self.sorted) - run), (max(1, self.size // run),), generator=self.gen, device=self.pool.device)
        at = (starts[:, None] + torch.arange(run, device=self.pool.device)[None]).flatten().clamp(max=len(self.sorted) - 1)
        return torch.unique(self.sorted[at])


def kl_rows(student, target):
    """KL from target probabilities to the student's softmax, mean over rows."""
    lp = F.log_softmax(student, -1)
    return (target * (target.clamp(min=1e-9).log() - lp)).sum(-1).mean()


class Teachers:
    """Vectors of teacher 1 (gte, usually fine-tuned) and teacher 2 (MiniLM), raw and centred on the pool."""

    def __init__(self, one, two, pool, axes, opt):
        self.one, self.two, self.opt = one, two, opt
        self.mean1, self.mean2 = one[pool].float().mean(0), two[pool].float().mean(0)
        self.axes = axes

    def centred(self, idx):
        return (F.normalize(self.one[idx].float() - self.mean1, dim=-1), F.normalize(self.two[idx].float() - self.mean2, dim=-1))

    def similar(self, idx):
        """Mean of the centred cosines among idx."""
        a, b = self.centred(idx)
        w = self.opt["second"]
        return (1 - w) * (a @ a.T) + w * (b @ b.T)

    def target(self, idx):
        a, _ = self.centred(idx)
        return F.normalize(a @ self.axes, dim=-1)

    def answers(self, q, d, hide):
        """Mean of the teachers' softmaxes of queries q over documents d."""
        w, probs = self.opt["second"], 0
        for vec, scale, weight in ((self.one, self.opt["scale1"], 1 - w), (self.two, 20, w)):
            logits = scale * vec[q].float() @ vec[d].float().T
            if hide is not None:
                logits = logits.masked_fill(hide, -1e4)
            probs = probs + weight * torch.softmax(logits, -1)
        return probs


def train(data, split, opt, sums, count, single, one, two, hard, kept, log=print):
    """Distil a student for split; returns it and the token counts of its pool.

    kept carries the clusters of the pool from one call to the next with the
    same teacher and pool.
    """
    device, steps = data.device, opt["steps"]
    gen = torch.Generator(device=device).manual_seed(100 + opt["seed"])
    rng = np.random.RandomState(200 + opt["seed"])
    pool = data.pool(split, 0xFFFFFFFF if opt["alone"] else 0xFFFFFFFF ^ ALONE)
    table, axes, seen_tokens = init_table(data, split, sums, count, single, opt["dim"], opt["sif"], opt["init_scale"])
    student = Student(table, opt)
    teachers = Teachers(one, two, pool, axes, opt)
    if "clusters" not in kept:
        kept["clusters"] = kmeans(one[pool], opt["clusters"], 8, torch.Generator(device=device).manual_seed(7))
    batches = Batches(pool, kept["clusters"], opt, gen)
    names, weights = set_weights(data, split)
    pairs, extra = data.rows(data.openapi, split), data.rows(data.extra, split)
    ready = {n: torch.nonzero(data.allowed(data.sets[n].q, split)).flatten() for n in names}
    titles = torch.cat([torch.stack([data.sets[n].names, data.sets[n].desc], 1)[data.sets[n].desc >= 0] for n in names])
    titles = titles[data.allowed(titles, split).all(1)]
    adam = torch.optim.Adam([{"params": [student.table], "rate": 1.0}] +
                            ([{"params": [student.fields], "rate": 2.0}] if student.fields.requires_grad else []), lr=1.0)
    warm, scale, start = max(1, int(0.08 * steps)), opt["scale"], time.time()
    shown = {}
    for step in range(steps):
        lr = opt["lr"] * (min(1, (step + 1) / warm) if step < warm else 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, steps - warm))))
        for g in adam.param_groups:
            g["lr"] = lr * g["rate"]
        mix = batches.take(step)
        s = data.sets[names[rng.choice(len(names), p=weights)]]
        picked = ready[s.name][torch.randint(len(ready[s.name]), (opt["queries"],), generator=gen, device=device)]
        docs = draw_docs(s, picked, hard[s.name], 5, 384, 800, gen)
        groups = [mix, s.q[picked], s.doc[docs]]
        tables = []
        for rows, w in ((pairs, opt["w_openapi"]), (extra, opt["w_extra"])):
            if w > 0 and len(rows):
                run = min(12, len(rows))
                starts = torch.randint(len(rows) - run + 1, (opt["runs"],), generator=gen, device=device)
                some = rows[torch.unique((starts[:, None] + torch.arange(run, device=device)[None]).flatten())]
                q, d = some[:, choose_query(rows.shape[1], opt["reworded"], rng)], some[:, -2]
                tables.append((q, d, w, opt["w_pair_kl"] * w))
        some = titles[torch.randint(len(titles), (256,), generator=gen, device=device)]
        tables.append((some[:, 0], some[:, 1], opt["w_names"], 0.0))
        for q, d, _, _ in tables:
            groups += [q, d]
        every = student.vectors(data, torch.cat(groups), drop=opt["drop"], gen=gen)
        parts = list(every.split([len(g) for g in groups]))

        x = parts[0]
        own = torch.eye(len(mix), dtype=torch.bool, device=device)
        target = torch.softmax((opt["temperature"] * teachers.similar(mix)).masked_fill(own, -1e4), -1)
        losses = {"pool": opt["w_pool"] * kl_rows((scale * x @ x.T).masked_fill(own, -1e4), target),
                  "regression": opt["w_regression"] * (1 - (x * teachers.target(mix)).sum(-1)).mean()}
        gold, twin = listwise(s, picked, docs)
        logits = (scale * parts[1] @ parts[2].T).masked_fill(twin, -1e4)
        share = gold.float() / gold.sum(1, keepdim=True)
        losses["sets"] = opt["w_sets"] * -(share * F.log_softmax(logits, -1)).sum(1).mean()
        losses["sets_kl"] = opt["w_sets_kl"] * kl_rows(logits, teachers.answers(s.q[picked], s.doc[docs], twin))
        for i, (q, d, w, w_kl) in enumerate(tables):
            logits = scale * parts[3 + 2 * i] @ parts[4 + 2 * i].T
            losses[f"pairs{i}"] = w * in_batch(logits, q, d, 0.05)
            if w_kl > 0:
                losses[f"pairs{i}_kl"] = w_kl * kl_rows(logits, teachers.answers(q, d, None))
        adam.zero_grad(set_to_none=True)
        sum(losses.values()).backward()
        adam.step()
        if (step + 1) % max(1, steps // 4) == 0:
            shown = {k: round(float(v.detach()), 3) for k, v in losses.items()}
            log(f"  student {split} seed {opt['seed']}: step {step + 1}/{steps} {time.time() - start:.0f} s {shown}")
    return student, seen_tokens


def average(students):
    """One student with the mean of the rows: they share their axes, so their rows can be added."""
    first = students[0]
    with torch.no_grad():
        first.table.copy_(torch.stack([s.table for s in students]).mean(0))
        first.fields.copy_(torch.stack([s.fields for s in students]).mean(0))
    return first


def finish(student, counts, opt):
    """What is shipped: int8 rows and scales; rows of rare tokens may be left out."""
    table = student.table.detach()[:student.rows].clone()
    if opt["keep"] and opt["keep"] < student.rows:
        order = torch.argsort(counts, descending=True, stable=True)
        table[order[opt["keep"]:]] = 0
    return quantise(table)


def shipped(student, q, scale, data):
    """text numbers -> unit vectors, from the int8 rows."""
    rows = q.float() * scale[:, None]
    rows = torch.cat([rows, torch.zeros(1, rows.shape[1], device=rows.device)])

    def vectors(idx):
        keep = student.table
        student.table = rows
        with torch.no_grad():
            out = torch.cat([student.vectors(data, i, cut=256) for i in idx.split(8192)])
        student.table = keep
        return out
    return vectors
