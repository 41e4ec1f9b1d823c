// All that the page knows, and all that a person can do on it. What is drawn of it stands in `parts/`.

import { Api, Refused, signIn } from "./api.js";
import { Drafts, keep, kept } from "./kept.js";
import { Keys } from "./keys.js";
import { Inbox } from "./inbox.js";
import { Watched, isWorking } from "./watched.js";
import { told } from "./told.js";
import { URGENCY, modeOf, newId, why } from "./ways.js";
import { loadDiff } from "./deeds.js";
import { backAgain } from "./notes.js";
import { Timelines } from "./whatif.js";
import { openReplay } from "./replayed.js";

/**
 * @import {Comment} from "./review.js"
 * @import {Patch, Place} from "./patch.js"
 * @typedef {"signed_out" | "signing_in" | "choosing" | "watching"} Phase
 * @typedef {"talk" | "timeline" | "plan" | "diff"} Tab
 * @typedef {"soft" | "sooner" | "now" | "later" | "instead"} Mode
 * @typedef {{id: string, text: string, mode: Mode, failed?: string, comments?: Comment[]}} Message
 * @typedef {{kind: "inbox" | "keys" | "figures" | "sessions" | "begin" | "spawn" | "limit" | "close", agent?: string, busy?: boolean,
 *   error?: string, figures?: any, sessions?: any[], changes?: import("./keys.js").Action}} Dialog
 * @typedef {{branch?: string, start?: string, patch?: string, truncated?: boolean, error?: string, busy?: boolean, merge?: string,
 *   read?: Patch}} Diff
 */

/** A request that has just changed is not answered: the finger was on its way to another. */
const REST_MS = 400;

/** What is said within so long is said together, up to so many characters: the last words would hide those before. */
const TOGETHER = { ms: 1000, characters: 300 };

export class Page {
  /** @param {() => void} draw asks for a frame */
  constructor(draw) {
    this.draw = draw;
    /** @type {Phase} */
    this.phase = "signed_out";
    this.why = "";
    /** @type {Api | null} */
    this.api = null;
    /** @type {any[]} */
    this.sessions = [];
    /** @type {Watched | null} */
    this.watched = null;
    this.drafts = new Drafts("");
    /** What is said to lines of diffs and not sent: a list as JSON for each agent. */
    this.comments = new Drafts("", "comments");
    /** @type {Place | null} the line that is being commented on */
    this.noting = null;
    this.inbox = new Inbox(this);
    this.agent = "";
    /** @type {Tab} */
    this.tab = "talk";
    /** @type {Mode} */
    this.mode = modeOf(kept("mode"));
    this.theme = kept("theme") ?? "auto";
    this.keys = new Keys();
    this.isDrawerOpen = false;
    /** @type {Dialog | null} */
    this.dialog = null;
    /** @type {Map<string, number>} the run of each agent that we have asked to stop */
    this.stopping = new Map();
    /** @type {Map<string, number>} when the stop button of each agent was pressed */
    this.pressed = new Map();
    /** @type {number[]} how long it was from that to the end of the run, in ms; the newest */
    this.stops = [];
    /** @type {Map<string, Message[]>} what is on its way to each agent, or was not accepted */
    this.sending = new Map();
    /** @type {Map<string, string>} what became of the last try, beside each composer */
    this.refused = new Map();
    /** @type {{id: string, agent: string, text: string} | null} */
    this.editing = null;
    /** @type {Map<string, Diff>} */
    this.diffs = new Map();
    /** @type {Map<string, number>} where the rows that are shown end; without it: with the newest */
    this.until = new Map();
    /** @type {Set<string>} the calls that are open */
    this.opened = new Set();
    this.follows = true;
    this.timelines = new Timelines(draw);
    /** @type {{key: string, at: number}} */
    this.asked = { key: "", at: 0 };
    /** @type {Map<string, Promise<void>>} what is asked of an agent is asked in order */
    this.turns = new Map();
    this.said = "";
    this.saidAt = 0;
    /** @type {Watched["line"] | undefined} how the stream stood when that was last said */
    this.line = undefined;
  }

  /** @param {string} text for whoever can't see the page */
  say(text) {
    const now = performance.now();
    const both = `${this.said}. ${text}`;
    if (now - this.saidAt < TOGETHER.ms && this.said !== "" && both.length <= TOGETHER.characters) this.said = both;
    // The same words twice are said twice.
    else [this.said, this.saidAt] = [text === this.said ? `${text}\u00a0` : text, now];
    this.draw();
  }

