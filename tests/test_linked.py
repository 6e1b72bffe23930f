import pytest

from tpuport.linked import IMPORT, _imports


@pytest.mark.parametrize(
    "source",
    [
        "import a\nimport a.b, c as d  # import e\nfrom . import f\n",
        "from .a import (\n    b,\n    c,  # import d\n)\nfrom e import f; import g\n",
        "if x:\n    import a\n\timport b\nthe_import = important\nx = 1  # from a import b\n",
        "from a import b \\\n    , c\nprint('import d')\nimport",
        '"""\nimport in_a_text\n"""\nfrom\ta\timport\tb\n',
    ],
)
def test_imports_are_those_at_the_beginnings_of_lines(source: str) -> None:
    assert [found[0] for found in _imports(source)] == [found[0] for found in IMPORT.finditer(source)]
