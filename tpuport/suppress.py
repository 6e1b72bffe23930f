"""Comments that keep findings out of the report, and findings about such comments themselves.

- `# tpuport: ignore[TP101] reason` on a line of code: for the statement that begins or ends there, or the part of it on
  that line. On a line of its own: for the statement that follows.
- `# tpuport: ignore-file[TP101] reason`: for the whole file.
- `# tpuport: off[TP101] reason` to `# tpuport: on[TP101]`, or to the end of the file: for the lines between them.

In brackets stand codes, prefixes of codes, or names of rules, separated by commas.
"""

import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tpuport.model import Finding, Rule, Safety, Span
from tpuport.nearest import did_you_mean

UNUSED = "unused-ignore"
INVALID = "invalid-ignore"
WITHOUT_REASON = "ignore-without-reason"

_MARK = re.compile(r"#[ \t]*tpuport[ \t]*:[ \t]*")
_FORM = re.compile(r"(?P<verb>ignore-file|ignore|off|on)\b(?:\s*\[(?P<codes>[^\]]*)\])?(?P<reason>[^#]*)")
_VERBS = ("ignore", "ignore-file", "off", "on")
_TO_THE_END = 1 << 60
_NO_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT)


@dataclass(slots=True)
class _Ignore:
    """One comment in force: which rules, on which lines, why; and which of its keys were of use."""

    span: Span
    text: str
    keys: tuple[str, ...]
    reason: str
    first: int
    last: int
    whole_file: bool = False
    used: set[str] = field(default_factory=set)

    def key_for(self, finding: Finding) -> str | None:
        """Which of the comment's keys covers `finding`, if one does."""
        if not self.whole_file and (finding.span.line > self.last or finding.span.end_line < self.first):
            return None
        return next((key for key in self.keys if covers(key, finding.code, finding.rule)), None)


def covers(key: str, code: str, name: str) -> bool:
    """Whether a code, a prefix of codes or a rule's name means the rule."""
    return bool(key) and (code.startswith(key.upper()) or key == name)


def may_apply(source: str) -> bool:
    """Whether `source` may hold a comment for tpuport: a quick look that spares most files the tokenizer."""
    return "tpuport" in source and _MARK.search(source) is not None


def apply(
    source: str,
    found: Sequence[Finding],
    rules: Mapping[str, Rule],
    statements: Sequence[tuple[int, int]] | None = None,
) -> list[Finding]:
    """`found` with the ignored ones marked, and findings about the comments; `rules` are all rules by name.

    `statements` are the first and last line of each statement of a text that is no Python.
    """
    comments = _Comments(_places(source) if statements is None else _places_by_line(source, statements), rules)
    marked = [comments.mark(finding) for finding in found]
    return sorted([*marked, *comments.findings()], key=lambda finding: (finding.span, finding.code))


class _Comments:
    """The tpuport comments of one source text."""

    def __init__(self, places: Iterable["_Place"], rules: Mapping[str, Rule]) -> None:
        self._rules = rules
        self._ignores: list[_Ignore] = []
        self._open: list[_Ignore] = []
        self._findings: list[Finding] = []
        for place in places:
            self._read(place)

    def mark(self, finding: Finding) -> Finding:
        """`finding`, marked as ignored if a comment covers it; all comments that do have been of use."""
        reasons = []
        for ignore in self._ignores:
            key = ignore.key_for(finding)
            if key is not None:
                ignore.used.add(key)
                reasons.append(ignore.reason)
        return replace(finding, ignored=next(filter(None, reasons), "")) if reasons else finding

    def findings(self) -> Iterator[Finding]:
        """What is wrong with the comments, once every finding has been marked."""
        yield from self._findings
        for ignore in self._ignores:
            for key in ignore.keys:
                if key not in ignore.used:
                    yield self._finding(UNUSED, ignore.span, f"nothing to ignore here for {key}")
            if not ignore.reason:
                yield self._finding(WITHOUT_REASON, ignore.span, "the comment gives no reason for what it ignores")

    def _finding(self, name: str, span: Span, message: str) -> Finding:
        rule = self._rules[name]
        return Finding(rule.code, rule.name, message, span, rule.severity, Safety.MANUAL)

    def _read(self, place: "_Place") -> None:
        body = place.text[place.mark :]
        form = _FORM.match(body)
        if form is None:
            word = re.match(r"[\w-]*", body)
            hint = did_you_mean(word[0] if word else "", _VERBS) or f"; valid: {', '.join(_VERBS)}"
            self._invalid(place, f"not a comment that tpuport knows{hint}")
            return
        keys = tuple(key.strip() for key in (form["codes"] or "").split(",") if key.strip())
        known = tuple(key for key in keys if self._is_known(place, key))
        if form["verb"] == "on":
            self._close(place, keys)
        elif not keys:
            self._invalid(place, f"it names no rule: write {form['verb']}[CODE]")
        elif known:
            self._add(place, form["verb"], known, form["reason"].strip(" \t-:,–—"))

    def _add(self, place: "_Place", verb: str, keys: tuple[str, ...], reason: str) -> None:
        first, last = place.lines if verb == "ignore" else (place.span.line, _TO_THE_END)
        ignore = _Ignore(place.span, place.text, keys, reason, first, last, verb == "ignore-file")
        self._ignores.append(ignore)
        if verb == "off":
            self._open.append(ignore)

    def _close(self, place: "_Place", keys: tuple[str, ...]) -> None:
        """End the open blocks of these rules, or without any the last one."""
        ended = [block for block in self._open if set(block.keys) == set(keys)] if keys else self._open[-1:]
        if not ended:
            self._invalid(place, "there is no open `off` that it could end")
        for block in ended:
            block.last = place.span.line
            self._open.remove(block)

    def _is_known(self, place: "_Place", key: str) -> bool:
        if any(covers(key, rule.code, rule.name) for rule in self._rules.values()):
            return True
        words = [word for rule in self._rules.values() for word in (rule.code, rule.name)]
        self._invalid(place, f"there is no rule {key}{did_you_mean(key, words)}")
        return False

    def _invalid(self, place: "_Place", message: str) -> None:
        self._findings.append(self._finding(INVALID, place.span, message))


