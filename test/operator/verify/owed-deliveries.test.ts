import { expect, test } from 'vitest';
import { Directory } from '../../../src/accounts/directory/fold/directory.ts';
import { Unreadable } from '../../../src/event-store/recorded-event.ts';
import { decideStreams } from '../../../src/operator/verify/owed-deliveries.ts';
import { AccountHistory } from '../../../src/push/fan-out/account-history.ts';
import { keyIssued, opened, webhookSet } from '../../support/accounts/account-samples.ts';
import { AFTER_URL, DAY_MS } from '../../support/agreement/verifying.ts';
import { openPushStores } from '../../support/deliveries/push-stores.ts';
import { replacing } from '../../support/interposed.ts';
import { confirmed, voided } from '../../support/transactions/e2e-samples.ts';

test('nothing is decided for a transaction with a damaged later event, because it may have been voided', async () => {
  const { store, clock, append, account } = openPushStores();
  await account(opened(), keyIssued(), webhookSet());
  await append('transaction-1', confirmed(1, AFTER_URL), voided(1));
  const damaged = replacing(store, {
    readStreams: async (streams) =>
      (await store.readStreams(streams)).map((events) =>
        events.map((event) =>
          event.revision === 1 ? { ...event, data: new Unreadable('no text', { isDamage: true }) } : event,
        ),
      ),
  });
  const history = new AccountHistory({ store, directory: new Directory() });
  const context = { history, clock, environment: 'staging', retentionMs: 90 * DAY_MS } as const;
  const whole = await Array.fromAsync(decideStreams([1], { ...context, store }));
  expect(whole).toMatchObject([{ isWithdrawn: true, decision: [{ transactionId: 1 }] }]);
  const [decided] = await Array.fromAsync(decideStreams([1], { ...context, store: damaged }));
  expect(decided?.decision).toBe('unreadable');
});
