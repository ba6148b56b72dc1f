#!/usr/bin/env python3
"""Train the static student: teachers, distillation, left-out folds, export.

    train.py --data DIR --work DIR --out DIR --stage all --minutes 9

DIR of --data holds data.npz and the teachers' parts; --work keeps teacher
vectors between calls; --out receives weights and metrics.  Stages:

    teacher   encode with the raw teachers, fine-tune those of --teachers for
              the full split and the four folds, encode with each
    sweep     students of several variants, numbers only
    final     the same, and export of the best by left-out numbers
    auto      sweep on the folds; then the variants that beat the first one,
              together; then export of the best by left-out numbers
    all       teacher, then final

Every random choice comes from a fixed seed.  Dev numbers are reported and
never used to choose anything.
"""
import argparse
import functools
import glob
import hashlib
import json
import math
import os
import shutil
import subprocess
import sys
import time
import traceback

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import numpy as np
import torch

import bert
import evaluate
import student as st
import teacher as te
from data import DEV, SPLITS, TRAIN, Data, left_out

DEFAULTS = {
    "seed": 0, "seeds": 1,
    # fine-tuning of a teacher
    "teacher_model": "gte", "teacher_steps": 350, "teacher_lr": 2e-5, "teacher_batch": 64, "teacher_pairs": 64, "teacher_run": 8,
    "teacher_openapi": 0.5, "teacher_extra": 0.0, "teacher_reworded": 0.0, "teacher_none": 0.0,
    # teachers of a student: a row of TEACHERS, for the second also "raw"; its share; logit scales of both
    "teacher": "base", "teacher2": "raw", "second": 0.5, "scale1": 30.0, "scale2": 20.0,
    # student; ema: share of the old rows that a running mean keeps at each step, 0 for the rows of the last step
    "dim": 256, "sif": 1e-3, "steps": 2000, "lr": 2e-3, "drop": 0.1, "scale": 20.0, "temperature": 20.0, "ema": 0.0,
    "batch": 1024, "clusters": 1500, "queries": 256, "runs": 48,
    "w_pool": 1.0, "w_regression": 3.0, "w_sets": 0.5, "w_sets_kl": 0.5, "w_openapi": 0.5, "w_extra": 0.0, "w_names": 0.2,
    "w_pair_kl": 0.0, "reworded": 0.0,
    # words: whole-word rows instead of pieces; alone: every word also a text of its own
    "vocab": "plain", "alone": 0,
    # fields: learn weights of name, category and parameters; gate: numbers in a token's key, 0 for no gate
    "fields": 0, "gate": 0,
}
MODELS = {"gte": ("gte", 12), "minilm": ("minilm", 6)}
# A teacher variant changes only teacher switches; its vectors are kept under its name.
TEACHERS = {
    "base": {},
    "wide": {"teacher_steps": 700, "teacher_extra": 0.3, "teacher_reworded": 0.3},
    "minilm": {"teacher_model": "minilm", "teacher_lr": 4e-5},
}
WORDS = {"vocab": "words", "alone": 1}
BASE = {**WORDS, "fields": 1}
VARIANTS = {
    "recipe": {},
    "words": WORDS,
    "words-fields": BASE,
    "gate16": {**BASE, "gate": 16},
    "tuned2": {**BASE, "teacher2": "minilm", "scale2": 30.0},
    "wide": {**BASE, "teacher": "wide"},
    "reworded": {**BASE, "w_pair_kl": 1.0, "reworded": 0.3},
    "extra": {**BASE, "w_extra": 0.3},
    "long": {**BASE, "steps": 4000},
    "scale30": {**BASE, "scale": 30.0},
    "drop2": {**BASE, "drop": 0.2},
    "regression6": {**BASE, "w_regression": 6.0},
    "sets2": {**BASE, "w_sets": 1.0, "w_sets_kl": 1.0},
    "openapi1": {**BASE, "w_openapi": 1.0},
    "nosif": {**BASE, "sif": 1e9},
    "ema": {**BASE, "ema": 0.998},
    "seeds3": {**BASE, "seeds": 3},
}
TINY = {"teacher_steps": 3, "steps": 6, "batch": 128, "clusters": 20, "queries": 16, "runs": 4, "teacher_batch": 6, "teacher_pairs": 12}


