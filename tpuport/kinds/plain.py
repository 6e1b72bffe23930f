"""Files that are no Python: read into a Document, matched by the checks of their kind, edited as text."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tpuport import catalog, suppress
from tpuport.annotate import commented, needs_a_person
from tpuport.checks import check_of
from tpuport.errors import TpuportError
from tpuport.fixes import Rewritten, applicable, whole_chains
from tpuport.kinds import Look, Unparsed
from tpuport.kinds.document import Document, Text
from tpuport.model import Facts, Finding, Project, ReplaceText, Rule
from tpuport.source import positions

_SPEAKS_OF_TORCH = (b"torch", b"vllm", b"sglang", b"llm-d")
"""PyTorch, and engines that are built on it: a repository that deploys one may have no other word of it."""

ROUNDS = 4
"""How often the rewritten text is matched again."""

Reader = Callable[[str], Document]


@dataclass(frozen=True, slots=True)
class Plain:
    """The handler of one such kind.

    `words` are lower-case bytes, in files of the kind without any of which nothing can be found; `read` makes the
    Document, and raises Unparsed; `comments` tells whether a `#` begins one, and `indented` whether one stands as far
    in as what it is about: in a Makefile that would hand it to the shell.
    """

    kind: str
    words: tuple[bytes, ...]
    read: Reader
    comments: bool = True
    indented: bool = True

    def look(self, path: Path, raw: bytes, selection: bool = True) -> Look | None:  # noqa: ARG002
        """What the bytes tell at a glance."""
        lower = raw.lower()
        matches = any(word in lower for word in self.words)
        uses_torch = any(word in lower for word in _SPEAKS_OF_TORCH)
        return Look(matches, Facts(uses_torch=uses_torch)) if matches or uses_torch else None

    def findings(self, source: str, project: Project, rules: Sequence[Rule]) -> list[Finding]:
        """What `rules` find: nothing where no file of the run speaks of torch."""
        if not project.facts.uses_torch:
            return []
        everything = catalog.with_shipped(tuple(rules))
        try:
            document = self.read(source)
        except RecursionError:
            raise Unparsed("nested too deeply to be read") from None
        own = [rule for rule in everything if rule.check and self.kind in rule.files]
        found = sorted(
            (finding for rule in own for finding in check_of(rule)(document, rule)),
            key=lambda item: (item.span, item.code),
        )
        if self.comments and suppress.may_apply(source):
            found = suppress.apply(source, found, {rule.name: rule for rule in everything}, statements(source))
        lines = source.split("\n")
        return [
            replace(finding, line_text=lines[finding.span.line - 1])
            for finding in whole_chains(found, frozenset(rule.code for rule in rules))
        ]

    def rewrite(
        self,
        source: str,
        project: Project,
        rules: Sequence[Rule],
        *,
        unsafe: bool = False,
        line_length: int | None = None,  # noqa: ARG002
    ) -> Rewritten:
        """The text with all applied that may be. Raises TpuportError when that would not come to an end."""
        found = self._in_force(source, project, rules)
        chosen = applicable(found, unsafe)
        text, fixing = source, chosen
        for _ in range(ROUNDS):
            if not fixing:
                kept = [finding for finding in found if finding not in chosen]
                return Rewritten(text, tuple(chosen), tuple(kept))
            text = _edited(text, fixing)
            fixing = applicable(self._in_force(text, project, rules), unsafe)
        raise TpuportError("the rewrite does not settle", hint="please report this file")

    def _in_force(self, source: str, project: Project, rules: Sequence[Rule]) -> list[Finding]:
        return [finding for finding in self.findings(source, project, rules) if finding.ignored is None]

    def annotate(self, source: str, findings: Iterable[Finding]) -> str:
        """The text with a comment above each statement that needs a person; as it is, where there are no comments."""
        left = [finding for finding in findings if needs_a_person(finding)]
        if not left or not self.comments:
            return source
        pieces = [*self.read(source).blocks, *statements(source)]

        def above(line: int) -> int:
            # A line that job schedulers read is a comment, and in no statement.
            return min((first for first, last in pieces if first <= line <= last), default=line)

        return commented(source, left, above, indented=self.indented)

    def moved(self, findings: Sequence[Finding], old: str, new: str) -> tuple[Finding, ...]:
        """`findings` at their places in the new text."""
        return positions.moved(findings, old, new)


def _edited(text: str, fixing: Sequence[Finding]) -> str:
    edits = {edit for finding in fixing for edit in finding.edits if isinstance(edit, ReplaceText)}
    places = Text(text)
    for edit in sorted(edits, key=lambda edit: edit.span, reverse=True):
        begin = places.offset(edit.span.line, edit.span.column)
        end = places.offset(edit.span.end_line, edit.span.end_column)
        text = text[:begin] + edit.text + text[end:]
    return text


def statements(source: str) -> list[tuple[int, int]]:
    """The first and the last line of each statement, which goes on over a backslash at a line's end."""
    found: list[tuple[int, int]] = []
    first, goes_on = 0, False
    for number, line in enumerate(source.split("\n"), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue  # images may be described with comments between the lines of one statement
        if goes_on:
            found[-1] = (first, number)
        else:
            first = number
            found.append((first, first))
        goes_on = line.rstrip().endswith("\\")
    return found
