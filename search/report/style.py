"""The style sheet of a page; it follows the reader's choice of a light or a dark one, and fits a phone."""

STYLE = """
:root { color-scheme: light dark; --text: #1f2328; --soft: #59636e; --line: #d1d9e0; --page: #fff; --panel: #f6f8fa;
  --best: #0969da; --trial: #57606a; --bad: #cf222e; --add: #dafbe1; --cut: #ffebe9; }
@media (prefers-color-scheme: dark) { :root { --text: #e6edf3; --soft: #9198a1; --line: #3d444d; --page: #0d1117;
  --panel: #151b23; --best: #4493f8; --trial: #9198a1; --bad: #f85149; --add: #12361f; --cut: #3c1618; } }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page); max-width: 62rem;
  margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.25; } h2 { margin-top: 3rem; border-bottom: 1px solid var(--line); }
h2 .soft { font-weight: 400; font-size: .75em; }
h3 { margin: 2rem 0 .5rem; } a { color: var(--best); }
.scroll { overflow-x: auto; } .scroll td { overflow-wrap: normal; }
table { border-collapse: collapse; } td, th { padding: .25rem .9rem .25rem 0; text-align: left; vertical-align: top; }
th { font-weight: 600; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
table.wide { width: 100%; } table.wide tr + tr td { border-top: 1px solid var(--line); }
pre { background: var(--panel); padding: .7rem; overflow-x: auto; font-size: 12.5px; line-height: 1.4;
  border-radius: 6px; }
pre, code { overflow-wrap: normal; } li code { overflow-wrap: anywhere; }
code { font-size: .92em; } .soft, figcaption { color: var(--soft); } figcaption { font-size: 13.5px; }
figure { margin: .5rem 0; } .chart { width: 100%; } .good { color: var(--best); font-weight: 600; }
ol.steps { padding-left: 2.2rem; } ol.steps li { margin: .35rem 0; }
details > summary { cursor: pointer; min-height: 1.8rem; } ol.steps summary { display: block; }
ol.steps summary::after { content: " +"; color: var(--best); }
.add { background: var(--add); } .cut { background: var(--cut); } .bad { color: var(--bad); }
table.bars { width: 100%; } table.bars td:first-child { width: 46%; }
table.bars td:last-child { width: 44%; padding-right: 0; }
.bar { background: var(--best); height: .7rem; display: inline-block; border-radius: 2px; }
@media (max-width: 40rem) { body { margin: 1rem auto; font-size: 14.5px; } h1 { font-size: 1.3rem; }
  h2 { margin-top: 2rem; } td, th { padding-right: .6rem; } ol.steps { padding-left: 1.7rem; }
  table.facts th, table.facts td { display: block; padding: 0; } table.facts td { padding-bottom: .5rem; } }
"""
