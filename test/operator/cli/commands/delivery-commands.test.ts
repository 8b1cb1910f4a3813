import { describe, expect, test } from 'vitest';
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
import { commandLine } from '../../../support/service/command-line.ts';
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
  test('lists 50 by default, and at most 1,000', async () => {
    const many = commandLine();
    const deliveries = Array.from({ length: 51 }, (_, index) => deliveryOf(index + 1));
    await many.withEngines((engines) => engines.queue().enqueue(deliveries));
    expect((await many.fuel('delivery', 'list', '--json')).lines).toHaveLength(50);
    expect((await many.fuel('delivery', 'list', '--json', '--limit', '1000')).lines).toHaveLength(51);
    expect((await many.fuel('delivery', 'list', '--limit', '1001')).code).toBe(2);
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
      const attempt = { ...attemptOf(third, 20_000, SUCCESS), durationMs: 12.7, sentAgain: true };
      await queue.report([{ kind: 'delivered', ...claimOf(third), attempt }]);
    });
    const { attempts } = await done('delivery', 'show', idOf(1));
    const timeout = { kind: 'timeout', detail: 'no answer in 500 ms' };
    const nothing = { status: null, headers: null, body: null };
    const attempt = (cycle: number, number: number, second: number) => ({
      ...{
        cycle,
        number,
        at: at(second),
        duration_ms: 250,
        others_under_way: 3,
        sent_again: false,
        ok: false,
      },
    });
    expect(attempts).toEqual([
      { ...attempt(1, 1, 10), ...nothing, error: timeout },
      {
        ...attempt(1, 2, 11),
        status: 503,
        headers: {},
        body: 'busy',
        error: { kind: 'status', detail: 'status 503' },
      },
      {
        ...{
          ...attempt(2, 1, 20),
          duration_ms: 13,
          sent_again: true,
          ok: true,
          status: 204,
          headers: { server: 'x' },
        },
        body: '',
        error: null,
      },
    ]);
    const { stdout } = await fuel('delivery', 'show', idOf(1));
    expect(stdout).toMatch(/^Delivery +\S+\nState +delivered\n/);
    expect(stdout).toMatch(/Attempts, 2 of 3\n(?: {2}.*\n)* {2}Status +503\n(?: {2}.*\n)* {2}Body +busy\n/);
    expect(stdout).toMatch(/Attempts, 3 of 3\n(?: {2}.*\n)* {2}Headers +server x\n/);
  });

  test('a delivery log that does not exist cannot be followed', async () => {
    const { code, stderr } = await commandLine().fuel('delivery', 'list', '--follow');
    expect([code, stderr]).toEqual([1, expect.stringContaining('Start `fuel serve`')]);
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

  test('takes ids, or a key with one of --failed, --delivered and --cancel, and no mixture', async () => {
    const { fuel, eventsOf } = await start();
    const key = ['--key', PREFIX];
    for (const args of [
      [],
      ['--failed'],
      key,
      [idOf(2), ...key],
      [idOf(2), '--since', at(1)],
      [idOf(2), '--until', at(9)],
      [idOf(2), '--failed', ...key],
      ['--failed', '--force', ...key],
      ['--failed', '--delivered', ...key],
      ['--cancel', '--failed', ...key],
      ['--cancel', '--dry-run', ...key],
      ['--cancel', '--since', at(1), ...key],
    ])
      expect([args, (await fuel('delivery', 'redeliver', ...args)).code]).toEqual([args, 2]);
    expect(await eventsOf('account-7')).toHaveLength(3);
  });

  test('by id names what it refuses; of a key it is counted, says what it left out, and is cancelled', async () => {
    const { fuel, done, append, state } = await start();
    const { code, json, stderr } = await fuel('delivery', 'redeliver', '--json', idOf(1), idOf(3), NOBODY);
    expect([code, json]).toEqual([1, { redelivered: 0, unchanged: 1, refused: 2 }]);
    expect(stderr.trim().split('\n')).toEqual([
      `${NOBODY}: There is no such delivery. See \`fuel delivery list\``,
      `${idOf(1)}: it was already delivered. Use --force to send it once more`,
    ]);
    const forced = await fuel('delivery', 'redeliver', '--force', idOf(1));
    expect([forced.code, forced.stdout]).toEqual([
      0,
      `redelivered 1, already pending 0, refused 0. Next: fuel delivery show ${idOf(1)}\n`,
    ]);
    await append('transaction-2', [voided(2)]);
    const ofKey = ['delivery', 'redeliver', '--key', PREFIX];
    expect(await done(...ofKey, '--failed', '--dry-run')).toEqual({ deliveries: 1 });
    const none = { redelivered: 0, unchanged: 0, refused: 0, left_out: 0 };
    expect(await done(...ofKey, '--failed', '--since', at(5), '--until', at(9))).toEqual(none);
    expect(await fuel(...ofKey, '--failed')).toMatchObject({
      code: 0,
      stdout:
        'redelivered 1, already pending 0, refused 0, left out 1. ' +
        `Next: fuel delivery list --key ${PREFIX} --state failed\n`,
      stderr: '',
    });
    expect(await done(...ofKey, '--cancel')).toEqual({ cancelled: 2 });
    expect(await state(4)).toBe('failed');
  });
});
