"""The profile report as JSON: one document, versioned; fields are only ever added within a version.

`schemas/` holds its JSON Schema and says what every field means, made from `Head` and `Report`.
"""

import json
import math
from dataclasses import dataclass
from typing import Any

from tpuport.profile.analyses import Report
from tpuport.profile.codec import encode
from tpuport.profile.comparison import Comparison
from tpuport.profile.plan import Plan
from tpuport.profile.session import Session

SCHEMA = "tpuport.profile"
COMPARISON_SCHEMA = f"{SCHEMA}.comparison"
VERSION = 1
"""Goes up when a field goes away or changes its meaning."""


@dataclass(frozen=True, slots=True)
class ComparisonHead:
    """What the comparison of two sessions begins with."""

    schema: str
    version: int


@dataclass(frozen=True, slots=True)
class Head(ComparisonHead):
    """What the report begins with."""

    session: str
    """The session folder."""
    created: str
    """When profiling began, in ISO 8601."""
    versions: dict[str, str]
    """tpuport, Python, the platform, and every package that takes part."""
    plan: Plan


def render(session: Session, report: Report) -> str:
    """Return the document. Numbers that JSON does not know (infinity, NaN) are null."""
    header = session.header
    versions = {"tpuport": header.tpuport, **header.versions}
    return _document(Head(SCHEMA, VERSION, str(session.folder), header.created, versions, session.plan), report)


def render_comparison(comparison: Comparison) -> str:
    """Return what changed between two sessions as a document of its own."""
    return _document(ComparisonHead(COMPARISON_SCHEMA, VERSION), comparison)


def _document(head: ComparisonHead, body: Report | Comparison) -> str:
    return json.dumps(_finite({**encode(head), **encode(body)}), indent=2, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
