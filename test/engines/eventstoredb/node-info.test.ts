import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { startEventStoreDbDouble } from '../../support/event-store/eventstoredb-double/eventstoredb-double.ts';
import { KINDS } from '../../support/event-store/eventstoredb-double/kinds.ts';
import { nodeInfoAt } from '../../support/event-store/eventstoredb-under-test.ts';
import { closedPort } from '../../support/tcp-server.ts';

const realUrl = inject('eventstoreUrl');

describe('what a node says of itself', () => {
  test.each(
    KINDS.flatMap((kind) =>
      ['esdb', 'esdb+discover', 'kurrentdb', 'kurrentdb+discover'].map((scheme) => [kind, scheme] as const),
    ),
  )('is its kind and version: the double of %s, by %s://', async (kind, scheme) => {
    const double = await startEventStoreDbDouble({ kind });
    onTestFinished(() => double.stop());
    const { name, version } = await nodeInfoAt(double.url.replace(/^esdb/, scheme));
    expect([name, version]).toEqual([kind, kind === 'KurrentDB' ? '25.0.0' : '23.10.6']);
  });

  test.runIf(realUrl !== undefined)('is its kind and version: a real node', async () => {
    const { name, version } = await nodeInfoAt(realUrl ?? '');
    expect(name).toBe(/^2[34]\./.test(version) ? 'EventStoreDB' : 'KurrentDB');
  });

  test('without an answer is an unavailable store', async () => {
    await expect(nodeInfoAt(`esdb://localhost:${await closedPort()}?tls=false`)).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringContaining('ECONNREFUSED'),
    });
  });
});
