"""Token buckets in whole numbers: what lacks to a full one is owed, and time pays it.

A token is worth the ``rate_ms`` of its terms, and each millisecond pays their ``rate``. So nothing
is rounded, however odd the rate is.
"""

from __future__ import annotations

import msgspec

from headrace.limit import Terms


class Bucket(msgspec.Struct):
    """What is owed to one gate's rate at an instant.

    Attributes:
        owed: how much; 0: all tokens are there.
        rate: what a millisecond pays; 0 without a rate.
        rate_ms: what a token is worth.
        burst: how many tokens there are when nothing is owed.
    """

    owed: int = 0
    rate: int = 0
    rate_ms: int = 0
    burst: int = 0

    @property
    def tokens(self) -> int:
        """How many starts it allows now."""
        return self.burst - -(-self.owed // self.rate_ms) if self.rate else 0

    def take(self) -> None:
        """Take a token for a start."""
        self.owed += self.rate_ms

    def ms_until(self, tokens: int) -> int | None:
        """Return how long until there are so many tokens; None: there never are."""
        if tokens > self.burst:
            return None
        missing = self.owed - (self.burst - tokens) * self.rate_ms
        return max(0, -(-missing // self.rate))


def bucket_of(terms: Terms | None) -> Bucket:
    """Return a full bucket by these terms."""
    return Bucket(0, terms.rate, terms.rate_ms, terms.burst) if terms else Bucket()


def paid(bucket: Bucket, ms: int, terms: Terms | None) -> Bucket:
    """Return a bucket after so many milliseconds, by the terms that hold now.

    Tokens that were taken stay taken where the rate is another one than before; a part of a token
    counts as a whole one then.
    """
    now = bucket_of(terms)
    if not now.rate or not bucket.rate:
        return now
    owed = max(0, bucket.owed - max(0, ms) * bucket.rate)
    if (bucket.rate, bucket.rate_ms) != (now.rate, now.rate_ms):
        owed = -(-owed // bucket.rate_ms) * now.rate_ms
    now.owed = min(owed, now.burst * now.rate_ms)
    return now