  // ── Signing in ──

  /** @param {string} code */
  async signIn(code) {
    this.phase = "signing_in";
    this.draw();
    try {
      this.signedIn(await signIn(code));
    } catch (error) {
      const token = kept("token");
      if (token) return this.signedIn(token);
      this.signOut(error instanceof Refused ? error.detail : "The server does not answer");
    }
  }

  /** @param {string} token */
  signedIn(token) {
    keep("token", token);
    const over = "This sign-in is over: the process that gave it has ended";
    // What was asked with an older token may be refused late.
    this.api = new Api(token, () => this.api?.token === token && this.signOut(over));
    // A replay needs nobody: it is neither fetched anew nor begun anew.
    if (this.watched && location.hash === `#replay=${this.watched.id}`) this.watched.api = this.api;
    else void this.openAny();
  }

  /** @param {string} why */
  signOut(why) {
    this.watched?.close();
    this.saveDrafts();
    if (this.api && kept("token") === this.api.token) keep("token", null);
    [this.watched, this.api, this.phase, this.why] = [null, null, "signed_out", why];
    this.say(why);
  }

  // ── Sessions ──

  /** Opens the session or the replay that the address names, else the newest session that lives, else offers what there is. */
  async openAny() {
    const asked = new URLSearchParams(location.hash.slice(1));
    const [wanted, replay] = [asked.get("session"), asked.get("replay")];
    if (replay) return openReplay(this, replay);
    this.phase = "choosing";
    try {
      this.sessions = (await this.server().get("sessions")).sessions;
    } catch (error) {
      if (this.api) this.retry(error, () => void this.openAny());
      return;
    }
    this.why = "";
    const session = this.sessions.find(({ session, live }) => (wanted && wanted !== "current" ? session === wanted : live));
    if (session) this.open(session);
    else if (wanted) this.why = `There is no session ${wanted} here`;
    this.draw();
  }

  /**
   * @param {unknown} error
   * @param {() => void} again
   */
  retry(error, again) {
    this.why = `${error instanceof Refused ? error.detail : "The server does not answer"}. Trying again …`;
    this.draw();
    setTimeout(again, 2000);
  }

  /** @param {any} session */
  open(session) {
    if (this.api) this.watch(new Watched(this.api, session, this.draw, (event) => this.#happened(event)));
  }

  /** @param {Watched} watched what is looked at from now on */
  watch(watched) {
    const { session } = watched;
    this.watched?.close();
    this.saveDrafts();
    this.drafts = new Drafts(session.session);
    this.comments = new Drafts(session.session, "comments");
    this.noting = null;
    this.timelines = new Timelines(this.draw);
    this.watched = watched;
    [this.phase, this.agent, this.tab, this.dialog] = ["watching", session.lead ?? "", "talk", null];
    for (const all of [this.stopping, this.pressed, this.sending, this.refused, this.diffs, this.until, this.opened]) all.clear();
    history.replaceState(null, "", `#${watched.kind}=${encodeURIComponent(session.session)}`);
    void this.watched.watch();
    this.draw();
  }

  /** @param {any} event */
  #happened(event) {
    if (event.type === "message_queued" && event.from === "user") this.forget(event.agent, event.message);
    if (event.type === "run_finished") this.#ended(event);
    const words = told(event, this.agent);
    if (words) this.say(words);
  }

  /** @param {any} event */
  #ended({ agent, outcome }) {
    const at = this.pressed.get(agent);
    if (at !== undefined && outcome === "stopped") this.stops = [...this.stops.slice(-99), performance.now() - at];
    this.pressed.delete(agent);
    this.stopping.delete(agent);
  }

  /** Says that the stream was lost, and that it is back. */
  noticeLine() {
    const line = this.watched?.line;
    if (line === this.line) return;
    if (line === "offline") this.say("The connection is lost");
    if (this.line === "offline" && line === "live") this.say("Connected again");
    if (line !== "connecting") this.line = line;
  }

  /** The page is closed, or loaded anew. What that does to the session is the server's to know. */
  leave() {
    this.saveDrafts();
    if (this.isLive) this.api?.last(this.path("leave"));
  }

  saveDrafts() {
    this.drafts.save();
    this.comments.save();
  }

  // ── Whom one looks at ──

