import { cpSync, readdirSync, rmSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { overwrite, pageBytesOf } from '../support/damage.ts';
import { PushService } from '../support/deliveries/push-service.ts';
import { folder } from '../support/service/commands.ts';
import { SEPTEMBER } from '../support/transactions/e2e-samples.ts';
import { until } from '../support/waiting.ts';

const DAY_MS = 86_400_000;
const FILES = ['subscriptions.db', 'control.db', 'directory.db'];
const DAMAGES: readonly [string, (path: string) => void][] = [
  ['the header is zeros', (path) => overwrite(path, 0, 100)],
  ['the middle is zeros', (path) => overwrite(path, pageBytesOf(path))],
  ['the file is cut', (path) => truncateSync(path, pageBytesOf(path))],
];

it('damaged files that nothing is lost with are put aside: the service starts, and sends nothing twice', async () => {
  const push = await PushService.start();
  const { service, receiver } = push;
  const { account, key } = await push.customer(1);
  let sent = 0;
  for (const [what, damage] of DAMAGES) {
    await push.push(account, 2);
    sent += 2;
    await push.settled(account, 'delivered', sent);
    expect(await service.stop()).toBe(0);
    await push.closeFiles();
    for (const file of FILES) damage(join(service.dataDir, file));
    const wrong = await service.fuel(['doctor', '--json']);
    expect([what, wrong.stdout]).toEqual([
      what,
      expect.stringMatching(/(subscriptions|control|directory)\.db is damaged/),
    ]);
    await service.start();
    for (const file of FILES)
      expect([what, service.output]).toEqual([what, expect.stringContaining(`"${file}"`)]);
    expect((await service.get(`/transactions?${SEPTEMBER}`, { key })).status).toBe(200);
    await push.push(account, 1);
    sent += 1;
    await push.settled(account, 'delivered', sent);
    expect(receiver.hooks).toHaveLength(sent);
    const aside = readdirSync(service.dataDir).filter((name) => /\.damaged-\w+-\d+$/.test(name));
    expect(aside.length).toBeGreaterThanOrEqual(FILES.length);
    expect((await service.fuel(['doctor', '--json'])).stdout).toContain(aside[0]);
  }
  for (const file of FILES) overwrite(join(service.dataDir, file), 0, 100); // while it runs
  await push.push(account, 1);
  sent += 1;
  await push.settled(account, 'delivered', sent);
  await until(async () => (await service.get(`/transactions?${SEPTEMBER}`, { key })).status === 200, 10_000);
  expect(receiver.hooks).toHaveLength(sent);
  expect(await service.stop()).toBe(0);
}, 120_000);

it('an events.db that was restored alone and imported into, before anything was started, misses nothing', async () => {
  const push = await PushService.start();
  const { service, receiver } = push;
  const { account, key } = await push.customer(1);
  await push.push(account, 1);
  await push.settled(account, 'delivered', 1);
  const backup = join(folder(), 'backup');
  await service.done(['store', 'backup', backup]);
  await push.push(account, 2); // lost
  await push.settled(account, 'delivered', 3);
  expect(await service.stop()).toBe(0);
  await push.closeFiles();
  for (const end of ['-wal', '-shm']) rmSync(join(service.dataDir, `events.db${end}`), { force: true });
  cpSync(join(backup, 'events.db'), join(service.dataDir, 'events.db'));
  const made = push.made(account, 8);
  const stdin = made.map((event) => `${JSON.stringify(event)}\n`).join('');
  await service.done(['transaction', 'import', '-'], { stdin });

  expect((await service.fuel(['doctor'])).stdout).toContain('is another one');
  const { code, stderr } = await service.fuel(['serve']);
  expect([code, stderr]).toEqual([1, expect.stringContaining('fuel projection rebuild transactions')]);
  await service.done(['projection', 'rebuild', 'transactions', '--reason', 'the events were restored']);
  const sent = receiver.hooks.length;
  await service.start();
  await until(async () => receiver.hooks.length === sent + made.length, 30_000);
  const [from, to] = [-1, 1].map((days) => new Date(Date.now() + days * DAY_MS).toISOString());
  const { status, body } = await service.get(`/transactions?from=${from}&to=${to}`, { key });
  expect(status).toBe(200);
  for (const { data } of made) expect(JSON.stringify(body)).toContain(String(data.transaction_id));
  const verified = JSON.parse((await service.fuel(['verify', '--json'])).stdout);
  const { view, deliveries } = verified;
  expect([view.differences, deliveries.missing, deliveries.surplus]).toEqual([0, 0, 2]); // the lost ones were sent
});
