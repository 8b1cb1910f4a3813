import { join } from 'node:path';
import { Registry } from 'prom-client';
import { silentLog } from '../../../src/base/log.ts';
import type { AccountEvent } from '../../../src/domain/account-events.ts';
import { createConsole } from '../../../src/operator/console/console.ts';
import type { ConsoleParts } from '../../../src/operator/console/figures/console-parts.ts';
import { AttemptHistory } from '../../../src/operator/console/figures/history.ts';
import type { SendResult } from '../../../src/push/sender/timed-send.ts';
import { deliveryMetrics } from '../../../src/service/ops/delivery-metrics.ts';
import { createMetrics } from '../../../src/service/ops/metrics.ts';
import { createOpsServer } from '../../../src/service/ops/ops-server.ts';
import type { Reading } from '../../../src/service/ops/shared-figures.ts';
import type { Tables } from '../../../src/tables/tables.ts';
import { keyIssued, opened, webhookSet } from '../../support/accounts/account-samples.ts';
import { rowsAfter } from '../../support/accounts/rows-after.ts';
import { startBrowser } from '../../support/browser.ts';

/** Writes the picture of the README: the overview of a service with invented figures, the same with each run. */
const PICTURE = join(import.meta.dirname, '../../../docs/console.png');
const SIZE = { width: 1240, height: 830 };
const NOW_MS = Date.parse('2026-09-14T10:32:20.000Z');
const MINUTE_MS = 60_000;
const HEAD = 1_204_331;
const ID = 'fuel-a-2071-5b1e09c4';
const clock = { now: () => NOW_MS };

async function accounts(): Promise<Tables> {
  const all: AccountEvent[] = [];
  for (let id = 1; id <= 240; id++) {
    const prefix = `k${id}`.padEnd(10, 'q7x2m9ca4');
    const off: AccountEvent = {
      type: 'WebhookDisabled',
      data: {
        account_id: id,
        prefix,
        reason: '50 deliveries failed in a row',
        failed_in_a_row: 50,
        failing_since: null,
        last_answers: ['503'],
      },
    };
    const events = [
      opened(`Customer ${id}`, id),
      keyIssued({ account_id: id, prefix }),
      webhookSet({ account_id: id, prefix }),
      ...(id === 31 ? [off] : []),
    ];
    all.push(...(events as AccountEvent[]));
  }
  return rowsAfter(...all);
}

/** An hour in which a receiver began to fail, and deliveries fell behind for a while. */
async function histories(): Promise<Pick<ConsoleParts, 'attempts' | 'readings'>> {
  let at = NOW_MS - 59 * MINUTE_MS;
  const attempts = new AttemptHistory(() => at);
  const registry = new Registry();
  const counted = deliveryMetrics(registry);
  for (let minute = 0; minute < 60; minute++, at += MINUTE_MS) {
    const delivered = 160 + Math.round(50 * Math.sin(minute / 7) + 17 * Math.sin(minute * 2.3));
    const failed = minute < 38 ? minute % 3 : 9 + (minute % 7);
    for (let n = 0; n < delivered + failed; n++) {
      const outcome = n < delivered ? { ok: true } : { ok: false, kind: 'status' };
      const durationMs = (45 + 20 * Math.sin(minute / 5)) * (n % 16 === 0 ? 4 : 1);
      counted.attempting();
      counted.attempted({ cycle: 1, attemptNumber: 1 }, { outcome, durationMs } as SendResult, {});
    }
    attempts.take(await registry.getMetricsAsJSON());
  }
  at = NOW_MS;
  const readings: Reading[] = [];
  for (let step = 239; step >= 0; step--) {
    const peak = Math.max(0, 1 - Math.abs(step - 90) / 14);
    const lag = { transactions: 0.4 * peak, deliveries: 21 * peak, notices: 0 };
    readings.push({
      atMs: NOW_MS - step * 15_000,
      lag,
      pending: Math.round(36 + 9 * Math.sin(step / 6) + 640 * peak + (step < 86 ? (86 - step) * 1.9 : 0)),
    });
  }
  return { attempts, readings };
}

const figures = await histories();
const readiness = async () => ({ ready: true, checks: {} });

async function parts(): Promise<ConsoleParts> {
  const position = { position: HEAD, parked: 0 };
  const failing = [
    { prefix: 'k12q7x2m9c', failedInARow: 23, failingSinceMs: NOW_MS - 22 * MINUTE_MS, lastAnswers: ['503'] },
  ];
  const process = {
    pid: 2071,
    host: 'fuel-a',
    startedAtMs: NOW_MS - 9 * 86_400_000,
    seenAtMs: NOW_MS,
    isReady: true,
  };
  const stores = {
    store: { head: async () => HEAD, readStream: async () => [] },
    view: {
      checkpoint: async (of?: string) => (of === 'built' ? undefined : position),
      countParked: async () => 0,
    },
    subscriptions: { status: async () => position },
    queue: {
      backlog: async () => ({
        pending: 214,
        underWay: 0,
        waiting: 0,
        failingLanes: 1,
        nextDueAtMs: NOW_MS + 9_000,
      }),
      pendingLanes: async () => [],
      countIn: async () => ({ pending: 0, waiting: 0 }),
      dueLanes: async () => ({ lanes: [], isAll: true, next: undefined }),
      failingLanes: async () => failing,
    },
    coordination: {
      holder: async () => ({ holder: ID, expiresAtMs: NOW_MS }),
      checkpoint: async () => position,
      live: async () => [
        { ...process, id: ID, roles: ['api', 'projector', 'webhooks', 'notices'] },
        { ...process, id: 'fuel-b-1984-77d01f3a', host: 'fuel-b', pid: 1984, roles: ['api', 'webhooks'] },
      ],
    },
  };
  const opened = Object.entries(stores).map(([name, store]) => [name, () => store]);
  const invented = {
    environment: 'staging',
    clock,
    id: ID,
    roles: ['api', 'projector', 'webhooks', 'notices'],
    ...stores,
    engines: { remote: [], embedded: [], state: async () => 'current', ...Object.fromEntries(opened) },
    config: { FUEL_ENVIRONMENT: 'staging', FUEL_TLS: 'terminated' },
    accounts: await accounts(),
    ...figures,
    readiness,
    lastProof: () => undefined,
  };
  return invented as unknown as ConsoleParts;
}

const console = createConsole({ hosts: [], environment: 'staging', clock, readiness });
console.serve(await parts());
const metrics = createMetrics();
const server = createOpsServer({ readiness, metrics, log: silentLog, console: console.handle });
const { port } = await server.listen({ host: '127.0.0.1', port: 0 });
const browser = await startBrowser();
const page = await browser.newPage({ viewport: SIZE });
const answer = await page.goto(`http://127.0.0.1:${port}/`);
if (answer?.ok() !== true) throw new Error(`the overview answers ${answer?.status()}`);
await page.screenshot({ path: PICTURE });
await browser.close();
await server.stop();
