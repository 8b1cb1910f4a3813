import { writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { type NodeInfo, readNodeInfo } from '../../../src/engines/eventstoredb/driver/node-info.ts';
import { makeCertificate } from '../../support/certificate.ts';
import { startEventStoreDbDouble } from '../../support/event-store/eventstoredb-double/eventstoredb-double.ts';
import { KINDS } from '../../support/event-store/eventstoredb-double/kinds.ts';
import { eventStoreDbAt } from '../../support/event-store/eventstoredb-under-test.ts';
import { closedPort } from '../../support/tcp-server.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const realUrl = inject('eventstoreUrl');

/** A node with TLS, and the file of its authority. */
async function secureNode() {
  const { cert, key } = await makeCertificate();
  const asked: (string | undefined)[] = [];
  const server = createServer({ cert, key }, (request, response) => {
    asked.push(request.headers.authorization);
    if (request.url !== '/info') response.statusCode = 404;
    response.end(JSON.stringify({ dbVersion: '24.10.0' }));
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  onTestFinished(() => void server.close());
  const ca = join(temporaryFolder(), 'ca.pem');
  writeFileSync(ca, cert);
  return { node: `localhost:${(server.address() as AddressInfo).port}`, ca, asked };
}

/** What the node says of itself, on the port that takes its calls. */
async function described(url: string): Promise<NodeInfo> {
  const store = eventStoreDbAt(url);
  onTestFinished(() => store.close());
  await store.head();
  const info = await store.describe();
  expect(Math.abs(info.clockMs - Date.now())).toBeLessThan(3_000);
  return info;
}

describe('what a node says of itself', () => {
  test.each(
    KINDS.flatMap((kind) =>
      ['esdb', 'esdb+discover', 'kurrentdb', 'kurrentdb+discover'].map((scheme) => [kind, scheme] as const),
    ),
  )('is its kind, version and clock: the double of %s, by %s://', async (kind, scheme) => {
    const double = await startEventStoreDbDouble({ kind });
    onTestFinished(() => double.stop());
    const { name, version } = await described(double.url.replace(/^esdb/, scheme));
    expect([name, version]).toEqual([kind, kind === 'KurrentDB' ? '25.0.0' : '23.10.6.0']);
  });

  test.runIf(realUrl !== undefined)('is its kind, version and clock: a real node', async () => {
    const { name, version } = await described(realUrl ?? '');
    expect(name).toBe(version.startsWith('25.') ? 'KurrentDB' : 'EventStoreDB');
  });

  test('comes by TLS, with the authority and the credentials of the connection string', async () => {
    const { node, ca, asked } = await secureNode();
    const info = await readNodeInfo(`esdb://us%40er:pass%2Fword@${node}?TlsCaFile=${ca}`);
    expect(info.version).toBe('24.10.0');
    expect(asked).toEqual([`Basic ${Buffer.from('us@er:pass/word').toString('base64')}`]);
    await expect(readNodeInfo(`esdb://${node}`)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    expect(await readNodeInfo(`esdb://${node}/?tlsVerifyCert=false`)).toMatchObject({ version: '24.10.0' });
  });

  test('comes from the first node that answers; none is an unavailable store', async () => {
    const { node } = await secureNode();
    const away = `localhost:${await closedPort()}`;
    const info = await readNodeInfo(`esdb+discover://${away},${node}?tlsVerifyCert=false`);
    expect(info.version).toBe('24.10.0');
    await expect(readNodeInfo(`esdb://${away}?tls=false`)).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringContaining('ECONNREFUSED'),
    });
  });
});
