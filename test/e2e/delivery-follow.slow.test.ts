import { expect, it } from 'vitest';
import { opened, profileSet } from '../support/accounts/account-samples.ts';
import { newDelivery } from '../support/deliveries/deliveries.ts';
import { onServers } from '../support/engines/test-engines.ts';
import { commandLine } from '../support/service/command-line.ts';
import { startFuel } from '../support/service/commands.ts';
import { until } from '../support/waiting.ts';

const ENABLED = { type: 'IntegrationEnabled', data: { account_id: 7 } } as const;

it.skipIf(onServers)(
  'fuel delivery list --follow prints what is new and what has changed, until it is interrupted',
  async () => {
    const { withEngines, account } = commandLine();
    await account(opened(), ENABLED, profileSet('2026-01-01T00:00:00.000Z', null));
    await withEngines((engines) => engines.queue().enqueue([newDelivery(1), newDelivery(2)]));
    const args = ['delivery', 'list', '--transaction', '1', '--follow', '--json'];
    const following = startFuel(args, { dataDir: process.env.FUEL_DATA_DIR ?? '' });
    await until(() => following.stdout().includes('pending'));
    await withEngines((engines) => engines.queue().change({ kind: 'withdraw', transactionIds: [1] }, 5_000));
    await until(() => following.stdout().includes('withdrawn'));
    const later = newDelivery(3, { prefix: 'bbbbbbbbbb', transactionId: 1, createdAtMs: 9_000 });
    await withEngines((engines) => engines.queue().enqueue([later]));
    await until(() => following.stdout().includes(later.id));
    following.child.kill('SIGINT');
    const { code, lines } = await following.result;
    expect(code).toBe(0);
    expect(lines).toMatchObject([
      { id: newDelivery(1).id, state: 'pending', due_at: expect.any(String) },
      { id: newDelivery(1).id, state: 'withdrawn', due_at: null },
      { id: later.id, state: 'withdrawn' },
    ]);
  },
);
