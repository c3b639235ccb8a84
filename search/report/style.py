"""The style sheet of a report; it follows the reader's choice of a light or a dark page."""

STYLE = """
:root { color-scheme: light dark; --text: #1f2328; --soft: #59636e; --line: #d1d9e0; --page: #fff; --panel: #f6f8fa;
  --best: #0969da; --trial: #57606a; --bad: #cf222e; --add: #dafbe1; --cut: #ffebe9; }
@media (prefers-color-scheme: dark) { :root { --text: #e6edf3; --soft: #9198a1; --line: #3d444d; --page: #0d1117;
  --panel: #151b23; --best: #4493f8; --trial: #9198a1; --bad: #f85149; --add: #12361f; --cut: #3c1618; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page); max-width: 62rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { margin-top: 3rem; border-bottom: 1px solid var(--line); } h3 { margin: 2rem 0 .5rem; }
table { border-collapse: collapse; } td, th { padding: .2rem .9rem .2rem 0; text-align: left; vertical-align: top; }
th { font-weight: 600; } td.number { text-align: right; font-variant-numeric: tabular-nums; }
table.wide { width: 100%; } table.wide tr + tr td { border-top: 1px solid var(--line); }
pre { background: var(--panel); padding: .7rem; overflow-x: auto; font-size: 12.5px; line-height: 1.4; }
code { font-size: .92em; } .soft, figcaption { color: var(--soft); } figure { margin: .5rem 0; }
ol.steps { padding-left: 2.2rem; } ol.steps li { margin: .35rem 0; } details > summary { cursor: pointer; }
ol.steps summary { display: block; }
ol.steps summary::after { content: " +"; color: var(--best); }
.add { background: var(--add); } .cut { background: var(--cut); } .bad { color: var(--bad); }
svg { width: 100%; height: auto; } svg text { font-size: 12px; fill: var(--soft); } .grid { stroke: var(--line); }
polyline { fill: none; } .best { stroke: var(--best); stroke-width: 2; } .roof { stroke: var(--text); stroke-width: 2; }
.drop { stroke: var(--soft); stroke-dasharray: 4 4; } .trial { fill: var(--trial); fill-opacity: .75; }
.winner { fill: var(--best); } .twin { fill: none; stroke: var(--trial); stroke-dasharray: 2 2; }
.early { fill: none; stroke: var(--trial); } .failed { stroke: var(--bad); fill: none; stroke-width: 1.5; }
.bar { background: var(--best); height: .7rem; display: inline-block; border-radius: 2px; }
"""
