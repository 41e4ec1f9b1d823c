// What the page reads, without a browser: event streams in any pieces, and markdown that wants more than it may.
// `node --test tests/page/reads.mjs`

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { markdown } from "../../crates/server/page/markdown.js";
import { EVENTS_MAX, Player, momentOf } from "../../crates/server/page/player.js";
import { Inbox, Parser, follow } from "../../crates/server/page/sse.js";
import { refusal, waits } from "../../crates/server/page/words.js";

const FRAMES = [
  ["data: a\n\n", [{ event: "message", data: "a" }]],
  ["\uFEFFdata:a\r\n\r\n", [{ event: "message", data: "a" }]],
  ["id: 7\revent: x\rdata: {\rdata: }\r\r\n", [{ event: "x", data: "{\n}", id: "7" }]],
  [": a comment\n\nid: 8\n\ndata: b\n\n", [{ event: "message", data: "b" }]],
  ["id: 1\0\ndata\nnoise: x\n\n", [{ event: "message", data: "" }]],
  ["data:  two spaces\n\ndata: never ended\n", [{ event: "message", data: " two spaces" }]],
];

test("an event is the same however its stream was cut", () => {
  for (const [text, expected] of FRAMES) {
    for (let at = 0; at <= text.length; at += 1) {
      const parser = new Parser();
      const frames = [...parser.push(text.slice(0, at)), ...parser.push(text.slice(at)), ...parser.push("")];
      assert.deepEqual(frames, expected, JSON.stringify([text, at]));
    }
  }
});

test("of an event that is too large only that is told, and what follows it is read", () => {
  const x = "x".repeat(1 << 20);
  for (const begun of [["data: ", ...Array(17).fill(x)], Array(17).fill(`data: ${x}\n`), Array(17).fill(`data: ${x}\r`), ["data: ", ...Array(17).fill(x), "\r"], [`data: ${x.repeat(17)}`]]) {
    for (const rest of ['data: "no event"\n\n', "\r\n\r\n", "\n\n"]) {
      const parser = new Parser();
      const frames = [...begun, rest, "\ndata: 1\n\n"].flatMap((text) => parser.push(text));
      assert.deepEqual(frames, [{ event: "too_large", data: "" }, { event: "message", data: "1" }], JSON.stringify([begun[0].slice(0, 9), rest]));
    }
  }
});

test("a reader waits while the inbox is full", async () => {
  let frames = 0;
  const inbox = new Inbox(() => (frames += 1), { frames: 2, size: 100 });
  await inbox.put({ event: "x", data: "1" });
  let isRoom = false;
  const full = inbox.put({ event: "x", data: "2" }).then(() => (isRoom = true));
  await Promise.resolve();
  assert.equal(isRoom, false);
  const taken = [];
  assert.equal(inbox.drain((frame) => taken.push(frame.data), () => true), true);
  await full;
  assert.equal(inbox.drain((frame) => taken.push(frame.data), () => false), false);
  assert.deepEqual([taken, frames], [["1", "2"], 2]);
});

const stream = (...pieces) => new Response(new Blob(pieces).stream());
const event = (n) => `id: ${n}\ndata: {"seq":${n}}\n\n`;

/** Follows what `answers` give one after the other; time passes at once. */
async function followed(t, answers, more = {}) {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const [asked, seen, lost] = [[], [], []];
  const ended = await follow({
    open: async (after) => {
      asked.push(after);
      return answers.shift()();
    },
    after: () => seen.at(-1) ?? 0,
    take: async ({ data }) => void seen.push(JSON.parse(data).seq),
    joined: () => undefined,
    lost: ({ inMs }) => {
      lost.push(inMs);
      queueMicrotask(() => t.mock.timers.tick(60_000));
    },
    isFinal: (error) => error?.message === "401",
    isOver: async () => answers.length === 0,
    signal: new AbortController().signal,
    ...more,
  });
  return { ended, asked, seen, lost };
}

const fails = (words) => () => {
  throw new Error(words);
};

test("a stream that is lost goes on behind the last event, without a gap", async (t) => {
  const answers = [() => stream(event(1), event(2), "id: 3\nda"), fails("refused"), () => stream(event(3)), () => stream()];
  const { ended, asked, seen, lost } = await followed(t, answers);
  assert.deepEqual([ended, asked, seen, lost.length], ["over", [0, 2, 2, 3], [1, 2, 3], 3]);
});

test("tries come further apart, and never further than ten seconds", async (t) => {
  const { lost } = await followed(t, [...Array(12).fill(fails("down")), () => stream()]);
  assert.ok(lost[0] < 320 && lost[3] > lost[0] && lost.every((ms) => ms <= 12_500), `${lost}`);
});

test("a token that is no good is not tried again", async (t) => {
  const { ended, asked } = await followed(t, [fails("401"), () => stream(event(1))]);
  assert.deepEqual([ended.message, asked], ["401", [0]]);
});

