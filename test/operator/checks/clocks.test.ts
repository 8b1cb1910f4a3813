import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { checkClocks, configuredClocks } from '../../../src/operator/checks/clocks.ts';
import type { Server, ServerKind } from '../../../src/service/engines/engines.ts';
import { closedPort } from '../../support/tcp-server.ts';

const NOW_MS = Date.parse('2026-09-01T12:00:00Z');
const HOUR_MS = 3_600_000;
const NOTHING = { FUEL_NTP_SERVER: undefined, FUEL_SMTP_URL: undefined };
const now = () => NOW_MS;

const clock = (ms: number, stepMs = 0) => ({
  title: 'another',
  stepMs,
  read: async () => ({ clockMs: NOW_MS + ms }),
});

/** Answers with this time, and what else it says of itself. */
async function ntpServer(clockMs: number, { head = 0x24, stratum = 2, echoes = true } = {}): Promise<number> {
  const socket = createSocket('udp4');
  socket.on('message', (request, { port, address }) => {
    const answer = Buffer.alloc(48);
    answer[0] = head;
    answer[1] = stratum;
    if (echoes) request.copy(answer, 24, 40, 48);
    answer.writeUInt32BE((Math.floor(clockMs / 1_000) + 2_208_988_800) % 2 ** 32, 40);
    answer.writeUInt32BE(((clockMs % 1_000) / 1_000) * 2 ** 32, 44);
    socket.send(answer, port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  onTestFinished(() => void socket.close());
  return socket.address().port;
}

const withNtp = (port: number, at = now) => {
  const config = { ...NOTHING, FUEL_NTP_SERVER: { host: '127.0.0.1', port } };
  return checkClocks(configuredClocks(config, [], undefined), at);
};

describe('the clocks', () => {
  test.each([
    [2_000, 0, true],
    [-2_000, 0, true],
    [2_001, 0, false],
    [-2_600, 0, false],
    [-4_000, 2_000, true], // it is known to its step only
    [-4_001, 2_000, false],
    [2_001, 2_000, false],
  ])('may differ by two seconds: %i ms of one that steps by %i ms is right: %s', async (ms, stepMs, ok) => {
    expect(await checkClocks([clock(ms, stepMs)], now)).toMatchObject({ ok });
  });

  test('that differ are named with how much, and what to do', async () => {
    expect(await checkClocks([clock(-2_600)], now)).toMatchObject({
      detail: expect.stringContaining('another -2.6 s'),
      do: expect.stringContaining('timedatectl'),
    });
  });

  test('of engines are named as the server that was found, and not known where it does not answer', async () => {
    const describe = async () => ({ version: '1', name: 'KurrentDB', clockMs: NOW_MS });
    const engine = { title: 'EventStoreDB', describe } as unknown as ServerKind & Server;
    const away = { ...engine, title: 'MongoDB', describe: () => Promise.reject(new Error('away')) };
    expect(await checkClocks(configuredClocks(NOTHING, [engine, away], undefined), now)).toMatchObject({
      ok: true,
      detail: expect.stringContaining('KurrentDB 0.0 s, MongoDB not known'),
    });
  });

  test('are compared with nothing where nothing is configured, which is said', async () => {
    const detail = expect.stringContaining('FUEL_NTP_SERVER');
    expect(await checkClocks([], now)).toMatchObject({ ok: true, detail });
  });
});

describe('an NTP server', () => {
  test('tells the time, and an hour off is wrong', async () => {
    const port = await ntpServer(NOW_MS + 120);
    expect(await withNtp(port)).toMatchObject({
      ok: true,
      detail: expect.stringContaining('127.0.0.1 0.1 s'),
    });
    expect(await withNtp(port, () => NOW_MS - HOUR_MS)).toMatchObject({
      ok: false,
      detail: expect.stringContaining('3600.1 s'),
    });
  });

  test('tells it after 2036 too, when its seconds begin again', async () => {
    const later = Date.parse('2036-03-01T00:00:00Z');
    expect(await withNtp(await ntpServer(later), () => later)).toMatchObject({ ok: true });
  });

  test.each([
    ['is not synchronised', { head: 0xe4 }],
    ['asks to be left alone', { stratum: 0 }],
    ['is no server', { head: 0x23 }],
    ['answers another request', { echoes: false }],
  ])('that %s is wrong itself', async (_, says) => {
    const finding = await withNtp(await ntpServer(NOW_MS, says));
    expect(finding).toMatchObject({ ok: false, do: expect.stringContaining('FUEL_NTP_SERVER') });
  });

  test('that does not answer is wrong', async () => {
    expect(await withNtp(await closedPort())).toMatchObject({ ok: false });
  }, 10_000);
});

test('a photo store tells the time by the date of whatever it answers', async () => {
  const server = createServer((_, response) => {
    response.writeHead(403, { date: new Date(NOW_MS).toUTCString() }).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const clocks = configuredClocks(NOTHING, [], `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  expect(await checkClocks(clocks, () => NOW_MS + 900)).toMatchObject({ ok: true });
  expect(await checkClocks(clocks, () => NOW_MS + HOUR_MS)).toMatchObject({
    ok: false,
    detail: expect.stringContaining('photo store -3599.0 s'),
  });
});

test.each([
  ['220 mail ESMTP Exim 4.96 Tue, 01 Sep 2026 14:00:00 +0200', false],
  ['220 mail ESMTP', true],
])('a mail server tells the time where it greets with it: %s', async (greeting, ok) => {
  const server = createTcpServer(
    (socket) => void socket.on('error', () => undefined).write(`${greeting}\r\n`),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const smtp = `smtp://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const clocks = configuredClocks({ ...NOTHING, FUEL_SMTP_URL: smtp }, [], undefined);
  expect(await checkClocks(clocks, () => NOW_MS + HOUR_MS)).toMatchObject({ ok });
});
