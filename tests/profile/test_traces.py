"""`--trace`: TensorBoard opens what it leaves."""

import gzip
import json
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from tests.profile.command import LIMIT_S, Profiled, environment, profile, tpuport
from tpuport.profile.layout import KINETO_TRACE, TRACES
from tpuport.profile.plan import Mode
from tpuport.profile.records import Phase, Step, read_records

Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Profiled:
    options = ("--device", "emulated-tpu", "--mode", "compiled", "--steps", "2", "--chip", "v6e", "--trace")
    return profile(tmp_path_factory.mktemp("traced"), "train.py", *options)


@pytest.fixture(scope="module")
def tensorboard(traced: Profiled) -> Iterator[Ask]:
    """Start the command that the report names, and give what asks its profile plugin."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    program, *arguments = shlex.split(traced.result.document["traces"]["command"])
    assert program == "tensorboard"
    command = [sys.executable, "-m", "tensorboard.main", *arguments, "--host", "localhost", "--port", str(port)]
    log = traced.session.parent / "tensorboard.log"
    with (
        log.open("w") as out,
        subprocess.Popen(command, cwd=traced.session.parent, env=environment(), stdout=out, stderr=out) as process,
    ):
        try:

            def ask(route: str, **parameters: str) -> Any:
                address = f"http://localhost:{port}/data/plugin/profile/{route}?{urlencode(parameters)}"
                with urlopen(address, timeout=LIMIT_S) as answer:
                    content = answer.read()
                    packed = answer.headers.get("Content-Encoding") == "gzip"
                    return (gzip.decompress(content) if packed else content).decode()

            _wait(process, ask, log)
            yield ask
        finally:
            process.kill()


def _wait(process: subprocess.Popen[bytes], ask: Ask, log: Path) -> None:
    deadline = time.monotonic() + LIMIT_S
    while True:
        try:
            ask("runs")
        except URLError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(log.read_text()) from None
            time.sleep(0.1)
        else:
            return


def traced_steps(run: Profiled) -> int:
    (row,) = run.result.document["traces"]["rows"]
    kineto = json.loads((run.session / row["kineto"]).read_text())
    return sum(event["name"].startswith("ProfilerStep#") for event in kineto["traceEvents"])


def test_traced_steps_come_after_the_timed_ones(traced: Profiled) -> None:
    steps = read_records(traced.session / "compiled" / "records.jsonl").of(Step)
    assert [step.phase for step in steps][-2:] == [Phase.TIMED] * 2
    assert traced.row("modes", "compiled")["failure"] is None
    (row,) = traced.result.document["traces"]["rows"]
    assert (row["mode"], row["steps"], row["xplane"]) == ("compiled", 3, True)
    assert traced_steps(traced) == 3


def test_tensorboard_lists_the_run_with_its_tools_and_trace(tensorboard: Ask) -> None:
    # The first one is what it opens by itself.
    assert json.loads(tensorboard("runs")) == ["compiled", "chip-v6e-compiled"]
    assert "trace_viewer@" in json.loads(tensorboard("run_tools", run="compiled"))
    (host,) = json.loads(tensorboard("hosts", run="compiled", tag="trace_viewer"))
    trace = json.loads(tensorboard("data", run="compiled", tag="trace_viewer", host=host["hostname"]))
    names = {event.get("name", "") for event in trace["traceEvents"]}
    assert any("Execute" in name for name in names)


def test_its_graph_viewer_shows_what_the_chip_would_run(traced: Profiled, tensorboard: Ask) -> None:
    assert traced.result.document["traces"]["graphs"] == ["chip-v6e-compiled"]
    assert {"graph_viewer", "memory_viewer"} <= set(json.loads(tensorboard("run_tools", run="chip-v6e-compiled")))
    modules = tensorboard("module_list", run="chip-v6e-compiled").split(",")
    assert len(modules) == traced.row("programs", "compiled")["distinct"]["value"]
    model = next(name for name in modules if "Sequential" in name)
    text = tensorboard(
        "data", run="chip-v6e-compiled", tag="graph_viewer", host="v6e", module_name=model, type="short_txt"
    )
    assert text.startswith("HloModule tt_jit_")
    assert "fusion(" in text


def test_the_report_names_the_command(traced: Profiled) -> None:
    shown = tpuport("report", traced.session, cwd=traced.session.parent)
    assert "  tensorboard --logdir session\n" in shown.out
    page = tpuport("report", traced.session, "--format", "markdown", cwd=traced.session.parent).out
    assert "- TensorBoard: `tensorboard --logdir session`" in page


def test_elsewhere_there_is_kinetos_trace_alone(tmp_path: Path) -> None:
    run = profile(tmp_path, "train.py", "--device", "cpu", "--mode", "eager", "--steps", "2", "--trace")
    assert run.result.code == 0
    traces = run.result.document["traces"]
    assert (traces["command"], traces["graphs"], traces["rows"][0]["xplane"]) == ("", [], False)
    assert [path.name for path in (run.session / TRACES / Mode.EAGER).iterdir()] == [KINETO_TRACE]


def test_a_script_that_ends_before_is_said_to_have_no_trace(tmp_path: Path) -> None:
    options = ("--device", "cpu", "--mode", "eager", "--warmup", "1", "--steps", "2", "--trace")
    run = profile(tmp_path, "exits.py", *options, arguments=("--after", "4"))
    assert run.result.document["traces"]["rows"] == []
    remarks = [item["text"] for item in run.row("modes", "eager")["remarks"]]
    assert "no trace: the script ended before the steps that were to be traced" in remarks


def script_that_traces_itself(folder: Path, profiler: str) -> Profiled:
    (folder / "script.py").write_text(
        "import torch\n"
        "model = torch.nn.Linear(2, 2)\n"
        "optimizer = torch.optim.SGD(model.parameters())\n"
        f"with {profiler}:\n"
        "    for _ in range(20):\n"
        "        model(torch.ones(1, 2)).sum().backward()\n"
        "        optimizer.step()\n"
    )
    return profile(folder, folder / "script.py", "--device", "cpu", "--mode", "eager", "--steps", "2", "--trace")


def test_a_script_that_traces_itself_is_traced_all_the_same(tmp_path: Path) -> None:
    run = script_that_traces_itself(tmp_path, "torch.profiler.profile()")
    assert (run.result.code, run.failure(), traced_steps(run)) == (0, None, 3)


def test_a_profiler_that_bears_no_other_is_named(tmp_path: Path) -> None:
    run = script_that_traces_itself(tmp_path, "torch.autograd.profiler.emit_itt()")
    assert (run.result.code, run.failure()) == (0, None)
    (remark,) = run.row("modes", "eager")["remarks"]
    assert remark["text"].startswith("no trace: Profiler is already enabled")
