"""The types that flow from matching to output: spans, edits, findings, rules, outcomes. Frozen and picklable."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple


class Span(NamedTuple):
    """A stretch of one source text: lines count from 1, columns from 0, in characters; the end is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int

    def contains(self, other: "Span") -> bool:
        """Whether `other` lies within this span, or is the same."""
        return self[:2] <= other[:2] and other[2:] <= self[2:]


class CellPlace(NamedTuple):
    """A place in a notebook: `number` counts all cells from 1, and `span` is that within the cell."""

    number: int
    span: Span


class Severity(StrEnum):
    """How much a finding matters to a port."""

    ERROR = "error"
    """Breaks, or silently leaves the accelerator, on a TPU host."""
    WARNING = "warning"
    """CUDA-only where a portable form exists, or a person has to decide."""
    INFO = "info"
    """Works on a TPU as it stands, or is not sure to run there; named so that nothing is silent."""


class Safety(StrEnum):
    """What applying a rule's fix may change."""

    SAFE = "safe"
    """CUDA and CPU keep their behaviour."""
    UNSAFE = "unsafe"
    """Numbers or behaviour on CUDA may change; applied only with `--unsafe`."""
    MANUAL = "manual"
    """No fix: a person has to act."""


@dataclass(frozen=True, slots=True)
class Rename:
    """Point the name or attribute chain at `span` to another qualified name, by the module's own imports."""

    span: Span
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Replace:
    """Replace the expression at `span` by `template`.

    `{0}`, `{1}`… stand for the expressions at `holes`, with whatever edits fall inside them;
    `{device}`, `{device.type}` and `{autocast_dtype}` stand for hoisted variables; `{new device}` and
    `{new device.type}` for the value of a variable that may itself serve as one (see `tpuport.rewrite.variables`).
    """

    span: Span
    template: str
    holes: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class SetAttribute:
    """In the attribute access at `span`, put `name` for the last attribute; the receiver stays as it is."""

    span: Span
    name: str


@dataclass(frozen=True, slots=True)
class SetArgument:
    """In the call at `span`, set keyword `name` to `template`: replaces its value, or adds the argument at the end."""

    span: Span
    name: str
    template: str
    holes: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class DropArgument:
    """In the call at `span`, drop the argument whose value stands at `argument`."""

    span: Span
    argument: Span


@dataclass(frozen=True, slots=True)
class InsertArgument:
    """In the call at `span`, put `template` before the first argument."""

    span: Span
    template: str
    holes: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class GuardStatement:
    """Put the simple statement at `span` under `if condition:`, and the statements `otherwise` under its `else:`.

    An `if` alone in `otherwise` makes an `elif:`.
    """

    span: Span
    condition: str
    otherwise: str = ""


@dataclass(frozen=True, slots=True)
class RemoveStatement:
    """Remove the statement at `span`; comments on it stay."""

    span: Span


@dataclass(frozen=True, slots=True)
class UnwrapWith:
    """Put the body of the `with` statement at `span` in its place."""

    span: Span


@dataclass(frozen=True, slots=True)
class InsertBefore:
    """Put the statements of `code` before the statement at `span`; `{device}` and its like stand as in `Replace`."""

    span: Span
    code: str

    @property
    def template(self) -> str:
        """The code, with its hoisted variables still to be put in."""
        return self.code


@dataclass(frozen=True, slots=True)
class ReplaceText:
    """Put `text` in the place of the characters at `span`: for files that are no Python."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class InsertAfter:
    """Put the statement `code` after the simple statement at `span`; it goes where that one is removed."""

    span: Span
    code: str


Edit = (
    Rename
    | Replace
    | SetAttribute
    | SetArgument
    | DropArgument
    | InsertArgument
    | GuardStatement
    | RemoveStatement
    | UnwrapWith
    | InsertBefore
    | ReplaceText
    | InsertAfter
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One CUDA-specific construct and what becomes of it.

    A finding with edits can be fixed; one without says in `reason` why it can not. Findings of one `chain` are
    fixed together or not at all.
    """

    code: str
    rule: str
    message: str
    span: Span
    severity: Severity
    safety: Safety
    edits: tuple[Edit, ...] = ()
    reason: str = ""
    chain: int | None = None
    scope: str = ""
    """Qualified name of the class or function around it; empty at module level."""
    line_text: str = field(default="", repr=False)
    """The source line on which it begins."""
    under: tuple[str, ...] = ()
    """Variables that decide whether code without a counterpart runs, and whose values this file does not show."""
    sets: tuple[str, ...] = ()
    """Variables that keep the result of a test for CUDA which moves."""
    ignored: str | None = None
    """The reason given in the comment that ignores it, which may be empty; None when nothing ignores it."""
    cell: CellPlace | None = None
    """Where it is among the cells of a notebook, of which `span` is the place in the file; None in other files."""

    @property
    def place(self) -> Span:
        """Where it is for a reader: within its cell, or else in the file."""
        return self.span if self.cell is None else self.cell.span

    @property
    def fixable(self) -> bool:
        """Whether a fix exists, safe or not."""
        return bool(self.edits)


