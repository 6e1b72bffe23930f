from dataclasses import replace
from pathlib import Path

import pytest

from tests.profile.command import SCRIPTS, make_plan, make_session, tpuport
from tests.profile.test_output import FRAME, SESSIONS, session
from tpuport.config import Config
from tpuport.errors import ConfigError, UsageError
from tpuport.profile.analyses import analyse
from tpuport.profile.plan import Device, Mode
from tpuport.profile.session import load
from tpuport.profile.thresholds import NAMES, OPTION, Threshold, budgets, exceeded, in_force, parse


def broken(folder: Path, name: str, limits: str) -> tuple[str, ...]:
    lines = exceeded(in_force((), parse(limits)), analyse(session(folder, name)), SESSIONS[name][0])
    assert all(line.startswith(f"{OPTION} ") for line in lines)
    return tuple(line.removeprefix(f"{OPTION} ") for line in lines)


def test_limits_are_read() -> None:
    assert parse(" graph-breaks>2, slower ,recompiles > 0,") == (
        Threshold("graph-breaks", 2),
        Threshold("slower"),
        Threshold("recompiles"),
    )
    assert parse("") == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("speed", "unknown limit 'speed'$"),
        ("graph_breaks>0", "'graph_breaks>0' is no limit"),
        ("recompile>2", "unknown limit 'recompile'; did you mean recompiles?"),
        ("graph-breaks>", "'graph-breaks>' is no limit"),
        ("graph-breaks<2", "is no limit"),
        ("graph-breaks>-1", "is no limit"),
        ("graph-breaks=2", "is no limit"),
    ],
)
def test_what_is_no_limit_is_refused_with_the_valid_names(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as raised:
        parse(text)
    assert all(name in raised.value.hint for name in NAMES)
    settings = Config(Path(), budgets=(text,), origins={"budgets": "pyproject.toml:7"})
    with pytest.raises(ConfigError, match=r"pyproject\.toml:7: `budgets`: "):
        budgets(settings)


def test_the_option_comes_before_the_settings_name_by_name() -> None:
    settings = Config(Path(), budgets=("graph-breaks>3", "slower"), origins={"budgets": "pyproject.toml:7"})
    assert in_force(budgets(settings), parse("graph-breaks>1")) == (
        Threshold("graph-breaks", 1),
        Threshold("slower", 0, "pyproject.toml:7: `budgets`"),
        Threshold("failed-modes", 0),
    )
    assert in_force((), ()) == ()


@pytest.mark.parametrize(
    ("name", "limits", "found"),
    [
        ("emulated", "graph-breaks>1,recompiles>1,slower,loss-drift,failed-modes", ()),
        ("emulated", "graph-breaks", ("graph-breaks: 1, at most 0 allowed (model.py:7 Data-dependent branching)",)),
        (
            "nothing",
            "graph-breaks",
            (
                "graph-breaks: cannot be judged, as no compiled mode was measured",
                "failed-modes: cannot be judged, as the script failed",
                "failed-modes: 1, at most 0 allowed (eager: the script ended without a step)",
            ),
        ),
        ("differing", "loss-drift", ("loss-drift: 1, at most 0 allowed (compiled from step 1)",)),
        ("failed", "failed-modes", ("failed-modes: 1, at most 0 allowed (fused: RuntimeError: no such thing (before",)),
        (
            "failed",
            "slower,host-syncs",
            (
                "slower: cannot be judged, as there is nothing to compare: it takes eager and another mode",
                "failed-modes: 1, at most 0 allowed (fused: RuntimeError",
            ),
        ),
        ("failed", "failed-modes>1,host-syncs", ()),
        ("failed", "failed-modes>1,loss-drift", ("loss-drift: cannot be judged, as losses of fewer than two",)),
        ("cpu", "host-syncs", ("host-syncs: cannot be judged, as host waits are counted on a TPU",)),
        ("cpu", "slower,recompiles,graph-breaks,loss-drift", ()),
        ("emulated", "over-memory", ("over-memory: cannot be judged, as nothing was compiled for a chip: add",)),
    ],
)
def test_what_is_beyond_its_limit_is_named(tmp_path: Path, name: str, limits: str, found: tuple[str, ...]) -> None:
    lines = broken(tmp_path, name, limits)
    assert len(lines) == len(found)
    assert all(line.startswith(start) for line, start in zip(lines, found, strict=True))


def test_what_comes_several_times_is_named_once(tmp_path: Path) -> None:
    report = analyse(session(tmp_path, "emulated"))
    (row,) = report.recompiles.rows
    often = replace(report, recompiles=replace(report.recompiles, rows=(replace(row, count=5),)))
    (line,) = exceeded(parse("recompiles"), often, Device.EMULATED_TPU)
    assert line.endswith(f"recompiles: 5, at most 0 allowed (5× unknown place {row.cause})")


@pytest.mark.parametrize(("device", "what"), [(Device.CPU, "time a step"), (Device.EMULATED_TPU, "executions a step")])
def test_slower_goes_by_time_on_a_device_and_by_executions_without(tmp_path: Path, device: Device, what: str) -> None:
    _, records = SESSIONS["emulated"]
    swapped = {Mode.EAGER: records[Mode.COMPILED], Mode.COMPILED: [*records[Mode.EAGER], FRAME]}
    saved = load(make_session(tmp_path / "s", swapped, plan=make_plan(device=device, modes=tuple(swapped))))
    (line,) = exceeded(parse("slower"), analyse(saved), device)
    assert f"eager's {what}" in line


def test_beyond_a_limit_the_exit_code_is_1_and_the_report_is_shown(tmp_path: Path) -> None:
    session(tmp_path, "emulated")
    result = tpuport("report", "s", "--fail-on", "graph-breaks>0", cwd=tmp_path)
    assert result.code == 1
    assert "graph-breaks: 1, at most 0 allowed" in result.err
    assert "Graph breaks: 1" in result.out
    assert tpuport("report", "s", "--fail-on", "graph-breaks>1", cwd=tmp_path).code == 0


def test_an_unknown_limit_is_refused_before_anything_runs(tmp_path: Path) -> None:
    result = tpuport("profile", SCRIPTS / "train.py", "--fail-on", "speed", cwd=tmp_path)
    assert result.code == 2
    assert "unknown limit 'speed'" in result.err


def test_budgets_of_the_project_hold_without_an_option(tmp_path: Path) -> None:
    session(tmp_path, "emulated")
    (tmp_path / "pyproject.toml").write_text('[tool.tpuport]\nbudgets = ["graph-breaks>0", "recompiles>1"]\n')
    result = tpuport("report", "s", cwd=tmp_path)
    assert result.code == 1
    assert result.err.startswith("pyproject.toml:2: `budgets` graph-breaks: 1, at most 0 allowed (model.py:7 ")
    assert tpuport("report", "s", "--fail-on", "graph-breaks>1", cwd=tmp_path).code == 0
    assert tpuport("report", "s", "--fail-on", "", cwd=tmp_path).code == 0
