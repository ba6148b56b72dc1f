#!/usr/bin/env python3
"""Train the static student: teachers, distillation, left-out folds, export.

    train.py --data DIR --work DIR --out DIR --stage all --minutes 9

DIR of --data holds data.npz and the teachers' parts; --work keeps teacher
vectors between calls; --out receives weights and metrics.  Stages:

    teacher   encode with raw gte-small, fine-tune it for the full split and
              the four folds, encode with each
    sweep     students of several variants on the folds, numbers only
    final     students of one variant for the full split and the folds, exported
    auto      sweep; then the switches that helped, together; then final with
              the best by left-out numbers
    all       teacher, then final

Every random choice comes from a fixed seed.  Dev numbers are reported and
never used to choose anything.
"""
import argparse
import glob
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
import student as st
import teacher as te
from data import DEV, SPLITS, TRAIN, Data, left_out

DEFAULTS = {
    "seed": 0, "seeds": 1,
    # teacher
    "teacher": "base", "teacher_steps": 350, "teacher_lr": 2e-5, "teacher_batch": 64, "teacher_pairs": 64, "teacher_run": 8,
    "teacher_openapi": 0.5, "teacher_extra": 0.0, "teacher_reworded": 0.0,
    # student
    "dim": 256, "sif": 1e-3, "init_scale": 1.0, "steps": 2000, "lr": 2e-3, "drop": 0.1, "scale": 20.0, "temperature": 20.0,
    "batch": 1024, "clusters": 1500, "queries": 256, "runs": 48, "second": 0.5, "scale1": 30.0,
    "w_pool": 1.0, "w_regression": 3.0, "w_sets": 0.5, "w_sets_kl": 0.5, "w_openapi": 0.5, "w_extra": 0.0, "w_names": 0.2,
    "w_pair_kl": 0.0, "reworded": 0.0,
    # words: whole-word rows instead of pieces; alone: every word also a text of its own
    "vocab": "plain", "alone": 0,
    # weights of prose, name, category, parameters ("learn" to learn them); weight of a token that stood before
    "fields": "1,1,1,1", "repeat": 1.0,
    "keep": 0,
}
# A teacher variant changes only teacher switches; its vectors are kept under its name.
TEACHERS = {
    "base": {},
    "wide": {"teacher_steps": 700, "teacher_extra": 0.3, "teacher_reworded": 0.3},
}
WORDS = {"vocab": "words", "alone": 1}
SYNTHETIC = {"w_pair_kl": 1.0, "reworded": 0.3}
VARIANTS = {
    "recipe": {},
    "raw": {"teacher": "raw", "scale1": 40.0},
    "alone": {"alone": 1},
    "words": WORDS,
    "words-fields": {**WORDS, "fields": "learn"},
    "words-once": {**WORDS, "repeat": 0.5},
    "words-fields-once": {**WORDS, "fields": "learn", "repeat": 0.5},
    "words-pairkl": {**WORDS, **SYNTHETIC},
    "words-extra": {**WORDS, **SYNTHETIC, "w_extra": 0.3},
    "words-wide": {**WORDS, "teacher": "wide"},
    "words-wide-extra": {**WORDS, **SYNTHETIC, "teacher": "wide", "w_extra": 0.3},
    "words-seeds3": {**WORDS, "seeds": 3},
    "words-one": {**WORDS, "second": 0.0},
    "words-scale30": {**WORDS, "scale": 30.0},
    "words-drop2": {**WORDS, "drop": 0.2},
    "words-regression6": {**WORDS, "w_regression": 6.0},
    "words-sets2": {**WORDS, "w_sets": 1.0, "w_sets_kl": 1.0},
    "words-long": {**WORDS, "steps": 4000},
    "words-init2": {**WORDS, "init_scale": 2.0},
    "words-init05": {**WORDS, "init_scale": 0.5},
    "words-nosif": {**WORDS, "sif": 1e9},
    "words-openapi1": {**WORDS, "w_openapi": 1.0},
    "all-in": {**WORDS, **SYNTHETIC, "teacher": "wide", "w_extra": 0.3, "fields": "learn", "repeat": 0.5},
}
TINY = {"teacher_steps": 3, "steps": 6, "batch": 128, "clusters": 20, "queries": 16, "runs": 4, "teacher_batch": 6, "teacher_pairs": 12, "seeds": 1}


