"""Counts tokens as the model will see them."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tokenizers import Tokenizer

from syncer.errors import SettingsError

# Texts counted at a time: the counts are kept, the encodings are not, and they are large.
_GROUP = 64


class TokenCounter:
    """A model's tokenizer without padding and truncation, and the number at which texts are cut."""

    def __init__(self, tokenizer: Tokenizer, limit: int) -> None:
        self.limit = limit
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


def set_limit(tokenizer: Tokenizer, max_tokens: int | None) -> int:
    """Make `tokenizer` cut texts at `max_tokens` and return the limit that now holds.

    None keeps the tokenizer's own limit. Raises SettingsError for a number above that, or too
    small for a single token beside the special ones.
    """
    truncation = tokenizer.truncation or {"max_length": sys.maxsize, "direction": "right"}
    own = int(truncation["max_length"])
    if max_tokens is None or max_tokens == own:
        return own
    least = tokenizer.num_special_tokens_to_add(is_pair=False) + 1
    if not least <= max_tokens <= own:
        raise SettingsError(
            f"embed.max_tokens is {max_tokens}, but must be from {least} to {own} for this model"
        )
    tokenizer.enable_truncation(max_length=max_tokens, direction=truncation["direction"])
    return max_tokens
