import { readdirSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
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
    await expect(startMock({ seed: 1, port, toMs: TO_MS })).rejects.toMatchObject({
      code: 'REFUSED',
    });
    expect(readdirSync(folder)).toEqual([]);
    const other = createServer();
    onTestFinished(() => void other.close());
    await listen(other, { host: '127.0.0.1', port: port + 1 - after }); // the listener that had started has ended
  },
);

async function started() {
  ownFolder();
  const mock = await startMock({ seed: 1, port: 0, toMs: TO_MS });
  onTestFinished(() => mock.stop());
  const ask = (path: string, members: Record<string, string>) =>
    fetch(mock.controlUrl + path, { method: 'POST', body: new URLSearchParams(members) });
  return { ask, stop: mock.stop };
}

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
