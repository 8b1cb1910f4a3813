import { once } from 'node:events';
import { createServer, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { eventStoreDbAt } from '../../support/event-store/eventstoredb-under-test.ts';
import { until } from '../../support/waiting.ts';

const MIB = 1024 * 1024;

/** Starts a node that never answers, and opens the adapter on it. */
async function silentNode() {
  const node = createServer().listen(0, '127.0.0.1');
  const sessions: ServerHttp2Session[] = [];
  const asked = { count: 0 };
  node.on('session', (session) => sessions.push(session)).on('stream', () => asked.count++);
  await once(node, 'listening');
  const store = eventStoreDbAt(`esdb://127.0.0.1:${(node.address() as AddressInfo).port}?tls=false`);
  onTestFinished(async () => {
    await store.close();
    for (const session of sessions) session.destroy();
    node.close();
  });
  return { store, sessions, asked };
}

test('a node may send a mebibyte before it is told that the service has taken it, on every connection', async () => {
  const { store, sessions } = await silentNode();
  for (const time of [1, 2]) {
    const failed = expect(store.ping()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    const mayBeSent = () => sessions[time - 1]?.state.remoteWindowSize;
    await until(() => mayBeSent() === MIB);
    expect(sessions[time - 1]?.remoteSettings.initialWindowSize).toBe(MIB);
    sessions[time - 1]?.destroy();
    await failed;
  }
});

test('64 streams are read at the same time', async () => {
  const { store, asked } = await silentNode();
  const streams = Array.from({ length: 100 }, (_, n) => `transaction-${n}`);
  const closed = expect(store.readStreams(streams)).rejects.toMatchObject({ code: 'STORE_CLOSED' });
  await until(() => asked.count >= 64);
  await store.ping().catch(() => undefined); // and no more
  expect(asked.count).toBe(65);
  await store.close();
  await closed;
});
