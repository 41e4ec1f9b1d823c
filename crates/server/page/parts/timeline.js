// The timeline of the session: who did what when, and what would have been had a message come at another time.

import { html, nothing, svg } from "../vendor/lit-html/lit-html.js";
import { figures, oneLine } from "../words.js";
import { micros } from "../fold.js";
import { goesTo, played } from "../playback.js";
import { isWorking } from "../watched.js";
import { canPlay, movable, movesBy, plays, pulls, takes } from "../whatif.js";
import { chart, keyAt, settles } from "./chart.js";

/**
 * @import { Page } from "../page.js"
 * @import { Chart } from "../chart.js"
 * @import { Played } from "../whatif.js"
 */

/** @param {Page} page */
export function timeline(page) {
  const { timelines } = page;
  return html`<section class="timeline" aria-label="Timeline">
    ${tools(page)}
    ${timelines.played ? both(page, timelines.played) : alone(page)}
    ${details(page)}
  </section>`;
}

/** What is to be done once it is drawn. @param {Page} page */
export function timelineSettles(page) {
  if (page.tab === "timeline") page.timelines.shown.forEach(settles);
}

/** @param {Page} page */
function alone(page) {
  const { watched, timelines } = page;
  if (!watched) return nothing;
  const works = page.isLive && Object.values(watched.fold.view.agents).some(isWorking);
  // Of what is played back all of it is drawn, so that one can go anywhere in it.
  timelines.chart.look(watched.whole, works ? Math.round(watched.now * 1e6) : 0);
  if (timelines.chart.picture.lanes.length === 0) {
    return html`<p class="quiet empty">${watched.caughtUp ? "Nothing has happened yet." : "Loading …"}</p>`;
  }
  return html`${leftOut(page)}${drawn(page, timelines.chart, `Timeline of the ${watched.kind}`)}`;
}

/**
 * @param {Page} page
 * @param {Played} played
 */
function both(page, { before, after, changes, calls, files, tokens }) {
  const { timelines } = page;
  timelines.before.look(before, 0);
  timelines.after.look(after, 0);
  return html`<h3>As it was</h3>
    ${drawn(page, timelines.before, "Timeline as it was")}
    <h3>With the message ${timelines.words}</h3>
    ${drawn(page, timelines.after, "Timeline with the message moved")}
    <ul class="changes" aria-label="What would have been otherwise" tabindex="0">
      ${changes.map((change) => html`<li>${oneLine(change)}</li>`)}
      ${changes.length === 0 ? html`<li>No call and no message would have come out otherwise.</li>` : nothing}
      <li>${spared(calls, tokens)}</li>
      ${files.map((file) => html`<li>Not written: <code>${oneLine(file)}</code></li>`)}
    </ul>`;
}

/**
 * @param {number} calls
 * @param {number} tokens
 */
function spared(calls, tokens) {
  const many = (/** @type {number} */ number, /** @type {string} */ one) => `${figures.count(Math.abs(number))} ${one}${Math.abs(number) === 1 ? "" : "s"}`;
  const word = (/** @type {number} */ number) => (number < 0 ? "more" : "spared");
  if (calls === 0 && tokens === 0) return "As many calls, and as many tokens";
  return `${many(calls, "call")} ${word(calls)}, ${many(tokens, "token")} ${word(tokens)}`;
}

/**
 * @param {Page} page
 * @param {Chart} one
 * @param {string} label
 */
function drawn(page, one, label) {
  const { moving } = page.timelines;
  const does = {
    key: (/** @type {KeyboardEvent} */ event) => pressed(page, one, event),
    grabs: (/** @type {PointerEvent} */ event) => pulls(page, one, keyAt(event), event),
  };
  const here = one.id === "chart" ? shownOf(page, one) : null;
  const goes = here === null ? undefined : (/** @type {number} */ x) => goesThere(page, one, x);
  return chart(one, label, { ...does, goes }, moving && one.id !== "chart-after" ? ghost(page, one, moving.key) : null, canPlay(page), here);
}

/**
 * How far what is played back is shown, in units; nothing: it isn't.
 * @param {Page} page
 * @param {Chart} one
 */
function shownOf(page, one) {
  const player = played(page);
  if (!player || !one.axis) return null;
  const event = player.events[player.shown - 1];
  const x = event ? one.axis.upTo({ order: event.seq * 2, at: micros(event.t) }) : 0;
  one.keeps(x);
  return x;
}

