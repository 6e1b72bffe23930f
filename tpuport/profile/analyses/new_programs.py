"""Which lines go on making new programs in every step."""

from tpuport.profile.analyses.attribution import origins_of_contents
from tpuport.profile.places import Place, Places
from tpuport.profile.records import Phase, Program, Step
from tpuport.profile.session import Run, Session

_Spot = tuple[Place, str]
"""Line and name of a torch operation."""


def new_in_every_step(session: Session, run: Run) -> list[_Spot]:
    """Return the operations that were compiled anew in each counted step, by line.

    A view with other bounds, another size or another Python number makes another program.
    """
    places = Places(run.records, session.plan.directory)
    by_step: list[set[_Spot]] = []
    fresh: list[Program] = []
    for record in run.records.items:
        if isinstance(record, Program):
            fresh.append(record)
        elif isinstance(record, Step):
            if record.phase is Phase.COUNTED:
                executed = record.executions or {}
                by_step.append(
                    {
                        (origin.place, origin.operation)
                        for program in fresh
                        if program.index in executed
                        for origin in origins_of_contents(places, session.contents.get(program.sha256))
                        if origin.place is not None and origin.operation
                    }
                )
            fresh.clear()
    return sorted(set.intersection(*by_step)) if by_step else []
