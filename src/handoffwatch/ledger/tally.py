"""The durable numbers: counter rows and timestamp rows, raised last in a transaction and in key order."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from typing import Final

import sqlalchemy as sa

from handoffwatch.catalogue import Metric
from handoffwatch.ledger.facts import Labels
from handoffwatch.ledger.statement import Statement

SHARDS: Final = 4
"""Rows over which one counter is spread, so that writers on a server seldom wait for the same row."""

_RAISE_COUNTER = Statement(
    sa.text(
        "INSERT INTO ledger_counters (metric, labels, shard, value) VALUES (:metric, :labels, :shard, :value)"
        " ON CONFLICT (metric, labels, shard) DO UPDATE SET value = ledger_counters.value + excluded.value"
    )
)
_RAISE_TIMESTAMP = Statement(
    sa.text(
        "INSERT INTO ledger_timestamps (metric, labels, unix_s) VALUES (:metric, :labels, :unix_s)"
        " ON CONFLICT (metric, labels) DO UPDATE SET unix_s = excluded.unix_s"
        " WHERE ledger_timestamps.unix_s < excluded.unix_s"
    )
)


class Tally:
    """What one transaction adds to the numbers.

    Nothing is written before `write`, which must be the transaction's last statement: the rows that many writers share
    are then locked for the shortest time, and always in one order, so that writers cannot block each other in a ring.

    Args:
        spread_by: The id of what is counted; it chooses the rows, so that writers seldom meet.
    """

    def __init__(self, *, spread_by: str) -> None:
        self._shard = zlib.crc32(spread_by.encode("utf-8", "backslashreplace")) % SHARDS
        self._counts: Counter[tuple[str, str]] = Counter()
        self._times: dict[tuple[str, str], float] = {}

    def count(self, metric: Metric, *labels: str, amount: int = 1) -> None:
        """Raise a counter; the labels are those of the catalogue without `ledger`, in its order."""
        self._counts[metric.name, write_labels(labels)] += amount

    def stamp(self, metric: Metric, *labels: str, unix_s: float) -> None:
        """Raise a timestamp; an older time leaves it as it is."""
        self._times[metric.name, write_labels(labels)] = unix_s

    def write(self, connection: sa.Connection) -> None:
        """Write what was collected."""
        for (metric, labels), unix_s in sorted(self._times.items()):
            _RAISE_TIMESTAMP.change(connection, {"metric": metric, "labels": labels, "unix_s": unix_s})
        for (metric, labels), value in sorted(self._counts.items()):
            row = {"metric": metric, "labels": labels, "shard": self._shard, "value": value}
            _RAISE_COUNTER.change(connection, row)


def write_labels(labels: Labels) -> str:
    """Return label values as the text under which their row is stored."""
    return json.dumps(labels, ensure_ascii=False, separators=(",", ":"))


def read_labels(text: str) -> Labels:
    """Return the label values of a stored row."""
    return tuple(json.loads(text))
