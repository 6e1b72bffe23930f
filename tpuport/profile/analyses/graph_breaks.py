"""Where torch.compile had to give up on one graph and start another."""

import re
from collections import Counter, defaultdict
from dataclasses import dataclass

from tpuport.profile.analyses.advice import for_break
from tpuport.profile.frames import traced_frames
from tpuport.profile.places import Place, Places, library_place
from tpuport.profile.plan import Mode
from tpuport.profile.records import Frame, FrameCompiled, GraphBreak
from tpuport.profile.session import Run, Session

_ID = re.compile(r"gb/gb(\d+)\.html")
_REASON = "Graph Break Reason:"
_TRACEBACK = "User code traceback:"
_RESUMED = re.compile(r"^torch_dynamo_resume_in_.*_at_(\d+)$")
_ADDRESS = re.compile(r"0x[0-9a-f]+")


@dataclass(frozen=True, slots=True)
class GraphBreakRow:
    """One kind of break at one line of the user's source."""

    place: Place | None
    id: str
    """Identifier in torch's registry of graph breaks, such as `GB0059`; empty for kinds without one."""
    reason: str
    explanation: str
    hints: tuple[str, ...]
    count: int
    """Times Dynamo met it: at the first compilation and at each recompilation."""
    graphs: int
    """Graphs that start after it: each is run on its own in every step, forward and backward."""
    source: str
    """The line's text."""
    plain: str
    """What happens, in plain words; empty for kinds that only Dynamo explains."""
    edit: str
    """What to change."""
    rule: str
    """Name of the lint rule that finds such lines; empty where there is none."""
    modes: tuple[Mode, ...]


@dataclass(frozen=True, slots=True)
class GraphBreaks:
    """Every graph break, in the order of the source."""

    rows: tuple[GraphBreakRow, ...]


@dataclass(frozen=True, slots=True)
class _Parsed:
    stack: tuple[Frame, ...]
    id: str
    reason: str
    explanation: str
    hints: tuple[str, ...]

    @property
    def library(self) -> Place | None:
        """The line of an installed package in which it happens; None when it is no package's."""
        return library_place(self.stack[-1] if self.stack else None)


_Key = tuple[str, int, str, str, str]


def analyse_graph_breaks(session: Session) -> GraphBreaks:
    """Return one row a place and kind. With several compiled modes the counts are those of the mode with the most."""
    counts: defaultdict[_Key, dict[Mode, int]] = defaultdict(dict)
    rows: dict[_Key, tuple[Place | None, _Parsed]] = {}
    graphs: Counter[_Key] = Counter()
    for run in session.runs:
        resumed = _graphs_after_lines(run)
        for key, (place, parsed, count) in _breaks(run, session.plan.directory).items():
            rows.setdefault(key, (place, parsed))
            counts[key][run.mode] = count
            graphs[key] = max(graphs[key], sum(resumed[frame.file, frame.line] for frame in parsed.stack))
    return GraphBreaks(
        tuple(
            _row(session, place, parsed, counts[key], graphs[key])
            for key, (place, parsed) in sorted(rows.items(), key=lambda item: item[0])
        )
    )


def _row(
    session: Session, place: Place | None, parsed: "_Parsed", counts: dict[Mode, int], graphs: int
) -> GraphBreakRow:
    library = parsed.library
    advice = for_break(parsed.id, library)
    where = f" (at {library}, in {library.function})" if library else ""
    return GraphBreakRow(
        place=place,
        id=parsed.id,
        reason=parsed.reason,
        explanation=parsed.explanation + where,
        hints=parsed.hints,
        count=max(counts.values()),
        graphs=graphs,
        source=session.sources.at(place),
        plain=advice.plain and advice.plain + where,
        edit=advice.edit,
        rule=advice.rule,
        modes=tuple(counts),
    )


def _graphs_after_lines(run: Run) -> Counter[tuple[str, int]]:
    """Count the functions with a graph that Dynamo made of what follows a line, by file and line.

    It names them `torch_dynamo_resume_in_NAME_at_LINE`. One that was compiled again counts once.
    """
    found = {
        (compiled.file or "", int(match[1]), compiled.frame_id)
        for compiled in run.records.of(FrameCompiled)
        if compiled.operations and not compiled.failure and (match := _RESUMED.match(compiled.function or ""))
    }
    return Counter((file, line) for file, line, _ in found)


def _breaks(run: Run, directory: str) -> dict[_Key, tuple[Place | None, _Parsed, int]]:
    """Return the breaks of one mode.

    A break inside a called function also ends the graph of every caller, which Dynamo reports again for each: what
    counts is how often the most affected function met it.
    """
    places = Places(run.records, directory)
    by_frame: defaultdict[_Key, Counter[int]] = defaultdict(Counter)
    found: dict[_Key, tuple[Place | None, _Parsed]] = {}
    for record in run.records.of(GraphBreak):
        parsed = parse(record.text)
        place = places.innermost(parsed.stack)
        key = (place.file if place else "", place.line if place else 0, parsed.id, parsed.reason, str(parsed.library))
        found.setdefault(key, (place, parsed))
        by_frame[key][record.frame_id] += 1
    return {key: (place, parsed, max(by_frame[key].values())) for key, (place, parsed) in found.items()}


def parse(text: str) -> _Parsed:
    """Take Dynamo's account of a graph break apart."""
    head, _, tail = text.partition(_TRACEBACK)
    stack = traced_frames(tail.partition("\nTraceback ")[0])
    _, _, account = head.partition(_REASON)
    reason_lines: list[str] = []
    explanation: list[str] = []
    hints: list[str] = []
    current = reason_lines
    for line in account.splitlines():
        stripped = line.strip()
        if stripped.startswith("Explanation:"):
            current = explanation
            stripped = stripped.removeprefix("Explanation:").strip()
        elif stripped.startswith("Hint:"):
            hints.append(stripped.removeprefix("Hint:").strip())
            current = []
        elif stripped.startswith(("Developer debug context:", "For more details")):
            current = []
        if stripped:
            current.append(stripped)
    identifier = _ID.search(head)
    return _Parsed(
        tuple(stack),
        f"GB{identifier[1]}" if identifier else "",
        _ADDRESS.sub("0x…", reason_lines[-1]) if reason_lines else "unknown reason",
        _first_paragraph(explanation),
        tuple(dict.fromkeys(hint for hint in hints if "report an issue" not in hint)),
    )


def _first_paragraph(lines: list[str]) -> str:
    paragraph: list[str] = []
    for line in lines:
        if line.startswith(("The branch condition involves", "# File")):
            break
        paragraph.append(line)
    return " ".join(paragraph)
