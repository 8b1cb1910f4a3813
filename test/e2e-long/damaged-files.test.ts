import { readdirSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { overwrite, pageBytesOf } from '../support/damage.ts';
import { PushService } from '../support/deliveries/push-service.ts';
import { onServers } from '../support/engines/test-engines.ts';
import { SEPTEMBER } from '../support/transactions/e2e-samples.ts';
import { until } from '../support/waiting.ts';

const FILES = ['subscriptions.db', 'control.db', 'directory.db'];
const DAMAGES: readonly [string, (path: string) => void][] = [
  ['the header is zeros', (path) => overwrite(path, 0, 100)],
  ['the middle is zeros', (path) => overwrite(path, pageBytesOf(path))],
  ['the file is cut', (path) => truncateSync(path, pageBytesOf(path))],
];

it.skipIf(onServers)(
  'damaged files that nothing is lost with are put aside: the service starts, and sends nothing twice',
  async () => {
    const push = await PushService.start();
    const { service, receiver } = push;
    const { account, key, path } = await push.customer(1);
    let [sent, seen] = [0, 0];
    /** Pushes transactions and waits for them. Nothing else may have come since the last time. */
    const deliver = async (count: number): Promise<void> => {
      const ids = await push.push(account, count);
      sent += count;
      await push.settled(account, 'delivered', sent);
      const came = receiver.to(path);
      expect(new Set(came.slice(seen).map(({ body }) => body.data.transaction.id))).toEqual(new Set(ids));
      seen = came.length;
    };
    for (const [what, damage] of DAMAGES) {
      await deliver(2);
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
      await deliver(1);
      const aside = readdirSync(service.dataDir).filter((name) => /\.damaged-\w+-\d+$/.test(name));
      expect(aside.length).toBeGreaterThanOrEqual(FILES.length);
      expect((await service.fuel(['doctor', '--json'])).stdout).toContain(aside[0]);
    }
    for (const file of FILES) overwrite(join(service.dataDir, file), 0, 100); // while it runs
    await deliver(1);
    await until(async () => (await service.get(`/transactions?${SEPTEMBER}`, { key })).status === 200);
    expect(await service.stop()).toBe(0);
  },
);