  /** @param {string} name */
  choose(name) {
    [this.agent, this.isDrawerOpen, this.follows, this.editing, this.noting] = [name, false, true, null, null];
    if (this.tab === "diff") void loadDiff(this);
    this.draw();
  }

  /** @param {Tab} tab */
  show(tab) {
    this.tab = tab;
    this.follows = true;
    if (tab === "diff") void loadDiff(this);
    this.draw();
  }

  /**
   * A call was opened, or closed.
   * @param {string} name
   * @param {boolean} isOpen
   */
  toggle(name, isOpen) {
    if (this.opened.has(name) === isOpen) return;
    if (isOpen) this.opened.add(name);
    else this.opened.delete(name);
    this.draw();
  }

  get view() {
    return this.watched?.fold.view;
  }

  /** The agent that is chosen, as far as events told. */
  get chosen() {
    return /** @type {import("./fold/types.js").Agent | undefined} */ (this.view?.agents[this.agent]);
  }

  get isLive() {
    return this.watched !== null && this.watched.line !== "stored" && this.watched.line !== "refused";
  }

  /** Whether it runs in another program: there are its messages, and the rest is done there. */
  get isJoined() {
    return this.watched?.session.joined !== undefined;
  }

  /** Whether the chosen agent's run was asked to end, and has not ended. */
  get isStopping() {
    const agent = this.chosen;
    if (!agent || !isWorking(agent)) return false;
    return this.stopping.get(this.agent) === agent.run || agent.stop?.run === agent.run;
  }

  // ── Saying something ──

  /** @param {string} text */
  typed(text) {
    this.drafts.set(this.agent, text);
    this.refused.delete(this.agent);
    this.draw();
  }

  /** Sends the draft as the mode says. An empty one does nothing. */
  send() {
    const [agent, draft] = [this.agent, this.drafts.of(this.agent)];
    if (draft.text.trim() === "" || !this.isLive) return;
    const message = { id: draft.id ?? newId(), text: draft.text, mode: this.mode };
    this.drafts.sends(agent, message.text, message.id);
    this.follows = true;
    this.until.delete(agent);
    this.sendMessage(agent, message);
  }

  /**
   * @param {string} agent
   * @param {Message} message
   */
  sendMessage(agent, message) {
    this.forget(agent, message.id);
    this.#list(this.sending, agent).push({ ...message, failed: undefined });
    void this.#inTurn(agent, () => this.#deliver(agent, message));
    this.draw();
  }

