"""A BERT encoder small enough to read: what both teachers are.

Parameter names are the usual ones, so that the parts written by
convert_teachers.py load without a map.
"""
import glob
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

CLS, SEP, HEADS = 101, 102, 12


class Attention(nn.Module):
    def __init__(self, h):
        super().__init__()
        self.self = nn.ModuleDict({n: nn.Linear(h, h) for n in ("query", "key", "value")})
        self.output = nn.ModuleDict({"dense": nn.Linear(h, h), "LayerNorm": nn.LayerNorm(h, eps=1e-12)})

    def forward(self, x, bias):
        b, t, h = x.shape
        q, k, v = (self.self[n](x).view(b, t, HEADS, h // HEADS).transpose(1, 2) for n in ("query", "key", "value"))
        w = q @ k.transpose(2, 3) * (h // HEADS) ** -0.5 + bias
        y = torch.softmax(w, -1, dtype=torch.float32).to(v.dtype) @ v
        y = self.output["dense"](y.transpose(1, 2).reshape(b, t, h))
        return self.output["LayerNorm"](x + y)


class Layer(nn.Module):
    def __init__(self, h, inner):
        super().__init__()
        self.attention = Attention(h)
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(h, inner)})
        self.output = nn.ModuleDict({"dense": nn.Linear(inner, h), "LayerNorm": nn.LayerNorm(h, eps=1e-12)})

    def forward(self, x, bias):
        x = self.attention(x, bias)
        y = self.output["dense"](F.gelu(self.intermediate["dense"](x)))
        return self.output["LayerNorm"](x + y)


class Bert(nn.Module):
    """Encoder with mean pooling; `forward` gives unit vectors."""

    def __init__(self, layers, vocab=30522, h=384, inner=1536):
        super().__init__()
        self.embeddings = nn.ModuleDict({
            "word_embeddings": nn.Embedding(vocab, h),
            "position_embeddings": nn.Embedding(512, h),
            "token_type_embeddings": nn.Embedding(2, h),
            "LayerNorm": nn.LayerNorm(h, eps=1e-12)})
        self.encoder = nn.ModuleDict({"layer": nn.ModuleList([Layer(h, inner) for _ in range(layers)])})

    def hidden(self, ids, mask):
        e = self.embeddings
        pos = torch.arange(ids.shape[1], device=ids.device)
        x = e["word_embeddings"](ids) + e["position_embeddings"](pos) + e["token_type_embeddings"].weight[0]
        x = e["LayerNorm"](x)
        bias = torch.zeros(mask.shape, dtype=x.dtype, device=x.device).masked_fill(~mask, -1e4)[:, None, None, :]
        for layer in self.encoder["layer"]:
            x = layer(x, bias)
        return x

    def forward(self, ids, mask):
        x = self.hidden(ids, mask).float()
        m = mask[:, :, None].float()
        return F.normalize((x * m).sum(1) / m.sum(1), dim=-1)


def load(folder, stem, layers, only=0):
    """Build a Bert from the .npz parts `stem`-1.npz, `stem`-2.npz, ... under folder.

    With only, the first so many layers, and random ones where there is no
    file: wrong vectors, for trying the code.
    """
    state = {}
    for path in sorted(glob.glob(os.path.join(folder, "**", f"{stem}-*.npz"), recursive=True)):
        with np.load(path) as z:
            for k in z.files:
                state[k] = torch.from_numpy(z[k].astype(np.float32))
    if only:
        layers = only
        state = {k: v for k, v in state.items() if not k.startswith("encoder.") or int(k.split(".")[2]) < only}
    model = Bert(layers)
    if only and not state:
        return model
    model.load_state_dict(state, strict=True)
    return model
