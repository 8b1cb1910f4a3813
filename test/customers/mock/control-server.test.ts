import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { FuelError } from '../../../src/base/errors.ts';
import { type Controls, startControlServer } from '../../../src/customers/mock/control-server.ts';

async function start(overrides: Partial<Controls> = {}) {
  const asked: unknown[] = [];
  const controls: Controls = {
    async send(wish) {
      asked.push(wish);
      return [];
    },
    async void(id) {
      asked.push(id);
    },
    ...overrides,
  };
  const server = await startControlServer(controls, 0);
  onTestFinished(() => server.stop());
  return {
    asked,
    stop: server.stop,
    async ask(path: string, body: string, init: RequestInit = {}) {
      const headers = { 'Content-Type': 'application/x-www-form-urlencoded' };
      const answer = await fetch(server.url + path, { method: 'POST', body, headers, ...init });
      return [answer.status, await answer.json()];
    },
  };
}

const URL_OF_RECEIVER = 'url=https%3A%2F%2Flocalhost%3A8444%2Ffuel-events';

describe('the control listener of a mock', () => {
  it('sends a kind to a URL, with a transaction where one is named', async () => {
    const { asked, ask } = await start();
    expect(await ask('/send', `kind=good&${URL_OF_RECEIVER}`)).toEqual([200, { sent: [] }]);
    const url = 'https://localhost:8444/fuel-events';
    const asJson = { headers: { 'Content-Type': 'application/json' } };
    await ask('/send', JSON.stringify({ kind: 'late', transaction: 501, url }), asJson);
    expect(asked).toEqual([
      { kind: 'good', url },
      { kind: 'late', url, transaction: 501 },
    ]);
  });

  it('voids a transaction', async () => {
    const { asked, ask } = await start();
    expect(await ask('/void', 'transaction=501')).toEqual([200, { voided: 501 }]);
    expect(asked).toEqual([501]);
  });

  it.each([
    ['/send', URL_OF_RECEIVER, /^kind: Expected one of `"good","twice"/],
    ['/send', `kind=nice&${URL_OF_RECEIVER}`, /^kind: Expected one of/],
    ['/send', 'kind=good', /^url: must be/],
    ['/send', 'kind=good&url=ftp://x', /^url: must be/],
    ['/send', `kind=good&kind=late&${URL_OF_RECEIVER}`, /^kind: Expected one of/],
    ['/send', `kind=good&to=x&${URL_OF_RECEIVER}`, /^to: is not a member here/],
    ['/send', `kind=good&transaction=x&${URL_OF_RECEIVER}`, /^transaction: must be an integer/],
    ['/void', '', /^transaction: must be an integer/],
  ])('refuses %s of %s with the reason', async (path, body, reason) => {
    const { asked, ask } = await start();
    expect(await ask(path, body)).toEqual([400, { error: expect.stringMatching(reason) }]);
    expect(asked).toEqual([]);
  });

  it('passes on why something is not possible', async () => {
    const refuse = async (): Promise<never> => {
      throw new FuelError('REFUSED', 'transaction: 9 is not shown');
    };
    const { ask } = await start({ void: refuse });
    expect(await ask('/void', 'transaction=9')).toEqual([400, { error: 'transaction: 9 is not shown' }]);
  });

  it('answers 503 to a request whose wait ends because the mock stops', async () => {
    const stopping = new AbortController();
    const { ask, stop } = await start({
      async send() {
        setImmediate(async () => {
          stopping.abort();
          await stop();
        });
        return await sleep(60_000, [], { signal: stopping.signal });
      },
    });
    const error = 'the mock is stopping, and sends no further webhook';
    expect(await ask('/send', `kind=retry&${URL_OF_RECEIVER}`)).toEqual([503, { error }]);
  });

  it('does nothing for another path or method, nor for a page in a browser', async () => {
    const { asked, ask } = await start();
    expect((await ask('/', ''))[0]).toBe(404);
    expect((await ask('/void', '', { method: 'GET', body: null }))[0]).toBe(404);
    const ofPages: Record<string, string>[] = [
      { 'Sec-Fetch-Site': 'none' },
      { Origin: 'https://example.com' },
    ];
    for (const headers of ofPages) {
      expect((await ask('/void', 'transaction=1', { headers }))[0]).toBe(404);
    }
    expect(asked).toEqual([]);
  });

  it('refuses a body that it cannot read, or that is too long', async () => {
    const { asked, ask } = await start();
    const asJson = { headers: { 'Content-Type': 'application/json' } };
    expect((await ask('/void', '{', asJson))[0]).toBe(400);
    expect((await ask('/void', `transaction=${'1'.repeat(20_000)}`))[0]).toBe(400);
    expect(asked).toEqual([]);
  });
});
