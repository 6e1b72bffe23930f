"""Where an import that migrated code needs is put."""

import pytest

from tpuport.model import Span
from tpuport.rewrite.import_edits import drop_imports, import_module

PLACES = {
    "among the standard library by name": (
        "os",
        "from __future__ import annotations\n\nimport json\nimport sys\n\nimport torch\n",
        "from __future__ import annotations\n\nimport json\nimport os\nimport sys\n\nimport torch\n",
    ),
    "below the standard library": ("os", "import json\n\nimport torch\n", "import json\nimport os\n\nimport torch\n"),
    "before names of the standard library": (
        "os",
        "import json\nfrom typing import Any\n",
        "import json\nimport os\nfrom typing import Any\n",
    ),
    "first of its kind": (
        "os",
        '"""Trains."""\n\nimport torch\nimport timm\n',
        '"""Trains."""\n\nimport os\n\nimport torch\nimport timm\n',
    ),
    "below a licence": ("os", "# Free\n\nimport torch\n", "# Free\n\nimport os\n\nimport torch\n"),
    "torch before other libraries": ("torch", "import os\n\nimport timm\n", "import os\n\nimport torch\nimport timm\n"),
    "torch below the standard library": ("torch", "import os\n\nx = 1\n", "import os\n\nimport torch\n\nx = 1\n"),
    "where there is none": ("torch", "x = 1\n", "import torch\n\nx = 1\n"),
}


@pytest.mark.parametrize(("name", "before", "after"), PLACES.values(), ids=PLACES)
def test_an_import_is_added(name: str, before: str, after: str) -> None:
    assert import_module(before, name) == after


@pytest.mark.parametrize("above", ["", "x = 1\n", "\x0c\n", "x = '\u2028 \x1c'\n"])
def test_an_unused_import_stays_for_its_comment(above: str) -> None:
    line = above.count("\n") + 1
    for comment in ("", "  # registers kernels"):
        source = f"{above}from torch.cuda import amp{comment}\ny = 2\n"
        dropped = drop_imports(source, [(Span(line, 23, line, 26), "amp")])
        assert dropped == (source if comment else f"{above}y = 2\n")