test("who stops following gives the connection and the reader's lock up", async (t) => {
  const stops = new AbortController();
  let isCancelled = false;
  const body = new ReadableStream({
    pull: (to) => to.enqueue(new TextEncoder().encode(event(1))),
    cancel: () => void (isCancelled = true),
  });
  const take = async () => {
    stops.abort();
    throw new Error("over");
  };
  const { ended } = await followed(t, [() => new Response(body)], { take, signal: stops.signal });
  assert.deepEqual([ended, isCancelled, body.locked], ["stopped", true, false]);
});

const links = (nodes) => nodes.flatMap((node) => (typeof node === "string" ? [] : [node.href, ...links(node.inner)])).filter(Boolean);
const said = (nodes) => nodes.map((node) => (typeof node === "string" ? node : said(node.inner))).join("");

test("what is no plain markdown stays the text that it was", () => {
  for (const text of [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "a <b>bold</b> word",
    "![an image](http://x/y.png)",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](data:text/html,x)",
    "[x](/relative)",
    "[x](//host)",
    "[x](vbscript:x)",
    "<javascript:alert(1)>",
  ]) {
    const nodes = markdown(text);
    assert.deepEqual(links(nodes), [], text);
    assert.equal(said(nodes).trim(), text);
  }
});

test("a link says where it goes when its text does not", () => {
  for (const [text, href, shown] of [
    ["[here](https://evil.example/x)", "https://evil.example/x", "here (evil.example)"],
    ["[https://good.example](https://evil.example)", "https://evil.example/", "https://good.example (evil.example)"],
    ["<https://good.example/a>", "https://good.example/a", "https://good.example/a"],
    ["[me](mailto:a@b.example)", "mailto:a@b.example", "me (a@b.example)"],
  ]) {
    const nodes = markdown(text);
    assert.deepEqual([links(nodes), said(nodes)], [[href], shown], text);
  }
});

test("entities are decoded once, and hide nothing", () => {
  for (const [text, expected] of [
    ["&lt;b&gt; &amp; &quot;x&quot; &hellip;", '<b> & "x" …'],
    ["a&#x202e;b&#8203;c", "abc"],
    ["&bogus; &", "&bogus; &"],
    ["`&lt;`", "&lt;"],
  ]) assert.equal(said(markdown(text)), expected, text);
});

test("what is nested too deep, or too long, stays plain", () => {
  for (const text of [">".repeat(3000), "- ".repeat(60) + "x", "*".repeat(33 << 10), "**a ".repeat(12 << 10)]) {
    const nodes = markdown(text);
    assert.ok(nodes.length > 0 && said(nodes).length > 0, text.slice(0, 20));
  }
  assert.deepEqual(markdown(">".repeat(3000)), [{ tag: "plain", inner: [">".repeat(3000)] }]);
});

test("the page names no command that only the terminal has", () => {
  const rests = /** @type {any} */ ({ run: 1, ended: 1, outcome: "failed", queue: [], calls: [], past: [], is_closed: false });
  for (const words of [refusal("limit", "`w` has reached its limit max_turns"), waits("after_tools", rests)]) {
    assert.match(words, /raise it|runs again/);
    assert.doesNotMatch(words, /\/(limit|resume)/);
  }
});

/** What the terminal is held to as well (crates/tui/src/player.rs). */
const PLAYING = JSON.parse(readFileSync(new URL("../fold/playing.json", import.meta.url), "utf8"));
const micros = (seconds) => Math.round(seconds * 1e6);

for (const { name, events, plays, begins, then } of PLAYING.plays) {
  test(`it is played back as in the terminal: ${name}`, () => {
    const player = new Player(plays, events.length, micros(begins));
    events.forEach((t, at) => player.holds({ seq: at + 1, t }));
    for (const [does, at, shown, wakes, says] of then) {
      if (does === "due") while (player.due(micros(at)));
      else if (does === "to") player.toMoment(micros(at));
      else if (does === "faster" || does === "slower") player.speeds(does === "faster", micros(at));
      else player[does](micros(at));
      assert.deepEqual([player.shown, player.wakesAt, player.says()], [shown, wakes === null ? undefined : micros(wakes), says], `${does} ${at}`);
    }
  });
}

test("a moment is a clock or a duration, as in the terminal", () => {
  for (const [words, seconds] of PLAYING.moments) assert.equal(momentOf(words), seconds === null ? undefined : micros(seconds), words);
});

test("one event more than is held is shown, and nothing is played", () => {
  const player = new Player(false, 2, 0);
  for (let seq = 0; seq <= EVENTS_MAX; seq += 1) assert.ok(player.holds({ seq, t: seq }));
  assert.deepEqual([player.isWhole, player.events.length], [false, EVENTS_MAX]);
});
