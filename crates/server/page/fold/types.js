/**
 * What is told, and what comes of it: the shapes of `crates/core/src/rules/event.rs`, `crates/core/src/rules/view/` and
 * `crates/view/src/fold/entry.rs`, as JSON has them. Times are seconds since the session began; a duration is a text
 * such as `1.5s`. There is no code here.
 */

/**
 * Where an event belongs.
 * @typedef {{v: number, seq: number, t: number, agent?: string, run?: number, turn?: number}} Place
 */

/** @typedef {'follow_up' | 'after_tools' | 'next_boundary' | 'urgent'} Urgency */
/** @typedef {'start' | 'stream' | 'A' | 'B' | 'C' | 'D' | 'wait'} Point */
/** @typedef {'closed' | 'stopped' | 'expired' | 'withdrawn' | 'superseded' | 'error'} ReturnReason */
/** @typedef {'finished' | 'stopped' | 'failed' | 'limit'} Outcome */
/** @typedef {'user_cancelled' | 'superseded' | 'message_interrupt' | 'stopped_by_parent' | 'shutdown' | 'limit' | 'error'} InterruptReason */
/** @typedef {'completed' | 'failed' | 'interrupted' | 'skipped' | 'stopped' | 'unknown'} ToolStatus */
/** @typedef {'completed' | 'interrupted' | 'cancelled' | 'error'} ThinkingState */
/** @typedef {'once' | 'session' | 'denied' | 'not_answered'} Decision */
/** @typedef {'stop' | 'supersede' | 'close' | 'shutdown'} Halt */
/** @typedef {'turn' | 'summary'} Purpose */
/** @typedef {'lead' | 'subagent'} Role */
/** @typedef {'pending' | 'in_progress' | 'completed' | 'skipped'} PlanStatus */

/** @typedef {{input: number, output: number, cached: number}} Usage */
/** @typedef {{before: number, after: number}} Sizes */
/** @typedef {{text: string, status: PlanStatus}} PlanStep */
/** @typedef {{id: string, name: string, input?: unknown}} CallRef */

/** @typedef {{type: 'session_started', session: string, version: string, virtual_time: boolean, scenario?: string}} SessionStarted */
/** @typedef {{type: 'session_resumed', version: string}} SessionResumed */
/** @typedef {{type: 'agent_spawned', parent?: string | null, role: Role, model?: string | null, prompt?: string | null}} AgentSpawned */
/** @typedef {{type: 'run_started', trigger: 'prompt' | string[]}} RunStarted */
/** @typedef {{type: 'model_started', call: number, messages: number, purpose?: Purpose}} ModelStarted */
/** @typedef {{type: 'model_finished', stop_reason: string, usage: Partial<Usage>, text: string, thinking: ThinkingState[], tools: CallRef[], purpose?: Purpose}} ModelFinished */
/** @typedef {{type: 'model_interrupted', reason: InterruptReason, text: string, thinking: ThinkingState[], partial_tokens: number}} ModelInterrupted */
/** @typedef {{type: 'model_retry', attempt: number, error: string, wait: string}} ModelRetry */
/** @typedef {{type: 'tool_started', tool: string, name: string, input: unknown, batch: number}} ToolStarted */
/** @typedef {{type: 'tool_finished', tool: string, name: string, status: ToolStatus, is_error: boolean, bytes: number, output: string}} ToolFinished */
/** @typedef {{type: 'message_queued', message: string, from: string, urgency: Urgency, text: string}} MessageQueued */
/** @typedef {{type: 'message_refused', message: string, from: string, reason: string}} MessageRefused */
/** @typedef {{type: 'message_injected', messages: string[], point: Point, text: string, skipped: string[], interrupted: string[]}} MessageInjected */
/** @typedef {{type: 'message_returned', message: string, reason: ReturnReason}} MessageReturned */
/** @typedef {{type: 'stop_requested', by: string, scope: 'agent' | 'subtree', reason?: Halt, still_queued: string[]}} StopRequested */
/** @typedef {{type: 'plan_updated', steps: PlanStep[]}} PlanUpdated */
/** @typedef {{type: 'approval_requested', tool: string, name: string, input: unknown, always: string}} ApprovalRequested */
/** @typedef {{type: 'approval_resolved', tool: string, decision: Decision, by: string, reason?: string | null}} ApprovalResolved */
/** @typedef {{type: 'limit_raised', by: string, limits: Record<string, unknown>}} LimitRaised */
/** @typedef {{type: 'compacted', messages: Sizes, tokens: Sizes}} Compacted */
/** @typedef {{type: 'run_finished', outcome: Outcome, error?: string | null, turns: number, usage: Partial<Usage>}} RunFinished */
/** @typedef {{type: 'agent_closed'}} AgentClosed */

/**
 * Something that happened.
 * @typedef {Place & (SessionStarted | SessionResumed | AgentSpawned | RunStarted | ModelStarted | ModelFinished
 *   | ModelInterrupted | ModelRetry | ToolStarted | ToolFinished | MessageQueued | MessageRefused | MessageInjected
 *   | MessageReturned | StopRequested | PlanUpdated | ApprovalRequested | ApprovalResolved | LimitRaised | Compacted
 *   | RunFinished | AgentClosed)} Event
 */

