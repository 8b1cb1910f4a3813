import { changeAccount } from '../../../src/accounts/change-account.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { newEvent } from '../../../src/event-store/new-event.ts';
import { webhookOptions } from '../../../src/operator/cli/commands/webhook-commands.ts';
import { issueKey } from '../../../src/operator/keys/issue-key.ts';
import type { PushService } from '../deliveries/push-service.ts';
import { answerWith } from '../deliveries/webhook-receiver.ts';
import { openForUse } from '../service/operator.ts';
import { confirmed, voided } from '../transactions/e2e-samples.ts';
import { until } from '../waiting.ts';

/** A text that would run, or break out of its place, if anything did not escape it. */
export const HOSTILE =
  `"'><img src=x onerror="window.hacked=1"><script>window.hacked=1</script><svg onload=window.hacked=1>` +
  '</main></body><!-- \u202e\u0000\u001b[31m #{window.hacked=1} `$(touch /tmp/hacked)`';
export const DRIVER = { id: 77, name: 'Sam Secretfield', mobile_number: '+15550199' };
const AUTHOR = { actor: HOSTILE, command: 'test' };

export interface ConsoleScenario {
  readonly healthy: string;
  readonly failing: string;
  readonly disabled: string;
  readonly held: string;
  readonly failedDelivery: string;
  readonly transactions: {
    readonly delivered: number;
    readonly failed: number;
    readonly voided: number;
    readonly parked: number;
    readonly missing: number;
  };
}

/**
 * Makes every trouble that an operator may have, with hostile text in every field that accepts it: accounts 7
 * (healthy), 8 (its receiver fails), 9 (its webhook is switched off), 10 (no access: its deliveries are held).
 */
export async function makeTroubles(push: PushService): Promise<ConsoleScenario> {
  const { receiver, service } = push;
  receiver.answer(
    '/hook/8',
    answerWith(500, `${HOSTILE}\n${'x'.repeat(3_000)}`, {
      'X-Hostile': `"'><script>window.hacked=1</script>`,
    }),
  );
  const path = (account: number) => `/hook/${account}`;
  const keys: string[] = [];
  for (const account of [7, 8, 9, 10]) {
    const issued = await service.operator.with(async (engines) => {
      const writer = { store: engines.store(), clock: systemClock, author: AUTHOR };
      await changeAccount(writer, account, [
        ...openForUse(account).map((command) =>
          command.type === 'OpenAccount' && account !== 7
            ? { ...command, name: `${account} ${HOSTILE}` }
            : command,
        ),
        {
          type: 'SetCorporate',
          accountId: account,
          corporateId: 31,
          name: account === 7 ? 'North Depot' : HOSTILE,
        },
      ]);
      const url = receiver.url(
        account === 9 ? `/hook/9?x='"><script>window.hacked=1</script>` : path(account),
      );
      return issueKey(writer, {
        accountId: account,
        environment: 'staging',
        label: account === 7 ? 'ERP' : HOSTILE,
        allowList: [],
        rateLimit: 60,
        driverMobile: false,
        webhook: webhookOptions(service.operator.config, url),
      });
    });
    keys.push(issued.prefix);
  }
  const [healthy = '', failing = '', disabled = '', held = ''] = keys;
  await service.operator.change(9, {
    type: 'DisableWebhook',
    accountId: 9,
    prefix: disabled,
    reason: `moved ${HOSTILE}`,
    evidence: {
      failedInARow: 50,
      failingSinceMs: systemClock.now() - 3_600_000,
      lastAnswers: ['503', HOSTILE],
    },
  });
  await service.operator.change(10, { type: 'DisableIntegration', accountId: 10, reason: HOSTILE });
  const driver = { driver: DRIVER };
  const [delivered = 0] = await push.push(7, 12, driver);
  const [failed = 0] = await push.push(8, 3, driver);
  await push.push(9, 2, driver);
  await push.push(10, 2, driver);
  await push.record([voided(delivered, { reason: HOSTILE })]);
  const parked = 90_001;
  await appendParked(push, parked);
  await push.reached(7, 'delivered', 12);
  await push.reached(8, 'failed', 3);
  await push.reached(10, 'pending', 2);
  const [failedDelivery] = await push.list('--account', '8', '--state', 'failed');
  return {
    healthy,
    failing,
    disabled,
    held,
    failedDelivery: failedDelivery.id,
    transactions: { delivered: delivered + 1, voided: delivered, failed, parked, missing: 99_999 },
  };
}

/** Appends an event as a faulty core system might write it: its driver does not fit the schema. */
async function appendParked(push: PushService, id: number): Promise<void> {
  await push.service.operator.with(async (engines) => {
    const { type, data } = confirmed(id, {
      account_id: 7,
      driver: { ...DRIVER, mobile_number: { number: DRIVER.mobile_number } },
    });
    const event = newEvent({ type, data } as Parameters<typeof newEvent>[0], AUTHOR, systemClock.now());
    await engines.store().append([{ stream: `transaction-${id}`, expected: 'none', events: [event] }]);
    await until(async () => (await engines.view().countParked()) > 0);
  });
}