def device():
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def settle(seed):
    torch.manual_seed(seed)
    np.random.seed(seed)
    torch.use_deterministic_algorithms(True, warn_only=True)
    if hasattr(torch.utils, "deterministic"):
        # Nothing here reads memory before writing it; filling every new tensor costs a kernel each.
        torch.utils.deterministic.fill_uninitialized_memory = False
    # Several processes share the cores, and what they do there is small.
    torch.set_num_threads(2)


def options(a, variant, teacher=None):
    """The switches of a variant, or of several joined by +, where the later wins; with teacher, those of a teacher."""
    opt = dict(DEFAULTS)
    for part in variant.split("+"):
        opt.update(VARIANTS[part])
    if teacher:
        opt.update(TEACHERS[teacher])
    for item in a.set:
        key, value = item.split("=", 1)
        if key not in DEFAULTS:
            raise SystemExit(f"--set {key}: no such switch; there are {', '.join(DEFAULTS)}")
        opt[key] = type(DEFAULTS[key])(value)
    if a.tiny:
        opt.update(TINY)
    return opt


def save(path, tensor):
    np.save(path + ".tmp.npy", tensor.cpu().numpy())
    os.replace(path + ".tmp.npy", path)


def load(path, dev):
    return torch.from_numpy(np.load(path)).to(dev)


def job_raw(a, data, name):
    """A raw teacher: its vectors, and for gte also its states per token."""
    t = time.time()
    model = bert.load(a.data, *MODELS[name], 2 * a.tiny).to(data.device)
    cut = 24 if a.tiny else 256
    if name == "gte":
        vec, states = te.encode(model, data, cut, sums=True)
        single = te.single_tokens(model, data)
        for mode, (sums, count) in states.items():
            for part, x in (("sums", sums), ("count", count), ("single", single[mode])):
                save(os.path.join(a.work, f"{part}-{mode}.npy"), x)
    else:
        vec = te.encode(model, data, cut)
    save(os.path.join(a.work, f"{name}.npy"), vec)
    print(f"{name}: {data.n} texts in {time.time() - t:.1f} s", flush=True)
    result = evaluate.evaluate_texts(data, TRAIN + DEV, lambda i: vec[i])
    show(name, result)
    write(a, f"raw-{name}", {"name": name, "split": "full", "results": result})


def job_teacher(a, data, name, split):
    opt = options(a, "recipe", name)
    raw = load(os.path.join(a.work, "gte.npy"), data.device)
    names = [s for s in TRAIN if s not in left_out(split)]
    hard = te.hard_negatives(data, raw, names)
    model = bert.load(a.data, *MODELS[opt["teacher_model"]], 2 * a.tiny).to(data.device)
    t = time.time()
    te.fine_tune(model, data, split, hard, opt, a.deadline, lambda m: print(m, flush=True))
    vec = te.encode(model, data, 24 if a.tiny else 256)
    save(os.path.join(a.work, f"tuned-{name}-{split}.npy"), vec)
    result = evaluate.evaluate_texts(data, left_out(split) + DEV, lambda i: vec[i])
    print(f"teacher {name} {split}: fine-tuned and encoded in {time.time() - t:.0f} s", flush=True)
    show(f"teacher {name} {split}", result)
    write(a, f"teacher-{name}-{split}", {"name": f"teacher-{name}", "split": split, "results": result, "switches": opt})


