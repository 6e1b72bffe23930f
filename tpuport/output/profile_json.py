"""The profile report as JSON: one document, versioned; fields are only ever added within a version."""

import json
import math
from typing import Any

from tpuport.profile.analyses import Report
from tpuport.profile.codec import encode
from tpuport.profile.comparison import Comparison
from tpuport.profile.session import Session

SCHEMA = "tpuport.profile"
VERSION = 1


def render(session: Session, report: Report) -> str:
    """Return the document. Numbers that JSON does not know (infinity, NaN) are null."""
    document = {
        "schema": SCHEMA,
        "version": VERSION,
        "session": str(session.folder),
        "created": session.header.created,
        "versions": {"tpuport": session.header.tpuport, **session.header.versions},
        "plan": encode(session.plan),
        **encode(report),
    }
    return json.dumps(_finite(document), indent=2, allow_nan=False)


def render_comparison(comparison: Comparison) -> str:
    """Return what changed between two sessions as a document of its own."""
    document = {"schema": f"{SCHEMA}.comparison", "version": VERSION, **encode(comparison)}
    return json.dumps(_finite(document), indent=2, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
