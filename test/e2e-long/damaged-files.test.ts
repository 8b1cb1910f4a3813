import { rmSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { overwrite, pageBytesOf } from '../support/damage.ts';
import { PushService } from '../support/deliveries/push-service.ts';
import { onServers } from '../support/engines/test-engines.ts';
import { idsOf } from '../support/transactions/e2e-samples.ts';

const withoutHeader = (path: string): void => overwrite(path, 0, 100);
const withoutMiddle = (path: string): void => overwrite(path, pageBytesOf(path));
const cut = (path: string): void => truncateSync(path, pageBytesOf(path));
const DAMAGES = [
  ['control.db', withoutHeader],
  ['requests.db', withoutMiddle],
  ['subscriptions.db', withoutMiddle],
  ['transactions.db', withoutHeader],
  ['transactions-2.db', cut],
] as const;
const DAY_MS = 86_400_000;

/** Deletes the files that the error says to delete. */
function deleteAsTold(error: string): void {
  const [, files = ''] = / rm -f (.*), and start again/.exec(error) ?? [];
  for (const file of files.split(' ')) rmSync(file, { force: true });
}

it.skipIf(onServers)(
  'a damaged file that can be rebuilt is refused until it is deleted; then everything is served, and nothing is sent twice',
  async () => {
    const push = await PushService.start();
    const { service, receiver } = push;
    const { account, key, path } = await push.customer(1);
    const pushed: number[] = [];
    /** Pushes a transaction. Each one so far must be served, and must have been sent once. */
    const deliver = async (): Promise<void> => {
      pushed.push(...(await push.push(account)));
      await push.settled(account, 'delivered', pushed.length);
      expect(receiver.to(path).map(({ body }) => body.data.transaction.id)).toEqual(pushed);
      const [from, to] = [-DAY_MS, DAY_MS].map((ms) => new Date(Date.now() + ms).toISOString());
      const page = await service.get(`/transactions?from=${from}&to=${to}`, { key });
      expect(idsOf(page.body).toSorted()).toEqual(pushed);
    };
    for (const [name, damage] of DAMAGES) {
      await deliver();
      expect(await service.stop()).toBe(0);
      await push.closeFiles();
      const file = join(service.dataDir, name);
      damage(file);
      const { lines } = await service.fuel(['doctor', '--json']);
      const found = lines.find(({ check }) => check === 'data-directory');
      const { code, stderr } = await service.fuel(['serve']);
      expect([code, stderr]).toEqual([1, expect.stringMatching(/^fuel: [^\n]*STORE_DAMAGED[^\n]*\n$/)]);
      expect(stderr).toContain(`${file} is damaged (`);
      expect(stderr).toContain(found?.do);
      deleteAsTold(stderr);
      await service.start();
    }
    await deliver();
    expect(await service.stop()).toBe(0);
  },
);
