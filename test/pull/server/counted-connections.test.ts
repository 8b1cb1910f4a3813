import { once } from 'node:events';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, connect, Socket } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, onTestFinished, test } from 'vitest';
import { ServerConnections } from '../../../src/pull/server/connections.ts';
import { testCertificate } from '../../support/service/api.ts';
import { until } from '../../support/waiting.ts';

test('nothing is kept of a connection that ends in its handshake', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const server = createHttpsServer(await testCertificate());
  onTestFinished(() => void server.close());
  const connections = new ServerConnections();
  const sockets: WeakRef<Socket>[] = [];
  server.on('connection', (socket: Socket) => {
    sockets.push(new WeakRef(socket));
    connections.add(socket, ['peer'], false);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  for (let count = 1; count <= 3; count++) {
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
    client.on('error', () => undefined);
    await until(() => sockets.length === count);
    client.destroy();
  }
  await until(async () => {
    collect();
    return sockets.every((socket) => socket.deref() === undefined);
  });
  expect([connections.size, connections.countOf('peer')]).toEqual([0, 0]);
});

test('a new connection from an endpoint whose former one is only now closing is counted once, and ends with a stop', () => {
  const connections = new ServerConnections();
  const [closing, fresh] = [new Socket(), new Socket()]; // neither has an address
  for (const socket of [closing, fresh]) connections.add(socket, ['peer'], false);
  expect(connections.countOf('peer')).toBe(1);
  closing.emit('close');
  expect([connections.size, connections.countOf('peer')]).toEqual([1, 1]);
  connections.closeSilent();
  expect(fresh.destroyed).toBe(true);
  for (const socket of [closing, fresh]) socket.emit('close');
  expect([connections.size, connections.countOf('peer')]).toEqual([0, 0]);
});
