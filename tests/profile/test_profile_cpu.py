"""Scripts that end badly, and streams: on the CPU in eager mode, where a run costs least."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.profile.command import LIMIT_S, SCRIPTS, Profiled, environment, profile, tpuport
from tpuport.profile.layout import STDOUT_LOG
from tpuport.profile.logs import HEAD_BYTES, TAIL_BYTES

QUICK = ("--device", "cpu", "--mode", "eager", "--steps", "2", "--warmup", "1", "--timeout", "60")


def hostile(how: str, *options: str) -> pytest.MarkDecorator:
    return pytest.mark.profiled("hostile.py", *QUICK, *options, arguments=(how,))


def at(run: Profiled) -> tuple[str, int]:
    place = run.failure()["place"]
    return Path(place["file"]).name, place["line"]


def line_of(script: str, text: str) -> int:
    lines = (SCRIPTS / script).read_text(encoding="utf-8").splitlines()
    (number,) = [number for number, line in enumerate(lines, 1) if text in line]
    return number


ENDS = {
    "stdin": ("EOFError: EOF when reading a line (before its first step)", 'input("name? ")'),
    "os-exit": ("the script called os._exit(7) before its first step", "os._exit(7)"),
    "sigsegv": ("the process was ended by SIGSEGV before its first step", "signal.SIGSEGV"),
    "raise-later": ("ValueError: three steps were enough (after 3 steps)", "raise ValueError"),
}


@pytest.mark.parametrize(
    ("message", "line"),
    [pytest.param(*said, marks=hostile(how, "--steps", "9"), id=how) for how, said in ENDS.items()],
)
def test_an_end_before_all_steps_names_its_line(run: Profiled, message: str, line: str) -> None:
    assert run.result.code == 3
    assert run.failure()["what"] == message
    assert at(run) == ("hostile.py", line_of("hostile.py", line))


@hostile("sigkill")
def test_an_end_by_sigkill_is_named(run: Profiled) -> None:
    assert (run.result.code, run.failure()["what"]) == (3, "the process was ended by SIGKILL before its first step")


@hostile("hang-later", "--steps", "9", "--timeout", "20")
def test_the_time_limit_names_the_line_that_hangs(run: Profiled) -> None:
    assert run.result.code == 3
    assert run.failure()["what"] == "the time limit of 20 s was reached after 3 steps"
    assert at(run) == ("hostile.py", line_of("hostile.py", "time.sleep(0.01)"))


@hostile("stdin-quiet")
def test_reading_standard_input_finds_its_end_and_is_noted(run: Profiled) -> None:
    assert run.result.code == 0
    (remark,) = run.row("modes", "eager")["remarks"]
    assert "standard input" in remark["text"]
    assert remark["place"]["line"] == line_of("hostile.py", "sys.stdin.read()")


@hostile("chatter")
def test_of_gigabytes_of_output_head_and_tail_are_kept(run: Profiled) -> None:
    assert run.result.code == 0
    log = (run.session / "eager" / STDOUT_LOG).read_bytes()
    assert b"the end of stdout" in log
    assert len(log) < HEAD_BYTES + TAIL_BYTES + 4 * 65536


@hostile("swallow")
def test_a_script_that_swallows_everything_is_stopped(run: Profiled) -> None:
    assert run.result.code == 0
    assert run.row("modes", "eager")["step_time"]["steps"] == 2


@hostile("orphan")
def test_processes_that_the_script_leaves_are_ended(run: Profiled) -> None:
    assert run.result.code == 0
    assert not _alive(int((run.session.parent / "orphan.pid").read_text()))


@hostile("vandal")
def test_a_script_that_wrecks_its_process_is_measured_all_the_same(run: Profiled) -> None:
    assert run.result.code == 0, run.failure()
    assert run.row("modes", "eager")["step_time"]["steps"] == 2
    assert run.row("modes", "eager")["step_time"]["lowest"]["value"] > 0
    assert not _alive(int((run.session.parent / "daemon.pid").read_text()))
    assert (run.session / "eager" / STDOUT_LOG).read_bytes().startswith(bytes(range(256)))
    assert tpuport("report", run.session, cwd=run.session.parent).code == 0


ODD_ENDS = {
    "recurse": ("RecursionError: maximum recursion depth exceeded", "return deeper(depth + 1)"),
    "unprintable": ("Unprintable: <exception str() failed>", "raise Unprintable"),
    "exec-other": ("the script replaced its process by another program, ", "os.execvp("),
}


@pytest.mark.parametrize(
    ("message", "line"),
    [pytest.param(*said, marks=hostile(how), id=how) for how, said in ODD_ENDS.items()],
)
def test_an_odd_end_names_its_line(run: Profiled, message: str, line: str) -> None:
    assert run.result.code == 3
    assert run.failure()["what"].startswith(message)
    assert at(run) == ("hostile.py", line_of("hostile.py", line))


@hostile("memory", "--memory-limit", "2")
def test_the_memory_limit_is_kept_and_named(run: Profiled) -> None:
    assert run.result.code == 3
    assert "allocate memory" in run.failure()["what"]
    assert "--memory-limit" in run.failure()["hint"]
    assert at(run) == ("hostile.py", line_of("hostile.py", "torch.ones(64"))


@hostile("stop", "--timeout", "12")
def test_a_script_that_stops_itself_reaches_the_time_limit(run: Profiled) -> None:
    assert run.result.code == 3
    assert run.failure()["what"] == "the time limit of 12 s was reached before its first step"


@hostile("exec-self")
def test_a_script_that_starts_itself_anew_is_followed(run: Profiled) -> None:
    assert run.result.code == 0, run.failure()
    (remark,) = run.row("modes", "eager")["remarks"]
    assert "starts itself anew" in remark["text"]
    assert remark["place"]["line"] == line_of("hostile.py", "os.execve(sys.executable")


def test_a_session_that_the_script_deletes_is_an_error_that_says_so(tmp_path: Path) -> None:
    run = profile(tmp_path, "hostile.py", *QUICK, arguments=("delete-session", str(tmp_path / "session")))
    assert run.result.code == 2
    assert "after the script ran (eager)" in run.result.err
    assert "--output" in run.result.err


@pytest.mark.profiled("raises_first.py", *QUICK)
def test_a_script_that_raises_first_names_its_line(run: Profiled) -> None:
    assert run.result.code == 3
    assert run.failure()["what"] == "FileNotFoundError: config.yaml is missing (before its first step)"
    assert at(run) == ("raises_first.py", 5)


def test_a_syntax_error_names_its_line(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import torch\ndef broken(:\n")
    run = profile(tmp_path, tmp_path / "broken.py", *QUICK)
    assert run.result.code == 3
    assert run.failure()["what"].startswith("SyntaxError: ")
    assert at(run) == ("broken.py", 2)


@pytest.mark.profiled("no_step.py", *QUICK)
def test_a_script_without_anything_to_step_on_is_a_failure(run: Profiled) -> None:
    assert run.result.code == 3
    assert run.failure()["what"] == "the script ended without a step"
    assert "outermost call of an nn.Module" in run.failure()["hint"]


@pytest.mark.profiled("by_hand.py", *QUICK, "--steps", "99")
def test_evaluation_is_no_step_where_a_script_trains_by_hand(run: Profiled) -> None:
    assert run.result.code == 0, run.result.err
    row = run.row("modes", "eager")
    # The first call, and one for each backward pass.
    assert (row["step_source"], row["steps"]) == ("call", 13)


@pytest.mark.profiled("never_steps.py", *QUICK)
def test_an_optimizer_that_never_steps_is_a_failure_with_a_remedy(run: Profiled) -> None:
    assert run.result.code == 3
    assert "--step-on call" in run.failure()["hint"]


@pytest.mark.profiled("never_steps.py", *QUICK, "--step-on", "call")
def test_the_remedy_works(run: Profiled) -> None:
    assert run.result.code == 0
    assert run.row("modes", "eager")["step_source"] == "call"


@pytest.mark.profiled("exits.py", *QUICK, "--steps", "9", arguments=("--after", "4"))
def test_sys_exit_after_steps_is_an_end_like_any_other(run: Profiled) -> None:
    assert run.result.code == 0
    assert run.row("modes", "eager")["steps"] == 4


@pytest.mark.profiled("exits.py", *QUICK, arguments=("--code", "5"))
def test_sys_exit_with_a_status_is_a_failure(run: Profiled) -> None:
    assert run.result.code == 3
    assert run.failure()["what"] == "the script called sys.exit(5) before its first step; its last output: leaving"
    assert at(run) == ("exits.py", line_of("exits.py", "    sys.exit("))


def test_the_script_sees_what_python_would_show_it(tmp_path: Path) -> None:
    (tmp_path / "neighbour.py").write_text("VALUE = 3\n")
    (tmp_path / "script.py").write_text(
        "import os, pickle, sys, neighbour\n"
        "class Thing: pass\n"
        "assert __name__ == '__main__' and sys.modules['__main__'].Thing is Thing\n"
        "assert pickle.loads(pickle.dumps(Thing)) is Thing\n"
        "assert os.path.samefile(__file__, 'script.py')\n"
        "print(sys.argv, neighbour.VALUE)\n"
    )
    result = tpuport("profile", "script.py", *QUICK, "--output", "session", "--", "--lr", "1 2", cwd=tmp_path)
    assert result.code == 3
    assert "the script ended without a step" in result.out
    assert (tmp_path / "session/eager" / STDOUT_LOG).read_text() == "['script.py', '--lr', '1 2'] 3\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_ends_everything_and_keeps_the_session(tmp_path: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "tpuport", "profile", str(SCRIPTS / "hostile.py"), *QUICK, "--steps", "9"]
    with subprocess.Popen(
        [*command, "-o", "session", "--", "hang-later"],
        cwd=tmp_path,
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background job ignores it
    ) as process:
        child = _child_after_its_first_step(process.pid, tmp_path / "session/eager/records.jsonl")
        process.send_signal(number)
        _, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130
    assert "interrupted" in err
    assert not _alive(child)
    shown = tpuport("report", "session", cwd=tmp_path)
    assert shown.code == 0
    assert "eager failed" in shown.out
    assert "interrupted after" in shown.out


def _child_after_its_first_step(parent: int, records: Path) -> int:
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        if records.exists() and '"kind":"step"' in records.read_text():
            children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
            return int(children[0])
        time.sleep(0.05)
    raise TimeoutError("the script made no step")


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    return state != "Z"
