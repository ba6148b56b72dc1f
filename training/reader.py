#!/usr/bin/env python3
"""Train the second reader: a 6-layer encoder fine-tuned on the pairs.

    reader.py --data DIR --work DIR --splits full,fold0,... --seeds 3

DIR of --data and --work are those of train.py, after its job raw:minilm: the
hard negatives come from the vectors of the raw MiniLM that it left there.
A split is trained once per seed; the seeds are averaged and a share of the
base weights is put back. Writes under --work/reader:

    weights-SPLIT.f16   every tensor, float16, in the order of weights.json
    vectors-SPLIT.i8    of every document and evaluated query of every set and of
                        the queries that nothing answers: 384 int8 and a float32 scale each
    weights.json        names and shapes of the tensors
    all-VARIANT-SPLIT.npy   vectors of every text, for nothing.py

and the numbers, alone and with BM25, left out and dev, to --work/results.
Dev numbers are reported and never used to choose anything.
"""
import argparse
import hashlib
import json
import os
import subprocess
import sys
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import numpy as np
import torch

import bert
import evaluate
import teacher as te
import train
from data import DEV, SPLITS, TRAIN, Data, left_out

BASE = dict(train.DEFAULTS, teacher_model="minilm", teacher_lr=4e-5, teacher_steps=600, teacher_pairs=128)
VARIANTS = {
    "openapi": BASE,
    "extra": dict(BASE, teacher_extra=0.25, teacher_reworded=0.3),
    "none": dict(BASE, teacher_extra=0.25, teacher_reworded=0.3, teacher_none=0.3),
    "none1": dict(BASE, teacher_extra=0.25, teacher_reworded=0.3, teacher_none=1.0),
    "wide": dict(BASE, teacher_extra=0.5, teacher_reworded=0.3, teacher_steps=900),
}


def state_path(a, split, seed):
    return os.path.join(a.work, "reader", f"state-{a.variant}-{split}-{seed}.pt")


def load_base(a, device):
    return bert.load(a.data, *train.MODELS["minilm"], 2 * a.tiny).to(device)


def tune(a, data, split, seed):
    """Fine-tune one seed of one split and keep its weights."""
    start = time.time()
    opt = dict(VARIANTS[a.variant], seed=seed)
    if a.tiny:
        opt.update(train.TINY)
    torch.manual_seed(seed)
    raw = train.load(os.path.join(a.work, "minilm.npy"), data.device)
    hard = te.hard_negatives(data, raw, [s for s in TRAIN if s not in left_out(split)])
    model = load_base(a, data.device)
    te.fine_tune(model, data, split, hard, opt, a.deadline, lambda m: None)
    torch.save({k: v.half().cpu() for k, v in model.state_dict().items()}, state_path(a, split, seed))
    print(f"{a.variant} {split} seed {seed}: {time.time() - start:.0f} s", flush=True)


def mixed(a, split, seeds, back):
    """The mean of the seeds, with a share of the base weights put back."""
    base = load_base(a, "cpu").state_dict()
    states = [torch.load(state_path(a, split, s)) for s in seeds]
    return {k: (1 - back) * sum(s[k].float() for s in states) / len(states) + back * v for k, v in base.items()}


def numbers(data, vec, split):
    return evaluate.evaluate_texts(data, left_out(split) + DEV, lambda i: vec[i])


