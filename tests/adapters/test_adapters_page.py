"""What the page about adapters shows works as written."""

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "adapters.md"


def test_the_examples_run_as_written(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    assert len(blocks) == 3
    space: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "docs/adapters.md", "exec"), space)
    told = capsys.readouterr().out
    assert "['A' 'B' 'C' 'D'] [False False False False  True]" in told
    assert "Accuracy: " in told
