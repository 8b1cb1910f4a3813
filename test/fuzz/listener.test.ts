import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import { BASE_PATH } from '../../src/pull/app.ts';
import type { Chance } from '../simulation/core/chance.ts';
import { KEY, startTestApi } from '../support/service/api.ts';
import { changedBytes, forCases, nastyText } from './cases.ts';

vi.setConfig({ testTimeout: 3_600_000 });

const GOOD: Readonly<Record<string, string>> = {
  from: '2026-09-01T00:00:00Z',
  to: '2026-09-30T00:00:00Z',
  limit: '10',
  cursor: 'eyJ2IjoxfQ',
  status: 'CONFIRMED',
  corporate_id: '31',
  corporate_group_id: '3',
};
const NAMES = [...Object.keys(GOOD), 'corporate_ids', 'x'];
const USUAL = new Set(['from', 'to', 'limit']);
const HEADERS = [
  'x-forwarded-for',
  'range',
  'accept',
  'accept-encoding',
  'if-none-match',
  'expect',
  'connection',
];
/**
 * The statuses of Node for text that is not a request, and those of the service. There is no 5xx, since the stores
 * work.
 */
const DOCUMENTED = new Set([200, 204, 304, 400, 401, 403, 404, 405, 408, 413, 414, 417, 429, 431]);
const STATUS = /HTTP\/1\.1 (\d{3}) /g;
const START_MS = Date.parse('2026-09-15T12:00:00Z');
const MAX_WAIT_MS = 5_000;

function requestOf(chance: Chance): Buffer {
  const text = (): string => encodeURIComponent(nastyText(chance).toWellFormed());
  const query = NAMES.filter((name) => chance.is(USUAL.has(name) ? 0.9 : 0.2))
    .map((name) => `${name}=${name in GOOD && chance.is(0.85) ? GOOD[name] : text()}`)
    .join('&');
  const method = chance.pick(['GET', 'GET', 'GET', 'GET', 'HEAD', 'POST', 'OPTIONS', 'TRACE', 'BREW']);
  const path = chance.is(0.8) ? '/transactions' : chance.pick([`/${text()}`, '//', '', '/transactions/']);
  const headers = [
    'host: localhost',
    'x-forwarded-for: 203.0.113.9',
    'x-forwarded-proto: https',
    `x-api-key: ${chance.is(0.7) ? KEY : chance.pick(['svc_test_x', text(), ''])}`,
  ];
  if (chance.is(0.2)) headers.push(`${chance.pick(HEADERS)}: ${text()}`);
  if (chance.is(0.1)) headers.push(`content-length: ${chance.int(20)}`);
  if (chance.is(0.05)) headers.push('transfer-encoding: chunked');
  const lines = [`${method} ${BASE_PATH}${path}?${query} HTTP/1.1`, ...headers];
  const bytes = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`);
  return chance.is(0.3) ? changedBytes(chance, bytes) : bytes;
}

/** Returns everything that is answered. The write side is ended, so that nothing waits for the rest of a request. */
async function answersTo(port: number, bytes: Buffer): Promise<string> {
  const socket: Socket = connect(port, '127.0.0.1');
  let text = '';
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
  });
  socket.on('error', () => undefined); // a reset is an answer too
  socket.end(bytes);
  const timer = setTimeout(() => socket.destroy(new Error('late')), MAX_WAIT_MS);
  if (!socket.closed) await once(socket, 'close').catch(() => undefined);
  clearTimeout(timer);
  if (socket.errored?.message === 'late') throw new Error('the connection stays open');
  return text;
}

test('the public listener answers anything with a documented status, and without a fault', async () => {
  const { address, logLines, at } = await startTestApi({
    tlsTerminated: true,
    proxies: ['127.0.0.1/32'] as never,
  });
  const faults: unknown[] = [];
  const onFault = (error: unknown): void => void faults.push(error);
  process.on('unhandledRejection', onFault);
  onTestFinished(() => void process.off('unhandledRejection', onFault));
  const statuses = new Map<string, number>();
  let minutes = 0;
  await forCases('listener', async (chance) => {
    at(START_MS + minutes++ * 2_000); // otherwise rate limits would answer most of them
    const requests = Array.from({ length: chance.is(0.2) ? chance.between(2, 4) : 1 }, () =>
      requestOf(chance),
    );
    const bytes = Buffer.concat(requests);
    const answers = await answersTo(address.port, bytes);
    for (const [, status = ''] of answers.matchAll(STATUS)) {
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      if (!DOCUMENTED.has(Number(status)))
        throw new Error(`${status} to ${JSON.stringify(bytes.toString('latin1'))}`);
    }
    const said = logLines.splice(0).filter(({ level }) => Number(level) >= 50);
    if (said.length + faults.length > 0)
      throw new Error(
        `${JSON.stringify([...said, ...faults])} at ${JSON.stringify(bytes.toString('latin1'))}`,
      );
  });
  expect([...statuses.keys()]).toEqual(expect.arrayContaining(['200', '400', '401', '404', '405']));
});
