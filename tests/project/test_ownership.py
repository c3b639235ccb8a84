"""Files of others are refused before they are written to; devices, empty files and files of ours are not."""

import os
from pathlib import Path

import pytest

from loopwright.storage.ownership import require_ours


def test_only_files_with_a_mark_are_ours(tmp_path: Path) -> None:
    path = tmp_path / "file"
    require_ours(path, "report", [b"<mark>"])
    for content in (b"", b"<ma", b"before <mark> after"):
        path.write_bytes(content)
        require_ours(path, "report", [b"<mark>"])
    require_ours(os.devnull, "report", [b"<mark>"])
    path.write_bytes(b"something else")
    with pytest.raises(FileExistsError, match="there already and is no report, so it is left alone") as refused:
        require_ours(path, "report", [b"<mark>"])
    assert refused.value.filename == str(path)
    with pytest.raises(IsADirectoryError):
        require_ours(tmp_path, "report", [b"<mark>"])
