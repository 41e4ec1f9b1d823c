// A timeline, drawn: the shapes of `crates/view/src/svg`, of which only those stand in the page that one sees.

import { html, nothing, svg } from "../vendor/lit-html/lit-html.js";
import { guard } from "../vendor/lit-html/directives/guard.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { BAR, GAP, HEAD, ROW, SIGN, STRIP, fits } from "../chart.js";
import { cells } from "../fold/picture.js";
import { oneLine } from "../words.js";

/**
 * @import { BarShown, Chart, LetterShown, MarkShown } from "../chart.js"
 * @import { Drawn, LaneDrawn } from "../fold/picture.js"
 */

/** The widest that names get, in characters, where there is room and where there is little. */
const [NAME, NAME_NARROW] = [20, 9];

/** How wide a window has little room, in pixels. */
const LITTLE = 600;

/** How far a child's name is moved for each agent above it, in pixels, and how often at most. */
const INDENT = { by: 10, most: 4 };

/** How wide a character is, and how far a tear goes to each side, in pixels. */
const [CHARACTER, TEAR] = [7.2, 4];

/** @type {Record<string, string[]>} the lines that make a message's urgency: dotted, thin, thick, double */
const STROKES = {
  follow_up: ["way later"],
  after_tools: ["way"],
  next_boundary: ["way sooner"],
  urgent: ["way now", "way within"],
};

/** What is moved: the message, where it stands now, and what it says. */
/** @typedef {{key: string, x: number, label: string}} Ghost */

/** How a chart tells what is done to it: `goes`, that one wants to be at a place, in units. */
/** @typedef {{key: (event: KeyboardEvent) => void, grabs: (event: PointerEvent) => void, goes?: (x: number) => void}} Does */

/**
 * @param {Chart} chart
 * @param {string} label
 * @param {Does} does
 * @param {Ghost | null} ghost
 * @param {boolean} moves whether messages can be moved
 * @param {number | null} here the moment that is shown, of one that is played back
 */
export function chart(chart, label, does, ghost, moves, here) {
  const { left, top } = chart.window();
  const changes = [chart.version, chart.k, left, top, chart.wide, chart.high, chart.at, ghost?.key, ghost?.x, moves];
  return html`<div id=${chart.id} class="chart ${here === null ? "" : "played"}" @scroll=${() => scrolled(chart)} @keydown=${does.key} @pointerdown=${does.grabs}
    @click=${(/** @type {MouseEvent} */ event) => clicked(chart, does, event)}
    @focusin=${(/** @type {Event} */ event) => focused(chart, event)} @mouseover=${(/** @type {Event} */ event) => pointed(chart, event)}
    @mouseleave=${() => leaves(chart)} @wheel=${wheel(chart)}>
    ${guard(changes, () => drawn(chart, label, ghost, moves))}
    ${here === null ? nothing : upTo(chart, here)}
  </div>`;
}

/**
 * Where the moment is that is shown; what comes later is pale.
 * @param {Chart} chart
 * @param {number} here
 */
function upTo(chart, here) {
  const [x, high] = [chart.x(here), HEAD + chart.height];
  return html`<svg class="here" width=${chart.width} height=${high} aria-hidden="true">
    <rect class="pale" x=${x} y=${HEAD} width=${Math.max(0, chart.width - x)} height=${chart.height}></rect>
    <path class="line" d="M${x} ${HEAD - 8}V${high}"></path>
    <path class="grip" d="M${x - 6} ${HEAD - 14}h12v5l-6 7l-6 -7z"></path>
  </svg>`;
}

/**
 * @param {Chart} chart
 * @param {string} label
 * @param {Ghost | null} ghost
 * @param {boolean} moves
 */
