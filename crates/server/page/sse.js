// An event stream, read with `fetch`: an `EventSource` can't send a token in a header.

/** So long may one event be, in UTF-16 units; of a longer one only that is told. */
const EVENT_MAX = 16 << 20;

/** What is told then: an event of this type, without data. */
export const TOO_LARGE = "too_large";

/** So long a stream may be silent: the server says something every 15 s. */
const SILENCE_MS = 40_000;

/** How long it is until the first try to come back, and until any later one at most. */
const BACK_MS = { first: 250, most: 10_000 };

/**
 * @typedef {{event: string, data: string, id?: string}} Frame
 */

/** Makes frames of pieces of text, which may end anywhere. */
export class Parser {
  /** @type {string[]} what has come of a line: a long one is put together once, however many pieces it comes in */
  #held = [];
  #waits = 0;
  /** A return is the last that came. */
  #isReturn = false;
  #isFirst = true;
  /** @type {string[]} */
  #data = [];
  #size = 0;
  #isTooLarge = false;
  #event = "";
  /** @type {string | undefined} */
  #id;

  /**
   * @param {string} text
   * @returns {Frame[]} the frames that it completes
   */
  push(text) {
    const isPlain = !this.#isReturn && !/[\r\n]/.test(text);
    this.#hold(text);
    const frames = isPlain ? [] : this.#lines();
    if (this.#waits + this.#size > EVENT_MAX) this.#drop();
    return frames;
  }

  /** Forgets what has come of an event. What is still to come of its line is read as a comment. */
  #drop() {
    if (this.#waits > 0) this.#held = [this.#isReturn ? ":\r" : ":"];
    this.#waits = this.#held.join("").length;
    this.#data = [];
    this.#size = 0;
    this.#isTooLarge = true;
  }

  /** @param {string} text */
  #hold(text) {
    if (text === "") return;
    this.#held.push(this.#isFirst ? text.replace(/^\uFEFF/, "") : text);
    this.#isFirst = false;
    this.#waits += text.length;
    this.#isReturn = text.endsWith("\r");
  }

  /** @returns {Frame[]} of the lines that are whole */
  #lines() {
    const text = this.#held.join("");
    /** @type {Frame[]} */
    const frames = [];
    let from = 0;
    for (let end = lineEnd(text, 0); end; end = lineEnd(text, from)) {
      const frame = this.#line(text.slice(from, end.at));
      if (frame) frames.push(frame);
      from = end.next;
    }
    this.#held = [text.slice(from)];
    this.#waits = text.length - from;
    return frames;
  }

  /**
   * @param {string} line
   * @returns {Frame | undefined}
   */
  #line(line) {
    if (line === "") return this.#ends();
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") {
      this.#data.push(value);
      this.#size += value.length;
    } else if (field === "event") this.#event = value;
    else if (field === "id" && !value.includes("\0")) this.#id = value;
    return undefined;
  }

  /** @returns {Frame | undefined} */
  #ends() {
    const [data, event, id] = [this.#data, this.#event, this.#id];
    const isTooLarge = this.#isTooLarge || this.#size > EVENT_MAX;
    this.#data = [];
    this.#size = 0;
    this.#isTooLarge = false;
    this.#event = "";
    this.#id = undefined;
    if (isTooLarge) return { event: TOO_LARGE, data: "" };
    if (data.length === 0) return undefined;
    const frame = { event: event || "message", data: data.join("\n") };
    return id === undefined ? frame : { ...frame, id };
  }
}

/**
 * Where the next line ends, and where the one after it begins. A return at the very end of what is there may
 * be the first half of a line's end.
 * @param {string} text
 * @param {number} from
 */
function lineEnd(text, from) {
  for (let at = from; at < text.length; at += 1) {
    const c = text.charCodeAt(at);
    if (c === 10) return { at, next: at + 1 };
    if (c === 13) {
      if (at + 1 === text.length) return undefined;
      return { at, next: text.charCodeAt(at + 1) === 10 ? at + 2 : at + 1 };
    }
  }
  return undefined;
}

/** What was read and not yet folded. When it is full the reader waits, and the server sees a slow client. */
export class Inbox {
  /** @type {Frame[]} */
  #frames = [];
  #size = 0;
  /** @type {(() => void)[]} */
  #waiting = [];

