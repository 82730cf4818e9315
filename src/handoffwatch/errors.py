"""The exceptions of handoffwatch, one class for each thing a caller does differently.

    HandoffwatchError
    ├── ConfigError          a file or environment variable is wrong: correct it (exit code 2)
    ├── RegistrationError    a route, contract, tool, workflow or operation is declared wrongly: correct the code
    ├── LedgerUnavailable    the ledger cannot be written: a critical operation was refused before its call
    ├── SnapshotUnavailable  a snapshot cannot be written or read: mend the folder
    │   └── SnapshotEdited       a snapshot is not what was written: it proves nothing
    ├── ClaimRefused         a run claims twice, or claims what it may not
    └── Stopped              a check stopped the flow on purpose
        ├── HandoffBlocked   the handoff is not fit for its receiver; carries the decision
        │   ├── HandoffHeld      nobody has approved it yet: send it again once a person has decided
        │   └── HandoffDivergence  the state did not survive the crossing: mend the export or import function
        └── ToolFailed       a tool call ended without a result; carries the text for the model
            ├── ToolDown         it failed, and nobody may guess what it would have said
            ├── ToolRejected     it refused these arguments; the model may correct them
            ├── ToolConfirmed    it got no answer, and its effect was found: it happened, and must not be repeated
            └── NeedsHuman       it may have happened; a person must look

A message reads `<where>: <what>: <rule broken>, got <kind of value>`. It never holds a payload, a value or a secret.
`hint` says what to type next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from handoffwatch.decision import Decision


STOPPED_TEXT: Final = "I stopped here, because something went wrong that a person has to look at."
HELD_TEXT: Final = "This waits for a person, who has to approve it first."


class HandoffwatchError(Exception):
    """Base of all errors that handoffwatch raises on purpose.

    Args:
        message: Where, what and which rule, in lower case and without a full stop.
        hint: What to type next, or an empty text.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message


class ConfigError(HandoffwatchError):
    """A configuration file or an environment variable breaks a rule."""


class RegistrationError(HandoffwatchError):
    """A route, contract, tool, workflow or operation is declared wrongly."""


class LedgerUnavailable(HandoffwatchError):
    """The ledger cannot be read or written."""


class SnapshotUnavailable(HandoffwatchError):
    """A snapshot cannot be written or read."""


class SnapshotEdited(SnapshotUnavailable):
    """A snapshot is not what was written: somebody changed one of its files."""


class ClaimRefused(HandoffwatchError):
    """A claim is refused: one run makes one claim, and a claim is final."""


class Stopped(HandoffwatchError):
    """A check stopped the flow on purpose. `for_user` is what the user may be told; the guard lets it through."""

    for_user = STOPPED_TEXT


class HandoffBlocked(Stopped):
    """A handoff of the run `run_id` was stopped before its receiver's first action.

    `decision` is None when the check itself failed.
    """

    def __init__(self, message: str, *, decision: Decision | None, run_id: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.decision = decision
        self.run_id = run_id


class HandoffHeld(HandoffBlocked):
    """Nobody has decided on a held handoff in time: the same handoff is delivered once `case_id` is approved."""

    for_user = HELD_TEXT

    def __init__(
        self, message: str, *, decision: Decision | None, case_id: str, run_id: str = "", hint: str = ""
    ) -> None:
        super().__init__(message, decision=decision, run_id=run_id, hint=hint)
        self.case_id = case_id


class HandoffDivergence(HandoffBlocked):
    """The state that reached the receiver is not the state that left the sender, or could not be compared.

    Args:
        message: As in `HandoffwatchError`.
        decision: With a finding for each place; None when the check itself failed.
        run_id: The run.
        handoff_id: The handoff.
        attempt: 1-based number of this try.
        stage: In which the first divergence was found: `capture_before` to `validate`.
        paths: Where, the first diverging path first. No values.
        hint: As in `HandoffwatchError`.
    """

    def __init__(
        self,
        message: str,
        *,
        decision: Decision | None,
        run_id: str,
        handoff_id: str,
        attempt: int,
        stage: str,
        paths: Sequence[str],
        hint: str = "",
    ) -> None:
        super().__init__(message, decision=decision, hint=hint)
        self.run_id = run_id
        self.handoff_id = handoff_id
        self.attempt = attempt
        self.stage = stage
        self.paths = tuple(paths)


class ToolFailed(Stopped):
    """A tool call ended without a result. `text` is what the model may be told; it holds no raw error."""

    def __init__(self, message: str, *, text: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.text = text


class ToolDown(ToolFailed):
    """The tool failed, or went on failing, in a way that repeating or guessing cannot help."""


class ToolRejected(ToolFailed):
    """The tool refused these arguments; the model may correct them."""


class ToolConfirmed(ToolFailed):
    """The call got no answer, and its effect was read back from the store: it happened; what it returned is lost."""


class NeedsHuman(ToolFailed):
    """The call may have had its effect: it is not repeated, and a person must look."""
