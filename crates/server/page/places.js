// A browser has six connections to one address for all its tabs: with six streams open nothing else would load.
// So a stream takes one of four places, and who has none asks now and then.

/** How many streams all tabs of this address have open together. */
const PLACES = 4;

/** So long other tabs have to give one up. */
const ANSWER_MS = 500;

/** What a tab without a place says to the others. */
const WANTED = "a place is wanted";

/** A place, until it is given up. */
export class Place {
  #gone = new AbortController();
  /** @type {Promise<unknown>[]} */
  #held = [];

  /** Aborted once the place is given up. */
  get signal() {
    return this.#gone.signal;
  }

  /**
   * Holds a lock until the place is given up. Whether it was to be had.
   * @param {string} name
   * @param {LockOptions} options
   * @returns {Promise<boolean>}
   */
  hold(name, options) {
    return new Promise((resolve) => {
      const held = navigator.locks.request(name, options, (lock) => {
        resolve(lock !== null);
        return lock === null ? undefined : new Promise((/** @type {(value: void) => void} */ end) => {
          this.signal.addEventListener("abort", () => end(), { once: true });
        });
      });
      this.#held.push(held.catch(() => resolve(false)));
    });
  }

  /** Others may have it. */
  async giveUp() {
    this.#gone.abort();
    await Promise.all(this.#held);
  }
}

/**
 * A place for a stream of this session, if there is one; other tabs are asked for theirs.
 * @param {string} session
 * @returns {Promise<Place | undefined>}
 */
export async function takePlace(session) {
  if (!navigator.locks) return new Place();
  const place = await free(session);
  if (place) return place;
  const channel = new BroadcastChannel("midturn.places");
  channel.postMessage(WANTED);
  channel.close();
  await new Promise((answered) => setTimeout(answered, ANSWER_MS));
  return free(session);
}

/** @param {string} session */
async function free(session) {
  const place = new Place();
  for (let n = 1; n <= PLACES; n += 1) {
    if (!(await place.hold(`midturn.place.${n}`, { ifAvailable: true }))) continue;
    await place.hold(follows(session), { mode: "shared" });
    lend(place, session);
    return place;
  }
  return undefined;
}

/** @param {string} session */
function follows(session) {
  return `midturn.follows.${session}`;
}

/**
 * Gives a place up when another tab wants one and nobody looks at this one; never the session's last: who follows
 * nothing isn't attached, and what agents ask would be denied at once.
 * @param {Place} place
 * @param {string} session
 */
function lend(place, session) {
  const channel = new BroadcastChannel("midturn.places");
  channel.onmessage = ({ data }) => {
    if (data === WANTED && document.hidden) void leave(place, session);
  };
  place.signal.addEventListener("abort", () => channel.close(), { once: true });
}

/**
 * @param {Place} place
 * @param {string} session
 */
async function leave(place, session) {
  // One tab at a time: two that leave together would both count the other.
  await navigator.locks.request("midturn.leaves", async () => {
    const { held = [] } = await navigator.locks.query();
    const others = held.filter(({ name }) => name === follows(session)).length > 1;
    if (others && document.hidden) await place.giveUp();
  });
}
