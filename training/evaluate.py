"""NDCG@5 and recall@5 of vectors, alone and with BM25."""
import torch

TOOL = ("metatool", "apibank", "toollinkos", "bfcl-bynames", "sealtools", "acebench-en", "restbench", "bfcl-multiturn")


def ranking(scores, s, k=5):
    """(NDCG@k, recall@k) per query, ties broken by document order."""
    n = scores.shape[1]
    # A stable sort: equal scores keep document order, as a search that lists ordinals does.
    order = torch.sort(scores, dim=1, descending=True, stable=True).indices[:, :min(k, n)]
    g = s.gold[s.eval]
    hit = ((order[:, :, None] == g[:, None, :]) & (g >= 0)[:, None, :]).any(2).float()
    discount = 1 / torch.log2(torch.arange(2, 2 + hit.shape[1], device=hit.device).float())
    count = (g >= 0).sum(1)
    best = torch.stack([discount[:int(c)].sum() for c in range(k + 1)])[count.clamp(max=min(k, hit.shape[1]))]
    return (hit * discount).sum(1) / best, hit.sum(1) / count


def zscore(x):
    return (x - x.mean(1, keepdim=True)) / (x.std(1, keepdim=True) + 1e-9)


def evaluate(s, q, d):
    """Scores of a set from unit vectors of its evaluated queries and its documents."""
    cos = q.float() @ d.float().T
    ndcg, recall = ranking(cos, s)
    fused, fused_recall = ranking(2 * zscore(cos) + zscore(s.lexical()), s)
    words, _ = ranking(s.lexical(), s)
    return {"ndcg": 100 * ndcg.mean().item(), "recall": 100 * recall.mean().item(), "fused": 100 * fused.mean().item(),
            "fused_recall": 100 * fused_recall.mean().item(), "bm25": 100 * words.mean().item()}


def evaluate_texts(data, names, vectors):
    """vectors: text numbers -> unit vectors."""
    out = {}
    for name in names:
        s = data.sets[name]
        out[name] = evaluate(s, vectors(s.q[s.eval]), vectors(s.edoc))
    return out


def mean(results, names, key):
    got = [results[n][key] for n in names if n in results]
    return sum(got) / len(got) if got else float("nan")
