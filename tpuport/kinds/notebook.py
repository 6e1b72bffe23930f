"""Notebooks: all code cells are one Python module, their shell lines one script, and the rest stays as it is."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cached_property
from pathlib import Path

from tpuport import catalog, kinds
from tpuport.checks import check_of
from tpuport.fixes import Rewritten
from tpuport.kinds import Look, Unparsed
from tpuport.model import CellPlace, Facts, Finding, Project, Rule, Span
from tpuport.source import ipython
from tpuport.source import project as said
from tpuport.source.notebook import NotANotebook, Notebook
from tpuport.source.positions import NAMED_LINE

KIND = "notebook"
_IMPORT = re.compile(r"(?:from [\w.]+ )?import \w")
_STATEMENT = re.compile(rf"(?!.*{ipython.LINE}\()(?!{ipython.CELL}\()[^\s#]")
"""What begins a statement of Python at a cell's own level."""

_FROM_TORCH = re.compile(r"(?:from|import) torch\b")
_NAMED_IN_CELL = re.compile(r"\bcell (\d+), line (\d+)\b")


@dataclass(frozen=True)
class Views:
    """A notebook as the module and the script that it is. Raises Unparsed and SyntaxError."""

    notebook: Notebook

    @classmethod
    def of(cls, source: str) -> "Views":
        """The views of a text."""
        try:
            return cls(Notebook(source))
        except NotANotebook as error:
            raise Unparsed(str(error)) from None

    @cached_property
    def module(self) -> ipython.Module:
        """The Python. A cell that does not parse raises SyntaxError with its line in the file."""
        try:
            return ipython.module(self.notebook.cells)
        except ipython.BrokenCell as error:
            error.lineno = self.notebook.in_file(error.cell, Span(error.line, 0, error.line, 0)).line
            raise

    @cached_property
    def script(self) -> tuple[str, list[ipython.Place]]:
        """The shell commands, and the places of their lines."""
        return ipython.shell(self.notebook.cells, self.module.left_out)

    def located(self, finding: Finding, places: Sequence[ipython.Place | None]) -> Finding:
        """A finding of a view with its place in the cells and in the file."""
        first, last = places[finding.span.line - 1], places[finding.span.end_line - 1]
        if first is None or last is None or first.cell is not last.cell:
            return finding
        span = finding.span._replace(line=first.line, end_line=last.line)
        return replace(
            finding,
            message=_named_in_cells(finding.message, places),
            reason=_named_in_cells(finding.reason, places),
            span=self.notebook.in_file(first.cell, span),
            cell=CellPlace(first.cell.number, span),
        )


def _named_in_cells(text: str, places: Sequence[ipython.Place | None]) -> str:
    """A text with the lines of a view that it names as lines of cells."""

    def named(found: re.Match[str]) -> str:
        line = int(found[0])
        place = places[line - 1] if line <= len(places) else None
        return f"{found[0]}" if place is None else f"\0{place.cell.number}, line {place.line}"

    return NAMED_LINE.sub(named, text).replace("line \0", "cell ")


class _Notebook:
    """Imports the matcher once there is something to match, and libcst once there is something to rewrite."""

    def look(self, path: Path, raw: bytes, selection: bool = True) -> Look | None:
        """What the bytes tell at a glance, and where they hold a candidate, what the cells do."""
        python = kinds.handler(kinds.PYTHON)
        found = python.look(path, raw, selection)
        uses_torch = said.uses_torch(raw)
        if found is None or not found.matches:
            return Look(uses_torch, Facts(uses_torch=uses_torch)) if uses_torch else None
        try:
            text = Views.of(raw.decode()).module.text
        except (Unparsed, SyntaxError, UnicodeDecodeError, RecursionError):
            return Look(True, Facts(uses_torch=uses_torch))  # why it can not be read is told when it is matched
        cells = python.look(Path("cells.py"), text.encode(errors="replace"), selection)
        return Look(True, replace(cells.facts if cells else Facts(), uses_torch=uses_torch))

    def findings(self, source: str, project: Project, rules: Sequence[Rule]) -> list[Finding]:
        """What `rules` find in the cells, in shell lines and in the notebook's own settings."""
        views = Views.of(source)
        script, places = views.script
        python = kinds.handler(kinds.PYTHON).findings(views.module.text, project, rules)
        shell = kinds.handler("shell").findings(script, project, rules)
        found = [views.located(finding, views.module.places) for finding in python]
        found += [views.located(finding, places) for finding in shell]
        found += _own(views, rules) if project.facts.uses_torch else ()
        return list(_in_order(found))

    def rewrite(
        self, source: str, project: Project, rules: Sequence[Rule], *, unsafe: bool, line_length: int | None
    ) -> Rewritten:
        """The text with all applied that may be."""
        views = Views.of(source)
        script, places = views.script
        done = kinds.handler(kinds.PYTHON).rewrite(
            views.module.text, project, rules, unsafe=unsafe, line_length=line_length
        )
        shell = kinds.handler("shell").rewrite(script, project, rules, unsafe=unsafe, line_length=line_length)
        text = _with_torch_in_place(views.module.text, _after_commands(views.module.text, done.text))
        cells = ipython.split(text, views.module.left_out)
        cells = _with_commands(views, cells, shell.text)
        fixed = [views.located(finding, views.module.places) for finding in done.fixed]
        fixed += [views.located(finding, places) for finding in shell.fixed]
        kept = [views.located(finding, views.module.places) for finding in done.remaining]
        kept += [views.located(finding, places) for finding in shell.remaining]
        kept += _own(views, rules) if project.facts.uses_torch else ()
        return Rewritten(views.notebook.with_lines(cells), _in_order(fixed), _in_order(kept))

    def annotate(self, source: str, findings: Iterable[Finding]) -> str:
        """The text with a comment above each statement of a cell that needs a person."""
        views = Views.of(source)
        lines = {
            (place.cell.number, place.line): number
            for number, place in enumerate(views.module.places, 1)
            if place is not None and not _begins_with_magic(place)
        }
        in_module = []
        for finding in findings:
            line = lines.get((finding.cell.number, finding.cell.span.line)) if finding.cell else None
            if finding.cell is not None and line is not None:
                end = line + finding.cell.span.end_line - finding.cell.span.line
                in_module.append(replace(finding, span=finding.cell.span._replace(line=line, end_line=end)))
        text = kinds.handler(kinds.PYTHON).annotate(views.module.text, in_module)
        return views.notebook.with_lines(ipython.split(text, views.module.left_out))

    def moved(self, findings: Sequence[Finding], old: str, new: str) -> tuple[Finding, ...]:
        """`findings` at their places in the new text: in the cells of the same numbers."""
        if not findings:
            return ()
        changed = Views.of(new).notebook
        after = {cell.number: cell for cell in changed.cells}
        blocks = {
            cell.number: SequenceMatcher(None, cell.texts, after[cell.number].texts, autojunk=False).get_opcodes()
            for cell in Views.of(old).notebook.cells
        }

        def line(cell: int, number: int) -> int:
            for _, start, stop, new_start, new_stop in blocks.get(cell, ()):
                if start < number <= stop:
                    return min(number - start + new_start, max(new_stop, 1))
            return number

        def renamed(text: str) -> str:
            return _NAMED_IN_CELL.sub(lambda found: f"cell {found[1]}, line {line(int(found[1]), int(found[2]))}", text)

        def one(finding: Finding) -> Finding:
            if finding.cell is None:
                return finding
            number, span = finding.cell
            span = span._replace(line=line(number, span.line), end_line=line(number, span.end_line))
            place = changed.in_file(after[number], span)
            message, reason = renamed(finding.message), renamed(finding.reason)
            return replace(finding, span=place, cell=CellPlace(number, span), message=message, reason=reason)

        return tuple(map(one, findings))


