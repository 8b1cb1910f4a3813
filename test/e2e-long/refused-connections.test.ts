import { fork } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { Agent, request } from 'undici';
import { expect, it, onTestFinished } from 'vitest';
import { BASE_PATH } from '../../src/pull/app.ts';
import { atEndOfFile } from '../support/end-of-file.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { importEvents, minutely, openAccount, SEPTEMBER } from '../support/transactions/e2e-samples.ts';

const RESTARTS = 10;
/** The time between the connection and the request of a distant client. */
const DISTANT_MS = 100;
/** The service takes at most 64 connections of one client. A start that takes long must not bring more than that. */
const MAX_WAITING = 32;

/** Asks again and again, alternating between a new connection and a kept one, until it is stopped. */
function keepAsking(service: ServiceProcess, key: string, everyMs: number) {
  const url = `${service.url}/transactions?${SEPTEMBER}&limit=1`;
  const { ca } = service;
  const kept = new Agent({ connect: { ca }, connections: 1, pipelining: 1 });
  const answers = new Map<number | string, number>();
  const asked: Promise<void>[] = [];
  let [count, waiting] = [0, 0];
  const note = (result: number | string) => void answers.set(result, (answers.get(result) ?? 0) + 1);
  const timer = setInterval(() => {
    if (waiting >= MAX_WAITING) return;
    waiting += 1;
    const headers = { 'x-api-key': key };
    const answer = count++ % 2 === 0 ? askOnce(url, { ca, headers }) : askKept();
    asked.push(answer.then(note, (error: Error) => note(error.message)).finally(() => (waiting -= 1)));
    async function askKept(again = true): Promise<number> {
      try {
        const { statusCode, body } = await request(url, { dispatcher: kept, headers });
        await body.dump();
        return statusCode;
      } catch (error) {
        // It retries like HTTP clients (RFC 9112, 9.3.1), since an idle connection may close during a request.
        if (again && (error as { readonly code?: string }).code === 'UND_ERR_SOCKET') return askKept(false);
        throw error;
      }
    }
  }, everyMs);
  onTestFinished(() => clearInterval(timer)); // also after a failure
  return {
    async stop(): Promise<Map<number | string, number>> {
      clearInterval(timer);
      await Promise.all(asked);
      await kept.destroy();
      return answers;
    },
  };
}

/** Returns the status of an answer on a new connection, used once, by a distant client. */
function askOnce(
  url: string,
  { ca, headers }: { ca: string; headers: Record<string, string> },
): Promise<number> {
  const { hostname, port, pathname, search } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), ca });
    const lines = Object.entries({ Host: hostname, Connection: 'close', ...headers });
    const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
    setTimeout(() => socket.write(`GET ${pathname}${search} HTTP/1.1\r\n${head}\r\n`), DISTANT_MS);
    let text = '';
    socket.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
    socket.on('error', reject).on('close', () => {
      const status = /^HTTP\/1\.1 (\d+) /.exec(text)?.[1];
      if (status === undefined) reject(new Error('closed without an answer'));
      else resolve(Number(status));
    });
  });
}

/** A listening socket of this process that accepts nothing itself. */
interface HeldSocket {
  readonly fd: number;
  close(): void;
}

/** Listens on a free port and sends the socket to the process that started it, without accepting anything. */
const OPENER = `
  import { createServer } from 'node:net';
  const server = createServer();
  await new Promise((resolve) => server.listen({ host: '127.0.0.1', port: 0 }, resolve));
  await new Promise((resolve) => process.send(server.address().port, server._handle, resolve));
  server.close();`;

const held: HeldSocket[] = [];
atEndOfFile(async () => {
  for (const socket of held.splice(0)) socket.close();
});

/**
 * Opens a listening socket as systemd does for a unit. It stays open whichever process accepts its connections.
 * Resolves with its port and file descriptor.
 */
async function holdSocket(): Promise<{ port: number; socket: number }> {
  const file = join(temporaryFolder(), 'opener.mjs');
  writeFileSync(file, OPENER);
  const opener = fork(file);
  return new Promise((resolve) => {
    opener.on('message', (port, handle) => {
      const socket = handle as unknown as HeldSocket;
      held.push(socket);
      resolve({ port: Number(port), socket: socket.fd });
    });
  });
}

it.each([
  { processes: 2, everyMs: 10 },
  { processes: 1, everyMs: 50 }, // connections wait during its start
])(
  'every request is answered through ten restarts of $processes processes on a passed socket',
  async ({ processes, everyMs }) => {
    const { port, socket } = await holdSocket();
    const first = await new ServiceProcess({ socket }).start();
    const others = Array.from({ length: processes - 1 }, () =>
      new ServiceProcess({ dataDir: first.dataDir, socket }).start(),
    );
    const services = [first, ...(await Promise.all(others))];
    for (const { url } of services) expect(url).toBe(`https://127.0.0.1:${port}${BASE_PATH}`);
    const { key } = await openAccount(first);
    await importEvents(first, minutely(3));
    const asking = keepAsking(first, key, everyMs);
    for (let restarts = 0; restarts < RESTARTS; restarts++) {
      const service = services[restarts % processes] as ServiceProcess;
      expect(await service.stop()).toBe(0);
      await service.start();
    }
    expect([...(await asking.stop()).keys()]).toEqual([200]);
  },
);
