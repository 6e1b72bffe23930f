"""Charts of the HTML report: inline SVG without scripts, in the page's own colours."""

import re
from typing import Any

import pygal
from pygal.style import Style

from tpuport.output.profile_units import duration
from tpuport.profile.analyses import Report
from tpuport.profile.plan import Mode
from tpuport.profile.records import Phase, Step
from tpuport.profile.session import Session

COLOURS = {Mode.EAGER: "#8a8f98", Mode.FUSED: "#2f81f7", Mode.COMPILED: "#d97706", Mode.COMPILED_FUSED: "#9333ea"}
"""One colour a mode, legible on light and on dark."""


def step_times(session: Session) -> str:
    """Plot the time of every step but the first, which holds the start-up; empty when there is none."""
    series = {
        run.mode: [(step.index, step.seconds, step.phase) for step in run.records.of(Step)][1:] for run in session.runs
    }
    modes = [mode for mode, steps in series.items() if steps]
    if not modes:
        return ""
    chart = pygal.XY(
        **_options(modes),
        stroke=True,
        x_title="step",
        x_value_formatter=lambda step: f"{step:g}",
        y_labels_major_count=4,
        value_formatter=duration,
    )
    for mode in modes:
        chart.add(
            mode.value, [{"value": (index, value), "label": _phase(phase)} for index, value, phase in series[mode]]
        )
    return _svg(chart)


def _phase(phase: Phase) -> str:
    return {Phase.WARMUP: "warm-up", Phase.COUNTED: "counting executions", Phase.TIMED: "timed"}[phase]


def chip_times(report: Report) -> str:
    """Plot the estimated time of a step, a group of bars for each chip; empty without any."""
    rows = report.chips.rows
    if not rows:
        return ""
    chips = list(dict.fromkeys(row.chip for row in rows))
    modes = list(dict.fromkeys(row.mode for row in rows))
    chart = pygal.Bar(**_options(modes), value_formatter=duration, y_labels_major_count=4)
    chart.x_labels = chips
    values = {(row.chip, row.mode): row.time.value for row in rows}
    for mode in modes:
        chart.add(mode.value, [values.get((chip, mode)) for chip in chips])
    return _svg(chart)


_UNUSED = re.compile("<!--.*?-->|<script.*?</script>", re.DOTALL)
"""Comments, and what pygal's own script would read."""


def _options(modes: list[Mode]) -> dict[str, Any]:
    return {
        "style": Style(
            background="transparent",
            plot_background="transparent",
            foreground="#7d8590",
            foreground_strong="#7d8590",
            foreground_subtle="#7d858055",
            colors=tuple(COLOURS[mode] for mode in modes),
            font_family="system-ui, sans-serif",
            label_font_size=15,
            major_label_font_size=15,
            legend_font_size=16,
            title_font_size=15,
        ),
        "js": (),
        "width": 760,
        "height": 330,
        "include_x_axis": True,
        "legend_at_bottom": True,
        "legend_at_bottom_columns": len(modes),
        "legend_box_size": 10,
        "disable_xml_declaration": True,
        "show_minor_y_labels": False,
        "dots_size": 2.5,
        "margin": 8,
        "margin_bottom": 24,
    }


def _svg(chart: Any) -> str:
    rendered: str = chart.render(is_unicode=True)
    return _UNUSED.sub("", rendered)