class Effort(StrEnum):
    """How much work a site takes that has no fix, in the judgement of the rule's author."""

    LOW = "low"
    """One line, once the reason is understood."""
    MEDIUM = "medium"
    """A function, or a choice that others have to agree to."""
    HIGH = "high"
    """A kernel, a library or a design to replace."""


class Status(StrEnum):
    """How one file ended."""

    UNCHANGED = "unchanged"
    CHANGED = "changed"
    FINDINGS = "findings"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What happened to one file that discovery yielded.

    `findings` are those of the original text that remain (all of them for lint); `fixed` are those that the new
    text no longer has; `ignored` are those that a comment ignores. `old` and `new` are decoded texts, set only when
    the file changes.
    """

    path: Path
    status: Status
    reason: str = ""
    line: int = field(default=0, kw_only=True)
    """Of a failure, the line of the file that it is at; 0 where there is none."""
    findings: tuple[Finding, ...] = ()
    fixed: tuple[Finding, ...] = ()
    ignored: tuple[Finding, ...] = ()
    old: str = field(default="", repr=False)
    new: str = field(default="", repr=False)
    digest: bytes = field(default=b"", repr=False, compare=False)
    """Of the bytes that were read, where findings were looked for."""


@dataclass(frozen=True, slots=True)
class Example:
    """A rule's example: `before` becomes `after`, or stays as it is when `after` is None.

    `run` is code that uses what the example defines and prints; tests run it after both and compare what is printed.
    """

    before: str
    after: str | None
    note: str = ""
    min_torch: str = ""
    unsafe: bool = False
    run: str = ""
    file: str = "example.py"
    """The name of the file that it stands in, which says of what kind it is."""


@dataclass(frozen=True, slots=True)
class Mapping:
    """The `[map]` table of a table rule: a closed set of verbs, applied to one or several qualified names.

    `names` maps each old qualified name to its new one; an empty new name means that the rule only reports.
    """

    names: dict[str, str]
    guard: str = ""
    otherwise: str = ""
    drop_arguments: tuple[str, ...] = ()
    positional: tuple[str, ...] = ()
    """Arguments, first ones, that the new name takes by position only."""
    set_arguments: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """One rule of the catalog; the fields are those of its TOML file."""

    code: str
    name: str
    area: str
    severity: Severity
    safety: Safety
    message: str
    why: str
    reference: str
    min_torch: str = ""
    mapping: Mapping | None = None
    check: str = ""
    effort: Effort = Effort.LOW
    words: tuple[str, ...] = ()
    """Texts of which a file has at least one where the check can find something; empty if it may anywhere."""
    files: tuple[str, ...] = ("python",)
    """The kinds of file that it is for; see `tpuport.kinds`."""
    examples: tuple[Example, ...] = ()

    @property
    def title(self) -> str:
        """The message for the rule as a whole: of the first name that it maps, if it maps any."""
        first = next(iter(self.mapping.names), "") if self.mapping else ""
        return self.message.replace("{name}", f"`{first}`" if first else "it")


@dataclass(frozen=True, slots=True)
class Facts:
    """What one file says about the run as a whole; and what all files of a run say together."""

    cuda_methods: tuple[str, ...] = ()
    """Classes that define a method named `cuda`."""
    defers_cuda: bool = False
    """Whether CUDA_VISIBLE_DEVICES is set, or a process forks: then nothing may ask for the device at import."""
    selects_device: bool = False
    """Whether the current CUDA device is changed: then `cuda:0` and `cuda` may differ."""
    imported_names: tuple[str, ...] = ()
    """Names of torch.cuda that files of the run import from one another: what they mean there must not change."""
    device_names: tuple[str, ...] = ()
    """Names of values that some file hands to where torch takes a device."""
    backend_names: tuple[str, ...] = ()
    """Names of values that some file hands to a process group as its backend."""
    uses_torch: bool = False
    """Whether any file speaks of torch: without that, what other files say of GPUs is no business of a port."""
    autocasts: bool = False
    """Whether any file speaks of autocast, under which models elsewhere run perhaps."""


@dataclass(frozen=True, slots=True)
class Project:
    """What the rules must know of the run as a whole; gathered before any file is matched."""

    min_torch: str
    floor_source: str = ""
    facts: Facts = Facts()
    needs_cuda: tuple[tuple[str, str], ...] = ()
    """Variables under which some file of the run holds code without a counterpart, each with the place of that code."""
    stays_on_xla: str = ""
    """The place, in a file that goes with these, of what holds them on PyTorch/XLA; empty if nothing does."""
