// What a person does to mail that waits, to agents and to sessions.

import { Refused } from "./api.js";
import { readPatch } from "./patch.js";
import { SOONER, mergeWords, newId, why } from "./ways.js";

/** @import {Page, Dialog} from "./page.js" */

/**
 * Starts an agent again. A reply that was empty, or too long, is one all the same: what came before it is answered, so
 * a run that failed with one is tried again by saying so.
 * @param {Page} page
 * @param {string} agent
 */
export async function resume(page, agent) {
  const hasFailed = page.view?.agents[agent]?.outcome === "failed";
  await page.act(async () => {
    const { started, note } = await page.post(`agents/${encodeURIComponent(agent)}/resume`);
    if (!started && hasFailed) return page.sendMessage(agent, { id: newId(), text: "Try again.", mode: "soft" });
    if (!started) page.refused.set(agent, note);
    page.say(started ? `${agent} goes on` : note);
  });
}

/** @param {Page} page */
export async function takeUp(page) {
  const watched = page.watched;
  if (!watched) return;
  await page.act(async () => {
    await page.post("resume", { answers: true });
    page.open(await page.server().get(`sessions/${watched.id}`));
    page.say("Resumed");
  });
}

/** @param {Page} page */
export async function loadDiff(page) {
  const name = page.agent;
  const known = page.diffs.get(name);
  page.diffs.set(name, { ...known, busy: true });
  try {
    const found = await page.server().get(page.path(`agents/${encodeURIComponent(name)}/diff`));
    page.diffs.set(name, { ...found, read: readPatch(found.patch) });
  } catch (error) {
    page.diffs.set(name, { error: why(error) });
  }
  page.draw();
}

/** @param {Page} page */
export async function merge(page) {
  const name = page.agent;
  await page.act(async () => {
    const merged = await page.post(`agents/${encodeURIComponent(name)}/merge`);
    const words = mergeWords(merged);
    void page.watched?.list();
    await loadDiff(page);
    page.diffs.set(name, { ...page.diffs.get(name), merge: words });
    page.say(words);
  });
}

/**
 * @param {Page} page
 * @param {Dialog} dialog
 */
export async function openDialog(page, dialog) {
  page.dialog = dialog;
  page.draw();
  try {
    if (dialog.kind === "figures") dialog.figures = await page.server().get("stats");
    if (dialog.kind === "sessions") dialog.sessions = (await page.server().get("sessions")).sessions;
  } catch (error) {
    dialog.error = why(error);
  }
  page.draw();
}

/** @param {Page} page */
export function closeDialog(page) {
  page.dialog = null;
  page.draw();
}

/**
 * What a dialog asks of the server; it closes once that is done.
 * @param {Page} page
 * @param {string} path below the session, or with a `/` before it below `/v1`
 * @param {object} body
 * @param {(answer: any) => void} done
 */
export async function submit(page, path, body, done) {
  const dialog = page.dialog;
  if (!dialog || dialog.busy) return;
  dialog.busy = true;
  dialog.error = undefined;
  page.draw();
  try {
    const answer = path.startsWith("/") ? await page.server().post(path.slice(1), body) : await page.post(path, body);
    closeDialog(page);
    done(answer);
  } catch (error) {
    dialog.busy = false;
    dialog.error = why(error);
    page.say(dialog.error);
  }
}

/**
 * @param {Page} page
 * @param {any} message
 */
export function withdraw(page, message) {
  return page.act(async () => {
    await page.post(`messages/${encodeURIComponent(message.id)}/withdraw`);
    page.say("Taken back");
  });
}

/**
 * @param {Page} page
 * @param {any} message
 */
export function sooner(page, message) {
  const urgency = SOONER.get(message.urgency);
  if (urgency) void replace(page, message, { text: message.text, urgency }, "Sent sooner");
}

/** Sends what was edited in the place of the message, if that is still unread. @param {Page} page */
export function edited(page) {
  const edit = page.editing;
  const message = page.chosen?.queue.find((/** @type {any} */ known) => known.id === edit?.id);
  if (!edit || edit.text.trim() === "") return;
  page.editing = null;
  // What was edited too late is not lost: it is a draft.
  const back = (/** @type {unknown} */ error) => page.cameBack(edit.agent, { id: newId(), text: edit.text, mode: page.mode }, error);
  if (!message) return back(new Refused(409, "too_late", ""));
  void replace(page, message, { text: edit.text, urgency: message.urgency }, "Changed", back);
}

/**
 * @param {Page} page
 * @param {any} message
 * @param {{text: string, urgency: string}} by
 * @param {string} words
 * @param {(error: unknown) => void} [back]
 */
function replace(page, message, by, words, back) {
  const body = { ...by, id: newId(), supersedes: message.id, if_queued: true };
  return page.act(async () => {
    await page.post(`agents/${encodeURIComponent(page.agent)}/messages`, body);
    page.say(words);
  }, back);
}
