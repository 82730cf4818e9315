"""The key that both processes hold, and the digests that only its holders can make."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field
from typing import Any, Final

from handoffwatch.errors import RegistrationError
from handoffwatch.values.json_text import canonical, kind_of
from handoffwatch.values.names import is_name

KEY_BYTES_MIN: Final = 32
"""A shorter key is weaker than the digest that it keys. Source: RFC 2104 section 3."""


@dataclass(frozen=True, slots=True)
class SealKey:
    """A key that both processes hold. For a rotation the receiver holds the old one and the new one.

    Attributes:
        key_id: What a seal calls it; no secret.
        secret: At least 32 bytes from a random source; shown nowhere.

    Raises:
        RegistrationError: The id is no name, or the secret is no bytes or too short.
    """

    key_id: str
    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if not is_name(self.key_id):
            raise RegistrationError(
                f"seal key: key_id: must be 1 to 100 printable characters, got {kind_of(self.key_id)}",
                hint='SealKey("2031-05", secret)',
            )
        if not isinstance(self.secret, bytes) or len(self.secret) < KEY_BYTES_MIN:
            found = f"{len(self.secret)} bytes" if isinstance(self.secret, bytes) else kind_of(self.secret)
            raise RegistrationError(
                f"seal key {self.key_id}: secret: must be at least {KEY_BYTES_MIN} bytes, got {found}",
                hint='python -c "import secrets; print(secrets.token_hex(32))", and bytes.fromhex(…) in the program',
            )

    def mac_of(self, fields: dict[str, Any]) -> str:
        """Return the MAC over all fields of a seal, whatever their order."""
        return hmac.digest(self.secret, b"seal " + canonical(fields), hashlib.sha256).hex()

    def own_of(self, fields: dict[str, Any]) -> bytes:
        """Return the key of the digests in one seal, which no seal with another head shares."""
        return hmac.digest(self.secret, b"digests " + canonical(fields), hashlib.sha256)


def is_same(one: str, other: str) -> bool:
    """Return whether two digests are the same, in a time that does not tell how much of them is."""
    return hmac.compare_digest(one.encode(), other.encode())
