import { readdirSync, readFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import { Agent, fetch } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { listen } from '../../../src/base/listen.ts';
import { startMock } from '../../../src/customers/mock/mock.ts';
import { lastingPort } from '../../support/lasting-port.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const TO_MS = Date.parse('2026-10-01T00:00:00.000Z');

/** Folders for temporary files are made here. */
function ownFolder(): string {
  const { TMPDIR } = process.env;
  const folder = temporaryFolder();
  process.env.TMPDIR = folder;
  onTestFinished(() => {
    if (TMPDIR === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = TMPDIR;
  });
  return folder;
}

test.each([0, 1])(
  'a mock whose port (%d after the one named) is taken leaves nothing behind',
  async (after) => {
    const folder = ownFolder();
    const port = await lastingPort();
    const taken = createServer();
    onTestFinished(() => void taken.close());
    await listen(taken, { host: '127.0.0.1', port: port + after });
    await expect(startMock({ seed: 1, port, toMs: TO_MS, rateLimit: 60 })).rejects.toMatchObject({
      code: 'REFUSED',
    });
    expect(readdirSync(folder)).toEqual([]);
    const other = createServer();
    onTestFinished(() => void other.close());
    await listen(other, { host: '127.0.0.1', port: port + 1 - after }); // the listener that had started has ended
  },
);

async function started(rateLimit = 60) {
  ownFolder();
  const mock = await startMock({ seed: 1, port: 0, toMs: TO_MS, rateLimit });
  const dispatcher = new Agent({ connect: { ca: readFileSync(mock.caFile, 'utf8') } });
  onTestFinished(async () => {
    await dispatcher.destroy();
    await mock.stop();
  });
  const query = 'from=2026-09-20T00:00:00Z&to=2026-10-01T00:00:00Z&limit=1';
  const ask = (path: string, members: Record<string, string>) =>
    fetch(mock.controlUrl + path, { method: 'POST', body: new URLSearchParams(members) });
  return {
    ask,
    stop: mock.stop,
    async pull() {
      const answer = await fetch(`${mock.baseUrl}/transactions?${query}`, {
        ...{ headers: { 'X-API-Key': mock.data.key }, dispatcher },
      });
      const { error } = (await answer.json()) as { error?: { code: string } };
      return [answer.status, error?.code ?? 'page', answer.headers.has('Retry-After')];
    },
  };
}

test('a mock answers 429, and as after the end of a charging profile, until pages are asked for again', async () => {
  const { ask, pull } = await started();
  const refusals: unknown[] = [];
  for (const kind of ['429', 'expired', 'expired', '429']) {
    expect((await ask('/answer', { kind })).status).toBe(200);
    refusals.push(await pull());
  }
  expect(refusals).toEqual([
    [429, 'RATE_LIMITED', true],
    [403, 'NO_ACTIVE_CHARGING_PROFILE', false],
    [403, 'NO_ACTIVE_CHARGING_PROFILE', false],
    [429, 'RATE_LIMITED', true],
  ]);
  await ask('/answer', { kind: 'good' });
  expect(await pull()).toEqual([200, 'page', false]);
});

test('a mock limits the requests of its key as it was told', async () => {
  const { pull } = await started(2);
  const statuses = [await pull(), await pull(), await pull()].map(([status]) => status);
  expect(statuses).toEqual([200, 200, 429]);
});

/** A receiver that answers these statuses in turn and records what it got. */
async function receiving(...statuses: readonly number[]) {
  const got: (readonly [id: unknown, signature: unknown])[] = [];
  const asked = Promise.withResolvers<void>();
  const receiver = createHttpServer((request, response) => {
    response.writeHead(statuses[got.length] ?? 500).end();
    got.push([request.headers['x-service-delivery'], request.headers['x-service-signature']]);
    asked.resolve();
  });
  onTestFinished(() => void receiver.close());
  const { port } = await listen(receiver, { host: '127.0.0.1', port: 0 });
  return { got, asked: asked.promise, url: `http://127.0.0.1:${port}/` };
}

test('a mock sends a webhook again until it is accepted, under the same id and signed anew', async () => {
  const { ask } = await started();
  const { got, url } = await receiving(503, 204);
  const { sent } = (await (await ask('/send', { kind: 'retry', url })).json()) as { sent: unknown[] };
  expect(sent).toMatchObject([
    { status: 503, as_expected: false },
    { status: 204, as_expected: true },
  ]);
  const [[id, signature] = [], [sameId, other] = []] = got;
  expect(sameId).toBe(id);
  expect(other).not.toBe(signature);
});

test('a mock that ends does not wait to send a webhook again', async () => {
  const { ask, stop } = await started();
  const { got, asked, url } = await receiving(503, 503);
  const ended = ask('/send', { kind: 'retry', url }).catch(() => 'the connection was closed');
  await asked;
  await stop();
  await ended;
  expect(got.length).toBe(1);
});
