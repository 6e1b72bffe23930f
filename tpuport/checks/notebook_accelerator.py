"""The machine that a notebook asks Colab or Kaggle for."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from tpuport.kinds.document import found
from tpuport.model import Finding, Rule

if TYPE_CHECKING:
    from tpuport.kinds.notebook import Views


def check(views: "Views", rule: Rule) -> Iterator[Finding]:
    """A finding for a GPU that the notebook's own settings ask for."""
    metadata = views.notebook.root.get("metadata")
    kaggle = metadata.get("kaggle") if metadata else None
    for settings in (metadata, kaggle):
        asked = settings.get("accelerator") if settings else None
        if asked is not None and (asked.text.lower() == "gpu" or asked.text.lower().startswith("nvidia")):
            span = views.notebook.place(asked.start, asked.end)
            reason = "choose a TPU where the notebook is to run on one: the setting then says so"
            line = views.notebook.text.split("\n")[span.line - 1]
            yield replace(found(rule, span, reason=reason), line_text=line)
