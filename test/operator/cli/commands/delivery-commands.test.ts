import { describe, expect, test, vi } from 'vitest';
import { outcomeAnswer, outcomeText } from '../../../../src/operator/answers/delivery.ts';
import type { AttemptOutcome } from '../../../../src/push/queue/delivery.ts';
import type { DeliveryQueue } from '../../../../src/push/queue/delivery-queue.ts';
import { keyIssued, opened, PREFIX, webhookSet } from '../../../support/accounts/account-samples.ts';
import {
  attemptOf,
  claimFrom,
  claimOf,
  claimOptions,
  delivered,
  failed,
  newDelivery,
  retryAt,
  SUCCESS,
  TIMEOUT,
  UNAVAILABLE,
} from '../../../support/deliveries/deliveries.ts';
import { cellsOf, commandLine } from '../../../support/service/command-line.ts';
import { voided } from '../../../support/transactions/e2e-samples.ts';

const NOBODY = '00000000-0000-5000-8000-000000000000';
const other = 'klmnopqrst';
const deliveryOf = (n: number, overrides: object = {}) =>
  newDelivery(n, { prefix: PREFIX, createdAtMs: n * 1_000, ...overrides });
const idOf = (n: number, prefix = PREFIX) => newDelivery(n, { prefix }).id;
const at = (n: number) => new Date(n * 1_000).toISOString();

/** 1 delivered, 2 failed, 3 pending, 4 failed, 5 of another key and account. */
async function fill(queue: DeliveryQueue): Promise<void> {
  const claimed = await queue.enqueue(
    [1, 2, 4].map((n) => deliveryOf(n)),
    claimOptions(9_000),
  );
  const reports = claimed.map((claim) =>
    claim.transactionId === 1 ? delivered(claim, 10_000) : failed(claim, 10_000),
  );
  await queue.report(reports);
  await queue.enqueue([deliveryOf(3), deliveryOf(5, { prefix: other, accountId: 8 })]);
}

describe('fuel delivery list', () => {
  const FILTERS: readonly [args: string[], transactions: number[]][] = [
    [[], [5, 4, 3, 2, 1]],
    [
      ['--key', PREFIX],
      [4, 3, 2, 1],
    ],
    [['--account', '8'], [5]],
    [
      ['--state', 'failed'],
      [4, 2],
    ],
    [['--state', 'held'], []],
    [
      ['--since', at(3)],
      [5, 4, 3],
    ],
    [
      ['--until', at(3)],
      [3, 2, 1],
    ],
    [
      ['--since', at(2), '--until', at(4), '--state', 'failed'],
      [4, 2],
    ],
    [
      ['--limit', '2'],
      [5, 4],
    ],
    [
      ['--after', idOf(4)],
      [3, 2, 1],
    ],
    [['--after', idOf(4), '--limit', '1'], [3]],
  ];

  test('lists those that fit, newest first', async () => {
    const { fuel, withEngines } = commandLine();
    await withEngines((engines) => fill(engines.queue()));
    for (const [args, transactions] of FILTERS) {
      const { code, lines } = await fuel('delivery', 'list', '--json', ...args);
      const listed = lines.map(({ transaction_id }) => transaction_id);
      expect([args, code, listed]).toEqual([args, 0, transactions]);
    }
  });

  test('lists 50 by default, and at most 1,000', async () => {
    const { fuel, withEngines } = commandLine();
    const many = Array.from({ length: 1_001 }, (_, index) => deliveryOf(index + 1));
    await withEngines((engines) => engines.queue().enqueue(many));
    expect((await fuel('delivery', 'list', '--json')).lines).toHaveLength(50);
    expect((await fuel('delivery', 'list', '--json', '--limit', '1000')).lines).toHaveLength(1_000);
    expect((await fuel('delivery', 'list', '--limit', '1001')).code).toBe(2);
  });

  test('refuses to continue after a delivery that does not exist', async () => {
    const { fuel } = commandLine();
    expect(await fuel('delivery', 'list', '--after', NOBODY)).toMatchObject({
      code: 1,
      stderr: `fuel: REFUSED: there is no delivery ${NOBODY} to continue after\n`,
    });
  });

  test('says of each delivery where it stands', async () => {
    const { fuel, withEngines } = commandLine();
    await withEngines((engines) => fill(engines.queue()));
    const { stdout } = await fuel('delivery', 'list', '--key', PREFIX, '--limit', '3');
    const type = 'transaction.confirmed';
    expect(cellsOf(stdout)).toEqual([
      ['Delivery', 'State', 'Key', 'Account', 'Transaction', 'Type', 'Created', 'Reason', 'Due'],
      [idOf(4), 'failed', PREFIX, '7', '4', type, at(4), 'status 503', '–'],
      [idOf(3), 'pending', PREFIX, '7', '3', type, at(3), '–', at(3)],
      [idOf(2), 'failed', PREFIX, '7', '2', type, at(2), 'status 503', '–'],
    ]);
    const [, pending] = (await fuel('delivery', 'list', '--key', PREFIX, '--json')).lines;
    expect(pending).toEqual({
      id: idOf(3),
      state: 'pending',
      key: PREFIX,
      account: 7,
      transaction_id: 3,
      type: 'transaction.confirmed',
      created_at: at(3),
      reason: null,
      due_at: at(3),
    });
    const [ended] = (await fuel('delivery', 'list', '--key', PREFIX, '--json')).lines;
    expect(ended).toMatchObject({ state: 'failed', reason: 'status 503', due_at: null });
  });
});

