// The page begins here: the one loop that folds what has come and draws, and what the whole page listens to.

import { render } from "./vendor/lit-html/lit-html.js";
import { kept, onKept } from "./kept.js";
import { Page } from "./page.js";
import { isWorking } from "./watched.js";
import { leaveNote } from "./notes.js";
import { keyPlays } from "./playback.js";
import { leave } from "./parts/queue.js";
import { shell } from "./parts/shell.js";
import { timelineSettles } from "./parts/timeline.js";

/** So often a page that nobody sees takes in what has come: it stays attached. */
const HIDDEN_MS = 250;

/** So near its end a conversation follows what is said, in pixels. */
const NEAR = 48;

/** So often the server is asked for what events don't say, while anything works. */
const LIST_MS = 3000;

const root = /** @type {HTMLElement} */ (document.getElementById("app"));
const said = /** @type {HTMLElement} */ (document.getElementById("said"));
const page = new Page(draw);
let isDue = false;
/** @type {unknown} the session whose composer had the focus first */
let focused = null;
/** How long the last frame took to draw, in milliseconds. */
let drawnIn = 0;
/** How high the conversation was when it was last drawn, in pixels. */
let height = 0;

/** Asks for a frame. A browser gives none to a page that nobody sees. */
function draw() {
  if (isDue) return;
  isDue = true;
  if (document.hidden) setTimeout(frame, HIDDEN_MS);
  else requestAnimationFrame(frame);
}

function frame() {
  // A page may be hidden, or shown, between the request for a frame and the frame.
  if (!isDue) return;
  isDue = false;
  const isMore = page.watched?.takeIn(drawnIn) ?? false;
  chooseFirst();
  page.noticeLine();
  page.inbox.look();
  if (!document.hidden) show();
  if (said.textContent !== page.said) said.textContent = page.said;
  if (isMore) draw();
}

/** Somebody is looked at as soon as there is anybody. */
function chooseFirst() {
  if (!page.view || page.agent) return;
  const lead = Object.entries(page.view.agents).find(([, agent]) => agent.role === "lead");
  page.agent = lead?.[0] ?? Object.keys(page.view.agents)[0] ?? [...(page.watched?.listed.keys() ?? [])][0] ?? "";
}

/** One types at once in a session that was just opened. */
function focusFirst() {
  if (focused === page.watched || !page.watched || !document.getElementById("draft")) return;
  focused = page.watched;
  const isFree = document.activeElement === document.body || document.activeElement === null;
  if (isFree) page.typeOn();
}

function show() {
  const began = performance.now();
  document.documentElement.dataset.theme = page.theme;
  render(shell(page), root);
  openDialog();
  focusFirst();
  const log = document.getElementById("log");
  if (log && page.follows) log.scrollTop = log.scrollHeight;
  height = log?.clientHeight ?? 0;
  timelineSettles(page);
  drawnIn = performance.now() - began;
}

function openDialog() {
  const dialog = document.querySelector("dialog");
  if (dialog && !dialog.open) dialog.showModal();
}

/** @param {Event} event */
function scrolled({ target }) {
  if (!(target instanceof HTMLElement) || target.id !== "log") return;
  // Where the window has just become smaller nobody has scrolled away from the end.
  if (target.clientHeight !== height) return draw();
  const follows = target.scrollHeight - target.scrollTop - target.clientHeight < NEAR && !page.until.has(page.agent);
  if (follows === page.follows) return;
  page.follows = follows;
  draw();
}

/** @param {KeyboardEvent} event */
function pressed(event) {
  if (event.isComposing || event.keyCode === 229 || page.dialog) return;
  if (page.keys.is("stop", event)) escaped(event);
  else if (keyPlays(page, event)) event.preventDefault();
  // What is typed before the form of a comment is drawn is nobody's: in the message it would be out of place.
  else if (isTyped(event)) document.getElementById(page.noting ? "note" : "draft")?.focus();
}

/**
 * Whether this is a character that nothing else takes: what one types goes to the composer, wherever the focus is.
 * @param {KeyboardEvent} event
 */
function isTyped({ key, target, ctrlKey, altKey, metaKey }) {
  const isTaken = key === " " || (target instanceof Element && target.matches("input, textarea, select"));
  return [...key].length === 1 && !isTaken && !ctrlKey && !altKey && !metaKey;
}

/** Escape, or the key in its place, closes what is open, and stops once nothing is. @param {KeyboardEvent} event */
function escaped(event) {
  const menu = document.querySelector("details.menu[open]");
  if (menu instanceof HTMLDetailsElement) menu.open = false;
  else if (document.activeElement?.closest(".ask")) page.focusComposer();
  else if (page.editing) leave(page);
  else if (page.noting) leaveNote(page);
  else if (page.isDrawerOpen) page.isDrawerOpen = false;
  else if (page.phase === "watching" && isWorking(page.chosen)) page.stop();
  else return;
  event.preventDefault();
  draw();
}

/** A menu closes when one clicks beside it. @param {Event} event */
function clicked({ target }) {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (menu instanceof HTMLDetailsElement && target instanceof Node && !menu.contains(target)) menu.open = false;
  }
}

/** What the address asks for: a code to sign in with, or a session. */
function begin() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const code = asked.get("code");
  const token = kept("token");
  if (code) {
    asked.delete("code");
    // A code is good once; it stays neither in the address nor in the history.
    history.replaceState(null, "", asked.size > 0 ? `#${asked}` : location.pathname);
    void page.signIn(code);
  } else if (page.watched && page.api) {
    if (asked.get(page.watched.kind) !== page.watched.id) void page.openAny();
  } else if (token) page.signedIn(token);
  else page.signOut("");
}

/** Clocks go on, and what events don't say is asked for. */
function second() {
  const { watched } = page;
  // In what is over no clock goes on.
  if (!watched || (watched.playback && watched.line !== "offline")) return;
  const works = Object.values(watched.fold.view.agents).some(isWorking);
  const waits = (page.chosen?.queue.length ?? 0) > 0;
  if (!document.hidden && (works || waits || watched.line === "offline")) draw();
  const isOld = Date.now() - watched.askedAt > LIST_MS;
  if (!document.hidden && watched.line === "live" && works && isOld) void watched.list();
  page.saveDrafts();
}

document.addEventListener("scroll", scrolled, { capture: true, passive: true });
document.addEventListener("keydown", pressed);
document.addEventListener("click", clicked);
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) page.watched?.wake();
  // The frame that was asked for may not come any more.
  isDue = false;
  draw();
});
// Whoever looks is told nothing.
for (const turned of ["focus", "blur"]) addEventListener(turned, draw);
// A keyboard that comes up must not hide what was said last.
addEventListener("resize", draw);
addEventListener("hashchange", begin);
addEventListener("pagehide", () => page.leave());
onKept((name, value) => {
  if (name === "token" && value && value !== page.api?.token) page.signedIn(value);
  if (name === "theme") page.setTheme(value ?? "auto");
  if (name === "keys") page.keys.read(value);
  if (name === "keys") draw();
});
setInterval(second, 1000);
root.replaceChildren();
begin();
draw();
