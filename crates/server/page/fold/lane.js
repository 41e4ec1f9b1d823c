/** What is under way in one agent's lane, and in which row (crates/view/src/timeline/lane.rs). */

/** How many things of one lane are drawn below each other. */
const ROWS = 3;

/** How many things are followed at a time. */
const OPEN_MAX = 256;

/** What is under way: what it is found by, the event that began it, and its row; `null`: the rows are full. */
/** @typedef {{key: string, from: number, row: number | null}} Open */

/** An agent's lane. */
export class Lane {
  /** @type {Open[]} */
  #open = [];
  /** @type {Map<string, number>} the messages that wait, each with the event that told of it */
  mail = new Map();

  /**
   * @param {string} name
   * @param {number} depth how many agents are above it
   */
  constructor(name, depth) {
    this.name = name;
    this.depth = depth;
  }

  /**
   * The row of what begins; `null` while there are others in all of them, or too many beside them.
   * @param {string} key
   * @param {number} from
   */
  opens(key, from) {
    if (this.#open.length >= OPEN_MAX) return null;
    const taken = this.#open.map(({ row }) => row);
    const free = [...Array(ROWS).keys()].find((row) => !taken.includes(row)) ?? null;
    this.#open.push({ key, from, row: free });
    return free;
  }

  /** @param {string} key */
  isOpen(key) {
    return this.#open.some((open) => open.key === key);
  }

  /** What has the last row. */
  lastRow() {
    return this.#open.find(({ row }) => row === ROWS - 1)?.from;
  }

  /**
   * It has ended: the bar that began it, if it has one.
   * @param {string} key
   */
  closes(key) {
    const at = this.#open.findLastIndex((open) => open.key === key);
    const [open] = at < 0 ? [] : this.#open.splice(at, 1);
    return open && open.row !== null ? open.from : undefined;
  }

  /** Nothing goes on: the bars of what did. */
  rests() {
    return drawn(this.#open.splice(0));
  }

  /** What ends with its process and is told by no event: the bars of that. */
  loses() {
    const all = this.#open;
    this.#open = all.filter(({ key }) => key.startsWith("call "));
    return drawn(all.filter(({ key }) => !key.startsWith("call ")));
  }
}

/**
 * The bars of those that have one.
 * @param {Open[]} all
 */
function drawn(all) {
  return all.filter(({ row }) => row !== null).map(({ from }) => from);
}