describe('fuel delivery show', () => {
  test('shows each attempt of each cycle with what was answered', async () => {
    const { fuel, done, withEngines } = commandLine();
    await withEngines(async (engines) => {
      const queue = engines.queue();
      const [first] = await queue.enqueue([deliveryOf(1)], claimOptions(9_000));
      if (first !== undefined) await queue.report([retryAt(first, 10_000, 11_000, TIMEOUT)]);
      const [second] = await claimFrom(queue, claimOptions(11_000));
      if (second !== undefined) await queue.report([failed(second, 11_000)]);
      await queue.redeliver(deliveryOf(1), { force: false, dueAtMs: 20_000 });
      const [third] = await claimFrom(queue, claimOptions(20_000));
      if (third === undefined) throw new Error('nothing was claimed');
      const attempt = { ...attemptOf(third, 20_000, SUCCESS), durationMs: 12.7 };
      await queue.report([{ kind: 'delivered', ...claimOf(third), attempt }]);
    });
    const { attempts } = await done('delivery', 'show', idOf(1));
    const timeout = { kind: 'timeout', detail: 'no answer in 500 ms' };
    const nothing = { status: null, headers: null, body: null };
    expect(attempts).toEqual([
      {
        cycle: 1,
        number: 1,
        at: at(10),
        duration_ms: 250,
        others_under_way: 3,
        ok: false,
        ...nothing,
        error: timeout,
      },
      {
        ...{
          cycle: 1,
          number: 2,
          at: at(11),
          duration_ms: 250,
          others_under_way: 3,
          ok: false,
          status: 503,
          headers: {},
          body: 'busy',
        },
        error: { kind: 'status', detail: 'status 503' },
      },
      {
        ...{
          cycle: 2,
          number: 1,
          at: at(20),
          duration_ms: 13,
          others_under_way: 3,
          ok: true,
          status: 204,
          headers: { server: 'x' },
        },
        ...{ body: '', error: null },
      },
    ]);
    const { stdout } = await fuel('delivery', 'show', idOf(1));
    expect(stdout).toMatch(/^Delivery +\S+\nState +delivered\n/);
    expect(stdout).toMatch(/Attempts, 2 of 3\n(?: {2}.*\n)* {2}Status +503\n(?: {2}.*\n)* {2}Body +busy\n/);
    expect(stdout).toMatch(/Attempts, 3 of 3\n(?: {2}.*\n)* {2}Headers +server x\n/);
  });

  test('names a delivery that is not there', async () => {
    const { fuel } = commandLine();
    expect((await fuel('delivery', 'show', NOBODY)).stderr).toBe(
      `fuel: REFUSED: there is no delivery ${NOBODY}: fuel delivery list shows them\n`,
    );
  });
});

