"""Several runs of each mode, and several ranks of a run."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.profile.command import SCRIPTS, Profiled, make_plan, make_session, profile, tpuport
from tpuport.errors import TpuportError, UsageError
from tpuport.profile import launch, runner
from tpuport.profile.analyses import analyse
from tpuport.profile.analyses.processes import analyse_processes
from tpuport.profile.layout import rank_folder, run_folder
from tpuport.profile.plan import Device, Mode
from tpuport.profile.records import (
    FILE_NAME,
    Ended,
    Enough,
    Frame,
    FrameCompiled,
    HostSync,
    Phase,
    Records,
    RecordWriter,
    Started,
    Step,
)
from tpuport.profile.runner import ExitKind, ProcessExit
from tpuport.profile.session import SessionHeader, load, save

CPU = ("--device", "cpu", "--mode", "eager", "--steps", "3", "--warmup", "1", "--timeout", "60")
STARTED = Started("2.13.0", "cpu", ("/lib/",))
LINE = Frame("/project/train.py", 7, "main")
CLEAN = ProcessExit(ExitKind.EXITED, 0, 1.0)


@pytest.fixture(scope="module")
def repeated(tmp_path_factory: pytest.TempPathFactory) -> Profiled:
    return profile(tmp_path_factory.mktemp("repeated"), "train.py", *CPU, "--repeat", "2")


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Profiled:
    return profile(tmp_path_factory.mktemp("ranks"), "distributed.py", *CPU, "--nproc", "2")


def test_repeated_runs_are_processes_of_their_own_and_times_are_over_all(repeated: Profiled) -> None:
    assert repeated.result.code == 0, repeated.result.err
    rows = repeated.result.document["processes"]["rows"]
    assert [(row["mode"], row["run"], row["rank"], row["step_time"]["steps"]) for row in rows] == [
        ("eager", 1, 0, 3),
        ("eager", 2, 0, 3),
    ]
    total = repeated.row("modes", "eager")["step_time"]
    assert total["steps"] == 6
    assert total["lowest"]["value"] == min(row["step_time"]["lowest"]["value"] for row in rows)
    assert total["highest"]["value"] == max(row["step_time"]["highest"]["value"] for row in rows)
    assert "[2/2] eager, run 2 on cpu: running" in repeated.result.err


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_every_format_shows_runs(repeated: Profiled, form: str) -> None:
    shown = tpuport("report", repeated.session, "--format", form, cwd=repeated.session)
    assert "Runs and ranks" in shown.out


def test_each_rank_is_measured(ranks: Profiled) -> None:
    assert ranks.result.code == 0, ranks.result.err
    rows = ranks.result.document["processes"]["rows"]
    assert [(row["rank"], row["failure"], row["step_time"]["steps"]) for row in rows] == [(0, None, 3), (1, None, 3)]
    assert ranks.result.document["processes"]["differences"] == []


def test_what_another_rank_alone_does_is_named_with_its_line(tmp_path: Path) -> None:
    session = make_session(tmp_path / "s", {Mode.COMPILED: [STARTED, HostSync(1, ".item()", LINE, 1, 0.1)]})
    loaded = load(session)
    (first,) = loaded.runs
    waits = (HostSync(1, ".item()", LINE, 1, 0.1), HostSync(1, "print", replace(LINE, line=9), 1, 0.1))
    rank = replace(first, rank=1, records=Records((STARTED, *waits)))
    (said,) = analyse_processes(replace(loaded, others=(rank,))).differences
    assert said == "compiled: in rank 1, and not in rank 0: train.py:9: host wait, print"


def test_a_rank_that_fails_is_the_failure_of_its_mode(tmp_path: Path) -> None:
    run = profile(tmp_path, "distributed.py", *CPU, "--nproc", "2", arguments=("--fail",))
    assert run.result.code == 3
    assert run.failure()["what"] == "rank 1: ValueError: this rank is broken (after 2 steps)"
    assert Path(run.failure()["place"]["file"]).name == "distributed.py"


@pytest.mark.parametrize("arguments", [(), ("--shard",)])
def test_one_rank_runs_on_the_emulated_tpu_with_what_torch_tpu_needs(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    options = ("--device", "emulated-tpu", "--mode", "compiled", "--steps", "2", "--warmup", "1", "--nproc", "1")
    run = profile(tmp_path, "distributed.py", *options, arguments=arguments)
    assert run.result.code == 0, run.result.out
    assert run.row("programs", "compiled")["executions"]["value"] > 0


def test_several_ranks_on_the_emulated_tpu_are_refused(tmp_path: Path) -> None:
    result = tpuport("profile", SCRIPTS / "distributed.py", "--device", "emulated-tpu", "--nproc", "2", cwd=tmp_path)
    assert result.code == 2
    assert "the emulated TPU is one device" in result.err


def test_under_torchrun_tpuport_says_how_it_starts_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"):
        monkeypatch.setenv(name, "0")
    with pytest.raises(UsageError, match="started by torchrun") as raised:
        launch.check_ranks(None, Device.CPU)
    assert "--nproc N" in raised.value.hint


def test_ranks_know_each_other_as_under_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    first, second = launch.rank_environments(2, Device.CPU)
    assert (first["RANK"], second["RANK"], second["LOCAL_RANK"]) == ("0", "1", "1")
    assert {name: first[name] for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE", "OMP_NUM_THREADS")} == {
        "WORLD_SIZE": "2",
        "LOCAL_WORLD_SIZE": "2",
        "OMP_NUM_THREADS": "1",
    }
    assert first["MASTER_PORT"] == second["MASTER_PORT"]


def test_the_launch_environment_of_a_tpu_is_torch_tpus_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for torch on the path of the process that is asked: there is no TPU here to ask the real one about."""
    (tmp_path / "torch.py").write_text(
        "import os\n"
        "class distributed:\n"
        "    def set_tpu_launch_env(nproc_per_node):\n"
        "        os.environ['TORCH_TPU_TOPOLOGY'] = f'{nproc_per_node},1,1'\n"
        "class tpu:\n"
        "    distributed = distributed\n"
        "print('chatter of the runtime')\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    environments = launch.rank_environments(2, Device.TPU)
    assert [environment["TORCH_TPU_TOPOLOGY"] for environment in environments] == ["2,1,1", "2,1,1"]


def test_a_host_that_has_no_launch_environment_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torch.py").write_text("raise ValueError('expected TPU devices, got none')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(TpuportError, match="no launch environment for 4 ranks: ValueError: expected TPU devices"):
        launch.rank_environments(4, Device.TPU)


def test_what_ranks_do_differently_is_named(tmp_path: Path) -> None:
    session = tmp_path / "session"
    started, graph = Started("2.13.0", "cpu", ()), FrameCompiled(0, 0, "f", "t.py", 1, 3, 0.1, None, None)
    steps = {
        rank: [Step(index, Phase.TIMED, seconds, 0) for index in range(3)] for rank, seconds in ((0, 1.0), (1, 2.0))
    }
    make_session(
        session,
        {Mode.COMPILED: [started, graph, *steps[0], Enough()]},
        plan=make_plan(device=Device.CPU, modes=(Mode.COMPILED,), ranks=2),
    )
    folder = rank_folder(run_folder(session, "compiled"), 1)
    folder.mkdir()
    writer = RecordWriter(folder / FILE_NAME)
    for record in (started, graph, graph, *steps[1], Enough(), Ended("finished")):
        writer.write(record)
    writer.close()
    header = load(session).header
    save(session, SessionHeader(1, "", "", {}, header.plan).with_run(Mode.COMPILED, 1, [CLEAN, CLEAN]))
    processes = analyse(load(session)).processes
    assert processes.differences == ("compiled: graphs: 1 in rank 0, 2 in rank 1",)
    assert processes.slowest == ("compiled: rank 1 is the slowest, 2.00× rank 0's time a step",)


def test_runs_that_compute_something_else_with_the_same_seed_are_named(tmp_path: Path) -> None:
    session = tmp_path / "session"
    losses = {1: (1.0, 0.9, 0.8), 2: (1.0, 0.9, 0.8), 3: (1.0, 0.7, 0.5)}
    steps = {
        number: [Step(index, Phase.TIMED, 1.0, 0, (loss,)) for index, loss in enumerate(values)]
        for number, values in losses.items()
    }
    make_session(session, {Mode.EAGER: [*steps[1], Enough()]}, plan=make_plan(device=Device.CPU, repeat=3))
    header = load(session).header
    for number in (2, 3):
        folder = run_folder(session, "eager", number)
        folder.mkdir(parents=True)
        writer = RecordWriter(folder / FILE_NAME)
        for record in (*steps[number], Enough()):
            writer.write(record)
        writer.close()
        header = header.with_run(Mode.EAGER, number, [CLEAN])
    save(session, header)
    report = analyse(load(session))
    assert report.processes.unrepeatable == (
        "eager: the losses of run 3 leave those of run 1 at step 1, with the same seed",
    )
    assert report.modes.rows[0].step_time is not None
    assert report.modes.rows[0].step_time.steps == 9


def test_a_rank_that_its_peer_has_left_is_stopped_at_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "left.py"
    script.write_text("import os, time\nif os.environ['RANK'] == '0':\n    time.sleep(100)\n")
    monkeypatch.setattr(runner, "_PEER_GRACE_S", 3.0)
    plan = make_plan(
        script=str(script),
        script_as_given="left.py",
        directory=str(tmp_path),
        device=Device.CPU,
        ranks=2,
        timeout_s=60.0,
    )
    session = tmp_path / "session"
    session.mkdir()
    first, second = runner.run_mode(plan, Mode.EAGER, run_folder(session, "eager"), session)
    assert (first.kind, second.kind) == (ExitKind.PEER_LEFT, ExitKind.EXITED)
    save(session, SessionHeader(1, "", "", {}, plan).with_run(Mode.EAGER, 1, [first, second]))
    failure = analyse(load(session)).processes.rows[0].failure
    assert failure is not None
    assert failure.what == "another rank had ended, and this one was stopped before its first step"
    assert (failure.place and failure.place.line) == 3
