import { pino } from 'pino';
import { expect, test } from 'vitest';
import type { ClaimedDelivery, DeliveryReport } from '../../src/delivery/delivery-queue.ts';
import { ReportBatch } from '../../src/delivery/report-batch.ts';
import { FakeScheduler } from '../support/fake-scheduler.ts';

function batch(fail: () => boolean = () => false) {
  const scheduler = new FakeScheduler();
  const commits: string[][] = [];
  const recorded: string[] = [];
  const reports = new ReportBatch({
    scheduler,
    log: pino({ enabled: false }),
    queue: {
      async report(all) {
        if (fail()) throw new Error('the store is away');
        commits.push(all.map(({ id }) => id));
        return new Map();
      },
    },
    onRecorded: (outcomes) => void recorded.push(...outcomes.map(({ report }) => report.id)),
  });
  const add = (...ids: readonly string[]) => {
    for (const id of ids) {
      const report: DeliveryReport = { kind: 'held', id, lease: 'x' };
      reports.add({ delivery: { id } as ClaimedDelivery, report });
    }
  };
  return { scheduler, commits, recorded, reports, add };
}

test('outcomes that arrive within two milliseconds are recorded in one commit, in their order', async () => {
  const { scheduler, commits, recorded, add } = batch();
  add('a');
  await scheduler.advance(1);
  add('b', 'c');
  await scheduler.advance(1);
  add('d');
  await scheduler.advance(2);
  expect(commits).toEqual([['a', 'b', 'c'], ['d']]);
  expect(recorded).toEqual(['a', 'b', 'c', 'd']);
});

test('while the store is away outcomes are kept, and recorded once when it is back', async () => {
  let away = true;
  const { scheduler, commits, add } = batch(() => away);
  add('a');
  await scheduler.advance(1_000);
  add('b');
  expect(commits).toEqual([]);
  away = false;
  await scheduler.advance(2_000);
  expect(commits).toEqual([['a', 'b']]);
});

test('closing records what is left without waiting', async () => {
  const { commits, reports, add } = batch();
  add('a', 'b');
  await reports.close();
  expect(commits).toEqual([['a', 'b']]);
});