function drawn(chart, label, ghost, moves) {
  const seen = chart.seen();
  const entry = chart.entry(seen);
  const beside = namesWide(chart);
  const lanes = chart.picture.lanes.slice(seen.first, seen.last).map((lane, nth) => ({ lane, top: chart.tops[seen.first + nth] ?? 0 }));
  const { width, height } = chart;
  return html`<svg class="corner" width=${beside} height=${HEAD} aria-hidden="true"></svg>
    <svg class="instants" width=${width} height=${HEAD} aria-hidden="true">
      ${seen.ticks.map(({ x, text }) => letters("time", chart.x(x), HEAD - 8, text))}
    </svg>
    <svg class="names" width=${beside} height=${height} aria-hidden="true">
      ${lanes.map(({ lane, top }) => letters("name", 4 + indent(lane), top + STRIP / 2 + 4, fits(lane.name, nameRoom(chart))))}
    </svg>
    <svg class="body" width=${width} height=${height} role="group" aria-label=${label} aria-describedby="timeline-keys">
      <defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
        <rect class="paper" width="6" height="6"></rect><path class="hatched" d="M0 0V6"></path></pattern></defs>
      ${lanes.map(({ lane, top }) => svg`<rect class="lane" x="0" y=${top} width=${width} height=${STRIP + lane.rows * ROW} rx="4"></rect>`)}
      <path class="tick" d=${seen.ticks.map(({ x }) => `M${chart.x(x)} 0V${height - GAP}`).join("")}></path>
      <path class="life" d=${seen.lives.map((x) => `M${chart.x(x)} 0V${height - GAP}`).join("")}></path>
      ${repeat(seen.letters, ({ key }) => key, (one) => letter(chart, one, entry, moves))}
      ${repeat(seen.bars, ({ key }) => key, (one) => bar(chart, one, entry))}
      <path class="tear" d=${seen.cuts.map((x) => `M${chart.x(x) + 2} 0L${chart.x(x) - 2} ${height - GAP}`).join("")}></path>
      <path class="cut" d=${seen.cuts.map((x) => tear(chart.x(x), height - GAP)).join("")}></path>
      <g class="labels" aria-hidden="true">${seen.bars.map((one) => named(chart, one, seen.cuts))}</g>
      ${repeat(seen.marks, ({ key }) => key, (one) => mark(chart, one, entry))}
      ${ghost ? moved(chart, ghost) : nothing}
    </svg>`;
}

/**
 * @param {number} x
 * @param {number} bottom
 */
function tear(x, bottom) {
  return `M${x} 0L${x - 4} ${bottom}M${x + 4} 0L${x} ${bottom}`;
}

/**
 * A text of a width that is said, so that no font makes it leave its place.
 * @param {string} of
 * @param {number} x
 * @param {number} y
 * @param {string} text
 */
function letters(of, x, y, text) {
  return svg`<text class=${of} x=${x} y=${y} textLength=${(cells(text) * CHARACTER).toFixed(1)} lengthAdjust="spacingAndGlyphs">${text}</text>`;
}

/** @param {LaneDrawn} lane */
function indent({ depth }) {
  return INDENT.by * Math.min(depth, INDENT.most);
}

/** @param {Chart} chart */
function nameRoom(chart) {
  return chart.wide < LITTLE ? NAME_NARROW : NAME;
}

/** How much of the window the names take, in pixels. @param {Chart} chart */
export function namesWide(chart) {
  const room = nameRoom(chart);
  const wide = chart.picture.lanes.map((lane) => indent(lane) + Math.min(cells(lane.name), room) * CHARACTER);
  return Math.ceil(Math.max(0, ...wide)) + 12;
}

/**
 * @param {Chart} chart
 * @param {BarShown} shown
 * @param {string} entry
 */
function bar(chart, { key, from, to, many, bar, says }, entry) {
  const [x, y] = [chart.x(from), (chart.tops[bar.lane] ?? 0) + STRIP + bar.row * ROW];
  const wide = Math.max(2, chart.x(to) - x);
  const of = kindOf(many, bar);
  return svg`<g class="item" data-key=${key} role="button" tabindex=${key === entry ? 0 : -1} aria-label=${oneLine(says)}>
    <path class=${of} d=${outline(x, y, wide, bar.end, many)}></path>
    ${wide < 12 || many > 1 ? nothing : sign(bar.end, x + wide, y + BAR / 2)}
  </g>`;
}

/**
 * @param {number} many
 * @param {Drawn} bar
 */
function kindOf(many, { kind, end }) {
  return many > 1 ? "tool many" : `${kind === "summary" ? "model" : kind} ${end}`;
}

/**
 * The name within a bar, as far as it has room where one sees it. Where a tear would go through it, it has its bar's ground
 * below it.
 * @param {Chart} chart
 * @param {BarShown} shown
 * @param {number[]} cuts
 */
