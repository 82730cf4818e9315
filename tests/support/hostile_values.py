"""Objects whose methods raise, lie or shift: what a check may be handed and must survive."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from support.refund_handoffs import handoff


def _raise(*_: object, **__: object) -> Any:
    raise RuntimeError("hostile")


class NamelessMeta(type):
    """A class that refuses to say its name."""

    __name__ = property(_raise)  # type: ignore[assignment]


class NamelessError(Exception, metaclass=NamelessMeta):
    """An error whose class refuses to say its name."""


def raise_nameless(*_: object) -> Any:
    raise NamelessError


class EvilClass:
    """Lies about its class by raising."""

    __class__ = property(_raise)  # type: ignore[assignment]


class EvilAttributes:
    """Raises for every attribute that is looked up."""

    __getattribute__ = _raise


class EvilDefaults:
    """Raises for every attribute that is not there."""

    __getattr__ = _raise


class EvilComparison:
    """Cannot be compared, hashed, measured, shown or tested."""

    __eq__ = _raise
    __ne__ = _raise
    __hash__ = _raise
    __len__ = _raise
    __bool__ = _raise
    __str__ = _raise
    __repr__ = _raise
    __iter__ = _raise


class EvilText(str):
    """A text whose methods raise."""

    __slots__ = ()
    __eq__ = _raise
    __ne__ = _raise
    __hash__ = _raise
    __len__ = _raise
    __str__ = _raise
    __repr__ = _raise
    encode = _raise
    casefold = _raise


class LyingText(str):
    """A text that is equal to everything."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False


class EvilInteger(int):
    """A number that raises when it is used."""

    __eq__ = _raise
    __lt__ = _raise
    __le__ = _raise
    __hash__ = _raise
    __str__ = _raise


class EvilList(list):  # type: ignore[type-arg]
    """A list that cannot be walked."""

    __iter__ = _raise
    __len__ = _raise


class EvilDict(dict):  # type: ignore[type-arg]
    """A dict whose methods raise."""

    get = _raise
    items = _raise
    keys = _raise
    __iter__ = _raise
    __len__ = _raise
    __getitem__ = _raise
    __contains__ = _raise


class BrokenMapping(Mapping[str, Any]):
    """A mapping of which some methods raise."""

    def __init__(self, *broken: str, fault: Callable[..., Any] = _raise) -> None:
        self._broken = broken
        self._fault = fault

    def __getitem__(self, key: str) -> Any:
        return self._fault() if "getitem" in self._broken else handoff()[key]

    def __iter__(self) -> Iterator[str]:
        return self._fault() if "iter" in self._broken else iter(handoff())

    def __len__(self) -> int:
        return self._fault() if "len" in self._broken else 9  # type: ignore[no-any-return]

    def items(self) -> Any:
        return self._fault() if "items" in self._broken else super().items()

    def keys(self) -> Any:
        return self._fault() if "keys" in self._broken else super().keys()


class ShiftingMapping(Mapping[str, Any]):
    """A mapping that says something else every time it is asked."""

    def __init__(self) -> None:
        self._asked = 0

    def __getitem__(self, key: str) -> Any:
        self._asked += 1
        return handoff()[key] if self._asked % 2 else {self._asked}

    def __iter__(self) -> Iterator[str]:
        self._asked += 1
        return iter(list(handoff())[: self._asked % 9])

    def __len__(self) -> int:
        self._asked += 1
        return self._asked


class EvilKeys(Mapping[Any, Any]):
    """A mapping whose keys need not be hashable."""

    def __init__(self, pairs: list[tuple[Any, Any]]) -> None:
        self._pairs = pairs

    def __getitem__(self, key: Any) -> Any:
        return self._pairs[0][1]

    def __iter__(self) -> Iterator[Any]:
        return iter([key for key, _ in self._pairs])

    def __len__(self) -> int:
        return len(self._pairs)
