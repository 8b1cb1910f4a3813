import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

import { readDisk } from '../../../src/base/disk/disk.ts';
import { FuelError } from '../../../src/base/errors.ts';
import { RESTORE_EVENTS } from '../../../src/event-store/damage.ts';
import type { FollowerStatus } from '../../../src/operator/answers/follower.ts';
import { attention } from '../../../src/operator/checks/attention.ts';
import { checksOf } from '../../../src/operator/checks/checks.ts';
import { PREFIX } from '../../support/accounts/account-samples.ts';
import { doctorSays, factsWith, type Given, NOW_MS, type Values } from '../../support/checks/facts.ts';
import { readDocument } from '../../support/documents.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const DAY_MS = 86_400_000;
const GB = 1e9;
const NAMES = ['accounts', 'transactions', 'deliveries', 'notices'] as const;
const FULL = { freeBytes: 0, text: '', isLow: true, refusal: 'the disk of /data is full' };
const LOW = { ...FULL, refusal: undefined, text: '/data: 0.1 GB free, 1 %' };
const STREAK = { prefix: PREFIX, failedInARow: 4, failingSinceMs: NOW_MS, lastAnswers: ['503'] };
const STUCK = { prefix: PREFIX, sinceMs: NOW_MS - 301_000, isCertain: true };
const WELL = { ...FULL, refusal: undefined, isLow: false };

function followers(
  changes: Partial<Record<(typeof NAMES)[number], Partial<FollowerStatus>>> = {},
): FollowerStatus[] {
  return NAMES.map((name) => ({
    name,
    position: 5,
    lag_seconds: 0,
    lag_events: 0,
    parked: 0,
    holder: 'one',
    ...changes[name],
  }));
}

/** The figures of accounts that have these. */
function accountsWith({
  unreadable = [],
  disabled = [],
  webhooks = 0,
}: {
  readonly unreadable?: readonly number[];
  readonly disabled?: readonly string[];
  readonly webhooks?: number;
}): Values['accounts'] {
  const faults = unreadable.map((id) => ({ id, reason: 'event 3 is missing' }));
  return { accounts: 0, unreadable: faults, webhooks, disabledWebhooks: disabled.length, disabled };
}

const dueSince = (nextDueAtMs: number): Values['backlog'] => ({
  pending: 1,
  underWay: 0,
  waiting: 0,
  held: 0,
  failingLanes: 0,
  nextDueAtMs,
});
const repaired = (data: object, ageMs: number): Values['operations'] => {
  const atMs = NOW_MS - ageMs;
  const at = new Date(atMs).toISOString();
  return [{ type: 'AgreementRepaired', at, atMs, data }] as unknown as Values['operations'];
};
const ready = (checks: Readonly<Record<string, boolean>>): Values['readiness'] => ({ ready: false, checks });

/** How the overview shows these facts: `act` or `look`, and what it says. */
async function overview(given: Given): Promise<readonly string[]> {
  const problems = await attention(factsWith({ roles: ['api'], ...given }));
  return problems.map(({ isNotice, detail, do: remedy, words }) => {
    const more = remedy === `fuel ${words.join(' ')}` ? '' : `: ${remedy}`;
    return `${isNotice ? 'look' : 'act'}: ${detail}${more}`;
  });
}

const idle = { holder: null };
const never = { ...idle, position: 0 };
const allNever = followers({ accounts: never, transactions: never, deliveries: never, notices: never });

describe('doctor and the overview judge alike', () => {
  test.each<[string, Given, 'nothing' | 'act' | 'look']>([
    ['disk-space', { disk: FULL }, 'act'],
    ['disk-space', { disk: LOW }, 'act'],
    ['disk-space', { disk: WELL }, 'nothing'],
    ['parked-events', { followers: followers() }, 'nothing'],
    ['parked-events', { followers: followers({ transactions: { parked: 2 } }) }, 'act'],
    ['parked-events', { followers: followers({ deliveries: { parked: 1 } }) }, 'act'],
    ['parked-events', { followers: followers({ accounts: { parked: 1 } }) }, 'nothing'],
    ['parked-events', { followers: followers({ deliveries: { parked: 1 } }), disk: FULL }, 'act'],
    ['former-views', { formerViews: [] }, 'nothing'],
    ['former-views', { formerViews: [3] }, 'look'],
    ['lag', { followers: followers({ notices: { lag_seconds: 60 } }) }, 'nothing'],
    ['lag', { followers: followers({ notices: { lag_seconds: 61, lag_events: null } }) }, 'act'],
    ['lag', { followers: followers({ notices: { lag_seconds: 61 } }), disk: FULL }, 'nothing'],
    ['consumers', { followers: followers({ deliveries: idle }) }, 'act'],
    ['consumers', { followers: followers({ deliveries: idle }), disk: FULL }, 'nothing'],
    ['consumers', { followers: followers({ accounts: idle }) }, 'act'],
    ['consumers', { followers: followers({ notices: { ...never, lag_events: 3 } }) }, 'act'],
    ['consumers', { followers: allNever, accounts: accountsWith({ webhooks: 0 }) }, 'nothing'],
    ['consumers', { followers: allNever, accounts: accountsWith({ webhooks: 1 }) }, 'act'],
    ['accounts', { accounts: accountsWith({ unreadable: [] }) }, 'nothing'],
    ['accounts', { accounts: accountsWith({ unreadable: [7] }) }, 'act'],
    ['webhooks', { accounts: accountsWith({ disabled: [PREFIX] }) }, 'look'],
    ['webhooks', { failing: [STREAK] }, 'look'],
    ['overdue', { stuck: [STUCK] }, 'act'],
    ['overdue', { stuck: [STUCK], disk: FULL }, 'nothing'],
    ['overdue', { backlog: dueSince(NOW_MS - 301_000) }, 'look'],
    ['overdue', { backlog: dueSince(NOW_MS - 299_000) }, 'nothing'],
  ])('%s of %j: %s', async (name, facts, severity) => {
    expect((await doctorSays(name, facts)).ok).toBe(severity !== 'act');
    const others = facts.disk === FULL && name !== 'disk-space' ? ['act'] : [];
    const own = severity === 'nothing' ? [] : [severity];
    const levels = (await overview(facts)).map((text) => text.split(':')[0]);
    expect(new Set(levels)).toEqual(new Set([...own, ...others]));
  });
});

