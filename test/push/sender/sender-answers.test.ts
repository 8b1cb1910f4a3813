import { connect, type Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { outcomeInTime, receiverTrust } from '../../support/deliveries/test-sender.ts';
import { OK, openReceiver, sendRequest } from '../../support/deliveries/tls-receiver.ts';
import { tcpServer } from '../../support/tcp-server.ts';
import { within } from '../../support/waiting.ts';

const { certificate, sender } = receiverTrust();

describe('an answer', () => {
  test('of which only a hint or a part came in time is reported as none, or as not complete', async () => {
    const answers = [
      'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n',
      'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf',
    ];
    const [hinted, begun] = await Promise.all(
      answers.map(async (text) => {
        const { url } = await openReceiver(certificate(), ({ socket }) => socket.write(text));
        return (await sender().send(sendRequest(url))).outcome;
      }),
    );
    const detail = expect.stringMatching(/^no answer within 500 ms(, |$)/);
    expect(hinted).toMatchObject({ kind: 'timeout', detail, answer: null });
    expect(begun).toMatchObject({
      kind: 'timeout',
      detail: expect.stringMatching(/^no complete answer within 500 ms(, |$)/),
      answer: { status: 200, body: 'half' },
    });
  });
});

describe('an answer that does not end', () => {
  const KIB = 1024;

  test('is cut off, so that little of it is read', async () => {
    const sent = { bytes: 0, isClosed: false };
    const receiver = await openReceiver(certificate(), ({ socket }) => {
      socket.once('close', () => {
        sent.isClosed = true;
      });
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
      const more = (): void => {
        while (!socket.destroyed && socket.writable) {
          sent.bytes += 16 * KIB;
          if (!socket.write(`4000\r\n${'x'.repeat(16 * KIB)}\r\n`)) break;
        }
      };
      socket.on('drain', more);
      more();
    });
    await outcomeInTime(sender(), sendRequest(receiver.url));
    await expect.poll(() => sent.isClosed).toBe(true);
    expect(sent.bytes).toBeLessThan(16 * KIB * KIB);
  });

  test('is cut off after 256 KiB in all and not before, on a kept connection too', async () => {
    const opened = sender();
    let length = 0;
    const receiver = await openReceiver(certificate(), ({ socket }) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n${'x'.repeat(length)}`);
    });
    for (length of [200 * KIB, 200 * KIB, 300 * KIB, 0]) {
      expect(await outcomeInTime(opened, sendRequest(receiver.url))).toMatchObject({ ok: true });
    }
    expect(receiver.connections()).toBe(2);
  });
});

test('a receiver that asks for another handshake within its answer fails with kind tls', async () => {
  let handshakes = 0;
  const receiver = await openReceiver(
    certificate(),
    ({ socket }) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf');
      socket.renegotiate({}, () => handshakes++);
    },
    { maxVersion: 'TLSv1.2' },
  );
  expect(await outcomeInTime(sender(), sendRequest(receiver.url))).toMatchObject({ ok: false, kind: 'tls' });
  expect(handshakes).toBe(0);
});

test('a receiver whose encryption breaks after the handshake fails with kind tls', async () => {
  const clients: Socket[] = [];
  const receiver = await openReceiver(certificate(), () => {
    for (const client of clients) client.write('what was to be a record of TLS is not one');
  });
  const port = await tcpServer((client) => {
    clients.push(client);
    const server = connect(receiver.port, '127.0.0.1').on('error', () => undefined);
    client.pipe(server).pipe(client);
  });
  const outcome = await outcomeInTime(sender(), sendRequest(`https://localhost:${port}/`));
  expect(outcome).toMatchObject({ ok: false, kind: 'tls' });
});

describe('a connection', () => {
  test('on which no answer came in time is closed then, and not used again', async () => {
    const receiver = await openReceiver(certificate(), ({ socket, number }) => {
      if (number === 1) setTimeout(() => socket.writable && socket.write(OK), 3_000);
    });
    const same = sender();
    const first = await same.send(sendRequest(receiver.url));
    expect(first.outcome).toMatchObject({ kind: 'timeout' });
    await within(receiver.closed(1), 2_000, 'the connection stays open');
    await same.send(sendRequest(receiver.url));
    expect(receiver.connections()).toBe(2);
  });

  test('that the receiver closes right after its answer does not fail the next attempt', async () => {
    const receiver = await openReceiver(certificate(), ({ socket }) => void socket.end(OK));
    const same = sender();
    for (let count = 0; count < 4; count++) {
      expect((await same.send(sendRequest(receiver.url))).outcome.ok).toBe(true);
    }
    expect(receiver.requests).toHaveLength(4);
  });
});

describe('closing', () => {
  test('closes the connections that are idle, and those under way as soon as they are', async () => {
    const receiver = await openReceiver(certificate(), ({ socket, connection }) =>
      setTimeout(() => socket.write(OK), connection === 1 ? 0 : 50),
    );
    const closing = sender();
    await closing.send(sendRequest(receiver.url));
    const both = [closing.send(sendRequest(receiver.url)), closing.send(sendRequest(receiver.url))];
    await closing.close();
    await Promise.all(both);
    const closed = Promise.all([receiver.closed(1), receiver.closed(2)]);
    await within(closed, 2_000, 'a connection stays open'); // an idle one closes after 4 s
  });
});
