"""The estimated cycles of a step on every chip, and its executions, by where they come from."""

from collections import defaultdict
from collections.abc import Iterator

from tpuport.profile.analyses.attribution import Attributed, Parts, attribute, parts_of_contents, parts_of_kernels
from tpuport.profile.analyses.chips import StepProgram, compiled_steps
from tpuport.profile.analyses.programs import step_programs
from tpuport.profile.plan import Mode
from tpuport.profile.session import Run, Session


def attributed_cycles(session: Session) -> Iterator[tuple[str, Attributed]]:
    """Yield the estimated cycles of every chip and mode."""
    by_chip: defaultdict[str, list[tuple[Run, dict[str, Parts]]]] = defaultdict(list)
    for chip, run, programs in compiled_steps(session):
        by_chip[chip].append((run, _cycles(programs)))
    for chip, runs in by_chip.items():
        for found in attribute(session, sorted(runs, key=_eager_first)):
            yield chip, found


def attributed_executions(session: Session) -> Iterator[Attributed]:
    """Yield the executions of every mode whose steps were counted."""
    runs = [
        (run, {digest: parts_of_contents(session.contents.get(digest)) for digest in programs})
        for run in session.runs
        if (programs := step_programs(run.records))
    ]
    return attribute(session, sorted(runs, key=_eager_first))


def _eager_first(item: tuple[Run, dict[str, Parts]]) -> bool:
    return item[0].mode is not Mode.EAGER


def _cycles(programs: tuple[StepProgram, ...]) -> dict[str, Parts]:
    return {
        program.digest: parts_of_kernels(program.compiled.kernels)
        for program in programs
        if program.compiled is not None and program.compiled.kernels is not None
    }
