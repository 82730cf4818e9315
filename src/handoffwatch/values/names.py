"""Names that may stand in labels."""

from __future__ import annotations

import re
from typing import Final

from handoffwatch.vocabulary import OTHER

NAME_CHARACTERS_MAX: Final = 100


def is_name(text: object) -> bool:
    """Return whether a text can be a label: 1 to 100 printable characters, no white space around, not `other`."""
    return (
        isinstance(text, str)
        and 1 <= len(text) <= NAME_CHARACTERS_MAX
        and text.isprintable()
        and text == text.strip()
        and text != OTHER
    )


def folded(name: str) -> str:
    """Return what two names have in common that differ in case, space or punctuation only."""
    return re.sub(r"[\W_]+", "", name.casefold()) or name
