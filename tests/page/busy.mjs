// A session that is too much for any page: a lead and 20 agents, thousands of events behind them, and all of them speak.

/** So many agents beside the lead. */
export const WORKERS = 20;

/** How many events a turn with so many calls that read a file is told by. */
const CALLS = 8;
const EVENTS = 2 + 2 * CALLS;

/** Something that has to be laid out. */
const MARKDOWN = 'The **parser** reads `one` word\n- after the *other*\n- and [never](https://example.org/a) looks back.\n\n> It goes on,\n\n1. and on.\n\n';

/** So long, and so many words. */
const said = (words) => MARKDOWN.repeat(Math.ceil(words / 22)).split(' ').slice(0, words).join(' ');

/** A turn in which it says something and reads. */
function turn(name, n) {
  const call = (_, at) => ({ id: `${name}-${n}-${at}`, name: 'read', input: { path: 'notes.txt', limit: 20 } });
  return { text: `${MARKDOWN}Turn ${n}.`, tools: Array.from({ length: CALLS }, call) };
}

/** What it does: so many events, and then it speaks for so many seconds, 20 words in each. */
function model(name, events, seconds) {
  const turns = Array.from({ length: Math.max(1, Math.floor(events / EVENTS)) }, (_, n) => turn(name, n));
  return [...turns, { takes: `${seconds}s`, text: said(seconds * 20) }, { takes: '1s', text: 'Heard.' }];
}

/**
 * The scenario: of its events the lead, whom the page shows first, has half.
 * @param {{events: number, seconds: number}} much
 */
export function busy({ events, seconds }) {
  const workers = Array.from({ length: WORKERS }, (_, n) => `worker-${n + 1}`);
  const spawn = (name) => ({ id: `s-${name}`, name: 'spawn_agent', input: { name, prompt: 'Read, and say what you read.' } });
  const lead = [{ text: 'All of you.', tools: workers.map(spawn) }, ...model('lead', events / 2, seconds)];
  const worker = (name) => ({ name, start: 'spawned', model: model(name, events / 2 / WORKERS, seconds) });
  // What is JSON is YAML.
  return JSON.stringify({ midturn: 1, name: 'busy', agents: [{ name: 'lead', role: 'lead', model: lead }, ...workers.map(worker)] });
}

/** A project with the file that they read, in every worktree. */
export function furnish(ground) {
  ground.write('notes.txt', `${'A line of notes that somebody reads.\n'.repeat(40)}`);
  ground.git('add', 'notes.txt');
  ground.git('-c', 'user.name=Page', '-c', 'user.email=page@example.org', 'commit', '--quiet', '-m', 'notes');
}

/** Whether so many events were told, and everybody speaks. */
export async function says(ground, session, events) {
  const [{ last_seq }, { agents }] = [await ground.ask('GET', `sessions/${session}`), await ground.ask('GET', `sessions/${session}/agents`)];
  const speaks = ({ activity }) => activity.some(({ what }) => what === 'model');
  return last_seq >= events && agents.length === WORKERS + 1 && agents.every(speaks);
}

/** What the page's scripts hold after a collection, in bytes. */
export async function heap(context, page) {
  const cdp = await context.newCDPSession(page);
  await cdp.send('HeapProfiler.collectGarbage');
  const { usedSize } = await cdp.send('Runtime.getHeapUsage');
  await cdp.detach();
  return usedSize;
}