def job_student(a, data, variants, split):
    """Students of several variants for one split, one after the other; one that fails does not stop the next."""
    get = functools.lru_cache(None)(lambda n: load(os.path.join(a.work, n + ".npy"), data.device))
    hard = te.hard_negatives(data, get("gte"), [s for s in TRAIN if s not in left_out(split)])
    kept, pace, failed = {}, 0.0, []
    for variant in variants.split(","):
        opt = options(a, variant)
        start, work = time.time(), opt["steps"] * opt["seeds"]
        if start + 1.2 * pace * work > a.deadline:
            print(f"{variant} {split}: not run, {a.deadline - start:.0f} s left and it would take {pace * work:.0f} s", flush=True)
            continue
        try:
            one_student(a, data, variant, split, opt, get, hard, kept)
        except Exception:
            traceback.print_exc()
            failed.append(variant)
        pace = (time.time() - start) / work
    if failed:
        raise SystemExit(f"{split}: {', '.join(failed)} failed")


def one_student(a, data, variant, split, opt, get, hard, kept):
    """Train, round to int8, measure, write work/students/VARIANT-SPLIT.i8 and the record."""
    start = time.time()
    one = get(f"tuned-{opt['teacher']}-{split}")
    two = get("minilm" if opt["teacher2"] == "raw" else f"tuned-{opt['teacher2']}-{split}")
    states = [get(f"{n}-{opt['vocab']}") for n in ("sums", "count", "single")]
    clusters = kept.setdefault((opt["teacher"], opt["alone"]), {})
    student = st.average([st.train(data, split, dict(opt, seed=opt["seed"] + k), *states, one, two, hard, clusters, lambda m: print(m, flush=True))
                          for k in range(opt["seeds"])])
    q, scale = st.quantise(student.table.detach())
    result = evaluate.evaluate_texts(data, left_out(split) + DEV, st.shipped(student, q, scale, data))
    # int8 rows, one float32 scale per row, then with a gate float32 keys and asks of each row, all little endian.
    body = q.cpu().numpy().tobytes() + scale.cpu().numpy().astype("<f4").tobytes()
    if opt["gate"]:
        body += torch.cat([student.keys, student.asks], 1).detach().cpu().numpy().astype("<f4").tobytes()
    with open(weights(a, variant, split), "wb") as f:
        f.write(body)
    seconds = round(time.time() - start, 1)
    write(a, f"student-{variant}-{split}", {
        "name": variant, "split": split, "results": result, "switches": opt, "seconds": seconds,
        "fields": [round(float(x), 5) for x in student.field_weights().detach().cpu()],
        "rows": len(q), "empty_rows": int((q == 0).all(1).sum()), "sha256": hashlib.sha256(body).hexdigest()})
    show(f"student {variant} {split} ({seconds:.0f} s)", result)
    if score(a, variant) is not None:
        print(f"== {variant}: all folds done, {score(a, variant):.2f} over the left-out sets", flush=True)


def weights(a, variant, split):
    return os.path.join(a.work, "students", f"{variant}-{split}.i8")


def export(a, variant):
    """Copy the students of a variant to --out, with student.json: what a reader of the weights needs."""
    found = {s: record(a, f"student-{variant}-{s}") for s in a.splits}
    missing = [s for s, r in found.items() if r is None]
    if missing:
        a.failed.append(f"export of {variant}: no student for {', '.join(missing)}")
        return
    first = found[a.splits[0]]
    about = {"variant": variant, "switches": first["switches"], "rows": first["rows"], "dim": first["switches"]["dim"], "gate": first["switches"]["gate"],
             "fields": {s: r["fields"] for s, r in found.items()},
             "files": {f"student-{s}.i8": r["sha256"] for s, r in found.items()}}
    for s in a.splits:
        shutil.copyfile(weights(a, variant, s), os.path.join(a.out, f"student-{s}.i8"))
    with open(os.path.join(a.out, "student.json"), "w") as f:
        json.dump(about, f, indent=1, sort_keys=True)
        f.write("\n")
    print(f"exported {variant}: {', '.join(a.splits)}", flush=True)


def record(a, name):
    """A result written before; None if there is none."""
    path = os.path.join(a.work, "results", name + ".json")
    if not os.path.exists(path):
        return None
    with open(path) as f:
        return json.load(f)