@dataclass(frozen=True, slots=True)
class _Place:
    """A comment for tpuport: its text from `#` on, where that ends its mark, and the lines that it is about."""

    text: str
    mark: int
    span: Span
    lines: tuple[int, int]


def _places(source: str) -> Iterator[_Place]:
    """Every comment for tpuport with the lines of code that it stands at."""
    statement: list[tokenize.TokenInfo] = []
    waiting: list[tokenize.TokenInfo] = []
    inside: list[tokenize.TokenInfo] = []
    for token in _tokens(source):
        if token.type == tokenize.COMMENT and _MARK.search(token.string):
            (inside if statement else waiting).append(token)
        elif token.type == tokenize.NEWLINE:
            yield from _settled(waiting, inside, statement, token)
            statement, waiting, inside = [], [], []
        elif token.type not in _NO_CODE:
            statement.append(token)
    yield from _settled(waiting, inside, statement, None)


def _places_by_line(source: str, statements: Sequence[tuple[int, int]]) -> Iterator[_Place]:
    """As `_places`, in a text where `#` begins a comment: on a line of its own it is about the statement below."""
    for number, line in enumerate(source.split("\n"), 1):
        mark = _MARK.search(line)
        if mark is None:
            continue
        alone = line.lstrip().startswith("#")
        fitting = (own for own in statements if (own[0] > number if alone else own[0] <= number <= own[1]))
        yield _Place(
            line[mark.start() :],
            mark.end() - mark.start(),
            Span(number, mark.start(), number, len(line.rstrip())),
            next(fitting, (number, number)),
        )


def _settled(
    waiting: list[tokenize.TokenInfo],
    inside: list[tokenize.TokenInfo],
    statement: list[tokenize.TokenInfo],
    end: tokenize.TokenInfo | None,
) -> Iterator[_Place]:
    code = [token for token in statement if token.type != tokenize.ENDMARKER]
    whole = (code[0].start[0], code[-1].end[0]) if code and end is not None else None
    for token in waiting:
        yield _place(token, whole or (token.start[0], token.start[0]))
    for token in inside:
        line = token.start[0]
        alone = not token.line[: token.start[1]].strip()
        if alone:
            line += 1  # inside brackets, on a line of its own: about the line that follows
        yield _place(token, whole if whole and line in whole and not alone else (line, line))


def _place(token: tokenize.TokenInfo, lines: tuple[int, int]) -> _Place:
    mark = _MARK.search(token.string)
    assert mark is not None
    row, column = token.start
    return _Place(
        token.string[mark.start() :],
        mark.end() - mark.start(),
        Span(row, column + mark.start(), row, column + len(token.string.rstrip())),
        lines,
    )


def _tokens(source: str) -> Iterator[tokenize.TokenInfo]:
    try:
        yield from tokenize.generate_tokens(io.StringIO(source).readline)
    except (tokenize.TokenError, SyntaxError):
        return  # the parser takes a few things that the tokenizer does not: what came before is still good
