"""A report in a real browser, at the width of a screen and of a phone: it draws, fits, and loads nothing."""

import re
import shutil
import struct
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from loopwright.search.records.file import Record
from loopwright.search.report.write import write_report

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PROBE = """
<script>
setTimeout(() => {
  document.querySelectorAll("div.chart").forEach((place) => { place.dataset.wide = place.scrollWidth; });
  document.body.dataset.beyond = document.documentElement.scrollWidth - window.innerWidth;
  document.body.dataset.loaded = performance.getEntriesByType("resource").length;
}, 4000);
</script>
"""
SECONDS = 120


def trials(count: int) -> list[Record]:
    base = Record(
        workload_key='["conv", [1], "abc"]',
        workload_hash="abc",
        target="llvm",
        sketch="tiled",
        decisions=(),
        schedule="lw-lower-te-to-loop",
        times_s=(1e-3,),
        device="cpu",
        flop=2e9,
    )
    found = []
    for number in range(count):
        times_s, decisions = (1e-3 * (1 + (7 * number) % 11),), ((7 * number) % 11, number % 3)
        found.append(
            replace(base, times_s=times_s, decisions=decisions, timestamp=float(number), predicted=-float(number % 5))
        )
    return found


def browse(*options: str) -> str:
    assert BROWSER is not None
    command = [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", *options]
    offline = ["--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=9000"]
    done = subprocess.run([*command, *offline], capture_output=True, text=True, check=True, timeout=SECONDS)
    return done.stdout


@pytest.mark.slow(1.2)
@pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
@pytest.mark.parametrize("width", [1280, 390])
def test_a_report_draws_fits_and_loads_nothing(width: int, tmp_path: Path) -> None:
    page = write_report(trials(24), tmp_path / "report.html", measure=False)
    charts = page.read_text().count('<div class="chart"')
    page.write_text(page.read_text().removesuffix("</body></html>\n") + PROBE + "</body></html>\n")
    drawn = browse(f"--window-size={width},1600", "--dump-dom", page.as_uri())
    assert charts == 2 and len(re.findall(r'<div class="chart.*?<svg', drawn, re.DOTALL)) == charts
    body = re.search(r'<body data-beyond="(-?\d+)" data-loaded="(\d+)"', drawn)
    assert body is not None and int(body[1]) <= 0 and int(body[2]) == 0, body
    picture = tmp_path / f"{width}.png"
    browse(f"--window-size={width},1600", f"--screenshot={picture}", page.as_uri())
    header = picture.read_bytes()
    assert struct.unpack(">II", header[16:24])[0] == width and len(header) > 20_000
