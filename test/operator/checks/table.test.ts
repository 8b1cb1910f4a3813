import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readDisk } from '../../../src/base/disk/disk.ts';
import type { FollowerStatus } from '../../../src/operator/answers/follower.ts';
import {
  CHECKS,
  type Check,
  type CheckId,
  type Facts,
  judged,
  problemsIn,
} from '../../../src/operator/checks/table.ts';
import { attentionOf, type Snapshot } from '../../../src/operator/console/figures/snapshot.ts';
import { PREFIX } from '../../support/accounts/account-samples.ts';
import { readDocument } from '../../support/documents.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const NOW_MS = Date.parse('2026-09-10T00:00:00.000Z');
const DAY_MS = 86_400_000;
const GB = 1e9;
const NAMES = ['transactions', 'deliveries', 'notices'] as const;
const FULL = { freeBytes: 0, text: '', isLow: true, refusal: 'the disk of /data is full' };
const STREAK = { prefix: PREFIX, failedInARow: 4, failingSinceMs: NOW_MS, lastAnswers: ['503'] };

function followers(
  changes: Partial<Record<(typeof NAMES)[number], Partial<FollowerStatus>>> = {},
): FollowerStatus[] {
  return NAMES.map((name) => ({
    ...{ name, position: 5, lag_seconds: 0, lag_events: 0, parked: 0, holder: 'one' },
    ...changes[name],
  }));
}

test('a clock that is far ahead of the newest trusted time is told by doctor and the overview, a day is not', () => {
  const ahead = { trustedAtMs: NOW_MS - DAY_MS - 1 };
  expect(judged('clocks', { atMs: NOW_MS, ...ahead })).toMatchObject({ ok: false });
  expect(overview(ahead)).toEqual(['bad']);
  expect(overview({ trustedAtMs: NOW_MS - DAY_MS })).toEqual([]);
});

const doctor = (id: CheckId, facts: Omit<Facts, 'atMs'>) => judged(id, { atMs: NOW_MS, ...facts });

/** The levels in which the overview shows these facts. */
function overview(facts: Omit<Facts, 'atMs'>): readonly string[] {
  const at = <T>(value: T) => ({ value, atMs: NOW_MS });
  const { unreadable = [], disabled = [], webhooks = 0 } = facts;
  const refs = (prefixes: readonly string[]) =>
    prefixes.map((prefix) => ({ accountId: 7, prefix, disabledAtMs: null }));
  const lists = {
    ...{ accounts: [], unreadable: [...unreadable] },
    ...{ webhooks: refs(Array(webhooks).fill('x')), disabled: refs(disabled) },
  };
  const snapshot: Snapshot = {
    atMs: NOW_MS,
    followers: at(facts.followers ?? []),
    backlog: at({
      ...{ pending: 0, underWay: 0, waiting: 0, held: 0, failingLanes: 0 },
      nextDueAtMs: facts.backlog?.nextDueAtMs,
    }),
    failing: at(facts.failing ?? []),
    processes: at([]),
    readiness: at({ ready: true, checks: {} }),
    operations: at([]),
    certificateEndsAtMs: at(facts.certificateEndsAtMs),
    trustedAtMs: at(facts.trustedAtMs),
    disk: at(facts.disk),
    lists: at(lists),
    damage: at([]),
  };
  return attentionOf(snapshot, []).map(({ ok }) => (ok ? 'warn' : 'bad'));
}

const idle = { holder: null };
const never = { ...idle, position: 0 };
const allNever = followers({ transactions: never, deliveries: never, notices: never });

