"""The rules for people: a list of all, or one explained."""

from collections.abc import Iterator, Sequence

from tpuport.model import Example, Rule
from tpuport.output.style import SEVERITY, Line, Sheet, count, write


def render_list(rules: Sequence[Rule], sheet: Sheet) -> None:
    """Write one line for each rule."""
    write(sheet, _list(rules))


def render_rule(rule: Rule, sheet: Sheet) -> None:
    """Write everything about one rule."""
    write(sheet, _explained(rule))


def _list(rules: Sequence[Rule]) -> Iterator[Line]:
    widths = [max((len(text) for text in column), default=0) for column in zip(*map(_columns, rules), strict=True)]
    for rule in rules:
        code, name, severity, safety = (
            f"{text:<{width}}  " for text, width in zip(_columns(rule), widths, strict=True)
        )
        yield [(code, "bold"), (name, ""), (severity, SEVERITY[rule.severity]), (safety, "dim"), (rule.title, "")]
    yield []
    yield [(f"{count(len(rules), 'rule')}; `tpuport rules CODE` explains one.", "dim")]


def _columns(rule: Rule) -> tuple[str, str, str, str]:
    return rule.code, rule.name, str(rule.severity), str(rule.safety)


def _explained(rule: Rule) -> Iterator[Line]:
    yield [(rule.code, "bold"), (f" {rule.name} ({rule.area})", "bold")]
    yield []
    yield from _text("", rule.title)
    yield []
    yield from _text("Why: ", rule.why)
    yield []
    yield [("Severity: ", "bold"), (str(rule.severity), SEVERITY[rule.severity])]
    yield [("Fix: ", "bold"), (_FIX[rule.safety.value], "")]
    yield from _text("Rewrites from torch: ", rule.min_torch or "any version")
    yield from _text("Reference: ", rule.reference)
    yield from _text("Ignore: ", f"# tpuport: ignore[{rule.code}] reason")
    for number, example in enumerate(rule.examples, 1):
        yield []
        yield from _example(number, example)


_FIX = {
    "safe": "safe: CUDA and CPU keep their behaviour",
    "unsafe": "unsafe: numbers or behaviour on CUDA may change; applied only with --unsafe",
    "manual": "none: a person has to act",
}


def _example(number: int, example: Example) -> Iterator[Line]:
    conditions = [f"torch {example.min_torch} or newer"] if example.min_torch else []
    conditions += ["with --unsafe"] if example.unsafe else []
    note = "; ".join(filter(None, (example.note, *conditions)))
    yield [(f"Example {number}", "bold"), (f": {note}" if note else "", "")]
    yield from _code("-" if example.after is not None else " ", example.before, "red")
    if example.after is None:
        yield [("  (stays as it is)", "dim")]
    else:
        yield from _code("+", example.after, "green")


def _code(mark: str, code: str, style: str) -> Iterator[Line]:
    for line in code.strip("\n").split("\n"):
        yield [(f"  {mark} {line}".rstrip(), style if mark != " " else "")]


def _text(label: str, text: str) -> Iterator[Line]:
    first, *rest = text.strip().split("\n")
    yield [(label, "bold"), (first, "")]
    yield from ([(line, "")] for line in rest)
