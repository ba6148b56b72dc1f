"""The prepared data, and the ways to take batches from it.

Batches are drawn on the host, with NumPy: their sizes are then known without
asking the GPU, which never has to wait. Tokens lie on the device as flat lists.
"""
import numpy as np
import torch

from bert import CLS, SEP

TRAIN = ("metatool", "apibank", "clinc150", "toollinkos", "banking77", "bfcl-bynames", "sealtools")
DEV = ("acebench-en", "restbench", "bfcl-multiturn")
FOLDS = (("metatool", "apibank"), ("clinc150", "banking77"), ("toollinkos", "bfcl-bynames"), ("sealtools",))
SPLITS = ("full", "fold0", "fold1", "fold2", "fold3")
NAMES_ONLY = ("clinc150", "banking77")
OPENAPI, EXTRA, FREE, ALONE = 1 << 16, 1 << 17, 1 << 18, 1 << 19
VOCAB = 30522


def left_out(split):
    return () if split == "full" else FOLDS[int(split[4:])]


class Set:
    """One labelled set: documents, queries and which documents answer each query.

    Arrays on the host, but for gold and twin, which listwise reads.
    """

    def __init__(self, z, name, device):
        key = name.replace("-", "_")
        take = lambda k: z[f"{key}_{k}"].astype(np.int64)
        self.name, self.device = name, device
        self.doc, self.names, self.desc, self.q = (take(k) for k in ("doc", "name", "desc", "q"))
        self.edoc = take("edoc") if f"{key}_edoc" in z.files else self.doc
        self.eval = np.flatnonzero(z[f"{key}_eval"])
        off, gold = take("goff"), take("gold")
        self.golds = np.full((len(off) - 1, int(np.diff(off).max())), -1, np.int64)
        for i in range(len(off) - 1):
            self.golds[i, :off[i + 1] - off[i]] = gold[off[i]:off[i + 1]]
        self.gold, self.twin = torch.from_numpy(self.golds).to(device), torch.from_numpy(take("twin")).to(device)
        self.hard = None
        if f"{key}_hard" in z.files:
            self.hard = take("hard")
            self.hard[self.hard == 0xFFFF] = -1
        self.bm25 = None
        self._sparse = tuple(z[f"{key}_{k}"] for k in ("bw_ptr", "bw_ind", "bw_val", "bq_ptr", "bq_ind", "bq_val"))
        self._terms = int(z[f"{key}_terms"][0])

    def lexical(self):
        """BM25 of every evaluated query against every document."""
        if self.bm25 is None:
            dense = []
            for ptr, ind, val in (self._sparse[:3], self._sparse[3:]):
                m = np.zeros((len(ptr) - 1, self._terms), np.float32)
                rows = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr.astype(np.int64)))
                m[rows, ind] = val
                dense.append(torch.from_numpy(m).to(self.device))
            self.bm25 = dense[1] @ dense[0].T
        return self.bm25


class View:
    """Texts as the student reads them: all tokens in a row and the field of each; lengths and starts on the host."""

    def __init__(self, tok, field, off, device):
        self.tok, self.field = torch.from_numpy(tok.astype(np.int32)).to(device), torch.from_numpy(field).to(device)
        self.off, self.lens = off[:-1], np.diff(off)

    def bags(self, data, idx, cut):
        """(tokens, fields, bag of each token, first token of each bag) of the texts idx, at most cut tokens of each."""
        lens = np.minimum(self.lens[idx], cut)
        first = np.cumsum(lens) - lens
        total = int(lens.sum())
        n, starts, shift = data.put(lens, first, self.off[idx] - first)
        bag = torch.repeat_interleave(torch.arange(len(idx), device=data.device), n, output_size=total)
        at = torch.arange(total, device=data.device) + shift[bag]
        return self.tok[at].long(), self.field[at].long(), bag, starts


