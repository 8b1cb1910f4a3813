import { beforeAll, describe, expect, it } from 'vitest';
import { deliveryId } from '../../src/push/message/envelope.ts';
import type { Delivery } from '../../src/push/queue/delivery.ts';
import { type Customer, PushService } from '../support/deliveries/push-service.ts';
import { answerWith, type HookAnswer } from '../support/deliveries/webhook-receiver.ts';
import type { EventLine } from '../support/transactions/e2e-samples.ts';
import { until } from '../support/waiting.ts';

const TIMEOUT_MS = 500;
const SUCCESSES = [200, 201, 202, 204, 299];
const FAILURES = [300, 302, 304, 307, 308, 400, 404, 410, 429, 500, 503];

/** So often a transaction is sent in place of one whose attempts ran out of time on a busy machine. */
const MAX_ROUNDS = 6;

let push: PushService;
const customers = new Map<number, Customer>();
/** The transaction of each case, and of each status. */
const transactions = new Map<string, number>();

const answeredAfter =
  (delayMs: number): HookAnswer =>
  (response) =>
    void setTimeout(() => response.writeHead(200).end('ok'), delayMs);

const endless: HookAnswer = (response) => {
  response.writeHead(200);
  const ticking = setInterval(() => response.write('still here\n'), 20);
  response.on('close', () => clearInterval(ticking));
};

const flood: HookAnswer = (response) => {
  const chunk = Buffer.alloc(65_536, 'z');
  const more = (): void => {
    while (!response.destroyed && response.write(chunk));
  };
  response.writeHead(200).on('drain', more);
  more();
};

const cutHalfway: HookAnswer = (response) => {
  response.writeHead(200, { 'Content-Length': '1000' });
  response.write('only a part', () => response.socket?.destroy());
};

/** Byte for byte, and the connection is closed behind it. */
const raw =
  (text: string): HookAnswer =>
  (response) =>
    void response.socket?.end(text);

interface Case {
  readonly answer?: HookAnswer;
  /** Another address than the receiver's. */
  readonly url?: () => string;
  readonly account: number;
}

const cases = {
  redirect: {
    account: 1,
    answer: (response) => answerWith(301, 'moved', { Location: push.receiver.url('/elsewhere') })(response),
  },
  large: { account: 2, answer: answerWith(200, 'x'.repeat(2 * 1_048_576)) },
  largeFailure: { account: 3, answer: answerWith(500, 'y'.repeat(100_000)) },
  endless: { account: 4, answer: endless },
  flood: { account: 5, answer: flood },
  late: { account: 6, answer: answeredAfter(700) },
  inTime: { account: 7, answer: answeredAfter(250) },
  silent: { account: 8, answer: () => undefined },
  cut: { account: 9, answer: (response) => void response.socket?.destroy() },
  cutHalfway: { account: 10, answer: cutHalfway },
  connect: { account: 11, url: () => 'https://127.0.0.1:9/hook' },
  dns: { account: 12, url: () => 'https://no-such-host.invalid/hook' },
  tls: { account: 13, url: () => push.service.opsUrl.replace('http:', 'https:') },
  hints: {
    account: 14,
    answer: raw(
      'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
    ),
  },
  closing: { account: 15, answer: raw('HTTP/1.0 200 OK\r\n\r\nended by the close') },
  noHttp: { account: 16, answer: raw('SSH-2.0-OpenSSH_9.6\r\n\r\n') },
  badChunks: {
    account: 17,
    answer: raw('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnot a length\r\n'),
  },
  hugeHeaders: { account: 18, answer: raw(`HTTP/1.1 200 OK\r\nX-Big: ${'h'.repeat(1_048_576)}\r\n\r\n`) },
} as const satisfies Record<string, Case>;
const STATUSES = 20;