  /**
   * @param {() => void} onMail something is there
   * @param {{frames: number, size: number}} most
   */
  constructor(onMail, most = { frames: 4096, size: 8 << 20 }) {
    this.onMail = onMail;
    this.most = most;
  }

  /**
   * @param {Frame} frame
   * @returns {Promise<void>} there is room for more
   */
  async put(frame) {
    this.#frames.push(frame);
    this.#size += frame.data.length;
    this.onMail();
    if (this.#frames.length < this.most.frames && this.#size < this.most.size) return;
    await new Promise((/** @type {(value: void) => void} */ room) => this.#waiting.push(room));
  }

  /**
   * Hands out what is there, until `isEnough` says so.
   * @param {(frame: Frame) => void} take
   * @param {() => boolean} isEnough
   * @returns {boolean} something is left
   */
  drain(take, isEnough) {
    let taken = 0;
    while (taken < this.#frames.length) {
      const frame = this.#frames[taken];
      this.#size -= frame.data.length;
      taken += 1;
      take(frame);
      if (isEnough()) break;
    }
    this.#frames.splice(0, taken);
    for (const room of this.#waiting.splice(0)) room();
    return this.#frames.length > 0;
  }

  clear() {
    this.#frames = [];
    this.#size = 0;
    for (const room of this.#waiting.splice(0)) room();
  }
}

/**
 * Reads one stream to its end. Whatever ends it, the connection and the reader's lock are given up.
 * @param {Response} response
 * @param {(frame: Frame) => Promise<void>} take
 * @param {() => void} onBytes
 */
async function read(response, take, onBytes) {
  if (!response.body) return;
  const reader = response.body.getReader();
  const [decoder, parser] = [new TextDecoder(), new Parser()];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      onBytes();
      for (const frame of parser.push(decoder.decode(value, { stream: true }))) await take(frame);
    }
  } finally {
    await reader.cancel().catch(() => undefined);
    reader.releaseLock();
  }
}

/**
 * @typedef {object} Following
 * @property {(after: number, signal: AbortSignal) => Promise<Response>} open asks for the stream after that event
 * @property {() => number} after the number of the last event that is known
 * @property {(frame: Frame) => Promise<void>} take
 * @property {() => void} joined a stream is open: of what is being said all of it comes next
 * @property {(again: {inMs: number, error: unknown}) => void} lost the stream was lost and is asked for again
 * @property {(error: unknown) => boolean} isFinal whether to try again makes no sense
 * @property {() => Promise<boolean>} isOver the stream ended by itself: whether nothing more will come
 * @property {AbortSignal} signal
 */

/**
 * Follows events for good, without a gap: after a loss it goes on behind the last event that is known.
 * @param {Following} following
 * @returns {Promise<"over" | "stopped" | Error>}
 */
export async function follow(following) {
  for (let tries = 0; !following.signal.aborted; tries += 1) {
    /** @type {unknown} */
    let error;
    try {
      await once(following, () => (tries = 0));
      if (await following.isOver()) return "over";
    } catch (thrown) {
      error = thrown;
    }
    if (following.signal.aborted) break;
    if (following.isFinal(error)) return error instanceof Error ? error : new Error(String(error));
    const inMs = Math.min(BACK_MS.most, BACK_MS.first * 2 ** Math.min(tries, 10)) * (0.75 + Math.random() / 2);
    following.lost({ inMs, error });
    await pause(inMs, following.signal);
  }
  return "stopped";
}

/**
 * @param {Following} following
 * @param {() => void} onJoined
 */
async function once({ open, after, take, joined, signal }, onJoined) {
  const ours = new AbortController();
  const end = () => ours.abort();
  signal.addEventListener("abort", end, { once: true });
  let silent = setTimeout(end, SILENCE_MS);
  const heard = () => {
    clearTimeout(silent);
    silent = setTimeout(end, SILENCE_MS);
  };
  try {
    const response = await open(after(), ours.signal);
    onJoined();
    joined();
    await read(response, take, heard);
  } finally {
    clearTimeout(silent);
    signal.removeEventListener("abort", end);
    ours.abort();
  }
}

/**
 * @param {number} ms
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
export function pause(ms, signal) {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done, { once: true });
    if (signal.aborted) done();
  });
}
