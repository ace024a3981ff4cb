"""Counts tokens as the model will see them."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tokenizers import Tokenizer

# Texts counted at a time: the counts are kept, the encodings are not, and they are large.
_GROUP = 64


class TokenCounter:
    """A model's tokenizer without padding and truncation, and the number at which texts are cut."""

    def __init__(self, tokenizer: Tokenizer, limit: int | None = None) -> None:
        self.limit = limit or _limit_of(tokenizer)
        self._tokenizer = Tokenizer.from_str(tokenizer.to_str())
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def count(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text, special tokens included, nothing cut."""
        counts: list[int] = []
        for start in range(0, len(texts), _GROUP):
            group = list(texts[start : start + _GROUP])
            counts += [len(encoding.ids) for encoding in self._tokenizer.encode_batch_fast(group)]
        return counts


def _limit_of(tokenizer: Tokenizer) -> int:
    """Return how many tokens the model takes, by its tokenizer; no bound if that says none."""
    truncation = tokenizer.truncation
    return int(truncation["max_length"]) if truncation else sys.maxsize