describe('what a receiver answered', () => {
  const cut: AttemptOutcome = {
    ok: false,
    kind: 'cut',
    detail: 'the connection was closed',
    answer: SUCCESS.answer,
  };

  test('is shown with the fault that ended the attempt, where there was one', () => {
    const text = (outcome: AttemptOutcome) => outcomeText(outcomeAnswer(outcome));
    expect([SUCCESS, UNAVAILABLE, TIMEOUT, cut].map(text)).toEqual([
      'answered 204',
      'answered 503',
      'timeout: no answer in 500 ms',
      'answered 204, cut: the connection was closed',
    ]);
    expect(outcomeAnswer(cut)).toEqual({
      ok: false,
      status: 204,
      headers: { server: 'x' },
      body: '',
      error: { kind: 'cut', detail: 'the connection was closed' },
    });
  });
});

describe('fuel delivery redeliver', () => {
  async function start() {
    const cli = commandLine();
    await cli.account(opened(), keyIssued(), webhookSet());
    for (const n of [1, 2, 3, 4])
      await cli.append(`transaction-${n}`, [{ type: 'TransactionConfirmed', data: {} }]);
    await cli.withEngines((engines) => fill(engines.queue()));
    const state = async (n: number) => (await cli.done('delivery', 'show', idOf(n))).state;
    return { ...cli, state };
  }

  test('takes ids, or --failed with a key, and no mixture', async () => {
    const { fuel, eventsOf } = await start();
    for (const args of [
      [],
      ['--failed'],
      ['--key', PREFIX],
      [idOf(2), '--key', PREFIX],
      [idOf(2), '--since', at(1)],
      [idOf(2), '--until', at(9)],
      [idOf(2), '--failed', '--key', PREFIX],
      ['--failed', '--key', PREFIX, '--force'],
    ]) {
      expect([args, (await fuel('delivery', 'redeliver', ...args)).code]).toEqual([args, 2]);
    }
    expect(await eventsOf('account-7')).toHaveLength(3);
  });

  test('by id names what it refuses, and sends the rest again', async () => {
    const { fuel, state } = await start();
    const { code, json, stderr } = await fuel(
      'delivery',
      'redeliver',
      '--json',
      idOf(1),
      idOf(2),
      idOf(3),
      NOBODY,
    );
    expect([code, json]).toEqual([1, { redelivered: 1, unchanged: 1, refused: 2 }]);
    expect(stderr.trim().split('\n').sort()).toEqual(
      [
        `${NOBODY}: there is no such delivery: fuel delivery list`,
        `${idOf(1)}: it was already delivered: use --force to send it once more`,
      ].sort(),
    );
    expect([await state(1), await state(2), await state(4)]).toEqual(['delivered', 'pending', 'failed']);
  });

  test('with --force sends also what was delivered', async () => {
    const { fuel, state, eventsOf } = await start();
    const { code, stdout } = await fuel('delivery', 'redeliver', '--force', idOf(1), '--actor', 'Ada');
    expect([code, stdout]).toEqual([0, 'redelivered 1, already pending 0, refused 0\n']);
    expect(await state(1)).toBe('pending');
    expect((await eventsOf('account-7')).at(-1)).toMatchObject({
      type: 'RedeliveryRequested',
      data: { delivery_ids: [idOf(1)], since: null, until: null, force: true },
      metadata: { actor: 'Ada', command: 'fuel delivery redeliver' },
    });
  });

  test('of all that failed keeps to the key and the time given', async () => {
    const { fuel, state, eventsOf } = await start();
    const range = ['--since', at(3), '--until', at(9)];
    const { code, json } = await fuel(
      'delivery',
      'redeliver',
      '--failed',
      '--key',
      PREFIX,
      ...range,
      '--json',
    );
    expect([code, json]).toEqual([0, { redelivered: 1, unchanged: 0, refused: 0, left_out: 0 }]);
    expect([await state(2), await state(4)]).toEqual(['failed', 'pending']);
    expect((await eventsOf('account-7')).at(-1)).toMatchObject({
      data: { delivery_ids: null, since: at(3), until: at(9), force: false },
    });
    const all = await fuel('delivery', 'redeliver', '--failed', '--key', PREFIX, '--json');
    expect(all.json).toEqual({ redelivered: 1, unchanged: 0, refused: 0, left_out: 0 });
    expect((await eventsOf('account-7')).at(-1)).toMatchObject({ data: { since: null, until: null } });
    expect((await fuel('delivery', 'redeliver', '--failed', '--key', other)).code).toBe(1);
  });

  test('of a key leaves out what was voided, in the count and when it is done, and exits 0', async () => {
    const { fuel, done, append, state } = await start();
    await append('transaction-2', [voided(2)]);
    const ofKey = ['delivery', 'redeliver', '--failed', '--key', PREFIX];
    expect(await done(...ofKey, '--dry-run')).toEqual({ deliveries: 1 });
    const { code, stdout, stderr } = await fuel(...ofKey);
    expect([code, stdout]).toEqual([0, 'redelivered 1, already pending 0, refused 0, left out 1\n']);
    expect(stderr).toMatch(/^1 deliveries; the last is due at \S+\n$/);
    expect([await state(2), await state(4)]).toEqual(['failed', 'pending']);
  });

  test('of a key that is interrupted while it counts records nothing', async () => {
    const { fuel, state, eventsOf } = await start();
    const before = (await eventsOf('account-7')).length;
    const { once } = process;
    const interrupting = vi.spyOn(process, 'once').mockImplementation((name, listener) => {
      once.call(process, name, listener);
      if (name === 'SIGINT') process.emit('SIGINT');
      return process;
    });
    const { code, json, stderr } = await fuel('delivery', 'redeliver', '--key', PREFIX, '--failed', '--json');
    interrupting.mockRestore();
    expect([code, json]).toEqual([1, { redelivered: 0, unchanged: 0, refused: 0, left_out: 0 }]);
    expect(stderr).toMatch(/interrupted: run the same command again/);
    expect([(await eventsOf('account-7')).length, await state(2)]).toEqual([before, 'failed']);
  });

  test('of a key is counted first, and cancelled', async () => {
    const { fuel, state, eventsOf } = await start();
    const ofKey = ['delivery', 'redeliver', '--key', PREFIX];
    const before = (await eventsOf('account-7')).length;
    const counted = await fuel(...ofKey, '--failed', '--dry-run', '--json');
    const { deliveries } = counted.json as { deliveries: number };
    expect((await eventsOf('account-7')).length).toBe(before);
    const { stdout, stderr } = await fuel(...ofKey, '--failed');
    expect(stderr).toMatch(new RegExp(`^${deliveries} deliveries; the last is due at 20`));
    expect(stdout).toMatch(new RegExp(`^redelivered ${deliveries}, `));
    expect(await state(2)).toBe('pending');
    expect((await fuel(...ofKey, '--cancel', '--json')).json).toEqual({ cancelled: deliveries });
    expect(await state(2)).toBe('failed');
    for (const wrong of [
      ['--delivered', '--failed'],
      ['--cancel', '--failed'],
      ['--cancel', '--dry-run'],
      [],
    ])
      expect([wrong, (await fuel(...ofKey, ...wrong)).code]).toEqual([wrong, 2]);
  });
});