HANDLER = _Notebook()


def _in_order(found: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(found, key=lambda finding: (finding.span, finding.code)))


def _own(views: Views, rules: Sequence[Rule]) -> Iterator[Finding]:
    """Findings of the rules for notebooks as such."""
    selected = {rule.code for rule in rules}
    for rule in catalog.with_shipped(tuple(rules)):
        if rule.check and KIND in rule.files and rule.code in selected:
            yield from check_of(rule)(views, rule)


def _begins_with_magic(place: ipython.Place) -> bool:
    """Whether a line begins a cell with a magic, which has to stay its first line."""
    return not any(text.strip() for text in place.cell.texts[: place.line - 1]) and place.cell.texts[
        place.line - 1
    ].lstrip().startswith("%%")


def _with_commands(views: Views, cells: dict[int, list[str]], script: str) -> dict[int, list[str]]:
    """The lines of the cells with commands that changed, where each kept its line."""
    old, places = views.script
    before, after = old.split("\n"), script.split("\n")
    if len(before) != len(after):
        return cells
    for place, was, now in zip(places, before, after, strict=False):
        if was != now:
            line = place.cell.texts[place.line - 1]
            head = ipython.prefix(line)
            lines = cells[place.cell.number]
            lines[lines.index(line)] = head + now[len(head) :]
    return cells


def _after_commands(old: str, new: str) -> str:
    """The new text with added imports behind the commands that follow them, which may install what is imported."""
    before, lines = old.split("\n"), new.split("\n")
    opcodes = SequenceMatcher(None, before, lines, autojunk=False).get_opcodes()
    kept = {at + step: to + step for kind, at, end, to, _ in opcodes if kind == "equal" for step in range(end - at)}
    for kind, at, _, start, stop in reversed(opcodes):
        added = lines[start:stop]
        if kind != "insert" or not all(_IMPORT.match(line) or not line for line in added):
            continue
        first = next((index for index in range(at, len(before)) if _STATEMENT.match(before[index])), len(before))
        commands = [index for index in range(at, first) if ipython.LINE in before[index]]
        marks = [index for index in range(at, first) if ipython.LINE in before[index] or ipython.CELL in before[index]]
        if commands and marks[-1] in kept:
            behind = kept[marks[-1]] + 1
            imports = [line for line in added if line]
            gap = [] if behind < len(lines) and (not lines[behind] or _IMPORT.match(lines[behind])) else [""]
            lines[start:behind] = [*lines[stop:behind], *imports, *gap]
            break  # places of the rest are no longer those of the new text
    return "\n".join(lines)


def _with_torch_in_place(old: str, new: str) -> str:
    """The new text with an added `import torch` in the cell that first imports from torch, not in the first cell."""
    lines = new.split("\n")
    for kind, _, _, start, stop in SequenceMatcher(None, old.split("\n"), lines, autojunk=False).get_opcodes():
        added = lines[start:stop]
        if kind == "insert" and "import torch" in added and set(added) <= {"import torch", ""}:
            rest = lines[:start] + lines[stop:]
            first = next((index for index, line in enumerate(rest) if _FROM_TORCH.match(line)), None)
            return new if first is None else "\n".join([*rest[:first], "import torch", *rest[first:]])
    return new
