"""Charts as Vega-Lite specifications: in a page with the library that draws them, or as a picture.

Colours are words such as `$best`, which are those of the page's style sheet, light or dark.
"""

from __future__ import annotations

import json
import math
import re
import resource
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from ...backends.missing import MissingRequirement
from ...dialects.markup import as_text
from ...dialects.shown_text import printable

INSTALL = "pip install 'loopwright[report]'"
HEIGHT = 280
"""Of a chart, in pixels."""
_ENGINE_BYTES = 128 << 30
"""Addresses that V8 reserves: it traps with 64 GiB of them and draws with these."""
Spec = dict[str, Any]

_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_LIGHT = {
    "best": "#0969da",
    "trial": "#57606a",
    "bad": "#cf222e",
    "text": "#1f2328",
    "soft": "#59636e",
    "line": "#d1d9e0",
    "page": "#ffffff",
}
"""Colours of a picture on its own: those of the style sheet for a light page."""
ANYWHERE = {
    "best": "#2f81f7",
    "trial": "#7d8590",
    "bad": "#d1494f",
    "text": "#7d8590",
    "soft": "#7d8590",
    "line": "#8c959f55",
    "page": "transparent",
}
"""Colours of a picture that is to be read on a light and on a dark ground, as a notebook may have either."""
_COLOUR = re.compile(r'"\$(\w+)"')
_PICTURE_WIDTH = 860
"""Of a chart without a browser, in pixels: the page's text is as wide."""


class MissingCharts(MissingRequirement):
    """The library that draws charts is not there."""


def chart(title: str, layers: Sequence[Spec], height: int = HEIGHT) -> Spec:
    """A chart of layers as wide as its place; `title` is what it is read out as."""
    axis = {
        "labelColor": "$soft",
        "titleColor": "$soft",
        "gridColor": "$line",
        "domainColor": "$line",
        "tickColor": "$line",
        "titleFontWeight": "normal",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "labelOverlap": True,
        "tickCount": 6,
    }
    legend = {
        "labelColor": "$soft",
        "title": None,
        "orient": "bottom",
        "columns": 2,
        "labelFontSize": 12,
        "labelLimit": 0,
    }
    return {
        "$schema": _SCHEMA,
        "description": printable(title),
        "width": "container",
        "height": height,
        "autosize": {"type": "fit", "contains": "padding"},
        "background": "transparent",
        "layer": list(layers),
        "config": {
            "axis": axis,
            "legend": legend,
            "view": {"stroke": None},
            "text": {"color": "$soft", "fontSize": 12},
            "font": "system-ui, sans-serif",
        },
    }


def field(name: str, title: str | None, **more: Any) -> Spec:
    """The encoding of a number by its name in the data."""
    return {"field": name, "type": "quantitative", "title": title, **more}


def log_ticks(low: float, high: float) -> list[float]:
    """The powers of ten in a range, with values between where there are few of them."""
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks: list[float] = []
    for steps in ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0)):
        ticks = [t for e in exponents for s in steps if low * 0.999 <= (t := s * 10.0**e) <= high * 1.001]
        if len(ticks) >= 3:
            break
    return ticks


def logarithmic(name: str, title: str, low: float, high: float, reverse: bool = False) -> Spec:
    """The encoding of a positive number on a logarithmic scale from low to high."""
    scale = {"type": "log", "domain": [low, high], "nice": False, "reverse": reverse}
    return field(name, title, scale=scale, axis={"values": log_ticks(low, high)})


def layer(rows: Sequence[Mapping[str, Any]], mark: Mapping[str, Any], **encoding: Any) -> Spec:
    """A layer of rows with a mark."""
    return {"data": {"values": list(rows)}, "mark": dict(mark), "encoding": encoding}


def tips(*names: str) -> list[Spec]:
    """The fields that a point shows when it is hovered over or touched: text, under their own names."""
    return [{"field": name, "type": "nominal"} for name in names]


def figure(spec: Spec, caption: str) -> str:
    """A chart with a caption, which is HTML, to be drawn by `scripts`; why there is none where it cannot be drawn."""
    if (why := why_no_charts()) is not None:
        return f'<figure><p class="soft">{as_text(spec["description"])}: {as_text(why)}.</p></figure>'
    data = json.dumps(spec).replace("<", "\\u003c")
    return (
        f'<figure><div class="chart" role="img" aria-label="{as_text(spec["description"])}" '
        f'style="min-height:{spec["height"]}px"></div>'
        f'<script type="application/json">{data}</script><figcaption>{caption}</figcaption></figure>'
    )


_DRAW = """
const style = getComputedStyle(document.documentElement);
const draw = () => document.querySelectorAll("div.chart").forEach((place) => {
  const text = place.nextElementSibling.textContent;
  const spec = JSON.parse(text.replace(/"\\$(\\w+)"/g, (all, name) =>
    all === '"$schema"' ? all : JSON.stringify(style.getPropertyValue("--" + name).trim())));
  const theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  vegaEmbed(place, spec, { renderer: "svg", actions: false, tooltip: { theme } });
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
draw();
"""


def scripts() -> str:
    """The end of a page with figures: the library and what draws with it, where it is installed."""
    if why_no_charts() is not None:
        return ""
    library = _library().replace("</script", "<\\/script")
    return f'<script type="module">{library}</script><script type="module">{_DRAW}</script>'


def why_no_charts() -> str | None:
    """Say why charts cannot be drawn here; None where they can."""
    try:
        _converter()
    except MissingCharts as error:
        return f"not drawn: {error}"
    return None


def picture(spec: Spec, colours: Mapping[str, str] = _LIGHT) -> str:
    """A chart as SVG, in the colours of a light page unless others are given; MissingCharts without the library."""
    plain = {**spec, "width": _PICTURE_WIDTH}
    coloured = _COLOUR.sub(lambda match: json.dumps(colours.get(match[1], f"${match[1]}")), json.dumps(plain))
    head, close, rest = str(_converter().vegalite_to_svg(json.loads(coloured))).partition(">")
    return f"{head}{close}<title>{as_text(spec['description'])}</title>{rest}"


@cache
def _library() -> str:
    return str(_converter().javascript_bundle())


def _converter() -> Any:
    """The library; MissingCharts where it is not here, and where its engine would end the process for addresses."""
    try:
        import vl_convert
    except ImportError:
        raise MissingCharts(f"charts are drawn by Vega-Lite, which is not here: {INSTALL}") from None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < _ENGINE_BYTES:
        rule = f"takes {_ENGINE_BYTES >> 30} GiB of addresses, and this process may have {limit >> 30} (ulimit -v)"
        raise MissingCharts(f"charts are drawn by Vega-Lite, whose engine {rule}")
    return vl_convert
