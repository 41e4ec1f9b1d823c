// Which key does what on this page. A person may give an action another key; this browser keeps it, and no server says it.

import { keep, kept } from "./kept.js";

/** @typedef {"send" | "newline" | "stop"} Action */

/** @type {{action: Action, key: string, does: string}[]} */
export const ACTIONS = [
  { action: "send", key: "Enter", does: "send as the mode says" },
  { action: "newline", key: "Shift+Enter", does: "new line" },
  { action: "stop", key: "Escape", does: "close what is open; else stop the agent" },
];

/** Keys that only go with others. */
const HELD = ["Control", "Shift", "Alt", "Meta", "AltGraph", "CapsLock", "Dead", "Process", "Unidentified"];

/** What writing, reading and going about with the keyboard need. */
const OTHERS = ["Tab", "Backspace", "Delete", "ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home", "End", "PageUp", "PageDown"];

/**
 * A key with what is held beside it, as people write it; nothing while only such keys are down.
 * @param {KeyboardEvent} event
 */
export function written({ key, ctrlKey, altKey, shiftKey, metaKey }) {
  if (HELD.includes(key)) return "";
  const isSign = [...key].length === 1;
  // A sign that is typed says by itself whether Shift was held.
  const isShifted = shiftKey && (!isSign || ctrlKey || altKey || metaKey);
  const held = [ctrlKey && "Ctrl", altKey && "Alt", metaKey && "Meta", isShifted && "Shift"].filter(Boolean);
  return [...held, key === " " ? "Space" : isSign ? key.toUpperCase() : key].join("+");
}

export class Keys {
  /** @type {Map<Action, string>} those that somebody chose */
  #chosen = new Map();

  constructor() {
    this.read(kept("keys"));
  }

  /** Takes what was kept, as far as it can be. @param {string | null} json */
  read(json) {
    this.#chosen.clear();
    /** @type {any} */
    let said;
    try {
      said = JSON.parse(json ?? "{}");
    } catch {
      return;
    }
    const own = ACTIONS.filter(({ action }) => typeof said?.[action] === "string");
    for (const { action } of own) this.#chosen.set(action, said[action]);
    // Something else may have written it: what can't be is nothing.
    const isSound = own.every(({ action }) => !this.refusal(action, said[action]));
    if (!isSound) this.#chosen.clear();
  }

  /** @param {Action} action */
  of(action) {
    return this.#chosen.get(action) ?? ACTIONS.find((row) => row.action === action)?.key ?? "";
  }

  /**
   * Whether this is the action's key.
   * @param {Action} action
   * @param {KeyboardEvent} event
   */
  is(action, event) {
    return written(event) === this.of(action);
  }

  get areOwn() {
    return this.#chosen.size === 0;
  }

  /**
   * Why an action can't have a key; nothing: it can.
   * @param {Action} action
   * @param {string} key
   */
  refusal(action, key) {
    const other = ACTIONS.find((row) => row.action !== action && this.of(row.action) === key);
    if (other) return `${key} is for “${other.does}” already: give that another key first`;
    const parts = key.split("+");
    const last = parts.at(-1) ?? "";
    const isPlain = !parts.some((part) => ["Ctrl", "Alt", "Meta"].includes(part));
    if (isPlain && ([...last].length <= 1 || last === "Space")) return `${key} is typed into messages: hold Ctrl or Alt with it`;
    if (OTHERS.includes(last)) return `${key} moves and deletes: choose another key`;
    return "";
  }

  /**
   * Gives an action this key in place of its own.
   * @param {Action} action
   * @param {string} key
   * @returns {string} why it can't have it
   */
  choose(action, key) {
    const why = this.refusal(action, key);
    if (why) return why;
    this.#chosen.set(action, key);
    keep("keys", JSON.stringify(Object.fromEntries(this.#chosen)));
    return "";
  }

  /** All have their own again. */
  reset() {
    this.#chosen.clear();
    keep("keys", null);
  }
}
