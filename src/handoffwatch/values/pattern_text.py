"""A short text that a regular expression matches, for the patterns that ids and codes have."""

from __future__ import annotations

import string
from typing import Final

TEXT_CHARACTERS_MAX: Final = 10_000

_DIGITS: Final = (("0", "9"),)
_WORD: Final = (("a", "z"), ("A", "Z"), ("0", "9"), ("_", "_"))
_SETS: Final = {"d": _DIGITS, "w": _WORD, "s": ((" ", " "),)}
_ESCAPED: Final = {"d": "0", "w": "a", "s": " ", "D": "x", "W": "-", "S": "x", "n": "\n", "r": "\r", "t": "\t"}
_NOTHING: Final = "AZzbB"
_CANDIDATES: Final = string.ascii_letters + string.digits + string.punctuation + " "

_Range = tuple[str, str]


def text_matching(pattern: str, *, repeats: int) -> str:
    """Return a text for a pattern of literals, classes, groups, alternatives and repetitions.

    Args:
        pattern: The regular expression; of alternatives the first is taken, and anchors add nothing.
        repeats: How often a part is repeated when its bounds leave it open; else as its bounds say.

    Raises:
        ValueError: It has parts that are not read here, such as look-around, or its text would be too long.
    """
    reader = _Reader(pattern, repeats)
    text = reader.alternatives()
    if reader.peek():
        raise ValueError("the pattern closes a group that is not open")
    return text


class _Reader:
    def __init__(self, pattern: str, repeats: int) -> None:
        self._pattern = pattern
        self._repeats = repeats
        self._at = 0

    def peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def alternatives(self) -> str:
        first = self._sequence()
        while self._took("|"):
            self._sequence()
        return first

    def _sequence(self) -> str:
        text = ""
        while self.peek() not in ("", "|", ")"):
            text += self._repeated()
            if len(text) > TEXT_CHARACTERS_MAX:
                raise ValueError("the text would be too long")
        return text

    def _repeated(self) -> str:
        text = self._item()
        least, most = self._bounds()
        times = max(least, self._repeats)
        times = times if most is None else min(times, most)
        if len(text) * times > TEXT_CHARACTERS_MAX:
            raise ValueError("the text would be too long")
        return text * times

    def _item(self) -> str:
        character = self._take()
        if character == "(":
            return self._group()
        if character == "[":
            return self._member()
        if character == "\\":
            return self._escape()
        if character in ("^", "$"):
            return ""
        if character in ("*", "+", "?"):
            raise ValueError("the pattern repeats nothing")
        return "x" if character == "." else character

    def _bounds(self) -> tuple[int, int | None]:
        least, most = 1, 1  # type: int, int | None
        if self._took("?"):
            least, most = 0, 1
        elif self._took("*"):
            least, most = 0, None
        elif self._took("+"):
            least, most = 1, None
        elif self.peek() == "{":
            least, most = self._braces()
        else:
            return least, most
        if self.peek() in ("?", "+"):
            self._take()
        return least, most

    def _braces(self) -> tuple[int, int | None]:
        least, comma, most = self._until("}").removeprefix("{").partition(",")
        if not least.isdecimal() or (most and not most.isdecimal()):
            raise ValueError("the pattern has braces that are no repetition")
        return int(least), int(most) if most else None if comma else int(least)

    def _group(self) -> str:
        if self._took("?"):
            self._took("P")
            if self._took("<"):
                if self.peek() in ("=", "!"):
                    raise ValueError("look-behind is not read")
                self._until(">")
            elif not self._took(":"):
                raise ValueError("only plain and named groups are read")
        text = self.alternatives()
        if not self._took(")"):
            raise ValueError("the pattern leaves a group open")
        return text

    def _member(self) -> str:
        negated = self._took("^")
        ranges: list[_Range] = []
        while not ranges or self.peek() != "]":
            ranges += self._ranges()
        self._take()
        for candidate in _CANDIDATES:
            if any(low <= candidate <= high for low, high in ranges) is not negated:
                return candidate
        if negated:
            raise ValueError("the class leaves no plain character")
        return ranges[0][0]

    def _ranges(self) -> tuple[_Range, ...]:
        low = self._take()
        if low == "\\":
            if self.peek() in _SETS:
                return _SETS[self._take()]
            low = self._literal()
        if self.peek() != "-" or self._pattern[self._at + 1 : self._at + 2] == "]":
            return ((low, low),)
        self._take()
        high = self._take()
        return ((low, self._literal() if high == "\\" else high),)

    def _escape(self) -> str:
        if self.peek() in _ESCAPED:
            return _ESCAPED[self._take()]
        if self.peek() and self.peek() in _NOTHING:
            self._take()
            return ""
        return self._literal()

    def _literal(self) -> str:
        """Return an escaped character that stands for itself."""
        character = self._take()
        if character.isalnum():
            raise ValueError("the pattern has an escape that is not read")
        return character

    def _take(self) -> str:
        character = self.peek()
        if not character:
            raise ValueError("the pattern ends early")
        self._at += 1
        return character

    def _took(self, character: str) -> bool:
        if self.peek() != character:
            return False
        self._at += 1
        return True

    def _until(self, end: str) -> str:
        stop = self._pattern.find(end, self._at)
        if stop < 0:
            raise ValueError("the pattern ends early")
        text = self._pattern[self._at : stop]
        self._at = stop + 1
        return text