beforeAll(async () => {
  push = await PushService.start();
  for (const [name, { account, ...how }] of Object.entries<Case>(cases)) {
    const customer = await opened(account);
    if (how.answer !== undefined) push.receiver.answer(customer.path, how.answer);
    if (how.url !== undefined) await setUrl(customer, how.url());
    add(name, account);
  }
  const statuses = await opened(STATUSES);
  push.receiver.answer(statuses.path, (response, hook) => {
    const status = hook.body.data.transaction.odometer_reading;
    answerWith(status, status === 204 || status === 304 ? '' : '<html>not read</html>')(response);
  });
  for (const status of [...SUCCESSES, ...FAILURES]) add(`${status}`, STATUSES, { odometer_reading: status });
  await push.record(events);
});

const events: EventLine[] = [];

function add(name: string, account: number, overrides: Readonly<Record<string, unknown>> = {}): void {
  const made = push.made(account, 1, overrides);
  events.push(...made);
  transactions.set(name, Number(made[0]?.data.transaction_id));
}

async function opened(account: number): Promise<Customer> {
  const customer = await push.customer(account);
  customers.set(account, customer);
  return customer;
}

function setUrl({ account, prefix }: Customer, url: string): Promise<unknown> {
  return push.service.operator.setWebhook({ accountId: account, prefix }, url);
}

/** The delivery of the transaction, once it has ended. */
async function ended(account: number, transactionId: number): Promise<Delivery> {
  const id = deliveryId(customers.get(account)?.prefix ?? '', transactionId);
  let delivery: Delivery | undefined;
  await until(async () => {
    delivery = await push.found(id);
    return delivery !== undefined && delivery.state !== 'pending';
  }, 20_000);
  if (delivery === undefined) throw new Error(`there is no delivery ${id}`);
  return delivery;
}

/**
 * As `ended`. The time of an attempt is too short for a machine that is very busy: where one of them ran out of it,
 * the delivery of another transaction that is like it.
 */
async function endedInTime(
  name: string,
  account: number,
  overrides: Readonly<Record<string, unknown>> = {},
): Promise<Delivery> {
  let transactionId = transactions.get(name) ?? 0;
  for (let round = 1; round <= MAX_ROUNDS; round++) {
    const delivery = await ended(account, transactionId);
    if (delivery.attempts.every(({ outcome }) => outcome.ok || outcome.kind !== 'timeout')) return delivery;
    [transactionId = 0] = await push.push(account, 1, overrides);
  }
  throw new Error(`attempts of ${name} ran out of time in each of ${MAX_ROUNDS} rounds`);
}

async function outcome(name: keyof typeof cases, { timesOut = false } = {}) {
  const { account } = cases[name];
  const delivery = timesOut
    ? await ended(account, transactions.get(name) ?? 0)
    : await endedInTime(name, account);
  const { attempts, state } = await push.show(delivery.id);
  expect(attempts).toHaveLength(state === 'delivered' ? 1 : 3);
  // biome-ignore lint/suspicious/noExplicitAny: a test reads the output as an operator's script would
  const kinds = attempts.map((attempt: any) => attempt.error?.kind);
  return { state, kinds, first: attempts[0] };
}

