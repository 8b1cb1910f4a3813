import { describe, expect, test } from 'vitest';
import { createHealthEvents, type HealthVerdict } from '../../../src/push/health/health-events.ts';
import { keyIssued, onKey, opened, PREFIX, webhookSet } from '../../support/accounts/account-samples.ts';
import { openPushStores } from '../../support/deliveries/push-stores.ts';

const OTHER = 'bbbbbbbbbb';
const SINCE_MS = Date.parse('2026-09-02T08:00:00.000Z');

async function start() {
  const stores = openPushStores();
  const other = { prefix: OTHER };
  await stores.account(opened(), keyIssued(), webhookSet(), keyIssued(other), webhookSet(other));
  const append = createHealthEvents(stores.store, stores.clock);
  const record = (
    judgement: HealthVerdict['judgement'],
    prefix = PREFIX,
    failingSinceMs: number | null = SINCE_MS,
  ) =>
    append({
      prefix,
      accountId: 7,
      judgement,
      health: {
        failedInARow: judgement.kind === 'warn' ? 25 : 50,
        failingSinceMs,
        lastAnswers: ['503', 'timeout: no answer'],
      },
    });
  const recorded = async () =>
    (await stores.store.readStream('account-7')).filter(({ type }) => /Failing|Disabled/.test(type));
  return {
    ...stores,
    record,
    recorded,
    warn: (prefix?: string, since?: number | null) => record({ kind: 'warn' }, prefix, since),
  };
}

describe('a warning', () => {
  test('is recorded with the streak as evidence, by the service itself', async () => {
    const { warn, recorded } = await start();
    await warn();
    expect(await recorded()).toMatchObject([
      {
        type: 'WebhookFailing',
        metadata: { actor: 'system', command: 'dispatcher' },
        data: {
          account_id: 7,
          prefix: PREFIX,
          failed_in_a_row: 25,
          failing_since: '2026-09-02T08:00:00.000Z',
          last_answers: ['503', 'timeout: no answer'],
        },
      },
    ]);
  });

  test('is recorded once for a streak, which its first failure names, and once for each webhook', async () => {
    const { warn, recorded } = await start();
    await warn();
    await warn();
    expect(await recorded()).toHaveLength(1);
    await warn(OTHER);
    await warn(OTHER);
    expect(await recorded()).toHaveLength(2);
    await warn(PREFIX, SINCE_MS + 1);
    await warn(PREFIX, SINCE_MS);
    expect(await recorded()).toHaveLength(3);
    await warn(PREFIX, null); // a hold ended the streak's time
    await warn(PREFIX, null);
    expect(await recorded()).toHaveLength(4);
  });

  test('is recorded once when several processes warn of one streak at the same time', async () => {
    const { warn, recorded } = await start();
    await Promise.all([warn(), warn(), warn()]);
    expect(await recorded()).toHaveLength(1);
  });

  test('that cannot be read counts for none: the account that holds it is refused another event', async () => {
    const { warn, append } = await start();
    await append('account-7', { type: 'WebhookFailing', data: { prefix: PREFIX } });
    await expect(warn()).rejects.toMatchObject({
      code: 'REFUSED',
      message: expect.stringMatching(/^account 7 can't be read: /),
    });
  });

  test('of a webhook that was removed meanwhile is not recorded', async () => {
    const { warn, recorded, account } = await start();
    await account(onKey('WebhookRemoved'));
    await warn();
    expect(await recorded()).toEqual([]);
  });
});

test('a switch-off is recorded once with its reason, whether or not the streak was warned of', async () => {
  const { warn, record, recorded } = await start();
  await warn();
  const off = { kind: 'switch off', reason: '50 deliveries failed in a row' } as const;
  await record(off);
  await record(off);
  const [, ...disabled] = await recorded();
  expect(disabled).toMatchObject([
    { type: 'WebhookDisabled', data: { prefix: PREFIX, reason: '50 deliveries failed in a row' } },
  ]);
});

test('a switch-off of a webhook that was removed meanwhile is refused', async () => {
  const { record, account } = await start();
  await account(onKey('WebhookRemoved'));
  const off = { kind: 'switch off', reason: '50 deliveries failed in a row' } as const;
  await expect(record(off)).rejects.toMatchObject({ code: 'REFUSED' });
});
