//! The colours of pictures, by day and by night. Each text has at least 4.5 times the brightness of what it stands on, or a part of it.

pub(super) const STYLE: &str = "\
<style>
text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#1f2328;white-space:pre}
.ground{fill:#fff}.lane{fill:#f6f8fa}.title{font-weight:600}.time{fill:#57606a}
path{fill:none;stroke:#57606a}.tick{stroke:#d8dee4}.life{stroke:#b42318;stroke-dasharray:6 3}
.model{fill:#fff;stroke:#57606a}.wait{fill:#fff;stroke:#57606a;stroke-dasharray:5 3}
.tool{stroke:#2d7a3e;fill:#d6ecd9}.tool.open{stroke:#0b5cad;fill:#d8e9fb}
.failed{stroke:#b42318;fill:#ffe0dc}.interrupted{stroke:#8a5a00;fill:#ffebc8}.stopped{stroke:#6639ba;fill:#ebe4ff}
.unknown{stroke:#57606a;fill:#fff;stroke-dasharray:1.5 2.5}.skipped{stroke:#57606a;fill:url(#hatch);stroke-dasharray:3 2}
.cross{stroke:#b42318;stroke-width:2}.stop{fill:#6639ba}
.way{stroke:#0b5cad}.later{stroke-dasharray:1.5 3}.sooner{stroke-width:2.5}.now{stroke-width:5}.within{stroke:#f6f8fa;stroke-width:2}
.from,.point{fill:#0b5cad}.letter{fill:#fff;font-weight:700}.mark{fill:#fff;stroke:#57606a}
.tear{stroke:#fff;stroke-width:5}.cut{stroke:#57606a}.under{stroke:none!important}
.hatched{stroke:#b6bfc8;stroke-width:1.5}.paper{fill:#fff}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}.ground{fill:#0d1117}.lane{fill:#161b22}.time{fill:#9da7b1}
path{stroke:#9da7b1}.tick{stroke:#262d36}.life{stroke:#ff7b72}
.model,.wait{fill:#0d1117;stroke:#9da7b1}
.tool{stroke:#3fb950;fill:#10331c}.tool.open{stroke:#58a6ff;fill:#0c2d55}
.failed{stroke:#ff7b72;fill:#4a1512}.interrupted{stroke:#d8a52b;fill:#423008}.stopped{stroke:#b39bff;fill:#2b2150}
.unknown{stroke:#9da7b1;fill:#0d1117}.skipped{stroke:#9da7b1;fill:url(#hatch)}
.cross{stroke:#ff7b72}.stop{fill:#b39bff}
.way{stroke:#58a6ff}.within{stroke:#161b22}.from,.point{fill:#58a6ff}.letter{fill:#0d1117}.mark{fill:#0d1117;stroke:#9da7b1}
.tear{stroke:#0d1117}.cut{stroke:#9da7b1}.hatched{stroke:#3d4650}.paper{fill:#0d1117}
}
</style>
<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">\
<rect class=\"paper\" width=\"6\" height=\"6\"/><path class=\"hatched\" d=\"M0 0V6\"/></pattern></defs>
";
