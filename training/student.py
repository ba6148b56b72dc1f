"""The student: one row per token, summed and normalised."""
import math
import time

import numpy as np
import torch
import torch.nn.functional as F

from data import ALONE, TRAIN, draw_docs, draw_runs, left_out, listwise, set_weights
from teacher import choose_query, in_batch


class WeightedSums(torch.autograd.Function):
    """Sum of the weighted rows of each bag; the gradient is two gathers and one sorted sum, so that runs repeat exactly."""

    @staticmethod
    def forward(ctx, table, weights, ids, bag, first):
        ctx.save_for_backward(table, weights, ids, bag)
        return F.embedding_bag(ids, table, first, mode="sum", per_sample_weights=weights)

    @staticmethod
    def backward(ctx, grad):
        table, weights, ids, bag = ctx.saved_tensors
        grad = grad[bag]
        rows = torch.ops.aten.embedding_dense_backward(grad * weights[:, None], ids, len(table), -1, False)
        return rows, (grad * table[ids]).sum(1) if ctx.needs_input_grad[1] else None, None, None, None


class Student:
    """Rows, the weights of the four fields, and with a gate the weights tokens take from their text.

    The gate gives each token two short vectors: a key, and what it asks of the
    mean key c of its text. A token weighs exp(ask . c), between exp(-2) and exp(2).
    """

    def __init__(self, table, opt):
        self.table, self.mode, n = table, opt["vocab"], opt["gate"]
        # Prose stays at weight 1: only the ratios matter, since vectors are normalised.
        self.fields = torch.zeros(4, device=table.device)
        # Keys start as the first axes of the rows, so that a text's mean says what it is about; asks start at no effect.
        self.keys = table[:, :n] / table[:, :n].std().clamp(min=1e-6) if n else None
        self.asks = torch.zeros_like(self.keys) if n else None
        learned = ["table"] + ["fields"] * opt["fields"] + ["keys", "asks"] * (n > 0)
        self.learned = {k: getattr(self, k).requires_grad_(True) for k in learned}

    def field_weights(self):
        return (self.fields - self.fields[0]).exp()

    def vectors(self, data, idx, cut=128, drop=0.0, gen=None):
        """Unit vectors of texts; idx is a host array."""
        ids, field, bag, first = data.views[self.mode].bags(data, idx, cut)
        # A product with 0/1 columns: the gradient of an index into four numbers would add up one by one.
        weights = (field[:, None] == torch.arange(4, device=field.device)).float() @ self.field_weights()
        if self.keys is not None:
            context = F.embedding_bag(ids, self.keys, first, mode="mean")
            ask = (F.embedding(ids, self.asks) * F.embedding(bag, context)).sum(1)
            weights = weights * ask.clamp(-2, 2).exp()
        if drop:
            weights = weights * (torch.rand(ids.shape, generator=gen, device=ids.device) >= drop)
        return F.normalize(WeightedSums.apply(self.table, weights, ids, bag, first), dim=-1, eps=1e-6)


def quantise(table):
    """(int8 rows, float32 scale per row): abs-max / 127."""
    scale = table.abs().amax(1) / 127
    q = torch.round(table / scale.clamp(min=1e-12)[:, None]).clamp(-127, 127).to(torch.int8)
    return q, scale


def init_table(split, sums, count, single, dim, sif):
    """Contextual mean states, shrunk to single-token states, to dim axes, down-weighted by frequency.

    Returns the rows and the 384 x dim axes.
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
    return (rows @ axes) * (sif / (sif + p))[:, None], axes


def kmeans(x, k, rounds, gen):
    """Cluster of each row of x (unit vectors), by cosine; on the host."""
    x, k = x.float(), min(k, len(x) // 4)
    centres = x[torch.randperm(len(x), generator=gen, device=x.device)[:k]]
    for r in range(rounds):
        near = torch.cat([(b @ centres.T).argmax(1) for b in x.split(32768)])
        if r + 1 == rounds:
            return near.cpu().numpy()
        order = torch.argsort(near, stable=True)
        bounds = torch.searchsorted(near[order], torch.arange(k + 1, device=x.device))
        sums = F.embedding_bag(order, x, bounds[:-1].contiguous(), mode="sum")
        centres = torch.where((bounds[1:] > bounds[:-1])[:, None], F.normalize(sums, dim=-1), centres)


class Batches:
    """Draws pool batches: at random, and in runs of neighbours by cluster."""

    def __init__(self, pool, near, size, rng):
        self.pool, self.size, self.rng = pool, min(size, len(pool)), rng
        shuffled = rng.permutation(len(pool))
        self.sorted = pool[shuffled[np.argsort(near[shuffled], kind="stable")]]

    def take(self, step):
        if step % 2 == 0:
            return np.unique(self.rng.choice(self.pool, self.size))
        return draw_runs(self.sorted, 64, self.size // 64, self.rng)


def kl_rows(student, target):
    """KL from target probabilities to the student's softmax, mean over rows."""
    lp = F.log_softmax(student, -1)
    return (target * (target.clamp(min=1e-9).log() - lp)).sum(-1).mean()


