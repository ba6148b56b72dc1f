#!/usr/bin/env python3
"""Turn the public teachers into fp16 parts small enough to carry.

Reads gte-small from an ONNX file and MiniLM from a safetensors file and
writes, for each, a set of .npz parts whose names are those of a BERT encoder
("encoder.layer.0.attention.self.query.weight", ...).  MatMul weights stored
by ONNX without a name are found by the name of the node that uses them, and
turned back (ONNX keeps them as in x out).

    convert_teachers.py --gte model.onnx --minilm model.fp16.safetensors --out DIR

Standard library and numpy only.
"""
import argparse
import hashlib
import json
import os
import struct

import numpy as np

PART_BYTES = 36 << 20


def varint(buf, i):
    value = shift = 0
    while True:
        byte = buf[i]
        i += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, i


def fields(buf):
    """Yield (field number, wire type, value) of one protobuf message."""
    i, end = 0, len(buf)
    while i < end:
        key, i = varint(buf, i)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, i = varint(buf, i)
        elif wire == 1:
            value, i = buf[i:i + 8], i + 8
        elif wire == 5:
            value, i = buf[i:i + 4], i + 4
        elif wire == 2:
            n, i = varint(buf, i)
            value, i = buf[i:i + n], i + n
        else:
            raise ValueError(f"wire type {wire} at byte {i}: not an ONNX file")
        yield number, wire, value


def onnx_tensor(buf):
    dims, name, kind, raw = [], "", 0, None
    for number, wire, value in fields(buf):
        if number == 1 and wire == 0:
            dims.append(value)
        elif number == 1:
            j = 0
            while j < len(value):
                d, j = varint(value, j)
                dims.append(d)
        elif number == 2:
            kind = value
        elif number == 8:
            name = bytes(value).decode()
        elif number == 9:
            raw = value
    if kind != 1 or raw is None:
        return name, None
    return name, np.frombuffer(raw, "<f4").reshape(dims)


def read_onnx(path):
    """Return {parameter name: float32 array} of a BERT encoder."""
    with open(path, "rb") as f:
        data = memoryview(f.read())
    graph = next(v for n, _, v in fields(data) if n == 7)
    tensors, uses = {}, []
    for number, _, value in fields(graph):
        if number == 5:
            name, array = onnx_tensor(value)
            if array is not None:
                tensors[name] = array
        elif number == 1:
            inputs, node, op = [], "", ""
            for n, _, v in fields(value):
                if n == 1:
                    inputs.append(bytes(v).decode())
                elif n == 3:
                    node = bytes(v).decode()
                elif n == 4:
                    op = bytes(v).decode()
            uses.append((op, node, inputs))
    params = {}
    for name, array in tensors.items():
        if not name.startswith(("onnx::", "/", "pooler.")) and array.ndim:
            params[name] = array
    for op, node, inputs in uses:
        if op == "MatMul" and len(inputs) == 2 and inputs[1].startswith("onnx::MatMul"):
            name = node.strip("/").rsplit("/", 1)[0].replace("/", ".") + ".weight"
            if name in params:
                raise ValueError(f"two weights for {name}")
            params[name] = np.ascontiguousarray(tensors[inputs[1]].T)
    return {k: v for k, v in params.items() if not k.startswith("pooler.")}


def read_safetensors(path):
    with open(path, "rb") as f:
        n = struct.unpack("<Q", f.read(8))[0]
        head = json.loads(f.read(n))
        body = f.read()
    params = {}
    for name, info in head.items():
        if name == "__metadata__" or info["dtype"] not in ("F16", "F32") or name.startswith("pooler."):
            continue
        a, b = info["data_offsets"]
        dtype = "<f2" if info["dtype"] == "F16" else "<f4"
        params[name] = np.frombuffer(body[a:b], dtype).reshape(info["shape"])
    return params


def expected(layers, hidden=384, inner=1536, vocab=30522):
    want = {"embeddings.word_embeddings.weight": (vocab, hidden),
            "embeddings.position_embeddings.weight": (512, hidden),
            "embeddings.token_type_embeddings.weight": (2, hidden)}
    norms = ["embeddings.LayerNorm"]
    for i in range(layers):
        p = f"encoder.layer.{i}."
        for m in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
            want[p + m + ".weight"] = (hidden, hidden)
            want[p + m + ".bias"] = (hidden,)
        want[p + "intermediate.dense.weight"] = (inner, hidden)
        want[p + "intermediate.dense.bias"] = (inner,)
        want[p + "output.dense.weight"] = (hidden, inner)
        want[p + "output.dense.bias"] = (hidden,)
        norms += [p + "attention.output.LayerNorm", p + "output.LayerNorm"]
    for n in norms:
        want[n + ".weight"] = want[n + ".bias"] = (hidden,)
    return want


def write_parts(params, layers, stem, out):
    want = expected(layers)
    got = {k: v.shape for k, v in params.items()}
    if got != want:
        odd = sorted(set(got.items()) ^ set(want.items()))[:6]
        raise SystemExit(f"{stem}: the parameters are not those of a BERT encoder: {odd}")
    parts, size = [{}], 0
    for name in want:
        array = params[name].astype(np.float16)
        if size + array.nbytes > PART_BYTES:
            parts.append({})
            size = 0
        parts[-1][name] = array
        size += array.nbytes
    for i, part in enumerate(parts):
        folder = os.path.join(out, f"{stem}-{i + 1}")
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, f"{stem}-{i + 1}.npz")
        np.savez(path, **part)
        with open(path, "rb") as f:
            digest = hashlib.sha256(f.read()).hexdigest()
        print(f"{path} {os.path.getsize(path)} bytes sha256 {digest}")


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--gte", required=True)
    ap.add_argument("--minilm", required=True)
    ap.add_argument("--out", required=True)
    a = ap.parse_args()
    write_parts(read_onnx(a.gte), 12, "gte", a.out)
    write_parts(read_safetensors(a.minilm), 6, "minilm", a.out)


if __name__ == "__main__":
    main()
