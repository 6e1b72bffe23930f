"""The HTML report in a real browser: drawn, self-contained, without errors, and within a phone's width."""

import html
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.profile.chips.test_chip_reports import BACKWARD, CHIP, FRAMES, LINEAR, OPTIMIZER
from tests.profile.command import tpuport
from tests.profile.test_comparison import AFTER, BEFORE, saved
from tests.profile.test_output import SESSIONS, session
from tpuport.output import profile_html
from tpuport.output.profile_charts import COLOURS
from tpuport.profile.analyses import analyse
from tpuport.profile.chips.estimates import Compiled, Cost, Kernels, Memory
from tpuport.profile.codec import encode
from tpuport.profile.comparison import compare
from tpuport.profile.layout import SOURCES, write_json
from tpuport.profile.plan import Mode
from tpuport.profile.session import load

CHROMIUM = shutil.which("chromium")
MODEL = """import torch


def forward(x):
    y = x @ x

    if y.sum() > 0:
        y = y < 1 and '</script>'
    return y
"""
in_a_browser = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")


def page(folder: Path, name: str = "emulated") -> str:
    path = session(folder, name).folder
    kernels = Kernels(
        3, 1, (), 0, FRAMES, (Cost(LINEAR, "mm", 60.0), Cost(BACKWARD, "mm", 30.0), Cost(OPTIMIZER, "add", 10.0))
    )
    result = Compiled("sha", "v6e", "1.2", 0.1, "", 5.0, Memory(10, 10, 0, 0, 0, CHIP.memory + 2**30), kernels)
    (path / "chips" / "v6e").mkdir(parents=True)
    write_json(path / "chips" / "v6e" / "sha.json", encode(result))
    write_json(path / SOURCES, {"model.py": MODEL, "train.py": "step\n" * 20})
    loaded = load(path)
    return profile_html.render(loaded, analyse(loaded))