class Data:
    def __init__(self, path, device):
        z = np.load(path)
        self.device = device
        tok, off = z["tok"].astype(np.int32), z["off"].astype(np.int64)
        own = tok.copy()
        own[np.cumsum(z["own_at"].astype(np.int64))] = z["own_id"]
        self.rows_words = int(z["rows"][0])
        self.n = len(off) - 1
        # Teachers read pieces; the student reads pieces too ("plain"), or whole words where it has a row ("words").
        # own is the row of the student's word that each piece belongs to.
        self.tok, self.own = torch.from_numpy(tok).to(device), torch.from_numpy(own).to(device)
        self.off, self.lens = off[:-1], np.diff(off)
        self.views = {mode: View(z[k + "tok"], z[k + "field"], z[k + "off"].astype(np.int64), device) for mode, k in (("plain", ""), ("words", "w"))}
        self.origin = z["origin"].astype(np.int64)
        self.openapi, self.extra = z["openapi"].astype(np.int64), z["extra"].astype(np.int64)
        self.nothing = z["nothing"].astype(np.int64)  # queries that nothing answers, for the fit of the gate alone
        self.sets = {s: Set(z, s, device) for s in TRAIN + DEV}

    def put(self, *arrays):
        """Host arrays of whole numbers on the device, in one transfer that the host does not wait for."""
        flat = torch.from_numpy(np.concatenate(arrays))
        if self.device.type == "cuda":
            flat = flat.pin_memory().to(self.device, non_blocking=True)
        return flat.split([len(x) for x in arrays])

    def left_bits(self, split):
        return sum(1 << TRAIN.index(s) for s in left_out(split))

    def allowed(self, idx, split):
        """Which of the texts idx may be seen when training split."""
        return (self.origin[idx] & self.left_bits(split)) == 0

    def pool(self, split, use=0xFFFFFFFF):
        return np.flatnonzero(((self.origin & use) > 0) & self.allowed(np.arange(self.n), split))

    def rows(self, table, split):
        """Rows of a pair table whose texts (all columns but the last) may be seen."""
        return table[self.allowed(table[:, :-1], split).all(1)]

    def bert(self, idx, cut):
        """(ids, mask) for a teacher: [CLS] text [SEP], at most cut tokens (a number, or one for each text)."""
        lens = np.minimum(self.lens[idx], cut - 2)
        width = -(-(int(lens.max()) + 2) // 8) * 8
        off, end = (x[:, None] for x in self.put(self.off[idx], lens + 1))
        col = torch.arange(width, device=self.device)[None]
        body = self.tok[(off + col - 1).clamp(0, len(self.tok) - 1)].long()
        ids = body.masked_fill(col == 0, CLS).masked_fill(col == end, SEP).masked_fill(col > end, 0)
        return ids, col <= end


def listwise(s, picked, docs):
    """(gold mask, mask of same-named documents that are not gold) of queries x docs, numbers on the device."""
    g = s.gold[picked]
    gold = ((g[:, :, None] == docs[None, None]) & (g >= 0)[:, :, None]).any(1)
    t = torch.where(g >= 0, s.twin[g.clamp(min=0)], torch.full_like(g, -1))
    twin = (t[:, :, None] == s.twin[docs][None, None]).any(1) & ~gold
    return gold, twin


def draw_docs(s, picked, hard, per_query, spare, limit, rng):
    """Document numbers for a batch of queries: all if few, else golds, hard negatives and spare others."""
    n = len(s.doc)
    if n <= limit:
        return np.arange(n)
    some = hard[picked[:, None], rng.randint(hard.shape[1], size=(len(picked), per_query))]
    both = np.concatenate([s.golds[picked].ravel(), some.ravel(), rng.randint(n, size=spare)])
    return np.unique(both[both >= 0])


def draw_runs(rows, size, count, rng):
    """Runs of neighbouring rows, each row once: neighbours are of one API or package, or of one cluster."""
    size = min(size, len(rows))
    starts = rng.randint(len(rows) - size + 1, size=max(1, count))
    return rows[np.unique(starts[:, None] + np.arange(size))]


def set_weights(data, split, names_only=0.35):
    """Training sets of a split and how often each is drawn."""
    names = [s for s in TRAIN if s not in left_out(split)]
    w = [min(1.0, len(data.sets[s].q) / 600) ** 0.5 * (names_only if s in NAMES_ONLY else 1.0) for s in names]
    return names, np.array(w) / sum(w)
