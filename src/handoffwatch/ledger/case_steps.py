"""The durable steps around people: evidence stored for them, their rulings, verdicts and waits."""

from __future__ import annotations

from handoffwatch.ledger import cases, pruning, reviews, waits
from handoffwatch.ledger.evidence import store_case
from handoffwatch.ledger.facts import Case, Evidence, Review, Wait
from handoffwatch.ledger.store import Store
from handoffwatch.ledger.tally import Tally
from handoffwatch.vocabulary import CaseKind, ReviewVerdict, Ruling


class CaseSteps(Store):
    """What a ledger keeps for people, and what people say."""

    def store_case(self, evidence: Evidence) -> str:
        """Store evidence as a case and return the case's id.

        A case of the same kind and subject gets the new facts and the new record, and keeps all else: whether it is
        open, its ruling, and how it was drawn for review. The violation is added to the run once, with a new case.
        """
        self._write_registrations()
        with self._database.write() as connection:
            return store_case(connection, evidence, now_unix_s=self.clock.wall_s())

    def cases(self, *, kind: CaseKind | None = None, open_only: bool = True) -> list[Case]:
        """Return the cases of a kind, or of all kinds, without their records, the oldest first."""
        with self._database.read() as connection:
            return cases.list_cases(connection, kind=kind, open_only=open_only)

    def case(self, case_id: str) -> Case | None:
        """Return one case with its record, open or resolved; None when there is no such case."""
        with self._database.read() as connection:
            return cases.find_case(connection, case_id)

    def case_of(self, kind: CaseKind, subject: str) -> Case | None:
        """Return the case of a kind about a subject, without its record; None when there is none."""
        with self._database.read() as connection:
            return cases.case_of(connection, kind, subject)

    def resolve_case(self, case_id: str, *, note: str) -> bool:
        """Resolve a case: a person has put right what it shows.

        Args:
            case_id: The case.
            note: What was done; stored with the time.

        Returns:
            True when it was open and is resolved now; False when it was resolved before, or there is no such case.
        """
        with self._database.write() as connection:
            return cases.resolve_case(connection, case_id, note=note, now_unix_s=self.clock.wall_s())

    def rule_case(self, case_id: str, ruling: Ruling, note: str) -> bool:
        """Decide whether a held handoff may go on, which resolves its case.

        Args:
            case_id: A held case.
            ruling: What the person decided.
            note: Why; stored with the time.

        Returns:
            True when it was open and is decided now; False when there is no open held case of this id.
        """
        with self._database.write() as connection:
            return cases.rule_case(connection, case_id, ruling, note=note, now_unix_s=self.clock.wall_s())

    def reviews(self, *, open_only: bool = True, limit: int = 100) -> list[Review]:
        """Return up to `limit` reviews without the records of their cases, the first drawn first."""
        with self._database.read() as connection:
            return reviews.list_reviews(connection, open_only=open_only, limit=limit)

    def review(self, case_id: str) -> Review | None:
        """Return the review of a case with the case's record; None when the case was not drawn."""
        with self._database.read() as connection:
            return reviews.find_review(connection, case_id)

    def label_review(self, case_id: str, verdict: ReviewVerdict, note: str) -> bool:
        """Write and count a person's verdict on whether the check was right.

        Args:
            case_id: A case that was drawn for review.
            verdict: What the person found.
            note: Why; stored with the time.

        Returns:
            True when it was counted; False when the case was not drawn, or has a verdict, which stays.
        """
        tally = Tally(spread_by=case_id)
        with self._database.write() as connection:
            is_new = reviews.label_review(
                connection, tally, case_id, verdict, note=note, now_unix_s=self.clock.wall_s()
            )
            tally.write(connection)
        return is_new

    def take_waits(self, limit: int) -> list[Wait]:
        """Return up to `limit` waits for a person that nobody has observed, each to one caller only."""
        with self._database.read() as connection:
            if not waits.has_waits(connection):
                return []  # whoever looks every second must not ask for the write lock every second
        with self._database.write() as connection:
            return waits.take_waits(connection, limit)

    def prune(self, *, cases_before_unix_s: float, handoffs_before_unix_s: float) -> int:
        """Remove a bounded batch of what has long been over, and return how many rows went; 0 when none is left.

        Open cases stay, and so do handoffs in progress and violations of runs without a final eval.

        Args:
            cases_before_unix_s: Cases that were resolved before it go with their reviews, unless a review is open that
                was drawn after it; so do the violations of runs whose eval was before it.
            handoffs_before_unix_s: Handoffs go that were accepted, or whose lease ran out, before it; so do latches
                that were set before it.
        """
        with self._database.write() as connection:
            return pruning.prune(
                connection, cases_before_unix_s=cases_before_unix_s, handoffs_before_unix_s=handoffs_before_unix_s
            )
