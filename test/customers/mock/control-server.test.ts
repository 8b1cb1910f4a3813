import { setTimeout as sleep } from 'node:timers/promises';
import { object } from 'superstruct';
import { describe, expect, it, onTestFinished } from 'vitest';
import { FuelError } from '../../../src/base/errors.ts';
import { type Routes, reading, startControlServer } from '../../../src/customers/mock/control-server.ts';
import { id } from '../../../src/domain/values/primitives.ts';

async function start(overrides: Routes = {}) {
  const asked: unknown[] = [];
  const server = await startControlServer(
    {
      'POST /void': reading(object({ transaction: id }), async (members) => {
        asked.push(members);
        return { voided: members.transaction };
      }),
      'GET /list': async () => [{ id: 1 }, { id: 2 }],
      ...overrides,
    },
    0,
  );
  onTestFinished(() => server.stop());
  return {
    asked,
    stop: server.stop,
    async ask(path: string, body: string, init: RequestInit = {}) {
      const headers = { 'Content-Type': 'application/x-www-form-urlencoded' };
      const answer = await fetch(server.url + path, { method: 'POST', body, headers, ...init });
      return [answer.status, await answer.text()];
    },
  };
}

const AS_JSON = { headers: { 'Content-Type': 'application/json' } };
const GET = { method: 'GET', body: null };

describe('the control listener of a mock', () => {
  it('reads a form or JSON, and ends what it prints with a newline', async () => {
    const { asked, ask } = await start();
    expect(await ask('/void', 'transaction=501')).toEqual([200, '{"voided":501}\n']);
    expect(await ask('/void', '{"transaction":502}', AS_JSON)).toEqual([200, '{"voided":502}\n']);
    expect(asked).toEqual([{ transaction: 501 }, { transaction: 502 }]);
  });

  it('prints a list as one object a line', async () => {
    const { ask } = await start({ 'GET /empty': async () => [] });
    expect(await ask('/list', '', GET)).toEqual([200, '{"id":1}\n{"id":2}\n']);
    expect(await ask('/empty', '', GET)).toEqual([200, '']);
  });

  it.each([
    ['', /"transaction: must be an integer/],
    ['transaction=x', /"transaction: must be an integer/],
    ['transaction=1&to=x', /"to: is not a member here/],
    ['transaction=1&transaction=2', /"transaction: must be an integer/],
  ])('refuses the form "%s" with the reason', async (body, reason) => {
    const { asked, ask } = await start();
    expect(await ask('/void', body)).toEqual([400, expect.stringMatching(reason)]);
    expect(asked).toEqual([]);
  });

  it('passes on why something is not possible', async () => {
    const refuse = async (): Promise<never> => {
      throw new FuelError('REFUSED', 'transaction: 9 is not shown');
    };
    const { ask } = await start({ 'POST /void': refuse });
    expect(await ask('/void', 'transaction=9')).toEqual([400, '{"error":"transaction: 9 is not shown"}\n']);
  });

  it('answers 503 to a request whose wait ends because the mock stops', async () => {
    const stopping = new AbortController();
    const { ask, stop } = await start({
      async 'POST /send'() {
        setImmediate(async () => {
          stopping.abort();
          await stop();
        });
        return await sleep(60_000, [], { signal: stopping.signal });
      },
    });
    const error = 'the mock is stopping, and sends no further webhook';
    expect(await ask('/send', '')).toEqual([503, `${JSON.stringify({ error })}\n`]);
  });

  it('does nothing for another path or method, nor for a page in a browser, and says what it can be asked', async () => {
    const { asked, ask } = await start();
    expect(await ask('/', '')).toEqual([404, expect.stringContaining('POST /void, GET /list')]);
    expect((await ask('/void', '', GET))[0]).toBe(404);
    const ofPages: Record<string, string>[] = [
      { 'Sec-Fetch-Site': 'none' },
      { Origin: 'https://example.com' },
    ];
    for (const headers of ofPages) {
      expect((await ask('/void', 'transaction=1', { headers }))[0]).toBe(404);
      expect((await ask('/list', '', { ...GET, headers }))[0]).toBe(404);
    }
    expect(asked).toEqual([]);
  });

  it('refuses a body that it cannot read, or that is too long', async () => {
    const { asked, ask } = await start();
    expect((await ask('/void', '{', AS_JSON))[0]).toBe(400);
    expect((await ask('/void', `transaction=${'1'.repeat(20_000)}`))[0]).toBe(400);
    expect(asked).toEqual([]);
  });
});
