import { writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { Member } from '../crash/member.ts';
import { WebhookReceiver } from '../support/deliveries/webhook-receiver.ts';
import { folder, fuel } from '../support/service/commands.ts';
import { Operator } from '../support/service/operator.ts';
import { until } from '../support/waiting.ts';
import { Load } from './load.ts';
import { Probe } from './probe.ts';
import { type Bound, tableOf, trendsOf } from './trend.ts';

const MINUTES = Number(process.env.FUEL_SOAK_MINUTES ?? 60);
const PER_SECOND = Number(process.env.FUEL_SOAK_PER_SECOND ?? 100);
const LOOK_MS = 5_000;
const RESTART_MS = Math.min(5, MINUTES / 6) * 60_000;
const READY_MS = 60_000;
const DONE_MS = 120_000;

const SAME: Bound = { factor: 1.25, plus: 20 };
const BOUNDS: Readonly<Record<string, Bound>> = {
  'memory, MB': { factor: 1.15, plus: 20 },
  'open files': { factor: 1.1, plus: 10 },
  'event loop, ms': { factor: 1.5, plus: 30 },
  'lag, ms': { factor: 1.5, plus: 500 },
  'deliveries pending': { factor: 1.5, plus: 1_000 },
  'parked events': { factor: 1, plus: 0 },
  'page p50, ms': { factor: 1.5, plus: 5 },
  'page p99, ms': { factor: 1.5, plus: 30 },
  'delivery p50, ms': { factor: 1.5, plus: 10 },
  'delivery p99, ms': { factor: 1.5, plus: 100 },
  'journals, MB': { factor: 1.5, plus: 10 },
  ...Object.fromEntries(
    ['events', 'transactions', 'deliveries', 'subscriptions', 'control', 'accounts', 'requests'].map(
      (name) => [`${name}.db, bytes a transaction`, SAME],
    ),
  ),
};

test(
  'under a steady load nothing grows but what is recorded, and nothing is lost',
  async () => {
    const dataDir = join(folder(), 'data');
    const receiver = await WebhookReceiver.open();
    const ca = join(folder(), 'receiver-ca.pem');
    writeFileSync(ca, receiver.ca);
    const env = { FUEL_WEBHOOK_ALLOW_PRIVATE: 'true', FUEL_WEBHOOK_CA: ca };
    const faults: string[] = [];
    const onFault = (fault: string): void => void faults.push(fault);
    const member = new Member({ name: 'serve', dataDir, env, onFault, onKilled: () => undefined });
    onTestFinished(() => member.abandon());
    const probe = new Probe(member, dataDir);
    const operator = new Operator({ ...env, FUEL_DATA_DIR: dataDir });
    const load = new Load({ operator, receiver, member, probe });
    await member.start();
    await member.ready(READY_MS);
    await load.provision();

    const startedMs = Date.now();
    const over = new AbortController();
    const untilMs = startedMs + MINUTES * 60_000;
    const parts = [load.write(PER_SECOND, over.signal), load.poll(over.signal), load.enable(over.signal)];
    parts.push(every(LOOK_MS, over.signal, () => probe.look(load.count)));
    parts.push(every(RESTART_MS, over.signal, async () => member.restart()));
    const rebuild = async (): Promise<void> => {
      await sleep((MINUTES * 60_000) / 2);
      const { code, stderr } = await fuel(['projection', 'rebuild', 'transactions'], { dataDir, env });
      if (code !== 0) faults.push(`the rebuild ended with ${code}: ${stderr}`);
    };
    const rebuilding = rebuild();
    await Promise.race([...parts, sleep(untilMs - Date.now())]);
    over.abort();
    await Promise.all([...parts, rebuilding]);

    await member.ready(READY_MS);
    const good = load.keys.filter(({ isBad }) => !isBad);
    const isArrived = (): boolean =>
      good.every(({ account, path }) =>
        [...(load.recorded.get(account) ?? [])].every((id) => load.received.get(path)?.has(id)),
      );
    await until(() => isArrived(), DONE_MS).catch(() => undefined); // what is missing is judged
    const { repeated } = await load.judge(startedMs - 1_000);
    await member.stop();
    const trends = trendsOf(probe.samples, BOUNDS);
    const seconds = (untilMs - startedMs) / 1_000;
    console.log(
      `${load.count} transactions in ${seconds} s, ${load.behind} of them late; ${repeated} deliveries came again; ` +
        `load of the machine ${loadavg()[1]?.toFixed(1)}\n\n${tableOf(trends)}`,
    );
    expect([...faults, ...load.faults]).toEqual([]);
    expect(trends.filter(({ grows }) => grows)).toEqual([]);
  },
  (MINUTES + 10) * 60_000,
);

async function every(ms: number, signal: AbortSignal, work: () => Promise<void>): Promise<void> {
  while (!signal.aborted) {
    await sleep(ms, undefined, { signal }).catch(() => undefined);
    if (!signal.aborted) await work();
  }
}
