"""What an app takes beside its URL and its lifespan."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict

from headrace.clock import Duration
from headrace.conversions import ByType


class AppOptions(TypedDict, total=False):
    """The options of an app; `App` says what each is."""

    name: str | None
    tenant: str | None
    allow_eviction: bool
    retry_for: Duration
    include: Iterable[str]
    skew_grace: Duration
    release: str | None
    encoders: ByType | None
    decoders: ByType | None
    validate: bool
