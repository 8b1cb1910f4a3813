import { Agent, request } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { lastingPort } from '../support/lasting-port.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
import { openAccount, SEPTEMBER } from '../support/transactions/e2e-samples.ts';
import { until } from '../support/waiting.ts';

/** `FUEL_RESTARTS=100` makes the long run. */
const RESTARTS = Number(process.env.FUEL_RESTARTS ?? 2);
const CLIENTS = 8;
const PAUSE_MS = 5;

interface Tally {
  answered: number;
  /** The requests that were sent on an open connection and got no whole answer. */
  readonly lost: string[];
}

/** Sends one request, on the connection of the one before if that is open. A refused connection has lost none. */
function ask(
  url: string,
  agent: Agent,
  headers: Readonly<Record<string, string>>,
  tally: Tally,
): Promise<void> {
  return new Promise((resolve) => {
    let isSent = false;
    const asked = request(url, { agent, headers, rejectUnauthorized: false });
    asked.once('socket', (socket) => {
      if (asked.reusedSocket) isSent = true;
      else {
        socket.once('secureConnect', () => {
          isSent = true;
        });
      }
    });
    const fail = (error: NodeJS.ErrnoException): void => {
      if (isSent) tally.lost.push(`${error.code} ${asked.reusedSocket ? 'kept' : 'new'}`);
      resolve();
    };
    asked.once('error', fail).once('response', (response) => {
      response.once('error', fail).resume();
      response.once('end', () => {
        tally.answered += 1;
        resolve();
      });
    });
    asked.end();
  });
}

test('a clean end under the load of kept connections leaves no request without its answer', async () => {
  const env = { FUEL_LISTEN: `127.0.0.1:${await lastingPort()}`, FUEL_STOP_DELAY: '500ms' };
  const service = await new ServiceProcess({ env }).start();
  const { key, prefix } = await openAccount(service);
  await service.done(['key', 'rate-limit', prefix, '1000000', '--wait']);
  const url = `${service.url}/transactions?${SEPTEMBER}`;
  const tally: Tally = { answered: 0, lost: [] };
  let isOver = false;
  const clients = Array.from({ length: CLIENTS }, async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (; !isOver; await sleep(PAUSE_MS)) await ask(url, agent, { 'X-API-Key': key }, tally);
    agent.destroy();
  });
  for (let count = 0; count < RESTARTS; count++) {
    const before = tally.answered;
    await until(() => tally.answered > before + 10 * CLIENTS);
    expect(await service.stop()).toBe(0);
    await service.start();
  }
  isOver = true;
  await Promise.all(clients);
  expect(tally.lost).toEqual([]);
});