describe('doctor and the overview judge alike', () => {
  test.each<[CheckId, Omit<Facts, 'atMs'>, 'nothing' | 'act' | 'look']>([
    ['disk-space', { disk: FULL }, 'act'],
    ['disk-space', { disk: { ...FULL, refusal: undefined } }, 'act'],
    ['disk-space', { disk: { ...FULL, refusal: undefined, isLow: false } }, 'nothing'],
    ['parked-events', { followers: followers() }, 'nothing'],
    ['parked-events', { followers: followers({ transactions: { parked: 2 } }) }, 'act'],
    ['parked-events', { followers: followers({ deliveries: { parked: 1 } }) }, 'act'],
    ['parked-events', { followers: followers({ deliveries: { parked: 1 } }), disk: FULL }, 'act'],
    ['lag', { followers: followers({ notices: { lag_seconds: 60 } }) }, 'nothing'],
    ['lag', { followers: followers({ notices: { lag_seconds: 61, lag_events: null } }) }, 'act'],
    ['lag', { followers: followers({ notices: { lag_seconds: 61 } }), disk: FULL }, 'nothing'],
    ['consumers', { followers: followers({ deliveries: idle }) }, 'act'],
    ['consumers', { followers: followers({ deliveries: idle }), disk: FULL }, 'nothing'],
    ['consumers', { followers: followers({ notices: { ...never, lag_events: 3 } }) }, 'act'],
    ['consumers', { followers: allNever, webhooks: 0 }, 'nothing'],
    ['consumers', { followers: allNever, webhooks: 1 }, 'act'],
    ['accounts', { unreadable: [] }, 'nothing'],
    ['accounts', { unreadable: [7] }, 'act'],
    ['webhooks', { disabled: [PREFIX] }, 'look'],
    ['webhooks', { failing: [STREAK] }, 'look'],
    ['certificate', { certificateEndsAtMs: NOW_MS + 14 * DAY_MS }, 'nothing'],
    ['certificate', { certificateEndsAtMs: NOW_MS + 14 * DAY_MS - 1 }, 'act'],
    ['certificate', { certificateEndsAtMs: NOW_MS - 1 }, 'act'],
    ['overdue', { backlog: { pending: 1, held: 0, nextDueAtMs: NOW_MS - 300_001 } }, 'act'],
  ])('%s of %j: %s', (id, facts, severity) => {
    expect(doctor(id, facts).ok).toBe(severity !== 'act');
    const others = facts.disk?.refusal === undefined || id === 'disk-space' ? [] : ['bad'];
    const own = { nothing: [], act: ['bad'], look: ['warn'] }[severity];
    expect(new Set(overview(facts))).toEqual(new Set([...own, ...others]));
  });
});

describe('what doctor says', () => {
  test('is what to do about each follower with parked events', () => {
    const both = followers({ transactions: { parked: 2 }, deliveries: { parked: 1 } });
    const { detail, do: cure } = doctor('parked-events', { followers: both });
    expect(detail).toMatch(/^2 events of transactions are parked.*; an event of deliveries is parked/);
    expect(cure).toMatch(/parked retry --all; fuel .*retry --all --follower deliveries$/);
  });

  test('is the role that nobody has, and the account that can not be read', () => {
    const some = followers({ transactions: idle, deliveries: idle });
    expect(doctor('consumers', { followers: some })).toEqual({
      ok: false,
      detail: 'no live process works on transactions; no live process works on deliveries',
      do: 'fuel serve --role projector; fuel serve --role webhooks',
    });
    expect(doctor('accounts', { unreadable: [7] })).toMatchObject({
      detail: expect.stringContaining('account 7 is not served'),
      do: expect.stringContaining('fuel account show 7'),
    });
  });

  test('is the cause, where a check was not made because of it', () => {
    expect(doctor('lag', { followers: followers({ notices: { lag_seconds: 61 } }), disk: FULL })).toEqual({
      ok: true,
      detail: 'not checked, because disk-space is wrong',
      do: null,
    });
  });

  test('names webhooks that are switched off, which are the customers’ to repair', () => {
    expect(doctor('webhooks', { disabled: [PREFIX] })).toMatchObject({
      ok: true,
      detail: `0 webhooks, 1 switched off, 0 failing; deliveries: 0 pending, 0 held; the webhook of key ${PREFIX} is switched off: nothing is sent to it (fuel webhook show ${PREFIX})`,
    });
    const three = doctor('webhooks', { disabled: ['aa', 'bb', 'cc'] }).detail;
    expect(three.match(/fuel webhook show \w+/g)).toEqual(
      ['aa', 'bb', 'cc'].map((key) => `fuel webhook show ${key}`),
    );
    const { detail } = doctor('webhooks', { disabled: ['aa', 'bb', 'cc', 'dd'] });
    expect(detail).toContain('4 webhooks are switched off: nothing is sent to aa, bb, cc, dd');
  });
});

test('a disk is low under 1 GB, and under 5 %', async () => {
  const free = async (bytes: number, share: number) =>
    doctor('disk-space', {
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

test('nothing is found where nothing is known', () => {
  expect(problemsIn({ atMs: NOW_MS })).toEqual([]);
});

test('what somebody must act on is what an alert of the monitoring wakes somebody for', () => {
  const rules = readDocument('docs/monitoring/alerts.yaml').matchAll(
    /- alert: (\w+)\n[\s\S]*?severity: (page|ticket)/g,
  );
  const severities = new Map([...rules].map(([, alert, severity]) => [alert, severity]));
  const checks: Check[] = Object.values(CHECKS);
  for (const [id, { alerts = [] }] of Object.entries<Check>(CHECKS)) {
    const given = alerts.map((alert) => severities.get(alert));
    expect(given).not.toContain(undefined);
    if (given.length > 0)
      expect([id, given.includes('page')]).toEqual([id, !['webhooks', 'repairs'].includes(id)]);
  }
  const named = checks.flatMap(({ alerts = [] }) => alerts);
  expect(new Set(named).size).toBe(named.length);
});