def write(a, name, content):
    # In one move: other processes read these while they are written.
    path = os.path.join(a.work, "results", name + ".json")
    with open(path + ".tmp", "w") as f:
        json.dump(content, f, sort_keys=True)
    os.replace(path + ".tmp", path)


def show(label, results):
    cells = "  ".join(f"{n} {r['ndcg']:.1f}/{r['fused']:.1f}" for n, r in results.items())
    print(f"{label}: {cells}", flush=True)


def parallel(a, jobs, until=None):
    """Run jobs as processes, at most --width at a time; notes which failed."""
    waiting, running = list(jobs), []
    argv = [sys.executable, "-u", os.path.abspath(__file__)] + sys.argv[1:] + ["--until", str(until or a.deadline)]
    print(f"[{time.time() - a.start:.0f} s] {'; '.join(jobs) or 'nothing to run'}", flush=True)
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


def summary(a):
    """A table of every result so far: mean over left-out tool sets, left-out sets, dev, each alone / with BM25."""
    rows, found = {}, {}
    for path in sorted(glob.glob(os.path.join(a.work, "results", "*.json"))):
        name = os.path.basename(path)[:-5]
        r = found[name] = record(a, name)
        row = rows.setdefault(r["name"], {"left": {}, "dev": {}})
        row["left"].update({k: v for k, v in r["results"].items() if k in TRAIN})
        if r["split"] == "full":
            row["dev"] = r["results"]
    tool = [s for s in evaluate.TOOL if s in TRAIN]
    print(f"{'name':<16} left-out tools(5)   left-out all(7)   dev(3), never selected on: alone / with BM25")
    for name, row in rows.items():
        cells = [(evaluate.mean(row["left"], tool, k), evaluate.mean(row["left"], TRAIN, k), evaluate.mean(row["dev"], DEV, k)) for k in ("ndcg", "fused")]
        print(f"{name:<16} " + "   ".join(f"{x:5.1f} / {y:5.1f}" for x, y in zip(*cells)) +
              f"   ({sum(s in row['left'] for s in TRAIN)} sets left out)", flush=True)
    with open(os.path.join(a.out, "metrics.json"), "w") as f:
        json.dump(found, f, indent=1, sort_keys=True)


def stage_teacher(a):
    parallel(a, [f"raw:{m}" for m in MODELS if not record(a, f"raw-{m}")])
    if not a.failed:
        parallel(a, [f"teacher:{t}:{s}" for t in a.teachers.split(",") for s in a.splits if not record(a, f"teacher-{t}-{s}")])
    summary(a)


def stage_students(a, variants, until=None, base=None):
    """One process per split does every variant in turn, so that data are read once; with base, the full split does that alone."""
    jobs = []
    for s in a.splits:
        todo = [v for v in variants if not record(a, f"student-{v}-{s}") and (base in (None, v) or s != "full")]
        if todo:
            jobs.append(f"student:{','.join(todo)}:{s}")
    parallel(a, jobs, until)
    summary(a)


def score(a, variant):
    """Mean over the left-out sets of alone and with BM25; None unless every fold was run."""
    left = {}
    for split in SPLITS[1:]:
        r = record(a, f"student-{variant}-{split}")
        if r is None:
            return None
        left.update({k: v for k, v in r["results"].items() if k in left_out(split)})
    return 0.5 * (evaluate.mean(left, TRAIN, "ndcg") + evaluate.mean(left, TRAIN, "fused"))


def seconds(a, variant):
    return max(record(a, f"student-{variant}-{s}")["seconds"] for s in SPLITS[1:])