function named(chart, { from, to, many, bar }, cuts) {
  const right = Math.max(chart.x(to), chart.x(from) + 2);
  const x = Math.min(right, Math.max(chart.x(from), Math.floor(chart.left)));
  const ends = ["failed", "stopped", "unknown", "interrupted"].includes(bar.end) ? 8 : 0;
  const beside = bar.hides === 0 ? "" : ` +${bar.hides}`;
  const room = Math.floor((Math.max(0, right - x - 8 - ends) * 5) / 36);
  const text = fits(many > 1 ? `${many}×` : `${bar.name}${beside}`, room);
  if (!text) return nothing;
  const [top, wide] = [(chart.tops[bar.lane] ?? 0) + STRIP + bar.row * ROW, cells(text) * CHARACTER];
  const name = letters("in", x + 4, top + BAR / 2 + 4, text);
  const isTorn = cuts.some((cut) => chart.x(cut) + TEAR > x && chart.x(cut) - TEAR < x + 4 + wide);
  if (!isTorn) return name;
  return svg`<path class="${kindOf(many, bar)} under" d="M${x + 2} ${top + 2}h${Math.ceil(wide) + 4}v${BAR - 4}h-${Math.ceil(wide) + 4}z"></path>${name}`;
}

/**
 * What tells how a bar ended.
 * @param {string} end
 * @param {number} right
 * @param {number} middle
 */
function sign(end, right, middle) {
  if (end === "failed") return svg`<path class="cross" d="M${right - 9} ${middle - 3}l6 6m0 -6l-6 6"></path>`;
  if (end === "stopped") return svg`<rect class="stop" x=${right - 9} y=${middle - 3} width="6" height="6"></rect>`;
  return end === "unknown" ? letters("sign", right - 10, middle + 4, "?") : nothing;
}

/**
 * A bar's outline: torn where a message cut it, open where it goes on; several that are drawn as one are lower.
 * @param {number} x
 * @param {number} y
 * @param {number} wide
 * @param {string} end
 * @param {number} many
 */
function outline(x, y, wide, end, many) {
  const [right, step] = [x + wide, BAR / 4];
  if (many > 1) return `M${x} ${y + 4}H${right}v${BAR - 8}H${x}z`;
  if (end === "interrupted" && wide > 8) return `M${right} ${y}H${x}v${BAR}H${right}l-4 -${step}l4 -${step}l-4 -${step}l4 -${step}z`;
  return end === "open" ? `M${right} ${y}H${x}v${BAR}H${right}` : `M${x} ${y}H${right}v${BAR}H${x}z`;
}

/**
 * A message: down from its sender when it was sent, then along its receiver until it went in.
 * @param {Chart} chart
 * @param {LetterShown} shown
 * @param {string} entry
 * @param {boolean} moves
 */
function letter(chart, { key, letter, says }, entry, moves) {
  const [from, to, end] = [chart.x(letter.from), chart.x(letter.to), chart.strip(letter.receiver)];
  const begin = letter.sender === null ? end - SIGN : chart.strip(letter.sender);
  const waits = letter.point === null && !letter.is_back;
  const way = `M${from} ${begin}V${end}H${to}${waits ? "m-5 -4l5 4l-5 4" : ""}`;
  const strokes = STROKES[letter.urgency ?? "after_tools"] ?? [];
  return svg`<g class="item letter ${moves && letter.urgency ? "movable" : ""}" data-key=${key} role="button" tabindex=${key === entry ? 0 : -1}
    aria-label=${oneLine(says)}>
    <path class="near" d=${way}></path>
    ${strokes.map((stroke) => svg`<path class=${stroke} d=${way}></path>`)}
    ${letter.sender === null ? nothing : svg`<circle class="from" cx=${from} cy=${begin} r="3"></circle>`}
  </g>`;
}

/**
 * @param {Chart} chart
 * @param {MarkShown} shown
 * @param {string} entry
 */
