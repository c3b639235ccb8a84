"""Commands run in this process, as `loopwright ...` runs them."""

import contextlib
import io

from loopwright.cli import main


def call(*argv: str) -> tuple[int, str, str]:
    """Run a command: exit code, standard output, standard error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(argv)
        except SystemExit as stop:
            assert isinstance(stop.code, int)
            code = stop.code
    return code, out.getvalue(), err.getvalue()
