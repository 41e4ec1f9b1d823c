// What this browser keeps between two visits: the token, drafts, and a person's choices. All tabs of this
// address share it. Where nothing can be kept (a private window, a full disk), the page works without.

const PREFIX = "midturn.";

/** So many drafts are kept; the ones that were changed last. */
const DRAFTS_MAX = 64;

/**
 * @param {string} name
 * @returns {string | null}
 */
export function kept(name) {
  try {
    return localStorage.getItem(PREFIX + name);
  } catch {
    return null;
  }
}

/**
 * @param {string} name
 * @param {string | null} value `null` forgets it
 * @returns {boolean} whether it is kept
 */
export function keep(name, value) {
  try {
    if (value === null) localStorage.removeItem(PREFIX + name);
    else localStorage.setItem(PREFIX + name, value);
    return true;
  } catch {
    return false;
  }
}

/**
 * Tells of what another tab has kept.
 * @param {(name: string, value: string | null) => void} told
 */
export function onKept(told) {
  addEventListener("storage", ({ key, newValue }) => {
    if (key?.startsWith(PREFIX)) told(key.slice(PREFIX.length), newValue);
  });
}

/**
 * A draft, and the id under which it was sent and not answered: sent again it is the same message.
 * @typedef {{text: string, id?: string, at: number}} Draft
 */

/** The drafts of one session, of messages or of comments, one for each agent; no event, error or refusal overwrites them. */
export class Drafts {
  /** @type {Map<string, Draft>} */
  #drafts = new Map();
  #changed = new Set();
  /** @type {Map<string, number>} how many messages to each agent are on their way */
  #held = new Map();

  /**
   * @param {string} session
   * @param {"draft" | "comments"} kind
   */
  constructor(session, kind = "draft") {
    this.session = session;
    this.kind = kind;
  }

  /** @param {string} agent */
  of(agent) {
    let draft = this.#drafts.get(agent);
    if (!draft) {
      draft = read(kept(this.#name(agent)));
      this.#drafts.set(agent, draft);
    }
    return draft;
  }

  /**
   * @param {string} agent
   * @param {string} text
   * @param {string} [id]
   */
  set(agent, text, id) {
    this.#drafts.set(agent, { text, id, at: Date.now() });
    this.#changed.add(agent);
  }

  /**
   * What is sent stays written down until it has arrived, or something else was typed.
   * @param {string} agent
   * @param {string} text
   * @param {string} id
   */
  sends(agent, text, id) {
    this.set(agent, text, id);
    this.save();
    this.set(agent, "");
    this.#held.set(agent, (this.#held.get(agent) ?? 0) + 1);
  }

  /** It has arrived, or came back. @param {string} agent */
  arrived(agent) {
    this.#held.set(agent, Math.max(0, (this.#held.get(agent) ?? 0) - 1));
  }

  /** Writes down what has changed. */
  save() {
    const due = [...this.#changed].filter((agent) => !(this.#held.get(agent) && this.of(agent).text === ""));
    for (const agent of due) {
      const draft = this.of(agent);
      keep(this.#name(agent), draft.text === "" ? null : JSON.stringify(draft));
      this.#changed.delete(agent);
    }
    if (due.length > 0) forgetOld(this.kind);
  }

  /** @param {string} agent */
  #name(agent) {
    return `${this.kind}.${this.session}.${agent}`;
  }
}

/**
 * @param {string | null} json
 * @returns {Draft}
 */
function read(json) {
  try {
    const { text, id, at } = JSON.parse(json ?? "{}");
    return { text: typeof text === "string" ? text : "", id: typeof id === "string" ? id : undefined, at: Number(at) || 0 };
  } catch {
    return { text: "", at: 0 };
  }
}

/** @param {string} kind */
function forgetOld(kind) {
  try {
    const names = Object.keys(localStorage).filter((name) => name.startsWith(`${PREFIX}${kind}.`));
    if (names.length <= DRAFTS_MAX) return;
    const aged = names.map((name) => ({ name, at: read(localStorage.getItem(name)).at }));
    aged.sort((a, b) => a.at - b.at);
    for (const { name } of aged.slice(0, names.length - DRAFTS_MAX)) localStorage.removeItem(name);
  } catch {
    // Nothing is kept here at all.
  }
}