def combine(a, base, variants):
    """The name of all variants together that beat base by 0.15 or more, as far as the time left allows; None if fewer than two."""
    gains = {v: score(a, v) - score(a, base) for v in variants if v != base and score(a, v) is not None}
    print(f"gains over {base} ({score(a, base):.2f}): " + ", ".join(f"{v} {gains[v]:+.2f}" for v in sorted(gains, key=gains.get, reverse=True)), flush=True)
    taken = [v for v in sorted(gains, key=gains.get) if gains[v] >= 0.15]  # the best last, where the later wins
    cost = {v: seconds(a, v) / seconds(a, base) for v in taken}
    while taken:
        # Five students at once instead of four, and the start of the processes.
        need = 1.25 * seconds(a, base) * math.prod(cost[v] for v in taken) + 30
        left = a.deadline - time.time()
        print(f"together: {', '.join(taken)}; takes about {need:.0f} s, {left:.0f} s left", flush=True)
        if need < left:
            break
        taken.remove(max(taken, key=cost.get))
    return "+".join(dict.fromkeys("+".join(taken).split("+"))) if len(taken) > 1 else None


def best_of(a, variants):
    best = max((v for v in variants if score(a, v) is not None), key=lambda v: score(a, v))
    print(f"best by left-out numbers: {best} {score(a, best):.2f}", flush=True)
    return best


def stage_auto(a, variants):
    base = variants[0]
    stage_students(a, variants, a.deadline - a.reserve, base)
    if score(a, base) is None:
        raise SystemExit(f"{base} did not end on every fold: nothing to compare with")
    # Something comes back even if what follows is cut.
    export(a, base)
    together = combine(a, base, variants)
    if together:
        stage_students(a, [together])
        variants = variants + [together]
    best = best_of(a, variants)
    stage_students(a, [best])
    export(a, best)


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--data", required=True)
    ap.add_argument("--work", required=True)
    ap.add_argument("--out", required=True)
    ap.add_argument("--stage", default="all", choices=("teacher", "sweep", "final", "auto", "all", "summary"))
    ap.add_argument("--minutes", type=float, default=9.0)
    ap.add_argument("--teachers", default="base", help="teacher variants to fine-tune, comma separated")
    ap.add_argument("--variants", default="words-fields", help="student variants, comma separated; a+b joins switches; auto compares with the first")
    ap.add_argument("--splits", default=",".join(SPLITS))
    ap.add_argument("--width", type=int, default=5, help="processes at a time")
    ap.add_argument("--set", action="append", default=[], metavar="SWITCH=VALUE")
    ap.add_argument("--reserve", type=float, default=150, help="auto: seconds kept for what follows the sweep")
    ap.add_argument("--tiny", action="store_true")
    ap.add_argument("--until", type=float, default=0, help=argparse.SUPPRESS)
    ap.add_argument("--job", help=argparse.SUPPRESS)
    a = ap.parse_args()
    a.start, a.failed = time.time(), []
    a.deadline = a.until or a.start + 60 * a.minutes
    for folder in (os.path.join(a.work, "results"), os.path.join(a.work, "students"), a.out):
        os.makedirs(folder, exist_ok=True)
    if a.job:
        settle(0)
        data = Data(os.path.join(a.data, "data.npz"), device())
        kind, *rest = a.job.split(":")
        {"raw": job_raw, "teacher": job_teacher, "student": job_student}[kind](a, data, *rest)
        return
    a.splits, variants = a.splits.split(","), a.variants.split(",")
    for name, known in [(v, VARIANTS) for x in variants for v in x.split("+")] + [(t, TEACHERS) for t in a.teachers.split(",")]:
        if name not in known:
            raise SystemExit(f"{name}: no such variant; there are {', '.join(known)}")
    if a.stage in ("teacher", "all"):
        stage_teacher(a)
    if a.stage == "summary":
        summary(a)
    if a.stage in ("sweep", "final", "all") and not a.failed:
        stage_students(a, variants)
        if a.stage != "sweep":
            export(a, best_of(a, variants))
    if a.stage == "auto":
        stage_auto(a, variants)
    if a.failed:
        raise SystemExit(f"failed: {'; '.join(a.failed)}: their output is above")


if __name__ == "__main__":
    main()
