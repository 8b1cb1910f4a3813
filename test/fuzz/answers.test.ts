import { Duplex } from 'node:stream';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createSender } from '../../src/push/sender/sender.ts';
import { network } from '../../src/push/targets/network.ts';
import type { Chance } from '../simulation/core/chance.ts';
import { memoryLog } from '../support/service/api.ts';
import { changedBytes, forCases, nastyText } from './cases.ts';

vi.setConfig({ testTimeout: 3_600_000 });

const KINDS = new Set(['connect', 'tls', 'timeout', 'protocol', 'status', 'cut']);
const MAX_BODY_BYTES = 4 * 1024;
const MAX_MS = 2_000;
const REQUEST = {
  url: 'https://receiver.example/hook',
  headers: { 'content-type': 'application/json' },
  body: '{}',
};

/** Returns what a receiver may write: an answer, changed, in parts, with things that no answer has. */
function answerOf(chance: Chance): Buffer {
  const status = chance.is(0.8)
    ? chance.pick([200, 201, 204, 302, 400, 404, 410, 429, 500, 503])
    : chance.int(1_000);
  const body = chance.is(0.9) ? 'x'.repeat(chance.int(200)) : 'y'.repeat(chance.int(300_000));
  const headers: string[] = [];
  const isChunked = chance.is(0.2);
  if (isChunked) headers.push('transfer-encoding: chunked');
  else if (chance.is(0.9)) headers.push(`content-length: ${chance.is(0.9) ? body.length : chance.int(1e6)}`);
  for (let n = chance.int(4); n > 0; n--)
    headers.push(
      `${chance.pick(['x-a', 'connection', 'content-encoding', 'trailer', 'set-cookie', '__proto__', 'upgrade'])}: ${nastyText(chance).replaceAll(/[\r\n]/g, ' ')}`,
    );
  const informational = 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'.repeat(
    chance.is(0.1) ? chance.int(60) : 0,
  );
  const sent = isChunked ? `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n` : body;
  const text = `${informational}HTTP/1.1 ${status} Some Reason\r\n${headers.join('\r\n')}\r\n\r\n${sent}`;
  const bytes = Buffer.from(text, 'latin1');
  return chance.is(0.4) ? changedBytes(chance, bytes) : bytes;
}

/** A connection whose other side answers each request as the case says, and then closes it or not. */
class FuzzedSocket extends Duplex {
  readonly authorized = true;
  readonly encrypted = true;
  readonly remoteAddress = '93.184.216.34';
  bytesRead = 0;

  readonly #parts: readonly Buffer[];
  readonly #ending: 'end' | 'reset' | 'open';

  constructor(parts: readonly Buffer[], ending: 'end' | 'reset' | 'open') {
    super();
    this.#parts = parts;
    this.#ending = ending;
    setImmediate(() => {
      this.emit('connect');
      this.emit('secureConnect');
    });
  }

  setNoDelay = () => this;
  setKeepAlive = () => this;
  setTimeout = () => this;
  ref = () => this;
  unref = () => this;

  override _read(): void {}

  override _write(_chunk: Buffer, _encoding: string, done: () => void): void {
    done();
    setImmediate(() => this.#answer());
  }

  #answer(): void {
    for (const part of this.#parts) {
      if (this.destroyed) return;
      this.bytesRead += part.length;
      this.push(part);
    }
    if (this.#ending === 'end') this.push(null);
    else if (this.#ending === 'reset')
      this.destroy(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }));
  }
}

function partsOf(chance: Chance, bytes: Buffer): Buffer[] {
  if (chance.is(0.6)) return [bytes];
  const at = chance.int(bytes.length + 1);
  return [bytes.subarray(0, at), bytes.subarray(at)].filter(({ length }) => length > 0);
}

test('whatever a receiver answers is an outcome, in time, and no fault', async () => {
  const lines: Record<string, unknown>[] = [];
  const real = { ...network };
  let next: () => FuzzedSocket = () => new FuzzedSocket([], 'end');
  Object.assign(network, { connect: () => next(), createSecureContext: () => ({}) });
  const resolve = async () => ['93.184.216.34'];
  const sender = createSender({ allowPrivate: false, resolve, log: memoryLog(lines) } as never);
  onTestFinished(async () => {
    await sender.close();
    Object.assign(network, real);
  });
  const outcomes = new Map<string, number>();
  await forCases('answers', async (chance) => {
    const bytes = answerOf(chance);
    // An incomplete answer on an open connection costs the whole half second.
    const ending = chance.is(0.002) ? 'open' : chance.is(0.9) ? 'end' : 'reset';
    next = () => new FuzzedSocket(partsOf(chance, bytes), ending);
    const { outcome, durationMs } = await sender.send(REQUEST);
    const what = `${JSON.stringify(outcome).slice(0, 300)} to ${JSON.stringify(bytes.toString('latin1').slice(0, 500))}`;
    const kind = outcome.ok ? 'ok' : outcome.kind;
    outcomes.set(kind, (outcomes.get(kind) ?? 0) + 1);
    if (!outcome.ok && !KINDS.has(outcome.kind)) throw new Error(what);
    if (outcome.ok && !(outcome.answer.status >= 200 && outcome.answer.status < 300)) throw new Error(what);
    if (Buffer.byteLength(outcome.answer?.body ?? '') > 3 * MAX_BODY_BYTES)
      throw new Error(`a long body: ${what}`);
    if (durationMs > MAX_MS) throw new Error(`${durationMs} ms: ${what}`);
    const said = lines.splice(0).filter(({ level }) => Number(level) >= 50);
    if (said.length > 0) throw new Error(`${JSON.stringify(said)}: ${what}`);
  });
  expect([...outcomes.keys()]).toEqual(expect.arrayContaining(['ok', 'status', 'protocol', 'cut']));
});