/** @typedef {{type: 'text_delta' | 'thinking_delta' | 'setup_output', text: string}} WordsDelta */
/** @typedef {{type: 'call_delta', tool: string, name: string, bytes: number}} CallDelta */
/** @typedef {{type: 'tool_output', tool: string, text: string}} ToolOutput */

/**
 * What is only told while it happens: `n` counts them, `seq` is that of the event before.
 * @typedef {Place & {n: number} & (WordsDelta | CallDelta | ToolOutput)} Delta
 */

/**
 * A text or a call that is under way: the last delta with all that there is of its text.
 * @typedef {{whole: Delta, is_cut: boolean, rejoined: boolean}} Piece
 */

/** @typedef {{run: number, by: string, reason: Halt, at: number}} Stop */
/** @typedef {{call: number, messages: number, purpose: Purpose, since: number}} Request */
/** @typedef {{id: string, name: string, input: unknown, since: number}} OpenCall */
/** @typedef {{point: Point, run: number, turn: number, skipped: string[], interrupted: string[]}} Injection */

/**
 * Where a message stands.
 * @typedef {'queued' | {injected: Injection} | {sent: {injection: Injection, call: number}}
 *   | {answered: {injection: Injection, call: number}} | {returned: ReturnReason}} ReceiptState
 */

/** @typedef {{id: string, from: string, urgency: Urgency, text: string, since: number | null, state: ReceiptState}} Message */

/**
 * An agent as far as it was told.
 * @typedef {object} Agent
 * @property {string | null} parent who spawned it
 * @property {Role | null} role unknown of one whose beginning was not told
 * @property {string | null} model
 * @property {number} run its current run, or the last one; 0 before the first
 * @property {number} turn
 * @property {number} ended the last run that ended
 * @property {Outcome | null} outcome how that ended, unless another has begun
 * @property {number | null} ended_at when that was; unknown of a run that ended before the first event that was told
 * @property {string | null} error what failed then, or the limit that was reached
 * @property {string} text what was said in the run's last whole reply
 * @property {Stop | null} stop the first request to stop its current run, its last or its next one
 * @property {Request | null} request the model call that is under way
 * @property {number | null} asks_again when its model is asked again, after a call that failed
 * @property {OpenCall[]} calls the tool calls that are under way
 * @property {Message[]} queue its mailbox, in order of arrival
 * @property {Message[]} past what has left that, in this order: all that is to be answered, and the newest of the rest
 * @property {Usage} usage what its whole replies have used
 * @property {PlanStep[]} plan
 * @property {Piece[]} said what it says that is not recorded yet
 * @property {boolean} is_closed
 */

/**
 * A request for a person's word on a call.
 * @typedef {{agent: string, tool: string, name: string, input: unknown, always: string, since: number}} Ask
 */

/**
 * How far a call is.
 * @typedef {{type: 'waiting'} | {type: 'running', since: number}
 *   | {type: 'ended', status: ToolStatus, took: string | null, bytes: number, output: string}} CallState
 */

/** @typedef {{id: string, from: string, urgency: Urgency | null, text: string, waited: string | null}} Letter */

/** @typedef {{type: 'prompt', text: string}} PromptEntry */
/** @typedef {{type: 'reply', text: string, cut: InterruptReason | null}} ReplyEntry */
/** @typedef {{type: 'call', id: string, name: string, input: unknown, state: CallState, word: [Decision, string, string | null] | null}} CallEntry */
/** @typedef {{type: 'injected', letters: Letter[], point: Point, after: string | null, skipped: number, interrupted: number, answered: boolean}} InjectedEntry */
/** @typedef {{type: 'returned', letter: Letter, reason: ReturnReason}} ReturnedEntry */
/** @typedef {{type: 'retry', attempt: number, error: string, wait: string}} RetryEntry */
/** @typedef {{type: 'stop', by: string, reason: Halt}} StopEntry */
/** @typedef {{type: 'limit', by: string, limits: Record<string, unknown>}} LimitEntry */
/** @typedef {{type: 'compacted', messages: Sizes, tokens: Sizes}} CompactedEntry */
/** @typedef {{type: 'end', outcome: Outcome, error: string | null, turns: number}} EndEntry */
/** @typedef {{type: 'closed'}} ClosedEntry */

/**
 * What there is in a conversation.
 * @typedef {PromptEntry | ReplyEntry | CallEntry | InjectedEntry | ReturnedEntry | RetryEntry | StopEntry | LimitEntry
 *   | CompactedEntry | EndEntry | ClosedEntry} EntryKind
 */

/**
 * One thing in a conversation. `seq` is the event that it began with, `changed` the last one that changed it.
 * @typedef {{seq: number, changed: number, t: number, run: number, turn: number, kind: EntryKind}} Entry
 */

export {};
