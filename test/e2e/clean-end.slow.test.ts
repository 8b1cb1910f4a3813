import { Agent, request } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { lastingPort } from '../support/lasting-port.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
import { openAccount, SEPTEMBER } from '../support/transactions/e2e-samples.ts';
import { until } from '../support/waiting.ts';

/** `npm run test:restarts` makes a hundred. */
const RESTARTS = Number(process.env.FUEL_TEST_RESTARTS ?? 2);
const MAX_RESTART_MS = 30_000; // on a busy machine
const CLIENTS = 8;
const PAUSE_MS = 5;
/** How often the load balancer looks at `/readyz`. */
const LOOK_MS = 500;
const PAUSE_OF_BALANCER_MS = 40; // a peer may make 32 handshakes a second

interface Target {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** The outcome of a request: the header `Connection` of its whole answer, or whether it was sent in vain or not at all. */
type Outcome = string | { readonly lost: string } | { readonly unsent: string };

/** Sends one request, on the connection of the one before if that is open. */
function ask({ url, headers }: Target, agent: Agent): Promise<Outcome> {
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
    const fail = ({ code = '' }: NodeJS.ErrnoException): void => {
      resolve(isSent ? { lost: `${code} ${asked.reusedSocket ? 'kept' : 'new'}` } : { unsent: code });
    };
    asked.once('error', fail).once('response', (response) => {
      response.once('error', fail).resume();
      response.once('end', () => resolve(response.headers.connection ?? 'none'));
    });
    asked.end();
  });
}

const keepingAgent = (): Agent => new Agent({ keepAlive: true, maxSockets: 1 });

/** Sends one request on a connection of its own, which the client would keep open. */
async function askAnew(target: Target): Promise<Outcome> {
  const agent = keepingAgent();
  const outcome = await ask(target, agent);
  agent.destroy();
  return outcome;
}

async function startWithKey(env: Readonly<Record<string, string>>) {
  const service = await new ServiceProcess({ env }).start();
  const { key, prefix } = await openAccount(service);
  await service.done(['key', 'rate-limit', prefix, '1000000', '--wait']);
  const target = { url: `${service.url}/transactions?${SEPTEMBER}`, headers: { 'X-API-Key': key } };
  return { service, target };
}

test('a clean end under the load of kept connections leaves no request without its answer', {
  timeout: 60_000 + RESTARTS * MAX_RESTART_MS,
}, async () => {
  const env = { FUEL_LISTEN: `127.0.0.1:${await lastingPort()}`, FUEL_STOP_DELAY: '500ms' };
  const { service, target } = await startWithKey(env);
  const lost: string[] = [];
  let answered = 0;
  let isOver = false;
  const clients = Array.from({ length: CLIENTS }, async () => {
    const agent = keepingAgent();
    for (; !isOver; await sleep(PAUSE_MS)) {
      const outcome = await ask(target, agent);
      if (typeof outcome === 'string') answered += 1;
      else if ('lost' in outcome) lost.push(outcome.lost);
    }
    agent.destroy();
  });
  for (let count = 0; count < RESTARTS; count++) {
    const before = answered;
    await until(() => answered > before + 10 * CLIENTS);
    expect(await service.stop()).toBe(0);
    await service.start();
  }
  isOver = true;
  await Promise.all(clients);
  expect(lost).toEqual([]);
});

/** A load balancer opens new connections until it has seen that the process is not ready. Returns what became of them. */
async function balance(service: ServiceProcess, target: Target): Promise<Outcome[]> {
  const isReady = async (): Promise<boolean> =>
    service.ops('/readyz').then(
      ({ status }) => status === 200,
      () => false,
    );
  let seesReady = true;
  const watch = async (): Promise<void> => {
    while (seesReady) {
      await sleep(LOOK_MS);
      seesReady = await isReady();
    }
  };
  const outcomes: Outcome[] = [];
  const connect = async (): Promise<void> => {
    for (; seesReady; await sleep(PAUSE_OF_BALANCER_MS)) outcomes.push(await askAnew(target));
  };
  await Promise.all([watch(), connect()]);
  return outcomes;
}

test('an ending process serves new and kept connections until a load balancer has seen it, and closes each', async () => {
  const { service, target } = await startWithKey({ FUEL_STOP_DELAY: '2s' });
  const kept = keepingAgent();
  expect([await askAnew(target), await ask(target, kept)]).toEqual(['keep-alive', 'keep-alive']);
  service.signal('SIGTERM'); // the balancer has just looked, so it sees this as late as it can
  const outcomes = await balance(service, target);
  const first = outcomes.indexOf('close');
  expect(new Set(outcomes.slice(0, first))).toEqual(new Set(first === 0 ? [] : ['keep-alive']));
  expect(new Set(outcomes.slice(first))).toEqual(new Set(['close']));
  expect([await askAnew(target), await ask(target, kept)]).toEqual(['close', 'close']);
  expect(await service.ended()).toBe(0);
});