describe('what doctor says', () => {
  test('is what to do about each follower with parked events', async () => {
    const both = followers({ transactions: { parked: 2 }, deliveries: { parked: 1 } });
    const { detail, do: remedy } = await doctorSays('parked-events', { followers: both });
    expect(detail).toMatch(/^2 events of transactions are parked.*; an event of deliveries is parked/);
    expect(remedy).toMatch(/parked retry --all; fuel .*retry --all --follower deliveries$/);
  });

  test('is the role that nobody has, and the account that cannot be read', async () => {
    const some = followers({ transactions: idle, deliveries: idle });
    expect(await doctorSays('consumers', { followers: some })).toEqual({
      ok: false,
      detail:
        'no running process has the role projector, so nothing follows the log for transactions; ' +
        'no running process has the role webhooks, so nothing follows the log for deliveries',
      do: 'fuel serve --role projector; fuel serve --role webhooks',
    });
    expect(await doctorSays('accounts', { accounts: accountsWith({ unreadable: [7] }) })).toMatchObject({
      detail: 'account 7 is not served: event 3 is missing',
      do: expect.stringContaining('fuel account show 7'),
    });
  });

  test('is the cause, if a check was not made because of it', async () => {
    const late = followers({ notices: { lag_seconds: 61 } });
    expect(await doctorSays('lag', { followers: late, disk: FULL })).toEqual({
      ok: true,
      detail: 'not checked, because disk-space is wrong',
      do: null,
    });
  });

  test('names webhooks that are switched off, which are the customers’ to repair', async () => {
    const doctor = (...disabled: string[]) =>
      doctorSays('webhooks', { accounts: accountsWith({ disabled }) });
    expect(await doctor(PREFIX)).toMatchObject({
      ok: true,
      detail: `0 webhooks, 1 switched off, 0 failing; deliveries: 0 pending, 0 held; the webhook of key ${PREFIX} is switched off: nothing is sent to it (fuel webhook show ${PREFIX})`,
    });
    const three = (await doctor('aa', 'bb', 'cc')).detail;
    expect(three.match(/fuel webhook show \w+/g)).toEqual(
      ['aa', 'bb', 'cc'].map((key) => `fuel webhook show ${key}`),
    );
    const four = (await doctor('aa', 'bb', 'cc', 'dd')).detail;
    expect(four).toContain('4 webhooks are switched off: nothing is sent to aa, bb, cc, dd');
  });
});

