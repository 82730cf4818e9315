"""Named transforms: what may become of a value on its way, and what must hold afterwards."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from handoffwatch.errors import RegistrationError
from handoffwatch.values.json_text import canonical, kind_of
from handoffwatch.values.names import is_name
from handoffwatch.values.paths import dotted, is_path, places

PostCondition = Callable[[Any, Any], bool | Iterable[str]]
"""Called with the value before and after, as plain JSON data of its own: True when it holds, else False or the paths,
from the value on, that were not kept."""

PATHS_MAX: Final = 20


@dataclass(frozen=True, slots=True)
class Transform:
    """A change that a policy allows at a path.

    Attributes:
        name: What a policy calls it.
        holds: What must hold afterwards.
    """

    name: str
    holds: PostCondition

    def broken_at(self, before: Any, after: Any) -> list[str] | None:
        """Return the paths, from the value on, at which the post-condition does not hold; None when it holds.

        An empty path is the value itself. At most 20 paths.

        Raises:
            TypeError: The answer is neither true, false nor paths.
            Exception: Whatever the post-condition raises.
        """
        answer = self.holds(before, after)
        if answer is True:
            return None
        if answer is False:
            return [""]
        if isinstance(answer, str | bytes) or not isinstance(answer, Iterable):
            raise TypeError("a post-condition says True, False or paths")
        paths = list(dict.fromkeys(itertools.islice(answer, PATHS_MAX)))
        if not all(isinstance(path, str) for path in paths):
            raise TypeError("a path is a text")
        return paths or None


@dataclass(slots=True)
class Transforms:
    """The transforms that policies may name. Filled when the program starts; then safe for use in many threads."""

    _by_name: dict[str, Transform] = field(default_factory=dict)

    def add(self, name: str, holds: PostCondition) -> Transform:
        """Register a transform under a name.

        Raises:
            RegistrationError: The name is none or was given before.
        """
        if not is_name(name):
            raise RegistrationError(
                f"transform: name: must be 1 to 100 printable characters, got {kind_of(name)}",
                hint='transforms.add("summary", facts_kept(…))',
            )
        if name in self._by_name:
            raise RegistrationError(f"transform {name}: name: was registered before", hint="choose another name")
        self._by_name[name] = transform = Transform(name, holds)
        return transform

    def named(self, name: str) -> Transform:
        """Return the transform of a name.

        Raises:
            RegistrationError: Nobody registered it.
        """
        if name not in self._by_name:
            close = difflib.get_close_matches(name, self._by_name, n=1)
            raise RegistrationError(
                f"transform {name}: name: is not registered",
                hint=f"did you mean {close[0]}?" if close else f'register it: transforms.add("{name}", …)',
            )
        return self._by_name[name]


def facts_kept(before: str, after: str) -> PostCondition:
    """Return the post-condition of a summary: each fact of the old value stands among the facts of the new one.

    Args:
        before: Where the facts stand in the old value: keys and indices with dots, `*` for all of one level, such as
            `*.facts.*` for those of each message of a history.
        after: Where they stand in the new value, such as `facts.*`.

    Raises:
        RegistrationError: A path is none.
    """
    for what, path in (("before", before), ("after", after)):
        if not is_path(path):
            raise RegistrationError(
                f"facts_kept: {what}: must be keys and indices with dots, got {kind_of(path)}",
                hint='facts_kept("*.facts.*", "facts.*")',
            )

    def holds(old: Any, new: Any) -> list[str] | bool:
        kept = {canonical(fact) for _, fact in places(new, after)}
        return [dotted(place) for place, fact in places(old, before) if canonical(fact) not in kept] or True

    return holds