  /**
   * @param {string} agent
   * @param {Message} message
   */
  async #deliver(agent, message) {
    const { id, text, mode, comments } = message;
    const body = mode === "instead" ? { id, text } : { id, text, urgency: URGENCY[mode] };
    const path = mode === "instead" ? "supersede" : "messages";
    /** @type {unknown} */
    let error;
    try {
      await this.post(`agents/${encodeURIComponent(agent)}/${path}`, body);
      this.forget(agent, id);
      this.say(mode === "instead" ? "Stopped, and sent" : "Sent");
    } catch (thrown) {
      error = thrown;
    }
    (comments ? this.comments : this.drafts).arrived(agent);
    if (error !== undefined) this.cameBack(agent, message, error);
    this.saveDrafts();
  }

  /**
   * What was not accepted is a draft again; beside what has been typed since it waits in the queue.
   * @param {string} agent
   * @param {Message} message
   * @param {unknown} error
   */
  cameBack(agent, { id, text, mode, comments }, error) {
    const words = why(error);
    this.forget(agent, id);
    // Whether it arrived is not known after a lost connection: sent again under its id it is the same message.
    const next = error instanceof Refused ? newId() : id;
    if (comments) {
      backAgain(this, agent, comments, next);
      this.refused.set(agent, words);
    } else if (this.drafts.of(agent).text === "") {
      this.drafts.set(agent, text, next);
      this.refused.set(agent, words);
    } else this.#list(this.sending, agent).push({ id: next, text, mode, failed: words });
    this.say(`Not sent. ${words}`);
  }

  /**
   * @param {string} agent
   * @param {string} id
   */
  forget(agent, id) {
    this.sending.set(agent, this.#list(this.sending, agent).filter((message) => message.id !== id));
    this.draw();
  }

  // ── Stopping ──

  /** Stops the chosen agent's run. Clicks while that is under way count once. */
  stop() {
    const [agent, name] = [this.chosen, this.agent];
    if (!agent || !isWorking(agent) || this.isStopping || !this.isLive) return;
    this.stopping.set(name, agent.run);
    this.pressed.set(name, performance.now());
    void this.#inTurn(name, () => this.#stop(name, agent.run));
    this.draw();
    this.focusComposer();
  }

  /**
   * @param {string} name
   * @param {number} run
   */
  async #stop(name, run) {
    try {
      const { still_queued: left = [] } = await this.post(`agents/${encodeURIComponent(name)}/stop`, { stream_run_id: run });
      // That it is stopped its events say.
      if (left.length > 0) this.say(left.length === 1 ? "1 message still waits" : `${left.length} messages still wait`);
    } catch (error) {
      this.stopping.delete(name);
      const late = error instanceof Refused && error.code === "stale_run";
      const words = late ? "It had ended already" : why(error);
      if (!late) this.refused.set(name, words);
      this.say(words);
    }
  }

  /** Typing goes on in the composer, but where that would bring a keyboard up. */
  typeOn() {
    if (!matchMedia("(pointer: coarse)").matches) this.focusComposer();
  }

  /** Typing goes on in the composer, from this moment on where it is there. */
  focusComposer() {
    const draft = document.getElementById("draft");
    if (draft) draft.focus();
    else requestAnimationFrame(() => document.getElementById("draft")?.focus());
  }

  // ── What agents ask ──

  /** The request that is drawn: the chosen agent's first one, else the oldest. */
  get ask() {
    const asks = this.view?.asks ?? [];
    const ask = asks.find((/** @type {any} */ one) => one.agent === this.agent) ?? asks[0];
    const key = ask ? `${ask.agent} ${ask.tool} ${ask.since}` : "";
    if (key !== this.asked.key) this.asked = { key, at: performance.now() };
    return ask;
  }

  /**
   * @param {any} ask the request that was drawn
   * @param {"once" | "session" | "denied"} decision
   * @param {string} [reason]
   */
  answer(ask, decision, reason) {
    if (performance.now() - this.asked.at < REST_MS) return;
    this.asked.at = performance.now();
    const path = `agents/${encodeURIComponent(ask.agent)}/approvals/${encodeURIComponent(ask.tool)}`;
    void this.act(async () => {
      await this.post(path, { decision, since: await this.#since(ask), ...(reason ? { reason } : {}) });
      this.say(decision === "denied" ? "Said no" : "Approved");
      this.typeOn();
    });
  }

  /** @param {string} theme */
  setTheme(theme) {
    this.theme = theme;
    keep("theme", theme);
    this.draw();
  }

  /** @param {Mode} mode */
  setMode(mode) {
    this.mode = mode;
    keep("mode", mode);
    this.draw();
  }

  /**
   * When the request that was drawn began, as the server has it: a moment before the event that told of it. One of
   * the same call that came since nobody has read.
   * @param {any} ask
   */
  async #since(ask) {
    const { approvals } = await this.server().get(this.path("approvals"));
    const its = approvals.filter((/** @type {any} */ one) => one.agent === ask.agent && one.tool === ask.tool && one.since <= ask.since);
    return its.at(-1)?.since ?? ask.since;
  }

  // ── Within ──

  /**
   * What is asked of one agent is asked in order: a message that follows a stop comes after it.
   * @param {string} agent
   * @param {() => Promise<void>} act
   */
  #inTurn(agent, act) {
    const turn = (this.turns.get(agent) ?? Promise.resolve()).then(act);
    this.turns.set(agent, turn);
    return turn;
  }

  /**
   * @param {() => Promise<void>} act
   * @param {(error: unknown) => void} [refused]
   */
  async act(act, refused) {
    try {
      await act();
    } catch (error) {
      if (refused) return refused(error);
      const words = why(error);
      this.refused.set(this.agent, words);
      this.say(words);
    }
    this.draw();
  }

  server() {
    if (!this.api) throw new Refused(401, "no_token", "Sign in first");
    return this.api;
  }

  /** @param {string} path below the session */
  path(path) {
    return `sessions/${encodeURIComponent(this.watched?.id ?? "current")}/${path}`;
  }

  /**
   * @param {string} path below the session
   * @param {object} [body]
   */
  post(path, body = {}) {
    return this.server().post(this.path(path), body);
  }

  /**
   * @template T
   * @param {Map<string, T[]>} map
   * @param {string} name
   */
  #list(map, name) {
    const list = map.get(name) ?? [];
    map.set(name, list);
    return list;
  }
}