def device():
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def settle(seed):
    torch.manual_seed(seed)
    np.random.seed(seed)
    torch.use_deterministic_algorithms(True, warn_only=True)


def options(a, variant):
    opt = dict(DEFAULTS)
    opt.update(VARIANTS[variant])
    for item in a.set:
        key, value = item.split("=", 1)
        if key not in DEFAULTS:
            raise SystemExit(f"--set {key}: no such switch; there are {', '.join(DEFAULTS)}")
        opt[key] = type(DEFAULTS[key])(value)
    opt.update(TEACHERS.get(opt["teacher"], {}))
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
    model = bert.load(a.data, *{"gte": ("gte", 12), "minilm": ("minilm", 6)}[name], 2 * a.tiny).to(data.device)
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
    opt = options(a, "recipe")
    opt.update(TEACHERS[name])
    if a.tiny:
        opt.update(TINY)
    raw = load(os.path.join(a.work, "gte.npy"), data.device)
    names = [s for s in TRAIN if s not in left_out(split)]
    hard = te.hard_negatives(data, raw, names)
    model = bert.load(a.data, "gte", 12, 2 * a.tiny).to(data.device)
    te.fine_tune(model, data, split, hard, opt, a.deadline, lambda m: print(m, flush=True))
    vec = te.encode(model, data, 24 if a.tiny else 256)
    save(os.path.join(a.work, f"tuned-{name}-{split}.npy"), vec)
    result = evaluate.evaluate_texts(data, left_out(split) + DEV, lambda i: vec[i])
    show(f"teacher {name} {split}", result)
    write(a, f"teacher-{name}-{split}", {"name": f"teacher-{name}", "split": split, "results": result, "switches": opt})


def job_student(a, data, variants, split, export):
    """Students of several variants for one split, one after the other."""
    get = lambda n: load(os.path.join(a.work, n + ".npy"), data.device)
    raw, two = get("gte"), get("minilm")
    hard = te.hard_negatives(data, raw, [s for s in TRAIN if s not in left_out(split)])
    kept, took = {}, 0.0
    for variant in variants.split("+"):
        left = a.deadline - time.time()
        if took and left < 1.3 * took:
            print(f"{variant} {split}: not run, {left:.0f} s left and the last one took {took:.0f} s", flush=True)
            continue
        start = time.time()
        opt = options(a, variant)
        one = raw if opt["teacher"] == "raw" else get(f"tuned-{opt['teacher']}-{split}")
        start_rows = tuple(get(f"{n}-{opt['vocab']}") for n in ("sums", "count", "single"))
        key = (opt["teacher"], opt["alone"])
        made = []
        for k in range(opt["seeds"]):
            made.append(st.train(data, split, dict(opt, seed=opt["seed"] + k), *start_rows, one, two, hard, kept.setdefault(key, {}),
                                 lambda m: print(m, flush=True)))
        one_student(a, data, variant, split, export, opt, made)
        took = (time.time() - start) / opt["seeds"]


def one_student(a, data, variant, split, export, opt, made):
    student = st.average([m[0] for m in made]) if len(made) > 1 else made[0][0]
    q, scale = st.finish(student, made[0][1], opt)
    names = left_out(split) + DEV
    result = evaluate.evaluate_texts(data, names, st.shipped(student, q, scale, data))
    show(f"student {variant} {split}", result)
    fields = [round(float(x), 4) for x in (student.fields - student.fields[0]).exp().detach().cpu()]
    record = {"name": variant, "split": split, "results": result, "switches": opt, "fields": fields,
              "rows": student.rows, "empty_rows": int((q == 0).all(1).sum())}
    if variant in ("recipe", "words"):
        for keep in (24000, 18000):
            small = st.finish(student, made[0][1], dict(opt, keep=keep))
            record[f"keep{keep}"] = evaluate.evaluate_texts(data, names, st.shipped(student, *small, data))
    if export:
        record["files"] = write_weights(a, split, student, q, scale)
    write(a, f"student-{variant}-{split}", record)


def write_weights(a, split, student, q, scale):
    """student-SPLIT.i8: int8 rows, then one float32 scale per row, little endian; with --f16 also the rows before rounding."""
    files = {}
    body = q.cpu().numpy().tobytes() + scale.cpu().numpy().astype("<f4").tobytes()
    todo = [(f"student-{split}.i8", body)]
    if a.f16 and split == "full":
        rows = student.table.detach()[:student.rows].cpu().numpy().astype("<f2")
        todo += [(f"student-{split}-{i + 1}.f16", part.tobytes()) for i, part in enumerate(np.array_split(rows, 2))]
    for name, content in todo:
        with open(os.path.join(a.out, name), "wb") as f:
            f.write(content)
        files[name] = hashlib.sha256(content).hexdigest()
    return files


