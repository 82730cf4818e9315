"""Names that may stand in labels."""

from __future__ import annotations

import re
from typing import Final

from handoffwatch.vocabulary import OTHER

NAME_CHARACTERS_MAX: Final = 100
ID_CHARACTERS_MAX: Final = 255


def is_name(text: object) -> bool:
    """Return whether a text can be a label: 1 to 100 printable characters, no white space around, not `other`."""
    return (
        isinstance(text, str)
        and 1 <= len(text) <= NAME_CHARACTERS_MAX
        and text.isprintable()
        and text == text.strip()
        and text != OTHER
    )


def is_id(text: object) -> bool:
    """Return whether a text can be an id: 1 to 255 characters that every database and exporter can write."""
    if not isinstance(text, str) or not 1 <= len(text) <= ID_CHARACTERS_MAX:
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def folded(name: str) -> str:
    """Return what two names have in common that differ in case, space or punctuation only."""
    return re.sub(r"[\W_]+", "", name.casefold()) or name
