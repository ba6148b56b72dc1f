"""BERT WordPiece, lowercased: the tokenizer of both teachers and of the student.

Text is cleaned of control characters, lowercased, stripped of accents (NFD,
combining marks removed), split at white space, punctuation and CJK
characters, then cut greedily into the longest pieces of the vocabulary.  A
word without a cut, or of more than 100 characters, is [UNK].
"""
import re
import unicodedata

UNK = 100
MAX_WORD = 100
CJK = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
       (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F))


CONTROL = {c: None for c in range(32) if chr(c) not in "\t\n\r"} | {127: None}
ASCII = re.compile(r"[!-/:-@\[-`{-~]|[a-z0-9]+")


def is_punct(ch):
    c = ord(ch)
    if 33 <= c <= 47 or 58 <= c <= 64 or 91 <= c <= 96 or 123 <= c <= 126:
        return True
    return unicodedata.category(ch).startswith("P")


class WordPiece:
    def __init__(self, vocab_path):
        with open(vocab_path, encoding="utf-8") as f:
            self.vocab = {line.rstrip("\n"): i for i, line in enumerate(f)}
        self.names = list(self.vocab)
        self.cache = {}

    def words(self, text):
        out = []
        for ch in text:
            c = ord(ch)
            if c == 0 or c == 0xFFFD:
                continue
            if ch in "\t\n\r" or unicodedata.category(ch) == "Zs":
                out.append(" ")
            elif unicodedata.category(ch)[0] == "C":
                continue
            elif any(a <= c <= b for a, b in CJK):
                out.append(f" {ch} ")
            else:
                out.append(ch)
        text = unicodedata.normalize("NFD", "".join(out).lower())
        words, cur = [], []
        for ch in text:
            if unicodedata.category(ch) == "Mn":
                continue
            if ch == " " or ch.isspace():
                if cur:
                    words.append("".join(cur))
                    cur = []
            elif is_punct(ch):
                if cur:
                    words.append("".join(cur))
                    cur = []
                words.append(ch)
            else:
                cur.append(ch)
        if cur:
            words.append("".join(cur))
        return words

    def spell(self, ids):
        """The letters of each piece."""
        return [self.names[i][2:] if self.names[i].startswith("##") else self.names[i] for i in ids]

    def pieces(self, word):
        if len(word) > MAX_WORD:
            return [UNK]
        out, i = [], 0
        while i < len(word):
            j = len(word)
            while j > i:
                piece = word[i:j] if i == 0 else "##" + word[i:j]
                if piece in self.vocab:
                    out.append(self.vocab[piece])
                    break
                j -= 1
            if j == i:
                return [UNK]
            i = j
        return out

    def split(self, text):
        """Cleaned, lowercased words and punctuation marks of text."""
        return ASCII.findall(text.translate(CONTROL).lower()) if text.isascii() else self.words(text)

    def encode(self, text, cut=256):
        """Token ids of text, without [CLS] and [SEP], at most cut of them."""
        ids = []
        for w in self.split(text):
            got = self.cache.get(w)
            if got is None:
                got = self.pieces(w)
                if len(self.cache) < 2_000_000:
                    self.cache[w] = got
            ids += got
            if len(ids) >= cut:
                return ids[:cut]
        return ids