class Teachers:
    """Vectors of teacher 1 (gte) and teacher 2 (MiniLM), as they are and centred on the pool."""

    def __init__(self, one, two, pool, axes, opt):
        self.one, self.two, self.opt = one, two, opt
        w = opt["second"]
        a, b = (F.normalize(v.float() - v[pool].float().mean(0), dim=-1) for v in (one, two))
        # Side by side under these factors, one product is the mean of both teachers' cosines.
        self.both = torch.cat([(1 - w) ** 0.5 * a, w ** 0.5 * b], 1).half()
        self.target = F.normalize(a @ axes, dim=-1).half()

    def similar(self, idx):
        """Mean of the centred cosines among idx."""
        x = self.both[idx].float()
        return x @ x.T

    def answers(self, q, d, hide=None):
        """Mean of the teachers' softmaxes of queries q over documents d."""
        w, probs = self.opt["second"], 0
        for vec, scale, weight in ((self.one, self.opt["scale1"], 1 - w), (self.two, self.opt["scale2"], w)):
            logits = scale * vec[q].float() @ vec[d].float().T
            if hide is not None:
                logits = logits.masked_fill(hide, -1e4)
            probs = probs + weight * torch.softmax(logits, -1)
        return probs


class Draws:
    """The texts of one step after another, as a split may see them."""

    def __init__(self, data, split, opt, hard, pool, near, rng):
        self.data, self.opt, self.hard, self.rng = data, opt, hard, rng
        self.batches = Batches(pool, near, opt["batch"], rng)
        self.names, self.weights = set_weights(data, split)
        self.ready = {n: np.flatnonzero(data.allowed(data.sets[n].q, split)) for n in self.names}
        self.pairs = [(data.rows(t, split), w) for t, w in ((data.openapi, opt["w_openapi"]), (data.extra, opt["w_extra"])) if w > 0 and len(t)]
        sets = [data.sets[n] for n in self.names]
        titles = np.concatenate([np.stack([s.names, s.desc], 1)[s.desc >= 0] for s in sets])
        self.titles = titles[data.allowed(titles, split).all(1)]

    def take(self, step):
        """(set, its query numbers, its document numbers, groups of texts, weights of pairs and of their KL).

        Groups: the pool batch, the queries and documents of the set, then
        query and document of each kind of pairs.
        """
        opt, rng = self.opt, self.rng
        s = self.data.sets[self.names[rng.choice(len(self.names), p=self.weights)]]
        picked = rng.choice(self.ready[s.name], opt["queries"])
        docs = draw_docs(s, picked, self.hard[s.name], 5, 384, 800, rng)
        groups, weights = [self.batches.take(step), s.q[picked], s.doc[docs]], []
        for rows, w in self.pairs:
            some = draw_runs(rows, 12, opt["runs"], rng)
            groups += [some[:, choose_query(rows.shape[1], opt["reworded"], rng)], some[:, -2]]
            weights.append((w, w * opt["w_pair_kl"]))
        some = self.titles[rng.randint(len(self.titles), size=256)]
        groups += [some[:, 0], some[:, 1]]
        weights.append((opt["w_names"], 0.0))
        return s, picked, docs, groups, weights


