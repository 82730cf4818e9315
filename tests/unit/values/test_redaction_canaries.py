"""Canaries: secrets planted in every way at random places of random states are in no copy, and all else is."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from handoffwatch.values.redaction import Redaction
from support.secrets import texts_with, vendor_keys

REDACTION = Redaction(["**.patients.*.diagnosis", "**.ledger.0"], names=["badge number"])

MARK = "Zq9"
"""Stands in each canary again and again, so that no piece of one goes unseen, and nowhere else."""

PIECES = (MARK, MARK.upper(), "WnE5", "pxO", "acT")
"""The mark as it is, in capitals, and as base64 writes it at each of three offsets."""

NAMES = [
    "password", "DB_PASSWORD", "client_secret", "tavily_key", "x-api-key", "Authorization", "set-cookie", "accessToken",
    "refresh_token", "private_key", "credentials", "Badge-Number", "token",
]  # fmt: skip


@dataclasses.dataclass
class _Wrapped:
    field: object


class _State:
    """Draws a random state, and keeps account of what must stay."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self._numbers = itertools.count()
        self.stays: list[str] = []

    def value(self, levels: int) -> Any:
        """Return a random part of a state."""
        kinds = [self.word, self.number, self.text]
        if levels:
            kinds += [self.listed, self.members, self.members, self.as_json, self.wrapped, self.paired]
        make = self._draw(st.sampled_from(kinds))
        return make() if make in kinds[:3] else make(levels - 1)  # type: ignore[operator]

    def word(self) -> str:
        """Return a word that stays."""
        self.stays.append(f"stays{next(self._numbers)}x")
        return self.stays[-1]

    def number(self) -> int:
        """Return a number that stays."""
        self.stays.append(str(7_000_000 + next(self._numbers)))
        return int(self.stays[-1])

    def text(self) -> str:
        """Return a text with a secret between two words that stay."""
        return f"{self.word()} {self._draw(st.sampled_from(texts_with(self.canary())))} {self.word()}"

    def canary(self, alphabet: str = "abcXYZ0123456789") -> str:
        """Return a secret with the mark in every part of it."""
        parts = self._draw(st.lists(st.text(alphabet, min_size=1, max_size=3), min_size=5, max_size=7))
        return MARK + MARK.join(parts) + MARK

    def secret(self) -> Any:
        """Return what stands under a secret name: any text, number, list, object or JSON text."""
        text = self.canary("ab0 \"'\\{}[]:=,;&@/\n\u00e9\u2028")
        kinds = [text, MARK, 918_273_645, [text, [text]], (text,), {text: {"a": text}}, json.dumps({"a": [text]})]
        return self._draw(st.sampled_from(kinds))

    def listed(self, levels: int) -> list[Any]:
        """Return a list."""
        return [self.value(levels) for _ in range(self._draw(st.integers(0, 3)))]

    def members(self, levels: int) -> dict[str, Any]:
        """Return an object with ordinary members, secret ones, and keys with a secret in them."""
        state: dict[str, Any] = {self.word(): self.value(levels) for _ in range(self._draw(st.integers(0, 2)))}
        for name in self._draw(st.lists(st.sampled_from(NAMES), max_size=2, unique=True)):
            state[name] = self.secret()
        if self._draw(st.booleans()):
            key = self._draw(st.sampled_from(vendor_keys(self.canary())))
            state |= {f"{self.word()} {key}": self.value(levels)}
        if self._draw(st.booleans()):
            state["patients"] = [{"diagnosis": self.secret(), "id": self.word()} for _ in range(2)]
            state["ledger"] = [self.secret(), self.word()]
        return state

    def as_json(self, levels: int) -> str:
        """Return a part of a state as a text of JSON."""
        return json.dumps(dataclasses.asdict(_Wrapped(_plain(self.value(levels)))))

    def wrapped(self, levels: int) -> Any:
        """Return a part of a state in something that is no plain JSON."""
        value = self.value(levels)
        return self._draw(st.sampled_from([(value,), _Wrapped(value), {1: value}]))

    def paired(self, levels: int) -> list[Any]:
        """Return secrets whose names stand beside them."""
        name, secret = self._draw(st.sampled_from(NAMES)), self.canary()
        named = {"name": name, "value": secret, "note": self.word()}
        return [
            named,
            [[name, secret], [self.word(), self.value(levels)]],
            [self.word(), "--token", secret, self.word()],
        ]


def _plain(value: Any) -> Any:
    """Return a value with its dataclasses as dicts."""
    if isinstance(value, _Wrapped):
        return {"field": _plain(value.field)}
    if isinstance(value, dict):
        return {key: _plain(child) for key, child in value.items()}
    return [_plain(child) for child in value] if isinstance(value, list | tuple) else value


@st.composite
def _states(draw: st.DrawFn) -> tuple[Any, list[str]]:
    state = _State(draw)
    return {"patients": [{"diagnosis": state.secret()}], "state": state.value(4)}, state.stays


@settings(max_examples=400, deadline=None)
@given(_states())
def test_no_canary_is_in_a_copy_when_it_is_planted_anywhere(drawn: tuple[Any, list[str]]) -> None:
    """Whatever the name, the shape and the place; what is no secret stays, and so does the state."""
    state, stays = drawn
    before = copy.deepcopy(state)

    redacted = REDACTION.redacted(state)

    written = json.dumps(redacted)
    assert [piece for piece in (*PIECES, "918273645") if piece in written] == []
    assert [word for word in stays if word not in written] == []
    assert state == before
    assert REDACTION.redacted(redacted) == redacted