def write(a, name, record):
    with open(os.path.join(a.work, "results", name + ".json"), "w") as f:
        json.dump(record, f, sort_keys=True)


def show(label, results):
    cells = "  ".join(f"{n} {r['ndcg']:.1f}/{r['fused']:.1f}" for n, r in results.items())
    print(f"{label}: {cells}", flush=True)


def parallel(a, jobs, width):
    """Run jobs as processes, at most width at a time; says at the end which failed."""
    waiting, running, failed = list(jobs), [], []
    while waiting or running:
        while waiting and len(running) < width:
            job = waiting.pop(0)
            running.append((job, subprocess.Popen([sys.executable, "-u", os.path.abspath(__file__)] + a.argv + ["--job", job])))
        for item in list(running):
            code = item[1].poll()
            if code is not None:
                running.remove(item)
                if code:
                    failed.append(f"{item[0]} ({code})")
        time.sleep(0.1)
    if failed:
        summary(a)
        raise SystemExit(f"failed: {'; '.join(failed)}: their output is above")


def summary(a):
    """A table of every result so far: mean over left-out tool sets, dev, both alone / with BM25."""
    rows = {}
    for path in sorted(glob.glob(os.path.join(a.work, "results", "*.json"))):
        with open(path) as f:
            r = json.load(f)
        row = rows.setdefault(r["name"], {"left": {}, "dev": {}})
        row["left"].update({k: v for k, v in r["results"].items() if k in TRAIN})
        if r["split"] == "full":
            row["dev"] = r["results"]
    tool = [s for s in evaluate.TOOL if s in TRAIN]
    lines = [f"{'name':<16} left-out tools(5)   left-out all(7)   dev(3), never selected on: alone / with BM25"]
    for name, row in rows.items():
        cells = [(evaluate.mean(row["left"], tool, k), evaluate.mean(row["left"], TRAIN, k), evaluate.mean(row["dev"], DEV, k)) for k in ("ndcg", "fused")]
        lines.append(f"{name:<16} " + "   ".join(f"{x:5.1f} / {y:5.1f}" for x, y in zip(*cells)) +
                     f"   ({sum(s in row['left'] for s in TRAIN)} sets left out)")
    text = "\n".join(lines)
    print(text, flush=True)
    with open(os.path.join(a.out, "metrics.json"), "w") as f:
        found = {}
        for path in sorted(glob.glob(os.path.join(a.work, "results", "*.json"))):
            with open(path) as g:
                found[os.path.basename(path)[:-5]] = json.load(g)
        json.dump(found, f, indent=1, sort_keys=True)
    with open(os.path.join(a.out, "summary.txt"), "w") as f:
        f.write(text + "\n")


def have(a, name):
    return os.path.exists(os.path.join(a.work, "results", name + ".json"))


def stage_teacher(a):
    if not have(a, "raw-gte"):
        parallel(a, ["raw:gte"], 1)
    jobs = [f"teacher:{t}:{s}" for t in a.teachers.split(",") if t != "raw" for s in a.splits if not have(a, f"teacher-{t}-{s}")]
    parallel(a, jobs, a.width)


def stage_students(a, variants, export):
    """One process per split does every variant in turn, so that data are read once."""
    for v in variants:
        if v not in VARIANTS:
            raise SystemExit(f"--variants {v}: no such variant; there are {', '.join(VARIANTS)}")
    if not have(a, "raw-minilm"):
        parallel(a, ["raw:minilm"], 1)
    kind = "export" if export else "student"
    jobs = []
    for s in a.splits:
        todo = [v for v in variants if export or not have(a, f"student-{v}-{s}")]
        if todo:
            jobs.append(f"{kind}:{'+'.join(todo)}:{s}")
    parallel(a, jobs, a.width)
    summary(a)


def score(a, variant):
    """Mean over the left-out sets of alone and with BM25; None unless every fold was run."""
    left = {}
    for split in SPLITS[1:]:
        path = os.path.join(a.work, "results", f"student-{variant}-{split}.json")
        if not os.path.exists(path):
            return None
        with open(path) as f:
            left.update({k: v for k, v in json.load(f)["results"].items() if k in left_out(split)})
    return 0.5 * (evaluate.mean(left, TRAIN, "ndcg") + evaluate.mean(left, TRAIN, "fused"))


