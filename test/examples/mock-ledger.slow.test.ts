import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Agent, fetch as undiciFetch } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { Ledger } from '../../examples/ledger/ledger.ts';
import { type SyncOptions, sync } from '../../examples/sync-client/sync-client.ts';
import { startMock } from '../../src/customers/mock/mock.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const TO_MS = Date.parse('2026-11-01T00:00:00Z');

const FROM_MS = TO_MS - 20 * 86_400_000; // few enough pages for the rate limit

/** A mock, and the options to sync its last days. */
async function startAccount(seed: number) {
  const mock = await startMock({ seed, toMs: TO_MS, port: 0 });
  const dispatcher = new Agent({ connect: { ca: readFileSync(mock.caFile, 'utf8') } });
  onTestFinished(async () => {
    await dispatcher.close();
    await mock.stop();
  });
  const { key, prefix } = mock.data;
  const fetch = ((url: string, init: object) =>
    undiciFetch(url, { ...init, dispatcher })) as unknown as typeof globalThis.fetch;
  const options = { baseUrl: mock.baseUrl, apiKey: key, fromMs: FROM_MS, toMs: TO_MS, fetch };
  return { prefix, options };
}

test('the example leaves its ledger as it was when a key of another account is confirmed for it', async () => {
  const [own, foreign] = [await startAccount(1), await startAccount(2)];
  const ledger = new Ledger(join(temporaryFolder(), 'fuel.db'));
  onTestFinished(() => ledger.close());
  const run = (overrides: Partial<SyncOptions> = {}) =>
    sync({ ...own.options, overlapMs: TO_MS, ledger, ...overrides });
  await run();
  const before = [...ledger.records()];
  expect(before.length).toBeGreaterThan(100);

  await expect(run(foreign.options)).rejects.toThrow(`CONFIRM_KEY=${foreign.prefix}`);
  const confirmed = { ...foreign.options, confirmKey: foreign.prefix };
  for (let times = 1; times <= 2; times++)
    await expect(run(confirmed)).rejects.toThrow('does API_KEY belong to the right account?');
  expect([...ledger.records()]).toEqual(before);

  expect(await run({ confirmKey: own.prefix })).toMatchObject({ added: 0, changed: 0, removed: 0 });
  expect([...ledger.records()]).toEqual(before);
});