describe('what a receiver answers', () => {
  it('is a success with any 2xx whatever its body, and a failure with any other status', async () => {
    const sent = new Map<number, { state: string; count: number }>();
    for (const status of [...SUCCESSES, ...FAILURES]) {
      const { id, state } = await endedInTime(`${status}`, STATUSES, { odometer_reading: status });
      const count = push.receiver.to(`/hook/${STATUSES}`).filter(({ body }) => body.id === id).length;
      sent.set(status, { state, count });
    }
    const expected = [
      ...SUCCESSES.map((status) => [status, { state: 'delivered', count: 1 }] as const),
      ...FAILURES.map((status) => [status, { state: 'failed', count: 3 }] as const),
    ];
    expect(sent).toEqual(new Map<number, { state: string; count: number }>(expected));
  });

  it('is not followed where it redirects, and is kept with its headers', async () => {
    const { state, kinds, first } = await outcome('redirect');
    expect([state, kinds]).toEqual(['failed', ['status', 'status', 'status']]);
    expect(first).toMatchObject({ status: 301, body: 'moved' });
    expect(first.headers.location).toBe(push.receiver.url('/elsewhere'));
    expect(push.receiver.to('/elsewhere')).toEqual([]);
  });

  it('may be large: a success if it comes in time, and 4 KiB of it are stored', async () => {
    const { state, first } = await outcome('large');
    expect([state, first.status, first.body]).toEqual(['delivered', 200, 'x'.repeat(4_096)]);
    const failure = await outcome('largeFailure');
    expect([failure.state, failure.first.status, failure.first.body]).toEqual([
      'failed',
      500,
      'y'.repeat(4_096),
    ]);
  });

  it('is cut off when it is endless, and counts by its status', async () => {
    const { state, first } = await outcome('flood');
    expect([state, first.status, first.error]).toEqual(['delivered', 200, null]);
  });

  it.each(['endless', 'late', 'silent'] as const)(
    'is a timeout at 500 ms when it is %s, also where it began with 200',
    async (name) => {
      const { state, kinds, first } = await outcome(name, { timesOut: true });
      expect([state, kinds]).toEqual(['failed', ['timeout', 'timeout', 'timeout']]);
      expect(first.duration_ms).toBeGreaterThanOrEqual(TIMEOUT_MS - 10);
      expect(first.duration_ms).toBeLessThan(TIMEOUT_MS + 1_000);
    },
  );

  it.each(['hints', 'closing'] as const)('is a success in any form that HTTP allows: %s', async (name) => {
    const { state, first } = await outcome(name);
    expect([state, first.status]).toEqual(['delivered', 200]);
  });

  it('is a success when it comes just before the time is up', async () => {
    const { state, first } = await outcome('inTime');
    expect(state).toBe('delivered');
    expect(first.duration_ms).toBeGreaterThanOrEqual(245);
  });

  it.each([
    ['cut', 'cut'],
    ['cutHalfway', 'cut'],
    ['connect', 'connect'],
    ['dns', 'dns'],
    ['tls', 'tls'],
    ['noHttp', 'protocol'],
    ['badChunks', 'protocol'],
    ['hugeHeaders', 'protocol'],
  ] as const)('is a failure of a separate kind when there is none: %s', async (name, kind) => {
    const { state, kinds } = await outcome(name);
    expect([state, kinds]).toEqual(['failed', [kind, kind, kind]]);
  });
});

describe('a receiver that closes its idle connections', () => {
  it('still gets everything at the first attempt', async () => {
    const customer: Customer = await push.customer(41);
    push.receiver.answer(customer.path, (response) => {
      response.end('ok', () => setTimeout(() => response.socket?.destroy(), 30));
    });
    for (const count of [5, 10, 15]) {
      await push.push(customer.account, 5);
      await push.settled(customer.account, 'delivered', count);
    }
    expect(push.receiver.to(customer.path)).toHaveLength(15);
  });
});

describe('a receiver that never answers', () => {
  it('does not delay another’s, even with a backlog', async () => {
    const slow: Customer = await push.customer(31);
    const fast: Customer = await push.customer(32);
    push.receiver.answer(slow.path, () => undefined);
    await push.push(slow.account, 200);
    await push.receiver.received(slow.path, 5);
    for (const count of [20, 40, 60]) {
      await push.push(fast.account, 20);
      await push.receiver.received(fast.path, count);
    }
    const waits = push.receiver.to(fast.path).map(({ atMs, body }) => atMs - Date.parse(body.created_at));
    // Behind attempts that hang, each would wait for 500 ms and more.
    waits.sort((a, b) => a - b);
    expect(waits[waits.length / 2]).toBeLessThan(TIMEOUT_MS);
    expect(Math.max(...waits)).toBeLessThan(1_500);
  });
});