/**
 * @param {Page} page
 * @param {Chart} one
 * @param {number} x in units
 */
function goesThere(page, one, x) {
  // The click that ends a pull is about the message.
  if (one.axis && !page.timelines.moving && !page.timelines.isAsking) goesTo(page, one.axis.at(x));
}

/**
 * Where the message that is moved stands now.
 * @param {Page} page
 * @param {Chart} one
 * @param {string} key
 */
function ghost({ timelines }, one, key) {
  const letter = one.picture.letters[Number(key.slice(1))];
  if (!letter || !one.axis) return null;
  const x = one.axis.xAt(one.axis.at(letter.from) + timelines.shift * 1000);
  return { key, x, label: timelines.words };
}

/**
 * @param {Page} page
 * @param {Chart} one
 * @param {KeyboardEvent} event
 */
function pressed(page, one, event) {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  if (!(page.timelines.moving ? movesBy(page, event) : goes(page, one, event.key))) return;
  event.preventDefault();
  // Nothing else takes it: neither the composer nor what Escape stops.
  event.stopPropagation();
}

/**
 * @param {Page} page
 * @param {Chart} one
 * @param {string} key
 */
function goes(page, one, key) {
  switch (key) {
    case "ArrowLeft":
    case "ArrowRight":
    case "ArrowUp":
    case "ArrowDown":
    case "Home":
    case "End":
      one.goes(key);
      return true;
    case "+":
    case "=":
      one.nearer();
      return true;
    case "-":
      one.farther();
      return true;
    case "0":
      one.whole();
      return true;
    case "m":
      return takes(page, one, one.at);
    case "Enter":
      return opens(page, one);
    case "Escape":
      if (page.timelines.played) page.timelines.leaves();
      return page.timelines.played !== null;
    default:
      return false;
  }
}

/** Whose it is that one is at. @param {Page} page @param {Chart} one */
function whose(page, one) {
  const name = one.picture.lanes[one.stop(one.at)?.lane ?? -1]?.name ?? "";
  return page.view?.agents[name] ? name : "";
}

/** Shows the conversation of whom one is at. @param {Page} page @param {Chart} one */
function opens(page, one) {
  const name = whose(page, one);
  if (!name) return false;
  page.choose(name);
  page.show("talk");
  requestAnimationFrame(() => document.getElementById("log")?.focus());
  return true;
}

/** @param {Page} page */
function tools(page) {
  const all = page.timelines.shown;
  const each = (/** @type {(one: Chart) => void} */ act) => () => all.forEach(act);
  return html`<div class="zoom" role="toolbar" aria-label="How near">
    <button class="small" aria-label="Farther" title="Farther (-)" @click=${each((one) => one.farther())}>−</button>
    <button class="small" aria-label="Nearer" title="Nearer (+)" @click=${each((one) => one.nearer())}>+</button>
    <button class="small" title="All of it (0)" @click=${each((one) => one.whole())}>All</button>
    ${page.timelines.played
      ? html`<button class="small" @click=${() => page.timelines.leaves()}>Back to the ${page.watched?.kind}</button>`
      : played(page) || all.some((one) => one.follows) ? nothing : html`<button class="small" @click=${() => follow(page)}>To the end →</button>`}
    <details class="menu">
      <summary aria-label="What the shapes mean">?</summary>
      <div class="items" role="group" aria-label="Shapes" tabindex="0">${legend(page)}</div>
    </details>
  </div>`;
}

/** @param {Page} page */
function follow(page) {
  page.timelines.chart.follows = true;
  page.draw();
}

/** What isn't drawn. @param {Page} page */
function leftOut({ timelines, watched }) {
  const { left_out, beyond } = timelines.chart.picture;
  const parts = [];
  if ((watched?.from ?? 0) > 0) parts.push("what was before the newest 20,000 events");
  if (left_out > 0) parts.push(left_out === 1 ? "1 call before these" : `${left_out} calls before these`);
  if (beyond > 0) parts.push(beyond === 1 ? "1 more agent" : `${beyond} more agents`);
  return parts.length === 0 ? nothing : html`<p class="quiet line">Not drawn: ${parts.join(", ")}.</p>`;
}

