"""A tool call as it is wanted, as it was begun, and how its stream began."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from handoffwatch.outcomes.intent import Intent
    from handoffwatch.outcomes.kind import OperationKind
    from handoffwatch.runtime.call import Call
    from handoffwatch.runtime.call_arguments import CallArguments
    from handoffwatch.runtime.watch import Watch
    from handoffwatch.tools.failure import Failure
    from handoffwatch.tools.tool import Tool


class Wanted(NamedTuple):
    """One wanted call of a tool.

    Attributes:
        watch: The watch.
        tool: The tool.
        function: What makes the call.
        arguments: With what.
    """

    watch: Watch
    tool: Tool
    function: Callable[..., Any]
    arguments: CallArguments


class Begun(NamedTuple):
    """A stream that has given its first piece, or has ended without one.

    Attributes:
        pieces: What gives the rest.
        first: The first piece.
        failure: How it failed by the tool's success rule; None when it is good.
        is_empty: Whether there is none.
        returned: What a generator without pieces returned.
    """

    pieces: Any
    first: Any = None
    failure: Failure | None = None
    is_empty: bool = False
    returned: Any = None


class Opened(NamedTuple):
    """A call whose intent is written.

    Attributes:
        call: The call.
        kind: The operation that it opens; None when it opens none.
        intent: What it is to do.
        operation_id: The ledger's id; None when the ledger has none.
    """

    call: Call
    kind: OperationKind | None = None
    intent: Intent | None = None
    operation_id: str | None = None
