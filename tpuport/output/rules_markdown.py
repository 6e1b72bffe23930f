"""The rules as a page of Markdown: what each matches, why, before and after, and how to ignore it."""

from collections.abc import Iterator, Sequence

from tpuport import kinds
from tpuport.model import Example, Rule, Safety
from tpuport.output.style import Sheet

_FIX = {
    Safety.SAFE: "safe: CUDA and CPU keep their behaviour",
    Safety.UNSAFE: "unsafe: numbers or behaviour on CUDA may change; applied only with `--unsafe`",
    Safety.MANUAL: "none: a person has to act",
}


_LANGUAGE = {"requirements": "text", "configuration": "ini"}
"""What a kind of file is called where it is highlighted, if that is not the kind's own name."""


def render_list(rules: Sequence[Rule], sheet: Sheet) -> None:
    """Write a table of the rules, and a section for each."""
    sheet.file.write(page("Rules", rules))


def render_rule(rule: Rule, sheet: Sheet) -> None:
    """Write the section of one rule."""
    sheet.file.write("\n".join(_section(rule)) + "\n")


def page(title: str, rules: Sequence[Rule]) -> str:
    """A page about `rules`."""
    lines = [f"# {title}", "", "| code | rule | severity | fix | says |", "|---|---|---|---|---|"]
    lines += [
        f"| [{rule.code}](#{_anchor(rule)}) | {rule.name} | {rule.severity} | {rule.safety} | {rule.title} |"
        for rule in rules
    ]
    for rule in rules:
        lines += ["", *_section(rule)]
    return "\n".join(lines) + "\n"


def _anchor(rule: Rule) -> str:
    return f"{rule.code.lower()}-{rule.name}"


def _section(rule: Rule) -> Iterator[str]:
    yield f"## {rule.code} {rule.name}"
    yield from ("", f"{rule.title[:1].upper()}{rule.title[1:]}.", "", rule.why, "")
    yield f"- Severity: {rule.severity}"
    yield f"- Fix: {_FIX[rule.safety]}"
    if rule.min_torch:
        yield f"- Rewrites from torch: {rule.min_torch}"
    yield f"- Reference: {rule.reference}"
    yield f"- Ignore: `# tpuport: ignore[{rule.code}] reason`"
    for example in rule.examples:
        yield from _example(example)


def _example(example: Example) -> Iterator[str]:
    conditions = [f"torch {example.min_torch} or newer"] if example.min_torch else []
    conditions += ["with `--unsafe`"] if example.unsafe else []
    notes = "; ".join(filter(None, (example.note, *conditions)))
    said = f" ({notes})" if notes else ""
    if example.after is None:
        yield from ("", f"Stays as it is{said}:", "", *_code(example, example.before))
    else:
        yield from ("", f"Before{said}:", "", *_code(example, example.before))
        yield from ("", "After:", "", *_code(example, example.after))


def _code(example: Example, code: str) -> Iterator[str]:
    kind = kinds.of(example.file)
    yield from (f"```{_LANGUAGE.get(kind, kind)}", *code.strip("\n").split("\n"), "```")