def combine(a, base, variants):
    """Write the variant "combined": every switch that beat base by 0.15 or more, the best where two differ."""
    floor, gains = score(a, base), []
    for v in variants:
        got = score(a, v)
        if got is not None and floor is not None and v != base:
            gains.append((got - floor, v))
    switches = dict(VARIANTS[base])
    taken = []
    for gain, v in sorted(gains):  # the best last, so that it wins
        changed = {k: x for k, x in VARIANTS[v].items() if VARIANTS[base].get(k) != x}
        if gain >= 0.15 and all(VARIANTS[v].get(k) == x for k, x in VARIANTS[base].items()):
            switches.update(changed)
            taken.append(v)
    print("gains over " + base + ": " + ", ".join(f"{v} {g:+.2f}" for g, v in sorted(gains, reverse=True)), flush=True)
    with open(os.path.join(a.work, "combined.json"), "w") as f:
        json.dump(switches, f, sort_keys=True)
    print(f"combined: {taken} -> {switches}", flush=True)
    return len(taken) > 1


def stage_auto(a, variants):
    everything = a.splits
    a.splits = SPLITS[1:]
    end, a.argv[-1] = a.deadline, str(a.deadline - a.reserve)
    stage_students(a, variants, export=False)
    a.argv[-1] = str(end)
    names = list(variants)
    if combine(a, a.base, variants):
        VARIANTS["combined"] = {}
        stage_students(a, ["combined"], export=False)
        names.append("combined")
    best = max((v for v in names if score(a, v) is not None), key=lambda v: score(a, v))
    print(f"best by left-out numbers: {best} {score(a, best):.2f}", flush=True)
    a.splits = everything
    stage_students(a, [best], export=True)


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--data", required=True)
    ap.add_argument("--work", required=True)
    ap.add_argument("--out", required=True)
    ap.add_argument("--stage", default="all", choices=("teacher", "sweep", "final", "auto", "all", "summary"))
    ap.add_argument("--minutes", type=float, default=9.0)
    ap.add_argument("--teachers", default="base", help="teacher variants to fine-tune, comma separated")
    ap.add_argument("--variants", default="recipe", help="student variants, comma separated")
    ap.add_argument("--splits", default=",".join(SPLITS))
    ap.add_argument("--width", type=int, default=5, help="processes at a time")
    ap.add_argument("--set", action="append", default=[], metavar="SWITCH=VALUE")
    ap.add_argument("--base", default="words", help="auto: the variant the others are compared with")
    ap.add_argument("--reserve", type=float, default=150, help="auto: seconds kept for what follows the sweep")
    ap.add_argument("--f16", action="store_true", help="export the full student's rows before rounding too, in two files")
    ap.add_argument("--tiny", action="store_true")
    ap.add_argument("--until", type=float, default=0, help=argparse.SUPPRESS)
    ap.add_argument("--job", help=argparse.SUPPRESS)
    a = ap.parse_args()
    a.start = time.time()
    a.deadline = a.until or a.start + 60 * a.minutes
    os.makedirs(os.path.join(a.work, "results"), exist_ok=True)
    os.makedirs(a.out, exist_ok=True)
    path = os.path.join(a.work, "combined.json")
    if os.path.exists(path):
        with open(path) as f:
            VARIANTS["combined"] = json.load(f)
    if a.job:
        settle(0)
        if device().type == "cpu":
            torch.set_num_threads(2)
        data = Data(os.path.join(a.data, "data.npz"), device())
        kind, *rest = a.job.split(":")
        if kind == "raw":
            job_raw(a, data, *rest)
        elif kind == "teacher":
            job_teacher(a, data, *rest)
        else:
            job_student(a, data, *rest, export=kind == "export")
        return
    a.argv = sys.argv[1:] + ["--until", str(a.deadline)]
    a.splits = a.splits.split(",")
    if a.stage in ("teacher", "all"):
        stage_teacher(a)
        summary(a)
    if a.stage in ("sweep", "final", "all"):
        stage_students(a, a.variants.split(","), export=a.stage != "sweep")
    if a.stage == "auto":
        stage_auto(a, a.variants.split(","))
    if a.stage == "summary":
        summary(a)


if __name__ == "__main__":
    main()
