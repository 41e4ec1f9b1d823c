// A session in somebody's own Claude Code, seen and corrected on the page (docs/bridges.md). The program is this test:
// it starts the hooks, and writes a transcript as the program does.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import test from 'node:test';

import { Ground, lead, looking } from './ground.mjs';

const SESSION = '0e7c0a3c-4a52-4a7a-9d6b-000000000004';
const BIN = process.env.MIDTURN_BIN ?? '';

const log = (page) => page.getByRole('log');

/** What the program does in this ground. */
class Program {
  constructor(/** @type {Ground} */ ground) {
    this.ground = ground;
    this.transcript = ground.path(`${SESSION}.jsonl`);
  }

  /** What a hook answers. */
  hook(event, more = {}) {
    const input = { hook_event_name: event, session_id: SESSION, cwd: this.ground.path('project'), transcript_path: this.transcript, ...more };
    const env = { ...this.ground.environment(), CLAUDE_PID: String(process.pid), AI_AGENT: 'claude-code_2-1-331_harness' };
    const said = execFileSync(BIN, ['hook'], { env, input: JSON.stringify(input), encoding: 'utf8' });
    return said && JSON.parse(said).hookSpecificOutput;
  }

  writes(type, more) {
    appendFileSync(this.transcript, `${JSON.stringify({ type, timestamp: new Date().toISOString(), ...more })}\n`);
  }

  says(id, block) {
    this.writes('assistant', { message: { id, role: 'assistant', content: [block], stop_reason: 'tool_use' } });
  }

  ended(call, text) {
    const block = { type: 'tool_result', tool_use_id: call, content: text, is_error: text.startsWith('Pre') };
    this.writes('user', { message: { role: 'user', content: [block] } });
  }
}

test('a joined session is seen on the page, and corrected in the middle of its turn', async () => {
  const ground = new Ground();
  try {
    await ground.serve(lead('      - {text: "None."}\n'));
    const program = new Program(ground);
    program.hook('SessionStart', { source: 'startup' });
    program.hook('UserPromptSubmit', { prompt: 'Rename it.' });
    program.writes('user', { message: { role: 'user', content: 'Rename it.' } });
    for (const [id, command] of [['t1', 'make first'], ['t2', 'make second']]) {
      program.says('m1', { type: 'tool_use', id, name: 'Bash', input: { command } });
    }
    await looking(async (page) => {
      await page.goto(ground.link(SESSION));
      await log(page).getByText('make first').first().waitFor();
      await page.getByText('Claude Code in project').first().waitFor();
      await page.getByLabel('Mode').selectOption({ label: 'Sooner' });
      const composer = page.getByRole('textbox', { name: 'Message to main' });
      await composer.fill('The name is load_from.');
      await composer.press('Enter');
      await page.getByText('The name is load_from.').first().waitFor();

      // The first call ends, the second is skipped, and the words are told with the results.
      let denied;
      for (let tries = 0; !denied && tries < 100; tries += 1) {
        denied = program.hook('PreToolUse', { tool_name: 'Bash', tool_input: { command: 'make second' }, tool_use_id: 't2' });
      }
      const skipped = `PreToolUse:Bash hook error: ${denied.permissionDecisionReason}`;
      program.ended('t1', 'made');
      program.ended('t2', skipped);
      const given = program.hook('PostToolBatch', { tool_calls: [{ tool_use_id: 't1', tool_response: 'made' }, { tool_use_id: 't2', tool_response: skipped }] });
      assert.equal(given.additionalContext, '[User feedback: The name is load_from.]');
      const attachment = { type: 'hook_additional_context', content: [given.additionalContext], hookEvent: 'PostToolBatch' };
      program.writes('attachment', { attachment });
      await log(page).getByText(/injected after Bash at C, 1 call skipped/).first().waitFor();

      program.says('m2', { type: 'text', text: 'As corrected.' });
      program.hook('Stop');
      await log(page).getByText('As corrected.').first().waitFor();
      // Its events fold as others do, so it has a timeline; nothing in it is played anew.
      await page.getByRole('tab', { name: 'Timeline' }).click();
      const chart = page.getByRole('group', { name: 'Timeline of the session' });
      await chart.getByRole('button', { name: /^main: Bash, skipped: it never ran/ }).first().waitFor({ state: 'attached' });
      await chart.getByRole('button', { name: 'main: 1 message injected at C, 1 call skipped' }).waitFor({ state: 'attached' });
      await chart.getByRole('button', { name: /^user to main, next_boundary: The name is load_from/ }).focus();
      assert.equal(await page.getByRole('button', { name: 'Move it' }).count(), 0);
      for (const name of ['Diff', 'Plan']) assert.equal(await page.getByRole('tab', { name }).count(), 0, name);
      assert.equal(await page.getByRole('button', { name: '+ Agent' }).count(), 0);
      if (process.env.MIDTURN_PAGE_PICTURE) await page.screenshot({ path: process.env.MIDTURN_PAGE_PICTURE });
    });

    // What else is there is its program's to do.
    const refused = await ground.ask('POST', `sessions/${SESSION}/agents/main/stop`, {});
    assert.equal(refused.code, 'joined', JSON.stringify(refused));
    const { sessions } = await ground.ask('GET', 'sessions');
    assert.deepEqual(sessions.map((session) => session.joined), ['Claude Code 2.1.331']);
    const sent = await ground.ask('POST', `sessions/${SESSION}/agents/main/messages`, { text: 'Never mind.', id: 'never', urgency: 'follow_up' });
    assert.equal(sent.state, 'queued');
    assert.equal((await ground.ask('POST', `sessions/${SESSION}/messages/never/withdraw`, {})).returned, 1);
    const { receipt, reached } = await ground.ask('GET', `sessions/${SESSION}/messages/never/wait?state=injected`);
    assert.deepEqual([receipt.state, receipt.reason, reached], ['returned', 'withdrawn', false]);
    const strange = await ground.ask('POST', `sessions/${SESSION}/agents/nobody/messages`, { text: 'Hello.' });
    assert.equal(strange.code, 'unknown_agent');
  } finally {
    await ground.end();
  }
});
