"""Text rules shared by the data steps: names, documents, words, sentences."""
import re

STOP = frozenset("""a an the of to in on at by for from with and or not no is are was were be been being am do does did
have has had i me my we us our you your he him his she her it its they them their this that these those there here
what which who whom how when where why can could would should shall will may might must please want need like get
give if so as into about than then just some any all also up out using use help let tell""".split())

CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
SEPARATORS = re.compile(r"[_\-./:{}\s]+")
WORD = re.compile(r"[a-z0-9]+")
SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z(\"'`])")


def split_name(name):
    """`getUserById`, `get_user-by.id`, `GET /user/{id}` as spaced words."""
    return " ".join(w for w in SEPARATORS.split(CAMEL.sub(" ", name)) if w)


def doc_text(name, description, category, parameters):
    """The text a capability is embedded by; internal/know/embed builds the same."""
    out = split_name(name) + "."
    if description:
        out += " " + description
    if category:
        out += f" Category: {category}."
    if parameters:
        out += " Parameters: " + ", ".join(parameters) + "."
    return out


def stem(w):
    """Light suffix stripping, for lexical scores only."""
    if len(w) <= 3 or w.isdigit():
        return w
    for suffix, put in (("ies", "y"), ("sses", "ss"), ("ings", ""), ("ing", ""), ("edly", ""), ("ed", ""),
                        ("es", "e"), ("ss", "ss"), ("s", ""), ("ly", "")):
        if w.endswith(suffix):
            base = w[:len(w) - len(suffix)] + put
            if len(base) < 3:
                return w
            w = base
            if suffix in ("ing", "ings", "ed", "edly") and len(w) > 3 and w[-1] == w[-2] and w[-1] not in "lsz":
                w = w[:-1]
            break
    if w.endswith("e") and len(w) > 3:
        w = w[:-1]
    return w


def terms(text):
    """Stemmed words of text without stop words."""
    return [stem(w) for w in WORD.findall(CAMEL.sub(" ", text).lower()) if w not in STOP]


def plain_words(text):
    return WORD.findall(text.lower())


def runs(text, n=8):
    """Hashes of every run of n words."""
    w = plain_words(text)
    return [hash_run(w[i:i + n]) for i in range(len(w) - n + 1)]


def hash_run(words):
    h = 0xCBF29CE484222325
    for c in " ".join(words).encode():
        h = (h ^ c) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return h


def sentences(text):
    return [s.strip() for s in SENTENCE.split(" ".join(text.split())) if s.strip()]
