"""Teachers: fine-tuning them on the pairs, and encoding every text once."""
import time

import numpy as np
import torch
import torch.nn.functional as F

from bert import CLS, SEP
from data import ALONE, TRAIN, VOCAB, draw_docs, draw_runs, listwise, set_weights

HIDDEN = 384


def encode(model, data, cut=256, sums=False, budget=131072):
    """Unit vectors (fp16) of every text.

    With sums, also {vocabulary of the student: (sums, counts)} of last hidden
    states per token over the pool, one slice per training set and one for the
    rest, so that a fold can leave its sets out of the student's start.
    """
    device = data.device
    half = device.type == "cuda"
    model = model.half() if half else model
    model.eval()
    out = torch.zeros(data.n, HIDDEN, dtype=torch.float16, device=device)
    states = {}
    if sums:
        for mode, rows in (("plain", VOCAB), ("words", data.rows_words)):
            n = (len(TRAIN) + 1) * rows
            states[mode] = torch.zeros(n, HIDDEN, device=device), torch.zeros(n, device=device)
    order = np.argsort(data.lens, kind="stable")
    lens = data.lens[order]
    lo = 0
    with torch.no_grad():
        while lo < data.n:
            # Lengths are sorted, so the longest text of a batch is its last.
            longest = int(min(lens[min(data.n - 1, lo + budget // 32)], cut)) + 2
            size = min(budget // 32, max(8, budget // longest))
            idx = order[lo:lo + size]
            lo += size
            ids, mask = data.bert(idx, cut)
            h = model.hidden(ids, mask).float()
            m = mask[:, :, None].float()
            out[data.put(idx)[0]] = F.normalize((h * m).sum(1) / m.sum(1), dim=-1).half()
            if sums:
                add_sums(data, idx, mask, h, states)
    if half:
        model.float()
    if sums:
        return out, {m: (t.view(len(TRAIN) + 1, -1, HIDDEN), c.view(len(TRAIN) + 1, -1)) for m, (t, c) in states.items()}
    return out


def add_sums(data, idx, mask, h, states):
    o, off = data.put(data.origin[idx], data.off[idx])
    part = torch.full_like(o, len(TRAIN))
    for i in reversed(range(len(TRAIN))):
        part = torch.where((o >> i) & 1 == 1, torch.full_like(o, i), part)
    # Tokens of the text proper: neither [CLS] nor [SEP] nor padding.
    inner = mask[:, 2:] & (o > 0)[:, None]
    body = h[:, 1:-1][inner]
    where = (off[:, None] + torch.arange(inner.shape[1], device=data.device)[None])[inner]
    part = part[:, None].expand_as(inner)[inner]
    for mode, ids in (("plain", data.tok), ("words", data.own)):
        total, count = states[mode]
        at = part * (len(count) // (len(TRAIN) + 1)) + ids[where]
        total.index_add_(0, at, body)
        count.index_add_(0, at, torch.ones(len(at), device=at.device))


def single_tokens(model, data):
    """{vocabulary: last hidden state of every token on its own, [CLS] t [SEP]}; of whole words, the mean of their pieces."""
    device, out = data.device, []
    model = model.half() if device.type == "cuda" else model
    model.eval()
    with torch.no_grad():
        for lo in range(0, VOCAB, 4096):
            t = torch.arange(lo, min(VOCAB, lo + 4096), device=device)
            ids = torch.stack([torch.full_like(t, CLS), t, torch.full_like(t, SEP)], 1)
            out.append(model.hidden(ids, torch.ones_like(ids, dtype=torch.bool))[:, 1].float())
        plain = torch.cat(out)
        words = torch.zeros(data.rows_words, HIDDEN, device=device)
        words[:VOCAB] = plain
        # Texts of one student token and several pieces are the whole words standing alone.
        view = data.views["words"]
        lone = np.flatnonzero((view.lens == 1) & (data.lens > 1) & ((data.origin & ALONE) > 0))
        for idx in np.split(lone, range(4096, len(lone), 4096)):
            ids, mask = data.bert(idx, 32)
            h = model.hidden(ids, mask).float()
            inner = mask[:, 2:, None].float()
            words[view.bags(data, idx, 1)[0]] = (h[:, 1:-1] * inner).sum(1) / inner.sum(1)
    model.float()
    return {"plain": plain, "words": words}


def hard_negatives(data, vec, names, k=12):
    """Per set: the nearest wrong documents by teacher vectors, beside the BM25 ones; on the host."""
    out = {}
    for name in names:
        s = data.sets[name]
        d = vec[s.doc].float()
        rows = []
        for lo in range(0, len(s.q), 2048):
            picked = torch.arange(lo, min(len(s.q), lo + 2048), device=data.device)
            cos = vec[s.q[lo:lo + 2048]].float() @ d.T
            gold, twin = listwise(s, picked, torch.arange(len(s.doc), device=data.device))
            cos = cos.masked_fill(gold | twin, -9)
            rows.append(cos.topk(min(k, len(s.doc)), dim=1).indices)
        out[name] = np.concatenate([torch.cat(rows).cpu().numpy(), s.hard], 1)
    return out


def embed(model, data, texts, cuts):
    """Vectors of some texts, with gradients: in four batches by length, so that little of them is padding."""
    order = np.argsort(np.minimum(data.lens[texts], cuts), kind="stable")
    back, = data.put(np.argsort(order))
    with torch.autocast(device_type=data.device.type, dtype=torch.bfloat16, enabled=data.device.type == "cuda"):
        return torch.cat([model(*data.bert(texts[i], cuts[i])) for i in np.array_split(order, 4)])[back]


def fine_tune(model, data, split, hard, opt, deadline, log=print):
    """Fine-tune on the pairs a split may see; opt is a dict of switches.

    Gives up after 30 steps if the rest would end after deadline: a shorter
    run would not be the same run.
    """
    steps = opt["teacher_steps"]
    rng = np.random.RandomState(2000 + opt["seed"])
    names, weights = set_weights(data, split)
    tables = [(data.rows(t, split), w) for t, w in ((data.openapi, opt["teacher_openapi"]), (data.extra, opt["teacher_extra"])) if w > 0 and len(t)]
    seen = {n: np.flatnonzero(data.allowed(data.sets[n].q, split)) for n in names}
    decay = [p for p in model.parameters() if p.ndim > 1]
    plain = [p for p in model.parameters() if p.ndim <= 1]
    adam = torch.optim.AdamW([{"params": decay, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}], lr=1.0,
                             **({"fused": True} if data.device.type == "cuda" else {}))
    none = torch.nn.Parameter(torch.tensor(0.3, device=data.device))  # the similarity at which nothing fits as well
    if opt["teacher_none"]:
        adam.add_param_group({"params": [none], "weight_decay": 0.0, "faster": 50})
    warm = max(1, steps // 10)
    model.train()
    start, shown = time.time(), torch.zeros((), device=data.device)
    for step in range(steps):
        lr = opt["teacher_lr"] * min((step + 1) / warm, (steps - step) / max(1, steps - warm))
        for g in adam.param_groups:
            g["lr"] = lr * g.get("faster", 1)
        s = data.sets[names[rng.choice(len(names), p=weights)]]
        picked = rng.choice(seen[s.name], opt["teacher_batch"])
        docs = draw_docs(s, picked, hard[s.name], 3, 64, 200, rng)
        groups = [s.q[picked], s.doc[docs]]
        for table, _ in tables:
            some = draw_runs(table, opt["teacher_run"], opt["teacher_pairs"] // opt["teacher_run"], rng)
            groups += [some[:, choose_query(table.shape[1], opt["teacher_reworded"], rng)], some[:, -2]]
        sizes = [len(g) for g in groups]
        vec = embed(model, data, np.concatenate(groups), np.repeat([48, 72] * (len(groups) // 2), sizes)).split(sizes)
        picked, docs, *texts = data.put(picked, docs, *groups[2:])
        gold, twin = listwise(s, picked, docs)
        logits = (30 * vec[0] @ vec[1].T).masked_fill(twin, -1e4)
        target = gold.float() / gold.sum(1, keepdim=True)
        loss = -(target * F.log_softmax(logits, -1)).sum(1).mean()
        for i, (_, weight) in enumerate(tables):
            q, d = 2 * i, 2 * i + 1
            loss = loss + weight * in_batch(30 * vec[2 + q] @ vec[2 + d].T, texts[q], texts[d], 0.0)
        if opt["teacher_none"]:
            loss = loss + opt["teacher_none"] * nothing_fits(vec, 30 * none, logits, gold, target, texts)
        adam.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        shown += (loss.detach() - shown) * (0.02 if step else 1.0)
        if step == 29:
            shown.item()  # waits for the GPU, which the clock does not
            pace = (time.time() - start) / 30
            if time.time() + pace * (steps - 30) > deadline:
                raise SystemExit(f"teacher {split}: {steps} steps would take {pace * steps:.0f} s, more than is left; give --minutes more or fewer steps")
        if (step + 1) % max(1, steps // 5) == 0:
            log(f"  teacher {split}: step {step + 1}/{steps} loss {shown.item():.3f} {time.time() - start:.0f} s")
    model.eval()
    return model


def nothing_fits(vec, none, logits, gold, target, texts):
    """How well nothing is told from something: an answer is nearer than none, all else is farther.

    Without it only the order of a query's documents counts, and similarities of two queries
    cannot be compared.
    """
    def with_none(x):
        return F.log_softmax(torch.cat([x, none.expand(len(x), 1).to(x.dtype)], 1), -1)

    loss = -(target * with_none(logits)[:, :-1]).sum(1).mean()
    loss = loss - 0.5 * with_none(logits.masked_fill(gold, -1e4))[:, -1].mean()
    for i in range(0, len(texts), 2):
        q, d = vec[2 + i], vec[3 + i]
        own = 30 * q @ d.T
        same = (texts[i][:, None] == texts[i][None]) | (texts[i + 1][:, None] == texts[i + 1][None])
        eye = torch.eye(len(q), dtype=torch.bool, device=q.device)
        loss = loss - 0.5 * with_none(own.masked_fill(same & ~eye, -1e4)).diagonal().mean()
        loss = loss - 0.25 * with_none(own.masked_fill(same, -1e4))[:, -1].mean()
        loss = loss - 0.25 * with_none(30 * q @ vec[1].T)[:, -1].mean() - 0.25 * with_none(30 * vec[0] @ d.T)[:, -1].mean()
    return loss


def choose_query(columns, reworded, rng):
    """Which query column of a pair table: openapi has three (plain, second, reworded), extra two."""
    last = columns - 3
    if rng.rand() < reworded:
        return last
    return 0 if last == 1 else rng.randint(2)


def in_batch(logits, q, d, smoothing):
    """Symmetric cross-entropy; equal texts elsewhere in the batch are no negatives."""
    n = len(q)
    same = (q[:, None] == q[None]) | (d[:, None] == d[None])
    same &= ~torch.eye(n, dtype=torch.bool, device=q.device)
    logits = logits.masked_fill(same, -1e4)
    target = torch.arange(n, device=q.device)
    if smoothing == 0:
        return 0.5 * (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target))
    # Smoothing over what is not masked: a masked logit must not enter the mean.
    loss = 0
    for m, k in ((logits, same), (logits.T, same.T)):
        lp = F.log_softmax(m, -1)
        mean = lp.masked_fill(k, 0).sum(1) / (~k).sum(1)
        loss = loss - ((1 - smoothing) * lp.diagonal() + smoothing * mean).mean()
    return 0.5 * loss
