// What a person says to lines of a diff before it is sent: a list for each agent, kept as drafts of messages are.

import { COMMENTS_MAX, commentOn, full, isBeside, messageOf, tooLongComment, whereabouts } from "./review.js";
import { newId } from "./ways.js";

/**
 * @import {Page} from "./page.js"
 * @import {Comment} from "./review.js"
 * @import {Place} from "./patch.js"
 */

/**
 * The comments on an agent's diff that are not sent.
 * @param {Page} page
 * @param {string} agent
 * @returns {Comment[]}
 */
export function notes(page, agent = page.agent) {
  try {
    const all = JSON.parse(page.comments.of(agent).text || "[]");
    return Array.isArray(all) ? all.filter(isComment) : [];
  } catch {
    // Another program has written into what this browser keeps.
    return [];
  }
}

/** @param {any} one */
function isComment(one) {
  const texts = [one?.file, one?.code, one?.text];
  return texts.every((text) => typeof text === "string") && Number.isInteger(one.line) && ["old", "new"].includes(one.side);
}

/**
 * @param {Page} page
 * @param {Comment[]} all
 * @param {string} [agent]
 * @param {string} [id]
 */
function keepNotes(page, all, agent = page.agent, id) {
  page.comments.set(agent, all.length === 0 ? "" : JSON.stringify(all), id);
  page.refused.delete(agent);
  page.draw();
}

/** Those that say something. @param {Comment[]} all */
export function written(all) {
  return all.filter(({ text }) => text.trim() !== "");
}

/**
 * Begins a comment on a line, or goes on with it.
 * @param {Page} page
 * @param {Place} place
 */
export function note(page, place) {
  const all = written(notes(page));
  const isNew = !all.some((one) => isBeside(one, place));
  if (isNew && all.length >= COMMENTS_MAX) return refuse(page, full());
  page.noting = place;
  keepNotes(page, isNew ? [...all, commentOn(place, "")] : all);
  requestAnimationFrame(() => document.getElementById("note")?.focus());
}

/**
 * @param {Page} page
 * @param {string} words
 */
function refuse(page, words) {
  page.refused.set(page.agent, words);
  page.say(words);
}

/**
 * @param {Page} page
 * @param {Place} place
 * @param {string} text
 */
export function noted(page, place, text) {
  keepNotes(page, notes(page).map((one) => (isBeside(one, place) ? { ...one, text } : one)));
}

/**
 * What doesn't fit into a comment is not taken, and that is said.
 * @param {Page} page
 * @param {InputEvent} event
 */
export function fitsNote(page, event) {
  const { value, selectionStart, selectionEnd } = /** @type {HTMLTextAreaElement} */ (event.target);
  const added = event.data ?? event.dataTransfer?.getData("text/plain") ?? "";
  const words = tooLongComment(value.slice(0, selectionStart) + added + value.slice(selectionEnd));
  if (added === "" || !words) return;
  event.preventDefault();
  refuse(page, words);
}

/** The comment that is written stays below its line; one that says nothing goes. @param {Page} page */
export function leaveNote(page) {
  const place = page.noting;
  page.noting = null;
  keepNotes(page, written(notes(page)));
  // Whoever went elsewhere meanwhile is not called back.
  const isFree = () => document.activeElement === document.body || document.activeElement?.id === "note";
  if (place) requestAnimationFrame(() => isFree() && buttonOf(place)?.focus());
}

/**
 * The button at its line.
 * @param {Place} place
 * @returns {HTMLElement | undefined}
 */
function buttonOf(place) {
  for (const one of document.querySelectorAll(".diff .remark")) {
    if (one instanceof HTMLElement && one.getAttribute("aria-label") === label(place)) return one;
  }
  return undefined;
}

/** What a comment's button and text are called. @param {Place} place */
export function label(place) {
  return `Comment on ${whereabouts(place)}`;
}

/**
 * @param {Page} page
 * @param {Place} place
 */
export function dropNote(page, place) {
  page.noting = null;
  keepNotes(page, notes(page).filter((one) => !isBeside(one, place)));
}

/** Sends them as one message, as the mode says. @param {Page} page */
export function sendNotes(page) {
  const { agent } = page;
  const all = written(notes(page));
  if (all.length === 0 || !page.isLive) return;
  const comments = all.slice(0, COMMENTS_MAX).map((one) => commentOn(one, one.text));
  const message = { id: page.comments.of(agent).id ?? newId(), text: messageOf(comments), mode: page.mode, comments };
  page.noting = null;
  page.comments.sends(agent, JSON.stringify(comments), message.id);
  if (all.length > COMMENTS_MAX) keepNotes(page, all.slice(COMMENTS_MAX));
  page.sendMessage(agent, message);
}

/**
 * What was not accepted is not sent; what was written meanwhile stays as it is.
 * @param {Page} page
 * @param {string} agent
 * @param {Comment[]} comments
 * @param {string} id
 */
export function backAgain(page, agent, comments, id) {
  const since = notes(page, agent);
  const back = comments.filter((one) => !since.some((other) => isBeside(one, other)));
  keepNotes(page, [...back, ...since], agent, since.length === 0 ? id : undefined);
}