describe('what the overview says', () => {
  test('is nothing if all is well', async () => {
    expect(await overview({})).toEqual([]);
  });

  test('begins with what does not end before somebody acts', async () => {
    const found = await overview({
      followers: followers({ transactions: { parked: 1, unfinished_rebuild_percent: 40 } }),
      accounts: accountsWith({ unreadable: [7], disabled: [PREFIX] }),
    });
    expect(found.map((text) => text.split(':')[0])).toEqual(['act', 'act', 'look', 'look']);
  });

  test('is only the cause while the disk is full or an engine is unavailable, and otherwise everything that is wrong', async () => {
    const checks = { accounts_up_to_date: false, subscription_connected: false };
    const servers = ['eventstoredb', 'mongodb'];
    const down = {
      readiness: ready(checks),
      followers: followers({ transactions: { ...idle, lag_seconds: 61 } }),
      backlog: dueSince(0),
    };
    expect((await overview({ ...down, servers })).length).toBe(5);
    expect(await overview({ ...down, disk: FULL })).toEqual([
      expect.stringContaining('act: the disk of /data is full'),
    ]);
    const unavailable = { ...down, servers, readiness: ready({ ...checks, mongodb: false }) };
    expect(await overview(unavailable)).toEqual(['act: mongodb cannot be reached']);
    expect((await overview({ ...down, disk: LOW })).length).toBe(6);
    expect(await overview({ disk: LOW })).toEqual([expect.stringContaining('act: /data: 0.1 GB free, 1 %')]);
  });

  test.each<[Given, string]>([
    [{ readiness: ready({ not_stopping: false }) }, 'act: this process is not ready: not_stopping does not'],
    [
      { followers: followers({ transactions: { unfinished_rebuild_percent: 12 } }) },
      'look: a rebuild of transactions stopped at 12 %',
    ],
    [
      { backlog: dueSince(NOW_MS - 301_000) },
      'look: deliveries are waiting for their receivers; the oldest has been due since 2026-09-09T23:54:59.000Z',
    ],
    [
      { stuck: [STUCK], backlog: dueSince(NOW_MS - 3_600_000) },
      `act: nothing has been sent to key ${PREFIX} since 2026-09-09T23:54:59.000Z, although deliveries are due: look for errors`,
    ],
    [
      { stuck: [STUCK, { ...STUCK, prefix: 'bbbbbbbbbb' }] },
      `act: nothing has been sent to 2 webhooks, the longest to key ${PREFIX} since 2026-09-09T23:54:59.000Z, although deliveries are due (${PREFIX}, bbbbbbbbbb)`,
    ],
    [
      { operations: repaired({ what: 'view', repaired: 3 }, DAY_MS) },
      'look: 3 of view differed from the events and were repaired at 2026-09-09T00:00:00.000Z',
    ],
    [
      {
        damage: [
          { position: 9, event: { stream: 'transaction-5', revision: 0 }, reason: 'gone', isCertain: true },
          { position: 0, event: undefined, reason: 'malformed', isCertain: true },
        ],
      },
      `act: damaged: event 0 of transaction-5 (position 9) cannot be read: gone, and 1 more: ${RESTORE_EVENTS}`,
    ],
    [{ failing: [STREAK] }, `look: deliveries to key ${PREFIX} fail: 4 in a row, the last answer 503`],
  ])('of %j is %s', async (given, text) => {
    expect(await overview(given)).toEqual([expect.stringContaining(text)]);
  });

  test('leaves out a repair of long ago, and a delivery that has just become due', async () => {
    const given = { operations: repaired({}, 3 * DAY_MS), backlog: dueSince(NOW_MS - 299_000) };
    expect(await overview(given)).toEqual([]);
  });

  test('names the checks that cannot be made, once for each reason', async () => {
    const unavailable = () => Promise.reject(new FuelError('STORE_UNAVAILABLE', 'mongodb is away'));
    const facts = { ...factsWith({ roles: [] }), followers: unavailable, backlog: unavailable };
    expect(await attention(facts)).toMatchObject([
      {
        isNotice: true,
        detail: 'not known: parked-events, consumers, lag, rebuild, webhooks, overdue (mongodb is away)',
      },
    ]);
    const broken = { ...factsWith(), followers: () => Promise.reject(new TypeError('broken')) };
    await expect(attention(broken)).rejects.toThrow('broken');
  });
});

test('a disk is low under 1 GB, and under 5 %', async () => {
  const free = async (bytes: number, share: number) =>
    doctorSays('disk-space', {
      disk: await readDisk('/', async () => ({ bavail: bytes, blocks: bytes / share, bsize: 1 }) as never),
    });
  expect(await free(2 * GB, 0.5)).toMatchObject({ ok: true });
  expect(await free(0.9 * GB, 0.5)).toMatchObject({ ok: false, detail: '/: 0.9 GB free, 50 %' });
  expect(await free(100 * GB, 0.049)).toMatchObject({ ok: false, do: expect.stringContaining('make space') });
});

test('the disk of a folder that does not exist yet is that of the folder above', async () => {
  const folder = temporaryFolder();
  expect((await readDisk(join(folder, 'a/b/c'))).text).toContain(`${folder}: `);
});

test('an alert wakes somebody exactly for the problems that somebody must act on', () => {
  const rules = readDocument('docs/monitoring/alerts.yaml').matchAll(
    /- alert: (\w+)\n[\s\S]*?severity: (page|ticket)/g,
  );
  const severities = new Map([...rules].map(([, alert, severity]) => [alert, severity]));
  const checks = checksOf([]);
  for (const { name, alerts = [] } of checks) {
    const given = alerts.map((alert) => severities.get(alert));
    expect(given).not.toContain(undefined);
    if (given.length > 0)
      expect([name, given.includes('page')]).toEqual([name, !['webhooks', 'repairs'].includes(name)]);
  }
  const named = checks.flatMap(({ alerts = [] }) => alerts);
  expect(new Set(named).size).toBe(named.length);
});
