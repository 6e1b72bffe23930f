"""Charts of the HTML report: inline SVG without scripts, in the page's own colours.

Each is drawn twice, for a wide window and for a phone, as text that shrinks with its chart can't be read there.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pygal
from pygal.style import Style

from tpuport.output.profile_units import duration
from tpuport.profile.analyses import Report
from tpuport.profile.comparison import Change
from tpuport.profile.plan import Mode
from tpuport.profile.records import Phase, Step
from tpuport.profile.session import Session

COLOURS = {
    Mode.EAGER: "#8a8f98",
    Mode.FUSED: "#2f81f7",
    Mode.COMPILED: "#d97706",
    Mode.COMPILED_FUSED: "#9333ea",
    Mode.COMPILED_STEP: "#0d9488",
}
"""One colour a mode, legible on light and on dark."""
_BEFORE_AND_AFTER = {"before": "#8a8f98", "after": "#2f81f7"}
_WIDTHS = {"wide": 860, "narrow": 400}
_LABEL_WIDTH = 40
"""What the number of a step takes on the axis, with its distance to the next."""
_SPREAD = 8.0
"""Longest by shortest step from which on the scale is logarithmic: a step that compiles dwarfs all others."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart as inline SVG, and the names and colours of what it shows."""

    svg: str
    legend: tuple[tuple[str, str], ...]


def step_times(session: Session) -> Chart | None:
    """Plot the time of every step but the first, which holds the start-up; None when there is none."""
    series = {run.mode: run.records.of(Step)[1:] for run in session.runs}
    series = {mode: steps for mode, steps in series.items() if steps}
    if not series:
        return None
    times = [step.seconds for steps in series.values() for step in steps]
    logarithmic = max(times) > _SPREAD * min(times) > 0

    height: Callable[[float], float] = _logarithm if logarithmic else float

    def draw(options: dict[str, Any]) -> Any:
        chart = pygal.XY(
            **{**options, "include_x_axis": not logarithmic, "show_minor_y_labels": logarithmic},
            stroke=True,
            x_title="step",
            x_value_formatter=lambda step: f"{step:g}",
            value_formatter=duration,
        )
        last = max(step.index for steps in series.values() for step in steps)
        chart.x_labels = list(range(1, last + 1, math.ceil(last * _LABEL_WIDTH / options["width"])))
        if logarithmic:
            labels = _decades(min(times), max(times))
            chart.y_labels = [{"value": height(value), "label": duration(value)} for value in labels]
        for mode, steps in series.items():
            chart.add(mode.value, [_point(step, height(step.seconds)) for step in steps])
        return chart

    return _drawn(draw, _mode_colours(series))


def step_phases(session: Session) -> list[str]:
    """Return what the steps of the plot were for, modes with the same phases in one sentence."""
    found: dict[str, list[str]] = {}
    for run in session.runs:
        steps = run.records.of(Step)[1:]
        phases = (list(group) for _, group in groupby(steps, key=lambda step: step.phase))
        if said := ", ".join(f"{_PHASES[steps[0].phase]} {_range(steps)}" for steps in phases):
            found.setdefault(said, []).append(run.mode.value)
    return [f"{', '.join(modes)}: {said}" for said, modes in found.items()]


_PHASES = {
    Phase.WARMUP: "warm-up",
    Phase.COUNTED: "counting of executions",
    Phase.WATCHED: "watching of operations",
    Phase.TIMED: "timed",
}


def _range(steps: list[Step]) -> str:
    first, last = steps[0].index, steps[-1].index
    return f"{first}" if first == last else f"{first}–{last}"


def _logarithm(seconds: float) -> float:
    """Return the height on a logarithmic axis; pygal's own such scale would be one of both axes.

    It is positive, as pygal draws a line at 0.
    """
    return math.log10(seconds) + 12


def _point(step: Step, height: float) -> dict[str, Any]:
    """Return a step as a point; one that compiled is larger."""
    return {"value": (step.index, height), "node": {"r": 6 if step.compiled else 2.5}}


def _decades(low: float, high: float) -> list[float]:
    """Return labels for a logarithmic axis: powers of ten, with 3 between them where there are few."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    between = (1, 3) if len(decades) <= 4 else (1,)
    return [factor * 10.0**decade for decade in decades for factor in between]


def chip_times(report: Report) -> Chart | None:
    """Plot the estimated time of a step, a group of bars for each chip; None without any."""
    rows = report.chips.rows
    values = {(row.chip, row.mode.value): row.time.value for row in rows}
    colours = _mode_colours(row.mode for row in rows)
    return _bars(list(dict.fromkeys(row.chip for row in rows)), values, colours, duration)


def changed_figures(changes: Sequence[Change], what: str, unit: Callable[[float], str]) -> Chart | None:
    """Plot the figures called `what` of two sessions, a pair of bars for each place they have; None without any."""
    found = [change for change in changes if change.what == what]
    before = {(change.where, "before"): change.before.value for change in found}
    after = {(change.where, "after"): change.after.value for change in found}
    return _bars([change.where for change in found], before | after, _BEFORE_AND_AFTER, unit)


def _bars(
    groups: list[str], values: dict[tuple[str, str], float], colours: dict[str, str], unit: Callable[[float], str]
) -> Chart | None:
    if not groups:
        return None

    def draw(options: dict[str, Any]) -> Any:
        chart = pygal.Bar(**options, value_formatter=unit, y_labels_major_count=4)
        chart.x_labels = groups
        for name in colours:
            chart.add(name, [values.get((group, name)) for group in groups])
        return chart

    return _drawn(draw, colours)


_UNUSED = re.compile("<!--.*?-->|<script.*?</script>|<title>Pygal</title>", re.DOTALL)
"""Comments, what pygal's own script would read, and a title that says nothing."""


def _mode_colours(modes: Iterable[Mode]) -> dict[str, str]:
    return {mode.value: COLOURS[mode] for mode in modes}


def _drawn(draw: Callable[[dict[str, Any]], Any], colours: dict[str, str]) -> Chart:
    charts = ((name, draw(_options(tuple(colours.values()), width))) for name, width in _WIDTHS.items())
    svgs = ((name, chart.render(is_unicode=True)) for name, chart in charts)
    svg = "".join(f'<div class="{name}">{_UNUSED.sub("", drawn)}</div>' for name, drawn in svgs)
    return Chart(svg, tuple(colours.items()))


def _options(colours: tuple[str, ...], width: int) -> dict[str, Any]:
    return {
        "style": Style(
            background="transparent",
            plot_background="transparent",
            foreground="#7d8590",
            foreground_strong="#7d8590",
            foreground_subtle="#7d858055",
            colors=colours,
            font_family="system-ui, sans-serif",
            label_font_size=13,
            major_label_font_size=13,
            title_font_size=13,
            opacity=".9",
        ),
        "js": (),
        "width": width,
        "height": 260,
        "include_x_axis": True,
        "show_legend": False,
        "disable_xml_declaration": True,
        "show_minor_y_labels": False,
        "dots_size": 2.5,
        "margin": 8,
    }