function mark(chart, { key, x, many, mark, says }, entry) {
  const [place, y] = [chart.x(x), chart.strip(mark.lane)];
  const text = many === 1 ? mark.sign : many < 10 ? String(many) : "+";
  const is = mark.is_point && many === 1;
  return svg`<g class="item" data-key=${key} role="button" tabindex=${key === entry ? 0 : -1} aria-label=${oneLine(says)}>
    <circle class=${is ? "point" : "mark"} cx=${place} cy=${y} r=${SIGN}></circle>
    ${letters(is ? "letter" : "sign", place - 3, y + 4, text)}
  </g>`;
}

/**
 * Where a message is moved to.
 * @param {Chart} chart
 * @param {Ghost} ghost
 */
function moved(chart, { key, x, label }) {
  const letter = chart.picture.letters[Number(key.slice(1))];
  if (!letter) return nothing;
  const [place, end] = [chart.x(x), chart.strip(letter.receiver)];
  const begin = letter.sender === null ? end - SIGN : chart.strip(letter.sender);
  const isLate = place > chart.width - 80;
  return svg`<g class="ghost" aria-hidden="true">
    <path class="ghostly" d="M${place} ${begin}V${end}"></path>
    <circle class="ghostly" cx=${place} cy=${begin} r="5"></circle>
    ${letters("moved", isLate ? place - 8 - cells(label) * CHARACTER : place + 8, begin + 4, label)}
  </g>`;
}

// ── What is done to it ──

/** @param {Chart} chart */
function scrolled(chart) {
  const box = document.getElementById(chart.id);
  if (box && chart.measures(box, namesWide(chart))) chart.draw();
}

/** What of the chart this is about. @param {Event} event */
export function keyAt({ target }) {
  return target instanceof Element ? (target.closest("[data-key]")?.getAttribute("data-key") ?? "") : "";
}

/**
 * @param {Chart} chart
 * @param {Event} event
 */
function focused(chart, event) {
  const key = keyAt(event);
  if (!key || key === chart.at) return;
  chart.at = key;
  chart.draw();
}

/**
 * @param {Chart} chart
 * @param {Event} event
 */
function pointed(chart, event) {
  const key = keyAt(event);
  if (key === chart.over) return;
  chart.over = key;
  chart.draw();
}

/**
 * Where nothing stands a click is about the moment.
 * @param {Chart} chart
 * @param {Does} does
 * @param {MouseEvent} event
 */
function clicked(chart, does, event) {
  const place = event.target instanceof Element ? event.target.closest(".instants, .body") : null;
  if (!does.goes || !place || keyAt(event)) return;
  does.goes(chart.unit(event.clientX - place.getBoundingClientRect().left));
}

/** @param {Chart} chart */
function leaves(chart) {
  chart.over = "";
  chart.draw();
}

/** @type {WeakMap<Chart, {handleEvent: (event: WheelEvent) => void, passive: boolean}>} one for each: it is not listened anew with each frame */
const WHEELS = new WeakMap();

/** Ctrl and the wheel look nearer; the place below the pointer stays. @param {Chart} chart */
function wheel(chart) {
  const known = WHEELS.get(chart);
  if (known) return known;
  /** @param {WheelEvent} event */
  const handleEvent = (event) => {
    const box = document.getElementById(chart.id);
    if (!event.ctrlKey || !box) return;
    event.preventDefault();
    const about = event.clientX - box.getBoundingClientRect().left - box.clientLeft - namesWide(chart);
    chart.zoom(Math.exp(-Math.max(-100, Math.min(100, event.deltaY)) / 200), Math.max(0, about));
  };
  const listens = { handleEvent, passive: false };
  WHEELS.set(chart, listens);
  return listens;
}

/** What can only be done once it is drawn: it is scrolled, and has the focus. @param {Chart} chart */
export function settles(chart) {
  const box = document.getElementById(chart.id);
  if (!box) return;
  if (chart.wants !== null) box.scrollLeft = chart.wants;
  else if (chart.follows) box.scrollLeft = box.scrollWidth;
  if (chart.wantsTop !== null) box.scrollTop = chart.wantsTop;
  [chart.wants, chart.wantsTop] = [null, null];
  const before = JSON.stringify(chart.window());
  chart.measures(box, namesWide(chart));
  if (JSON.stringify(chart.window()) !== before) chart.draw();
  if (!chart.takesFocus) return;
  chart.takesFocus = false;
  const item = box.querySelector(`[data-key="${chart.at}"]`);
  if (item instanceof SVGElement) item.focus({ preventScroll: true });
}