def losses_of(data, student, teachers, drawn, opt, gen):
    s, picked, docs, groups, weights = drawn
    scale = opt["scale"]
    x, q, d, *pairs = student.vectors(data, np.concatenate(groups), drop=opt["drop"], gen=gen).split([len(g) for g in groups])
    picked, docs, mix, queries, texts, *others = data.put(picked, docs, *groups)
    own = torch.eye(len(mix), dtype=torch.bool, device=data.device)
    target = torch.softmax((opt["temperature"] * teachers.similar(mix)).masked_fill(own, -1e4), -1)
    losses = {"pool": opt["w_pool"] * kl_rows((scale * x @ x.T).masked_fill(own, -1e4), target),
              "regression": opt["w_regression"] * (1 - (x * teachers.target[mix]).sum(-1)).mean()}
    gold, twin = listwise(s, picked, docs)
    logits = (scale * q @ d.T).masked_fill(twin, -1e4)
    share = gold.float() / gold.sum(1, keepdim=True)
    losses["sets"] = opt["w_sets"] * -(share * F.log_softmax(logits, -1)).sum(1).mean()
    losses["sets_kl"] = opt["w_sets_kl"] * kl_rows(logits, teachers.answers(queries, texts, twin))
    for i, (w, w_kl) in enumerate(weights):
        logits = scale * pairs[2 * i] @ pairs[2 * i + 1].T
        losses[f"pairs{i}"] = w * in_batch(logits, others[2 * i], others[2 * i + 1], 0.05)
        if w_kl > 0:
            losses[f"pairs{i}_kl"] = w_kl * kl_rows(logits, teachers.answers(others[2 * i], others[2 * i + 1]))
    return losses


def train(data, split, opt, sums, count, single, one, two, hard, kept, log=print):
    """Distil a student for split.

    kept carries the clusters of the pool from one call to the next with the
    same teacher and pool.
    """
    device, steps = data.device, opt["steps"]
    gen = torch.Generator(device=device).manual_seed(100 + opt["seed"])
    pool = data.pool(split, 0xFFFFFFFF if opt["alone"] else 0xFFFFFFFF ^ ALONE)
    at, = data.put(pool)
    if "clusters" not in kept:
        kept["clusters"] = kmeans(one[at], opt["clusters"], 8, torch.Generator(device=device).manual_seed(7))
    table, axes = init_table(split, sums, count, single, opt["dim"], opt["sif"])
    student = Student(table, opt)
    teachers = Teachers(one, two, at, axes, opt)
    draws = Draws(data, split, opt, hard, pool, kept["clusters"], np.random.RandomState(200 + opt["seed"]))
    adam = torch.optim.Adam([{"params": [p], "rate": 2.0 if k == "fields" else 1.0} for k, p in student.learned.items()], lr=1.0,
                            **({"fused": True} if device.type == "cuda" else {}))
    mean = {k: p.detach().clone() for k, p in student.learned.items()} if opt["ema"] else {}
    warm, start = max(1, int(0.08 * steps)), time.time()
    for step in range(steps):
        lr = opt["lr"] * (min(1, (step + 1) / warm) if step < warm else 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, steps - warm))))
        for g in adam.param_groups:
            g["lr"] = lr * g["rate"]
        losses = losses_of(data, student, teachers, draws.take(step), opt, gen)
        adam.zero_grad(set_to_none=True)
        sum(losses.values()).backward()
        adam.step()
        for k, m in mean.items():
            m.lerp_(student.learned[k].detach(), 1 - opt["ema"])
        if (step + 1) % max(1, steps // 2) == 0:
            shown = {k: round(float(v.detach()), 3) for k, v in losses.items()}
            log(f"  student {split} seed {opt['seed']}: step {step + 1}/{steps} {time.time() - start:.0f} s {shown}")
    with torch.no_grad():
        for k, m in mean.items():
            student.learned[k].copy_(m)
    return student


def average(students):
    """One student with the mean of the rows: they share their axes, so their rows can be added."""
    first = students[0]
    with torch.no_grad():
        for k, p in first.learned.items():
            p.copy_(torch.stack([s.learned[k] for s in students]).mean(0))
    return first


def shipped(student, q, scale, data):
    """text numbers -> unit vectors, from the int8 rows."""
    rows = q.float() * scale[:, None]

    def vectors(idx):
        keep = student.table
        student.table = rows
        with torch.no_grad():
            out = torch.cat([student.vectors(data, i, cut=256) for i in np.split(idx, range(8192, len(idx), 8192))])
        student.table = keep
        return out
    return vectors
