import { type AccountWriter, changeAccount } from '../../accounts/change-account.ts';
import type { MasterKeys } from '../../accounts/master-key.ts';
import { FuelError } from '../../base/errors.ts';
import { world } from '../../base/world.ts';
import { webhookRequest } from '../../push/message/envelope.ts';
import type { Sender } from '../../push/sender/sender.ts';
import type { SendResult } from '../../push/sender/timed-send.ts';

export interface WebhookTestParts {
  readonly writer: AccountWriter;
  readonly masterKeys: MasterKeys;
  readonly sender: Pick<Sender, 'send'>;
}

export interface WebhookTest extends SendResult {
  readonly deliveryId: string;
  readonly url: string;
}

/**
 * Makes one attempt to send a `webhook.test` and returns its outcome. It is recorded in the account's stream, not in the delivery
 * log, and does not count towards the webhook's health. Throws `REFUSED` without an attempt if nothing would be sent to the
 * webhook now.
 */
export async function testWebhook(
  { writer, masterKeys, sender }: WebhookTestParts,
  { accountId, prefix }: { readonly accountId: number; readonly prefix: string },
): Promise<WebhookTest> {
  const deliveryId = world.randomUUID();
  const atMs = writer.clock.now();
  const { account } = await changeAccount(writer, accountId, [
    { type: 'RequestWebhookTest', accountId, prefix, deliveryId, atMs },
  ]);
  const key = account.keys.get(prefix);
  if (key === undefined || key.webhook === null || key.webhookSecret === null) {
    throw new FuelError('REFUSED', `key ${prefix} has no webhook any more`);
  }
  const { url } = key.webhook;
  const request = webhookRequest({
    url,
    secret: masterKeys.decryptSecret(prefix, key.webhookSecret),
    envelope: { id: deliveryId, type: 'webhook.test', createdAtMs: atMs, recordText: null },
    atMs: writer.clock.now(),
  });
  return { deliveryId, url, ...(await sender.send(request)) };
}
