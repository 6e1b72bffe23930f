"""YAML: settings, conda environments, manifests of clusters, workflows; and the commands in all of them."""

from collections.abc import Iterator

from tpuport.kinds import Unparsed, commands, packages, settings
from tpuport.kinds.document import Command, Document, Entry, Text, Word
from tpuport.kinds.plain import Plain
from tpuport.model import Span

KIND = "yaml"
_SCRIPTS = {"run", "script", "setup", "before_script", "after_script", "install", "post_setup", "command", "commands"}
_SCRIPTS |= {"args", "entrypoint", "cmd"}
"""Keys whose values are commands, wherever they stand."""


def read(source: str) -> Document:
    """Every value with the keys that lead to it. Raises Unparsed for what is no YAML, as a template is."""
    import yaml

    text = Text(source)
    document = Document(KIND, text)
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        roots = [root for root in yaml.compose_all(source, Loader=loader) if root is not None]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 0
        said = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise Unparsed(f"not YAML as it stands (a template?): line {line}: {said}", line) from None
    found = [entry for number, root in enumerate(roots) for entry in _entries(text, root, (), None, number, set())]
    document.entries.extend(settings.with_siblings(found))
    settings.interpret(document)
    settings.conda(document)
    _commands(document)
    return document


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
    lists: dict[tuple[int, tuple[str, ...], int], list[Word]] = {}
    for entry in document.entries:
        if entry.is_scalar and entry.span.line < entry.span.end_line:
            document.blocks.append((entry.key_span.line, entry.span.end_line - (entry.span.end_column == 0)))
        if not entry.is_scalar or entry.key not in _SCRIPTS:
            continue
        begin = document.text.offset(entry.span.line, entry.span.column)
        end = document.text.offset(entry.span.end_line, entry.span.end_column)
        raw = document.text.source[begin:end]
        if raw[:1] in "|>":
            commands.read(document, begin + len(raw.split("\n")[0]), end)
        elif entry.is_item and " " not in entry.text:
            lists.setdefault((entry.document, entry.path, 0), []).append(Word(entry.text, entry.span))
        elif raw[:1] in "\"'":
            commands.read(document, begin + 1, end - 1)
        else:
            commands.read(document, begin, end)
    for words in lists.values():
        first, last = words[0].span, words[-1].span
        span = Span(first.line, first.column, last.end_line, last.end_column)
        commands.add(document, Command(tuple(words), span))


HANDLER = Plain(KIND, (*settings.WORDS, *packages.WORDS), read)
