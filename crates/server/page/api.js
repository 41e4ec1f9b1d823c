// Requests to the process that serves this page. Waiting is done here; what comes of it is decided elsewhere.

/** What the server refused, and why. */
export class Refused extends Error {
  /**
   * @param {number} status
   * @param {string} code
   * @param {string} detail
   * @param {number} [retryAfter] in seconds
   */
  constructor(status, code, detail, retryAfter) {
    super(detail);
    this.status = status;
    this.code = code;
    this.detail = detail;
    this.retryAfter = retryAfter;
  }
}

/** How long an answer may take. A change that was received whole is done whole, whether or not we wait. */
const PATIENCE_MS = 30_000;

/** The server, as the holder of a token sees it. */
export class Api {
  /**
   * @param {string} token
   * @param {() => unknown} onSignedOut the token is no good any more
   */
  constructor(token, onSignedOut) {
    this.token = token;
    this.onSignedOut = onSignedOut;
  }

  /**
   * @param {string} path below `/v1/`
   * @returns {Promise<any>}
   */
  get(path) {
    return this.#ask(path, { method: "GET" });
  }

  /**
   * @param {string} path below `/v1/`
   * @param {object} body
   * @returns {Promise<any>}
   */
  post(path, body = {}) {
    return this.#ask(path, { method: "POST", body: JSON.stringify(body) });
  }

  /**
   * Asks for a change while the page is being closed: nobody is there for the answer.
   * @param {string} path
   */
  last(path) {
    const request = { method: "POST", headers: this.#headers(), body: "{}", keepalive: true };
    void fetch(`v1/${path}`, request).catch(() => undefined);
  }

  /**
   * The answer's head to a request for an event stream.
   * @param {string} path
   * @param {AbortSignal} signal
   */
  async open(path, signal) {
    const response = await fetch(`v1/${path}`, { headers: this.#headers(), signal, cache: "no-store" });
    if (!response.ok) throw await this.#refused(response);
    return response;
  }

  /**
   * @param {string} path
   * @param {RequestInit} request
   */
  async #ask(path, request) {
    const signal = AbortSignal.timeout(PATIENCE_MS);
    const response = await fetch(`v1/${path}`, { ...request, headers: this.#headers(), signal, cache: "no-store" });
    if (!response.ok) throw await this.#refused(response);
    return response.json();
  }

  /** @param {Response} response */
  async #refused(response) {
    const refused = await refusal(response);
    if (refused.status === 401) this.onSignedOut();
    return refused;
  }

  #headers() {
    return { Authorization: `Bearer ${this.token}`, "Content-Type": "application/json" };
  }
}

/**
 * What a refusal says.
 * @param {Response} response
 * @returns {Promise<Refused>}
 */
async function refusal(response) {
  const problem = await response.json().catch(() => ({}));
  const { code = `http_${response.status}`, detail = response.statusText } = problem;
  const seconds = Number(response.headers.get("Retry-After") ?? NaN);
  return new Refused(response.status, String(code), String(detail), Number.isFinite(seconds) ? seconds : undefined);
}

/**
 * Buys a token with a one-time code.
 * @param {string} code
 * @returns {Promise<string>}
 */
export async function signIn(code) {
  const headers = { "Content-Type": "application/json" };
  const request = { method: "POST", headers, body: JSON.stringify({ code }), signal: AbortSignal.timeout(PATIENCE_MS) };
  const response = await fetch("v1/sign_in", request);
  if (!response.ok) throw await refusal(response);
  const { token } = await response.json();
  if (typeof token !== "string" || token === "") throw new Refused(502, "no_token", "The server gave no token");
  return token;
}
