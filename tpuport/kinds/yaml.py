"""YAML: settings, conda environments, manifests of clusters, workflows, charts; and the commands in all of them."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from tpuport.kinds import Unparsed, commands, packages, settings, template
from tpuport.kinds.document import Command, Document, Entry, Text, Word
from tpuport.kinds.plain import Plain
from tpuport.model import Span

KIND = "yaml"
_SCRIPTS = {"run", "script", "setup", "before_script", "after_script", "install", "post_setup", "command", "commands"}
_SCRIPTS |= {"args", "entrypoint", "cmd"}
"""Keys whose values are commands, wherever they stand."""

_RUNS_VLLM = {"image": re.compile(r"(?:^|/)vllm-openai\b"), "modelCommand": re.compile(r"vllmServe")}
"""What starts vLLM's server where no command says so: the image by itself, and llm-d's charts."""


@dataclass(slots=True)
class _Container:
    """The words of a command that stands in lists, by their keys; `engine` starts where they name no program."""

    lists: dict[str, list[Word]] = field(default_factory=dict)
    engine: list[Word] = field(default_factory=list)

    def words(self) -> list[Word]:
        """All of them, in the order of a command line: Kubernetes puts `args` after `command`."""
        words = [word for key in sorted(self.lists, key=lambda key: key in ("args", "cmd")) for word in self.lists[key]]
        return self.engine + words if words and words[0].text.startswith("-") else words


def read(source: str) -> Document:
    """Every value with the keys that lead to it; of a template, those that it says itself. Raises Unparsed."""
    text = Text(source)
    document = Document(KIND, text)
    roots = enumerate(_roots(source))
    found = [entry for number, root in roots for entry in _entries(text, root, (), None, number, set())]
    document.entries.extend(settings.with_siblings(found))
    settings.interpret(document)
    settings.conda(document)
    _commands(document)
    return document


def _roots(source: str) -> list[object]:
    """The documents. Raises Unparsed for what is no YAML, neither as it stands nor without what a template fills in."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return [root for root in yaml.compose_all(source, Loader=loader) if root is not None]
    except yaml.YAMLError as error:
        if template.is_template(source):
            return _roots(template.without_tags(source))
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 0
        said = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise Unparsed(f"not YAML as it stands (a template?): line {line}: {said}", line) from None


def _entries(
    text: Text, node: object, path: tuple[str, ...], key: Span | None, number: int, seen: set[int]
) -> Iterator[Entry]:
    import yaml

    if id(node) in seen:
        return  # an alias: what it stands for has been read where it is written
    seen.add(id(node))
    span, is_item = _span(text, node), key is None
    scalar = isinstance(node, yaml.ScalarNode)
    value = node.value if isinstance(node, yaml.ScalarNode) else ""
    yield Entry(path, value, span, key or span, document=number, is_scalar=scalar, is_item=is_item)
    if isinstance(node, yaml.MappingNode):
        for name, inner in node.value:
            if isinstance(name, yaml.ScalarNode):
                yield from _entries(text, inner, (*path, name.value), _span(text, name), number, seen)
    elif isinstance(node, yaml.SequenceNode):
        for inner in node.value:
            yield from _entries(text, inner, path, None, number, seen)


def _span(text: Text, node: object) -> Span:
    """Where a node stands, by offsets: YAML counts lines by more characters than end one elsewhere."""
    return text.span(node.start_mark.index, node.end_mark.index)  # type: ignore[attr-defined]


def _commands(document: Document) -> None:
    """Read what the values of such keys say: text is a script, a list is one command or several."""
    containers: dict[tuple[object, ...], _Container] = {}
    items: Counter[tuple[int, tuple[str, ...]]] = Counter()
    for entry in document.entries:
        if entry.is_scalar and entry.span.line < entry.span.end_line:
            document.blocks.append((entry.key_span.line, entry.span.end_line - (entry.span.end_column == 0)))
        if entry.is_item and not entry.is_scalar:
            items[entry.document, entry.path] += 1
        parent = entry.path[:-1]
        container = containers.setdefault((entry.document, parent, items[entry.document, parent]), _Container())
        if not entry.is_scalar:
            continue
        if entry.key in _RUNS_VLLM and _RUNS_VLLM[entry.key].search(entry.text):
            container.engine = [Word("vllm", entry.span), Word("serve", entry.span)]
        if entry.key in _SCRIPTS:
            _script(document, entry, container)
    for container in containers.values():
        if words := container.words():
            first = min(word.span for word in words)
            last = max(words, key=lambda word: word.span[2:]).span
            span = Span(first.line, first.column, last.end_line, last.end_column)
            commands.add(document, Command(tuple(words), span))


def _script(document: Document, entry: Entry, container: "_Container") -> None:
    begin = document.text.offset(entry.span.line, entry.span.column)
    end = document.text.offset(entry.span.end_line, entry.span.end_column)
    raw = document.text.source[begin:end]
    if entry.is_item and (" " not in entry.text or container.lists.get(entry.key)):
        container.lists.setdefault(entry.key, []).append(Word(entry.text, entry.span))
    if raw[:1] in "|>":
        commands.read(document, begin + len(raw.split("\n")[0]), end)
    elif entry.is_item and " " not in entry.text:
        return
    elif raw[:1] in "\"'":
        commands.read(document, begin + 1, end - 1)
    else:
        commands.read(document, begin, end)


HANDLER = Plain(KIND, (*settings.WORDS, *packages.WORDS), read)
