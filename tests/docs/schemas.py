"""The JSON Schemas of what tpuport prints as JSON, and their page, made from the types that are printed.

`python -m tests.docs.schemas` writes them anew.
"""

import ast
import dataclasses
import inspect
import json
import textwrap
import types
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints, is_typeddict

import jsonschema

from tpuport import output
from tpuport.output import lint_json, migrate_json, plan_json, profile_json
from tpuport.profile.analyses import Report
from tpuport.profile.comparison import Comparison

FOLDER = Path(output.__file__).parent / "schemas"
_PRIMITIVES = {str: "string", int: "integer", bool: "boolean", type(None): "null"}


class Document(NamedTuple):
    """What one command prints: an object with the fields of `parts`; those in `fixed` have that one value."""

    title: str
    parts: Sequence[type]
    fixed: Mapping[str, Any]


DOCUMENTS = {
    "profile": Document(
        "`tpuport profile --json` and `tpuport report --json`",
        (profile_json.Head, Report),
        {"schema": profile_json.SCHEMA, "version": profile_json.VERSION},
    ),
    "profile-comparison": Document(
        "`tpuport report --compare BEFORE --json`",
        (profile_json.ComparisonHead, Comparison),
        {"schema": profile_json.COMPARISON_SCHEMA, "version": profile_json.VERSION},
    ),
    "lint": Document("`tpuport lint --json`", (lint_json.Document,), {"version": lint_json.VERSION}),
    "plan": Document("`tpuport plan --json`", (plan_json.Document,), {"version": plan_json.VERSION}),
    "migrate": Document("`tpuport migrate --json`", (migrate_json.Document,), {"version": migrate_json.VERSION}),
}


def schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of a document."""
    document = DOCUMENTS[name]
    definitions: dict[str, Any] = {}
    properties: dict[str, Any] = {}
    for part in document.parts:
        properties |= _properties(part, definitions)
    for key, value in document.fixed.items():
        properties[key] = {**properties[key], "const": value}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"tpuport {name}, version {document.fixed['version']}",
        "description": f"What {document.title} prints. Within a version fields are only ever added.",
        **_object(properties),
        "$defs": dict(sorted(definitions.items())),
    }


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _properties(kind: type, definitions: dict[str, Any]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    said = _said(kind)
    return {
        name: {**_type(hint, definitions), **({"description": said[name]} if name in said else {})}
        for name, hint in hints.items()
    }


def _type(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return {"anyOf": [_type(argument, definitions) for argument in arguments]}
    if origin in (tuple, list):
        return {"type": "array", "items": _type(arguments[0], definitions)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _type(arguments[1], definitions)}
    if kind is float:
        return {"type": ["number", "null"]}
    if kind in _PRIMITIVES:
        return {"type": _PRIMITIVES[kind]}
    if kind.__name__ not in definitions:
        # Entered first, for types that hold themselves.
        definitions[kind.__name__] = {}
        definitions[kind.__name__] = _definition(kind, definitions)
    return {"$ref": f"#/$defs/{kind.__name__}"}


def _definition(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    described = {"description": _words(kind.__doc__)} if kind.__doc__ else {}
    if issubclass(kind, Enum):
        return {**described, "enum": [member.value for member in kind]}
    if dataclasses.is_dataclass(kind) or is_typeddict(kind):
        return {**described, **_object(_properties(kind, definitions))}
    raise TypeError(f"{kind} has no JSON form")


def _said(kind: type) -> dict[str, str]:
    """Return the docstring of every field that has one."""
    said: dict[str, str] = {}
    for base in reversed([base for base in kind.__mro__ if base.__module__.startswith("tpuport")]):
        body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0].body  # type: ignore[attr-defined]
        for field, text in pairwise(body):
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
                said[ast.unparse(field.target)] = _words(str(text.value.value))
    return said


def _words(text: str) -> str:
    return " ".join(text.split())


def check(name: str, document: Any) -> None:
    """Raise ValidationError when what a command has printed is not as the schema beside the code says."""
    text = (FOLDER / f"{name}.schema.json").read_text(encoding="utf-8")
    jsonschema.Draft202012Validator(json.loads(text)).validate(document)


def page() -> str:
    """Return the page that says what every field means."""
    parts = [
        "# What tpuport prints as JSON",
        "Made from the types in the code by `python -m tests.docs.schemas`. A document has a `version`: it goes up "
        "when a field goes away or changes its meaning, and within a version fields are only ever added. Positions are "
        "`file`, `line` and `column`, counted from 1; a number that JSON does not know (infinite, not a number) is "
        "null.",
    ]
    for name, document in DOCUMENTS.items():
        made = schema(name)
        parts.append(f"## {document.title}\n\nSchema: [{name}.schema.json]({name}.schema.json)")
        parts.append(_table(made["properties"]))
        for title, definition in made["$defs"].items():
            parts.append("\n\n".join([f"### {name}: {title}", *_account(definition)]))
    return "\n\n".join(parts) + "\n"


def _account(definition: dict[str, Any]) -> Iterator[str]:
    if "description" in definition:
        yield definition["description"]
    if "enum" in definition:
        yield "One of " + ", ".join(f"`{value}`" for value in definition["enum"]) + "."
    else:
        yield _table(definition["properties"])


def _table(properties: dict[str, Any]) -> str:
    rows = [
        f"| `{name}` | {_shown(kind)} | {kind.get('description', '')} |".replace("\n", " ")
        for name, kind in properties.items()
    ]
    return "\n".join(["| field | type | meaning |", "|---|---|---|", *rows])


def _shown(kind: dict[str, Any]) -> str:
    if "const" in kind:
        return f"`{json.dumps(kind['const'])}`"
    if "$ref" in kind:
        return str(kind["$ref"]).rpartition("/")[2]
    if "anyOf" in kind:
        return " or ".join(_shown(item) for item in kind["anyOf"])
    if kind["type"] == "array":
        return f"list of {_shown(kind['items'])}"
    if kind["type"] == "object":
        return f"object of {_shown(kind['additionalProperties'])}"
    return str(kind["type"]) if isinstance(kind["type"], str) else " or ".join(kind["type"])


def files() -> dict[Path, str]:
    """Return every generated file with its content."""
    made = {FOLDER / f"{name}.schema.json": json.dumps(schema(name), indent=1) + "\n" for name in DOCUMENTS}
    return {**made, FOLDER / "README.md": page()}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for file, content in files().items():
        file.write_text(content, encoding="utf-8")
