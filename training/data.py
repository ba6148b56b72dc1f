"""The prepared data on the device, and the ways to take batches from it."""
import numpy as np
import torch

from bert import CLS, SEP

TRAIN = ("metatool", "apibank", "clinc150", "toollinkos", "banking77", "bfcl-bynames", "sealtools")
DEV = ("acebench-en", "restbench", "bfcl-multiturn")
FOLDS = (("metatool", "apibank"), ("clinc150", "toollinkos"), ("banking77", "bfcl-bynames"), ("sealtools",))
SPLITS = ("full", "fold0", "fold1", "fold2", "fold3")
NAMES_ONLY = ("clinc150", "banking77")
OPENAPI, EXTRA, FREE, ALONE = 1 << 16, 1 << 17, 1 << 18, 1 << 19
VOCAB = 30522
PAD = 65535  # in the padded matrices; no row of any table


def left_out(split):
    return () if split == "full" else FOLDS[int(split[4:])]


class Set:
    """One labelled set: documents, queries and which documents answer each query."""

    def __init__(self, z, name, device):
        key = name.replace("-", "_")
        take = lambda k: torch.from_numpy(z[f"{key}_{k}"].astype(np.int64)).to(device)
        self.name = name
        self.doc, self.names, self.desc, self.twin, self.q = (take(k) for k in ("doc", "name", "desc", "twin", "q"))
        self.edoc = take("edoc") if f"{key}_edoc" in z.files else self.doc
        self.eval = torch.from_numpy(z[f"{key}_eval"]).to(device)
        goff, gold = z[f"{key}_goff"].astype(np.int64), z[f"{key}_gold"].astype(np.int64)
        width = int(np.diff(goff).max())
        table = np.full((len(goff) - 1, width), -1, np.int64)
        for i in range(len(goff) - 1):
            table[i, :goff[i + 1] - goff[i]] = gold[goff[i]:goff[i + 1]]
        self.gold = torch.from_numpy(table).to(device)
        self.hard = None
        if f"{key}_hard" in z.files:
            hard = z[f"{key}_hard"].astype(np.int64)
            hard[hard == 0xFFFF] = -1
            self.hard = torch.from_numpy(hard).to(device)
        self.bm25 = None
        self._sparse = tuple(z[f"{key}_{k}"] for k in ("bw_ptr", "bw_ind", "bw_val", "bq_ptr", "bq_ind", "bq_val"))
        self._terms = int(z[f"{key}_terms"][0])
        self.device = device

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
    """Texts as one kind of tokens: ids, field of each, how often it stood before in its text, lengths."""

    def __init__(self, ids, kinds, again, lens):
        self.ids, self.kinds, self.again, self.lens = ids, kinds, again, lens


def matrix(flat, off, fill, dtype):
    """Rows of flat between offsets, padded with fill."""
    lens = np.diff(off)
    rows = np.repeat(np.arange(len(lens)), lens)
    out = np.full((len(lens), max(1, int(lens.max()))), fill, dtype)
    out[rows, np.arange(len(rows)) - np.repeat(off[:-1], lens)] = flat
    return out


def again(flat, off):
    """How many times the same token stood before in the same text: 0 for the first."""
    key = np.repeat(np.arange(len(off) - 1), np.diff(off)) * 65536 + flat
    order = np.argsort(key, kind="stable")
    ranked = key[order]
    new = np.concatenate([[True], ranked[1:] != ranked[:-1]])
    start = np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))
    nth = np.empty(len(order), np.int64)
    nth[order] = np.arange(len(order)) - start
    return np.minimum(nth, 255)


class Data:
    def __init__(self, path, device):
        z = np.load(path)
        self.device = device
        to = lambda x: torch.from_numpy(x).to(device)
        tok, off = z["tok"].astype(np.int64), z["off"].astype(np.int64)
        own = tok.copy()
        own[np.cumsum(z["own_at"].astype(np.int64))] = z["own_id"]
        self.rows_words = int(z["rows"][0])
        self.n = len(off) - 1
        # Teachers read pieces; the student reads pieces too ("plain"), or whole words where it has a row ("words").
        self.ids, self.lens = to(matrix(tok, off, PAD, np.int32)), to(np.diff(off))
        self.own = to(matrix(own, off, PAD, np.int32))
        self.views = {}
        for mode, k in (("plain", ""), ("words", "w")):
            t, o, f = z[k + "tok"].astype(np.int64), z[k + "off"].astype(np.int64), z[k + "field"]
            self.views[mode] = View(to(matrix(t, o, PAD, np.int32)), to(matrix(f, o, 0, np.uint8)), to(matrix(again(t, o), o, 0, np.uint8)), to(np.diff(o)))
        self.origin = to(z["origin"].astype(np.int64))
        self.openapi, self.extra = to(z["openapi"].astype(np.int64)), to(z["extra"].astype(np.int64))
        self.sets = {s: Set(z, s, device) for s in TRAIN + DEV}

    def left_bits(self, split):
        return sum(1 << TRAIN.index(s) for s in left_out(split))

    def allowed(self, idx, split):
        """Which of the texts idx may be seen when training split."""
        return (self.origin[idx] & self.left_bits(split)) == 0

    def pool(self, split, use=0xFFFFFFFF):
        o = self.origin
        return torch.nonzero(((o & use) > 0) & ((o & self.left_bits(split)) == 0)).flatten()

    def rows(self, table, split):
        """Rows of a pair table whose texts (all columns but the last) may be seen."""
        return table[self.allowed(table[:, :-1], split).all(1)]

    def bert(self, idx, cut):
        """(ids, mask) for a teacher: [CLS] text [SEP], at most cut tokens."""
        lens = self.lens[idx].clamp(max=cut - 2)
        width = int(lens.max())
        m = torch.zeros(len(idx), -(-(width + 2) // 8) * 8, dtype=torch.int64, device=self.device)
        m[:, 0] = CLS
        body = self.ids[idx, :width].long()
        m[:, 1:width + 1] = torch.where(body == PAD, torch.zeros_like(body), body)
        m.scatter_(1, (lens + 1)[:, None], SEP)
        mask = torch.arange(m.shape[1], device=self.device)[None] <= (lens + 1)[:, None]
        return m * mask, mask


def listwise(s, picked, docs):
    """(gold mask, mask of same-named documents that are not gold) of queries x docs."""
    g = s.gold[picked]
    gold = ((g[:, :, None] == docs[None, None]) & (g >= 0)[:, :, None]).any(1)
    t = torch.where(g >= 0, s.twin[g.clamp(min=0)], torch.full_like(g, -1))
    twin = (t[:, :, None] == s.twin[docs][None, None]).any(1) & ~gold
    return gold, twin


def draw_docs(s, picked, hard, per_query, spare, limit, gen):
    """Document numbers for a batch of queries: all if few, else golds, hard negatives and spare others."""
    n = len(s.doc)
    if n <= limit:
        return torch.arange(n, device=s.device)
    g = s.gold[picked].flatten()
    h = hard[picked]
    cols = torch.randint(h.shape[1], (len(picked), per_query), generator=gen, device=s.device)
    h = h.gather(1, cols).flatten()
    r = torch.randint(n, (spare,), generator=gen, device=s.device)
    both = torch.cat([g, h, r])
    return torch.unique(both[both >= 0])


def set_weights(data, split, names_only=0.35):
    """Training sets of a split and how often each is drawn."""
    names = [s for s in TRAIN if s not in left_out(split)]
    w = [min(1.0, len(data.sets[s].q) / 600) ** 0.5 * (names_only if s in NAMES_ONLY else 1.0) for s in names]
    return names, np.array(w) / sum(w)