/** What one points at or is at says, and what can be done with it. @param {Page} page */
function details(page) {
  const { timelines } = page;
  const [key, one] = about(timelines.shown);
  const says = one?.stop(key)?.says ?? "";
  const name = one ? whose(page, one) : "";
  const isAt = one !== undefined && key === one.at;
  return html`<div class="details">
    <p class="says" id="timeline-says">${timelines.moving ? moving(page) : says ? oneLine(says) : html`<span class="hint">${keys(page)}</span><span class="narrow">Tap what you want to read about.</span>`}</p>
    ${timelines.error ? html`<p class="bad">${timelines.error}</p>` : nothing}
    <div class="acts">
      ${timelines.moving
        ? html`<button class="small" ?disabled=${timelines.isAsking} @click=${() => plays(page)}>Play</button>
            <button class="small" @click=${() => timelines.leaves()}>Leave</button>`
        : html`${isAt && one && movable(page, one, key) ? html`<button class="small" @click=${() => takes(page, one, key)}>Move it</button>` : nothing}
            ${isAt && one && says && one.id === "chart" && played(page) ? html`<button class="small" @click=${() => goesThere(page, one, one.stop(key)?.x ?? 0)}>Go to this moment</button>` : nothing}
            ${isAt && name && one ? html`<button class="small" @click=${() => opens(page, one)}>Open ${name}</button>` : nothing}`}
    </div>
    <p class="unseen" id="timeline-keys">${keys(page)}</p>
  </div>`;
}

/**
 * What is told of: what one points at, else what one is at.
 * @param {Chart[]} all
 * @returns {[string, Chart | undefined]}
 */
function about(all) {
  const over = all.find((one) => one.stop(one.over));
  if (over) return [over.over, over];
  const at = all.find((one) => one.stop(one.at));
  return [at?.at ?? "", at];
}

/** @param {Page} page */
function keys(page) {
  const goes = played(page) ? "m moves a message. A click where nothing stands goes to that moment." : "m moves a message of a session that rests.";
  return `Arrow keys go along time and from agent to agent, Enter opens the conversation, + and - look nearer and farther, ${goes}`;
}

/** @param {Page} page */
function moving({ timelines }) {
  const { isAsking, words, moving } = timelines;
  const by = timelines.shift === 0 ? "Move it with the left and right keys, or pull it" : `Moved by ${words}`;
  return html`${isAsking ? "Playing it again …" : by}: ${oneLine(moving?.says ?? "")}`;
}

/** @type {[string, string, string][]} what the shapes mean: a class, an outline, a word */
const SHAPES = [
  ["model done", "M1 2H33v16H1z", "model"],
  ["tool done", "M1 2H33v16H1z", "tool"],
  ["wait done", "M1 2H33v16H1z", "waits"],
  ["tool open", "M33 2H1v16H33", "goes on"],
  ["tool failed", "M1 2H33v16H1zM24 7l6 6m0 -6l-6 6", "failed"],
  ["tool interrupted", "M33 2H1v16H33l-4 -4l4 -4l-4 -4l4 -4z", "interrupted"],
  ["tool stopped", "M1 2H33v16H1zM24 7h6v6h-6z", "stopped"],
  ["tool unknown", "M1 2H33v16H1z", "unknown"],
  ["tool skipped", "M1 2H33v16H1zM6 18L16 2M14 18L24 2M22 18L32 2", "skipped, never ran"],
  ["tool many", "M1 6H33v8H1z", "several, too near to draw"],
  ["way later", "M1 10H33", "later"],
  ["way", "M1 10H33", "soft"],
  ["way sooner", "M1 10H33", "sooner"],
  ["way urgent", "M1 7H33M1 13H33", "now"],
];

/** @param {Page} page */
function legend(page) {
  return html`<ul class="legend">
    ${SHAPES.map(([of, way, word]) => html`<li><svg width="36" height="20" aria-hidden="true">${svg`<path class=${of} d=${way}></path>`}</svg> ${word}</li>`)}
    <li><span class="letters">A B C D › ~ W</span> went in, at this point</li>
    <li><span class="letters">⊘</span> came back</li>
    <li><span class="letters">■ ✓ □ ✕ ▲</span> stop asked; run finished, stopped, failed, at a limit</li>
    <li><span class="letters">⫽</span> time is left out</li>
    ${played(page) ? html`<li><span class="letters">▾</span> what is shown; what comes later is pale</li>` : nothing}
  </ul>`;
}