def finish(a, data, split):
    """Average, measure, write weights and vectors."""
    model = load_base(a, data.device)
    cut = 24 if a.tiny else 256
    found = {}
    seeds = range(a.seeds)
    for name, use, back in (("one seed", [0], 0.0), ("mean", seeds, 0.0), ("mean and base", seeds, a.back)):
        model.load_state_dict(mixed(a, split, use, back))
        vec = te.encode(model, data, cut)
        found[name] = numbers(data, vec, split)
        train.show(f"{a.variant} {split} {name}", found[name])
    train.save(os.path.join(a.work, "reader", f"all-{a.variant}-{split}.npy"), vec)
    state = {k: v.half() for k, v in mixed(a, split, seeds, a.back).items()}
    body = b"".join(v.numpy().astype("<f2").tobytes() for v in state.values())
    with open(os.path.join(a.work, "reader", f"weights-{split}.f16"), "wb") as f:
        f.write(body)
    with open(os.path.join(a.work, "reader", "weights.json"), "w") as f:
        json.dump([[k, list(v.shape)] for k, v in state.items()], f)
    texts = np.concatenate([np.concatenate([data.sets[s].edoc, data.sets[s].q[data.sets[s].eval]]) for s in TRAIN + DEV] + [data.nothing])
    rows = vec[texts].float().cpu().numpy()
    scale = np.abs(rows).max(1, keepdims=True) / 127
    packed = np.concatenate([np.round(rows / scale).astype(np.int8).view(np.uint8), scale.astype("<f4").view(np.uint8)], 1)
    packed.tofile(os.path.join(a.work, "reader", f"vectors-{split}.i8"))
    train.write(a, f"reader-{a.variant}-{split}", {
        "name": f"reader-{a.variant}", "split": split, "results": found["mean and base"], "all": found, "switches": VARIANTS[a.variant],
        "sha256": hashlib.sha256(body).hexdigest()})


def summary(a, splits):
    for name in ("one seed", "mean", "mean and base"):
        left, dev = {}, {}
        for s in splits:
            r = train.record(a, f"reader-{a.variant}-{s}")
            left.update({k: v for k, v in r["all"][name].items() if k in TRAIN})
            if s == "full":
                dev = r["all"][name]
        row = [(evaluate.mean(left, TRAIN, k), evaluate.mean(dev, DEV, k)) for k in ("ndcg", "fused")]
        print(f"== {a.variant} {name}: left out {row[0][0]:.1f} / {row[1][0]:.1f} ({len(left)} sets), dev {row[0][1]:.1f} / {row[1][1]:.1f}", flush=True)


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--data", required=True)
    ap.add_argument("--work", required=True)
    ap.add_argument("--minutes", type=float, default=9.0)
    ap.add_argument("--splits", default=",".join(SPLITS))
    ap.add_argument("--variant", default="openapi", choices=VARIANTS)
    ap.add_argument("--seeds", type=int, default=3)
    ap.add_argument("--back", type=float, default=0.25, help="share of the base weights that is put back")
    ap.add_argument("--width", type=int, default=5, help="processes at a time")
    ap.add_argument("--tiny", action="store_true")
    ap.add_argument("--until", type=float, default=0, help=argparse.SUPPRESS)
    ap.add_argument("--job", help=argparse.SUPPRESS)
    a = ap.parse_args()
    a.start, a.failed = time.time(), []
    a.deadline = a.until or a.start + 60 * a.minutes
    for folder in ("reader", "results"):
        os.makedirs(os.path.join(a.work, folder), exist_ok=True)
    if a.job:
        train.settle(0)
        data = Data(os.path.join(a.data, "data.npz"), train.device())
        kind, split, *seeds = a.job.split(":")
        if kind == "tune":
            for seed in seeds[0].split(","):
                tune(a, data, split, int(seed))
        else:
            finish(a, data, split)
        return
    splits = a.splits.split(",")
    parallel(a, [f"tune:{s}:{k}" for s in splits for k in range(a.seeds)])
    parallel(a, [f"finish:{s}" for s in splits])
    if a.failed:
        raise SystemExit(f"failed: {'; '.join(a.failed)}: their output is above")
    summary(a, splits)


def parallel(a, jobs):
    """Run jobs as processes of this file, at most --width at a time."""
    waiting, running = list(jobs), []
    argv = [sys.executable, "-u", os.path.abspath(__file__)] + sys.argv[1:] + ["--until", str(a.deadline)]
    print(f"[{time.time() - a.start:.0f} s] {len(jobs)} jobs: {'; '.join(jobs)}", flush=True)
    while waiting or running:
        while waiting and len(running) < a.width:
            job = waiting.pop(0)
            running.append((job, subprocess.Popen(argv + ["--job", job])))
        for item in list(running):
            code = item[1].poll()
            if code is not None:
                running.remove(item)
                if code:
                    a.failed.append(f"{item[0]} ({code})")
        time.sleep(0.1)


if __name__ == "__main__":
    main()
