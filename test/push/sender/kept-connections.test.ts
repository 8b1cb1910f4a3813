import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { connect } from 'node:tls';
import { describe, expect, onTestFinished, test } from 'vitest';
import { receiverConnection } from '../../../src/push/sender/connections.ts';
import { Exchange } from '../../../src/push/sender/exchange.ts';
import { readTarget } from '../../../src/push/targets/target.ts';
import { receiverTrust } from '../../support/deliveries/test-sender.ts';
import { OK, openReceiver, sendRequest } from '../../support/deliveries/tls-receiver.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const { certificate, sender } = receiverTrust();

/** Turns the loop until what has happened on the sockets is known everywhere. */
const settle = (ms = 20) => new Promise((resolve) => setTimeout(resolve, ms));

describe('a connection', () => {
  test('is kept for the next request, and one more is opened only beside it', async () => {
    const receiver = await openReceiver(certificate(), ({ socket }) => socket.write(OK));
    const kept = sender();
    for (let i = 0; i < 20; i++) await kept.send(sendRequest(receiver.url));
    expect(receiver.connections()).toBe(1);
    await Promise.all(Array.from({ length: 5 }, () => kept.send(sendRequest(receiver.url))));
    expect(receiver.connections()).toBe(5);
  });

  test('says how long its receiver took to accept it, once', async () => {
    const receiver = await openReceiver(certificate(), ({ socket }) => socket.write(OK));
    const kept = sender();
    const first = await kept.send(sendRequest(receiver.url));
    expect(first.roundTripMs).toBeGreaterThan(0);
    expect(first.roundTripMs).toBeLessThan(first.connectMs ?? 0);
    expect(await kept.send(sendRequest(receiver.url))).toMatchObject({ connectMs: null, roundTripMs: null });
  });

  test('carries on after a failure that came as a whole answer', async () => {
    const answer = 'HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n';
    const receiver = await openReceiver(certificate(), ({ socket }) => socket.write(answer));
    const kept = sender();
    for (let i = 0; i < 3; i++) await kept.send(sendRequest(receiver.url));
    expect(receiver.connections()).toBe(1);
  });

  test('is not used again where the receiver says so', async () => {
    for (const header of ['Connection: close', 'Keep-Alive: timeout=1']) {
      const answer = `HTTP/1.1 200 OK\r\n${header}\r\nContent-Length: 0\r\n\r\n`;
      const receiver = await openReceiver(certificate(), ({ socket }) => socket.write(answer));
      const kept = sender();
      await kept.send(sendRequest(receiver.url));
      await receiver.closed(1);
      expect((await kept.send(sendRequest(receiver.url))).outcome.ok).toBe(true);
      expect(receiver.connections()).toBe(2);
    }
  });

  test('closes automatically when it is idle, however much longer the receiver would keep it', async () => {
    const longer = OK.replace('200 OK', '200 OK\r\nKeep-Alive: timeout=600');
    const receivers = await Promise.all(
      [OK, longer].map((answer) => openReceiver(certificate(), ({ socket }) => socket.write(answer))),
    );
    const idle = receivers.map(async (receiver) => {
      await sender().send(sendRequest(receiver.url));
      const idleSince = performance.now();
      await receiver.closed(1);
      return performance.now() - idleSince;
    });
    for (const idleMs of await Promise.all(idle)) {
      expect(idleMs).toBeGreaterThan(3_500);
      expect(idleMs).toBeLessThan(10_000);
    }
  });

  test('that the receiver closed while it was idle is replaced within the same attempt', async () => {
    const receiver = await openReceiver(certificate(), ({ socket, connection }) => {
      socket.write(OK, () => void (connection === 1 && socket.end()));
    });
    const kept = sender();
    await kept.send(sendRequest(receiver.url));
    await receiver.closed(1);
    expect((await kept.send(sendRequest(receiver.url))).outcome.ok).toBe(true);
    expect(receiver.connections()).toBe(2);
  });

  test('that closes between being taken and the first byte of a request has sent nothing', async () => {
    const receiver = await openReceiver(certificate(), ({ socket }) => socket.write(OK));
    const read = readTarget(receiver.url, true);
    if (!read.ok) throw new Error(read.reason);
    const { target } = read;
    const socket = connect({ host: '127.0.0.1', port: target.port, ca: certificate().cert });
    onTestFinished(() => void socket.destroy());
    await once(socket, 'secureConnect');
    const connection = receiverConnection(target, '127.0.0.1', socket);
    const first = await new Exchange(connection).run(target.path, sendRequest(receiver.url));
    expect(first).toMatchObject({ sent: true, outcome: { ok: true } });
    const second = new Exchange(connection).run(target.path, sendRequest(receiver.url));
    socket.destroy();
    expect(await second).toMatchObject({ sent: false, outcome: { ok: false } });
    expect(receiver.requests).toHaveLength(1);
  });

  test('that ends before a byte of the answer costs no attempt: the request is sent once more, on a new one', async () => {
    const receiver = await openReceiver(certificate(), ({ socket, number, reset }) =>
      number === 1 ? socket.write(OK) : reset(),
    );
    const kept = sender();
    const first = await kept.send(sendRequest(receiver.url));
    const second = await kept.send(sendRequest(receiver.url));
    expect(second.outcome).toMatchObject({ ok: true });
    expect(receiver.requests).toHaveLength(3);
    expect([first.isSentAgain, second.isSentAgain]).toEqual([false, true]);
  });

  test('that ends so is not followed by a second request that may no longer be sent', async () => {
    const receiver = await openReceiver(certificate(), ({ socket, number, reset }) =>
      number === 1 ? socket.write(OK) : reset(),
    );
    const kept = sender();
    await kept.send(sendRequest(receiver.url));
    const answers = [true, false];
    const maySend = (): boolean => answers.shift() ?? false;
    const sent = await kept.send({ ...sendRequest(receiver.url), maySend });
    expect(sent).toMatchObject({ outcome: { kind: 'cut' }, isWithheld: false, isSentAgain: false });
    expect(receiver.requests).toHaveLength(2);
  });

  test('is kept if the request may no longer be sent when it is open', async () => {
    const receiver = await openReceiver(certificate(), ({ socket }) => socket.write(OK));
    const kept = sender();
    expect(await kept.send({ ...sendRequest(receiver.url), maySend: () => false })).toMatchObject({
      isWithheld: true,
      answerMs: null,
    });
    expect(receiver.requests).toHaveLength(0);
    expect(await kept.send(sendRequest(receiver.url))).toMatchObject({
      outcome: { ok: true },
      isWithheld: false,
    });
    expect(receiver.connections()).toBe(1);
  });

  test('that ends after a part of the answer is a failure, not a second request', async () => {
    const receiver = await openReceiver(certificate(), ({ socket, number, reset }) => {
      if (number === 1) socket.write(OK);
      else socket.write('HTTP/1.1 200', () => reset());
    });
    const kept = sender();
    await kept.send(sendRequest(receiver.url));
    const { outcome } = await kept.send(sendRequest(receiver.url));
    expect(outcome).toMatchObject({ ok: false, kind: 'cut' });
    expect(receiver.requests).toHaveLength(2);
  });

  test('on which something unasked arrived is not used again', async () => {
    const receiver = await openReceiver(certificate(), ({ socket }) => socket.write(OK + OK));
    const kept = sender();
    await kept.send(sendRequest(receiver.url));
    await settle();
    expect((await kept.send(sendRequest(receiver.url))).outcome.ok).toBe(true);
    expect(receiver.connections()).toBe(2);
  });

  test('to an address that the name no longer has is not used', async () => {
    let addresses = ['127.0.0.1'];
    const receiver = await openReceiver(certificate(), ({ socket }) => socket.write(OK));
    const clock = new FakeClock();
    const kept = sender({ resolve: async () => addresses, steady: clock });
    const url = `https://hook.test:${receiver.port}/`;
    await kept.send(sendRequest(url));
    addresses = ['127.0.0.3'];
    // The name is looked up again after 20 s. By then the connection has been idle for less than its 4 s.
    clock.advance(17_000);
    expect((await kept.send(sendRequest(url))).outcome.ok).toBe(true);
    clock.advance(3_001);
    expect((await kept.send(sendRequest(url))).outcome).toMatchObject({ ok: false, kind: 'connect' });
    expect(receiver.requests).toHaveLength(2);
  });

  test('that is slow holds up no other receiver', async () => {
    const silent = createServer((socket) => void socket.on('error', () => undefined)).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    onTestFinished(() => void silent.close());
    const receiver = await openReceiver(certificate(), ({ socket }) => socket.write(OK));
    const both = sender();
    const { port } = silent.address() as AddressInfo;
    const hanging = Array.from({ length: 50 }, () => both.send(sendRequest(`https://127.0.0.1:${port}/`)));
    const askedMs = performance.now();
    const { outcome } = await both.send(sendRequest(receiver.url));
    expect(outcome.ok).toBe(true);
    expect(performance.now() - askedMs).toBeLessThan(2_000); // one after the other they take 25 s
    for (const { outcome: late } of await Promise.all(hanging)) expect(late.ok).toBe(false);
  });
});