class _Balance(HTMLParser):
    void = frozenset({"meta", "link", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.outside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.void:
            self.open.append(tag)
        self.outside += [
            value for name, value in attrs if name in ("src", "href") and value and not value.startswith(("data:", "#"))
        ]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", SESSIONS)
def test_the_page_is_well_formed_and_needs_nothing_else(tmp_path: Path, name: str) -> None:
    parser = _Balance()
    made = session(tmp_path, name)
    text = profile_html.render(made, analyse(made))
    parser.feed(text)
    assert (parser.open, parser.outside) == ([], [])
    assert "<script" not in text
    assert "url(" not in text


def test_every_link_within_the_page_has_its_end(tmp_path: Path) -> None:
    text = page(tmp_path)
    wanted = set(re.findall(r'href="#([^"]+)"', text))
    assert {"modes", "graph-breaks", "recompiles", "host-waits", "chips", "source"} <= wanted
    assert wanted <= set(re.findall(r'id="([^"]+)"', text))


def test_every_mode_has_a_colour_of_its_own() -> None:
    assert set(COLOURS) == set(Mode)
    assert len(set(COLOURS.values())) == len(Mode)


def compared(folder: Path) -> str:
    before, after = saved(folder / "before", BEFORE), saved(folder / "after", AFTER)
    changes = compare(analyse(before), analyse(after), (before.plan, after.plan))
    return profile_html.render_comparison(changes, before, after)


def test_a_comparison_is_a_page_of_the_same_kind(tmp_path: Path) -> None:
    parser = _Balance()
    text = compared(tmp_path)
    parser.feed(text)
    assert (parser.open, parser.outside) == ([], [])
    assert "<script" not in text
    facts = re.findall(r"<span>([^<]+)</span><b>([^<]+)</b><span>([^<]+)</span>", text)
    assert facts == [
        ("graph breaks", "1 → 0", "in the run"),
        ("recompiles", "2 → 1", "in the run"),
        ("host waits", "3 → 2", "a step"),
        ("executions a step", "12", "eager: 0%"),
        ("executions a step", "8 → 6", "compiled: -25%"),
    ]
    assert '<div class="finding good"><p><b>model.py:7</b><span class="tag">gone (1× before)</span>' in text
    assert '<div class="finding bad"><p><b>model.py:7</b><span class="tag">new (1×)</span>' in text


def test_sessions_with_nothing_in_common_are_compared_without_a_chart(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    before, after = session(tmp_path / "a", "cpu"), session(tmp_path / "b", "nothing")
    changes = compare(analyse(before), analyse(after), (before.plan, after.plan))
    text = profile_html.render_comparison(changes, before, after)
    assert "The two sessions have no figure in common." in text
    assert "<svg" not in text


def test_the_users_text_is_escaped(tmp_path: Path) -> None:
    text = page(tmp_path)
    assert "y = y &lt; 1 and &#39;&lt;/script&gt;&#39;" in text
    assert "</script>" not in text


def test_the_source_carries_its_breaks_and_costs(tmp_path: Path) -> None:
    saved_page = page(tmp_path)
    assert re.search(r'90\.0%</span><span class="number" id="[^"]+">4</span><span class="text">def fo', saved_page)
    line = saved_page[saved_page.index('">7</span>') :]
    assert "Data-dependent branching (GB0170) (1×)" in line[: line.index('">8</span>')]


def test_a_finding_leads_to_its_line(tmp_path: Path) -> None:
    saved_page = page(tmp_path)
    anchor = re.search(r'<a href="#([^"]+)">model\.py:7</a>', saved_page)
    assert anchor is not None
    assert f'id="{anchor[1]}">7</span>' in saved_page


def test_the_page_begins_with_what_matters(tmp_path: Path) -> None:
    saved_page = page(tmp_path)
    facts = re.findall(r"<span>([^<]+)</span><b>([^<]+)</b>", saved_page)
    assert facts == [
        ("executions a step", "12 → 3"),
        ("a step on v6e", "171 ns"),
        ("losses", "agree"),
        ("graph breaks", "1"),
        ("recompiles", "1"),
        ("host waits a step", "2"),
    ]


def chromium(folder: Path, text: str, *options: str) -> tuple[str, str]:
    assert CHROMIUM is not None
    (folder / "page.html").write_text(text, encoding="utf-8")
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'browser'}"]
    done = subprocess.run(
        [*command, "--enable-logging=stderr", *options, (folder / "page.html").as_uri()],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    return done.stdout, done.stderr


MEASURE = """<script>addEventListener("load", () => {
const shown = selector => [...document.querySelectorAll(selector)].filter(item => item.getClientRects().length);
const marks = shown("#step-times circle.dot, #chip-times rect.rect, #executions rect.rect").length;
const drawn = shown("figure svg.pygal-chart").map(svg => svg.getBoundingClientRect()).map(
  chart => chart.width > 200 && chart.height > 100);
const background = getComputedStyle(document.body).backgroundColor;
document.title = JSON.stringify([document.documentElement.scrollWidth, innerWidth, drawn, marks, background]);
})</script></body>"""


FRAME = """<iframe style="width: {width}px; height: 800px; border: 0" srcdoc="{page}"></iframe>
<script>addEventListener("load", () => {{ document.title = frames[0].document.title; }})</script>"""
"""No window of chromium is as narrow as a phone."""


def measured(folder: Path, *options: str, frame: int | None = None, make: Callable[[Path], str] = page) -> Any:
    text = make(folder).replace("</body>", MEASURE)
    if frame is not None:
        text = f"<!DOCTYPE html><title></title>{FRAME.format(width=frame, page=html.escape(text))}"
    out, err = chromium(folder, text, "--dump-dom", *options)
    assert "CONSOLE" not in err
    title = re.search(r"<title>(.*?)</title>", out)
    assert title is not None
    return json.loads(html.unescape(title[1]))


@in_a_browser
@pytest.mark.parametrize(("width", "frame"), [(800, 360), (1200, None)])
def test_a_browser_draws_the_charts_within_the_windows_width(tmp_path: Path, width: int, frame: int | None) -> None:
    content, window, charts, marks, _ = measured(tmp_path, f"--window-size={width},900", frame=frame)
    assert content <= window == (frame or width)
    assert charts == [True, True]
    # Three steps after the first in each of two modes, and one bar for each.
    assert marks == 2 * 3 + 2


@in_a_browser
@pytest.mark.parametrize(("width", "frame"), [(800, 360), (1200, None)])
def test_a_browser_draws_a_comparison_too(tmp_path: Path, width: int, frame: int | None) -> None:
    content, window, charts, marks, _ = measured(tmp_path, f"--window-size={width},900", frame=frame, make=compared)
    assert content <= window == (frame or width)
    assert charts == [True]
    # Before and after, in each of two modes.
    assert marks == 4


@in_a_browser
def test_light_and_dark_have_their_own_colours(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    light = measured(tmp_path / "a")[-1]
    dark = measured(tmp_path / "b", "--blink-settings=preferredColorScheme=0")[-1]
    assert (light, dark) == ("rgb(255, 255, 255)", "rgb(13, 17, 23)")


def test_the_command_writes_the_page(tmp_path: Path) -> None:
    session(tmp_path, "emulated")
    result = tpuport("report", "s", "--format", "html", cwd=tmp_path)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("<!DOCTYPE html>")
