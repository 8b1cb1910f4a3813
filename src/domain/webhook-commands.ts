import { type Account, type AccountKey, type AccountWebhook, accessOf } from './account.ts';
import type { AccountEvent, Ciphertext, Redeliverable } from './account-events.ts';
import {
  type Decision,
  type GivenReason,
  givenReason,
  type Refused,
  record,
  refused,
  unchanged,
} from './decision.ts';
import { dateTimeOrNull, formatDateTime } from './values/date-time.ts';
import { MAX_PER_SECOND, perSecond } from './values/primitives.ts';

export interface ForKey {
  readonly accountId: number;
  readonly prefix: string;
}

/** The failure streak that a warning or a switch-off is based on. */
export interface FailureEvidence {
  readonly failedInARow: number;
  readonly failingSinceMs: number | null;
  readonly lastAnswers: readonly string[];
}

/** A command that changes the webhook of one key. Times are milliseconds since the epoch. */
export type WebhookCommand =
  | (ForKey & {
      readonly type: 'SetWebhookUrl';
      readonly url: string;
      readonly atMs: number;
      /** Used only if the key has no secret yet. */
      readonly newSecret: Ciphertext;
    })
  /** `secret` is the key's webhook secret, encrypted with the new master key. */
  | (ForKey & { readonly type: 'RewrapWebhookSecret'; readonly secret: Ciphertext })
  /** `perSecond` is from 1 to `MAX_PER_SECOND`; `null` removes the limit. */
  | (ForKey & { readonly type: 'SetWebhookRate'; readonly perSecond: number | null })
  | (ForKey & GivenReason & { readonly type: 'RemoveWebhook' })
  | (ForKey & { readonly type: 'EnableWebhook' })
  | (ForKey & {
      readonly type: 'DisableWebhook';
      readonly reason: string;
      readonly evidence: FailureEvidence;
    })
  | (ForKey & { readonly type: 'WarnWebhook'; readonly evidence: FailureEvidence })
  | (ForKey & { readonly type: 'RequestWebhookTest'; readonly deliveryId: string; readonly atMs: number })
  | (ForKey & GivenReason & { readonly type: 'CancelRedelivery' })
  | (ForKey & {
      readonly type: 'RequestRedelivery';
      /** `null` means the key's deliveries from `sinceMs` to `untilMs` that `which` names. */
      readonly deliveryIds: readonly string[] | null;
      readonly which?: Redeliverable;
      readonly sinceMs: number | null;
      readonly untilMs: number | null;
      readonly force: boolean;
    });

type WebhookDecision = Decision<AccountEvent>;
type Command<Type extends WebhookCommand['type']> = Extract<WebhookCommand, { type: Type }>;

/** Decides which events a command on a key's webhook causes. Pure; see `decide`. */
export function decideWebhook(command: WebhookCommand, account: Account, key: AccountKey): WebhookDecision {
  const ref = { account_id: command.accountId, prefix: key.prefix };
  switch (command.type) {
    case 'SetWebhookUrl':
      return setUrl(command, key);
    case 'RewrapWebhookSecret':
      // A key has one secret, which is never replaced. Another ciphertext means that it was re-encrypted meanwhile.
      if (key.webhookSecret === null) return noSecret(key);
      if (key.webhookSecret.master_key_id === command.secret.master_key_id) return unchanged;
      return record({ type: 'WebhookSecretRewrapped', data: { ...ref, secret: command.secret } });
    case 'SetWebhookRate':
      if (key.webhook === null) return noWebhook(key);
      if (command.perSecond !== null && !perSecond.is(command.perSecond))
        return refused(
          `the rate must be a whole number from 1 to ${MAX_PER_SECOND} deliveries a second, or off`,
        );
      if (key.webhook.ratePerSecond === command.perSecond) return unchanged;
      return record({ type: 'WebhookRateSet', data: { ...ref, per_second: command.perSecond } });
    case 'RemoveWebhook':
      return key.webhook === null
        ? unchanged
        : record({ type: 'WebhookRemoved', data: { ...ref, ...givenReason(command) } });
    case 'EnableWebhook':
      if (key.webhook === null) return noWebhook(key);
      return key.webhook.disabled === null ? unchanged : record({ type: 'WebhookEnabled', data: ref });
    case 'DisableWebhook': {
      if (key.webhook === null) return noWebhook(key);
      if (key.webhook.disabled !== null) return unchanged;
      const data = { ...ref, reason: command.reason, ...evidenceData(command.evidence) };
      return record({ type: 'WebhookDisabled', data });
    }
    case 'WarnWebhook':
      // A warning is useless if the webhook has been removed or disabled since the deliveries failed.
      if (key.webhook === null || key.webhook.disabled !== null) return unchanged;
      return record({ type: 'WebhookFailing', data: { ...ref, ...evidenceData(command.evidence) } });
    case 'RequestWebhookTest':
      return requestTest(command, account, key);
    case 'RequestRedelivery':
      return requestRedelivery(command, key);
    case 'CancelRedelivery':
      return record({ type: 'RedeliveryCancelled', data: { ...ref, ...givenReason(command) } });
    default:
      return command satisfies never;
  }
}

/** Sets the URL. A changed one keeps the time at which the first was set, so no transaction is lost, and the secret. */
function setUrl(command: Command<'SetWebhookUrl'>, key: AccountKey): WebhookDecision {
  if (key.webhook?.url === command.url) return unchanged;
  return record({
    type: 'WebhookUrlSet',
    data: {
      account_id: command.accountId,
      prefix: key.prefix,
      url: command.url,
      set_at: formatDateTime(key.webhook?.setAtMs ?? command.atMs),
      secret: key.webhookSecret === null ? command.newSecret : null,
    },
  });
}

/** Requests a test. It is an attempt like any other, made only if a transaction would be sent at that moment. */
function requestTest(
  { accountId, deliveryId, atMs }: Command<'RequestWebhookTest'>,
  account: Account,
  key: AccountKey,
): WebhookDecision {
  const ineligibleReason = webhookIneligibleReason(key) ?? accessIneligibleReason(account, atMs);
  if (ineligibleReason !== undefined) return ineligibleReason;
  const data = { account_id: accountId, prefix: key.prefix, delivery_id: deliveryId };
  return record({ type: 'WebhookTestRequested', data });
}

/**
 * Requests a redelivery. It is possible even without access: it is then held like everything else until access returns.
 */
function requestRedelivery(command: Command<'RequestRedelivery'>, key: AccountKey): WebhookDecision {
  const ineligibleReason = webhookIneligibleReason(key);
  if (ineligibleReason !== undefined) return ineligibleReason;
  const { accountId, deliveryIds, sinceMs, untilMs, force, which } = command;
  return record({
    type: 'RedeliveryRequested',
    data: {
      account_id: accountId,
      prefix: key.prefix,
      delivery_ids: deliveryIds === null ? null : [...deliveryIds],
      since: dateTimeOrNull(sinceMs),
      until: dateTimeOrNull(untilMs),
      force,
      ...(which && { which }),
    },
  });
}

/** Returns why nothing is sent to the key's webhook, with what to do about it; `undefined` if it is open. */
function webhookIneligibleReason(key: AccountKey): Refused | undefined {
  const { prefix, webhook } = key;
  if (!key.active) return refused(`key ${prefix} is switched off. Run \`fuel key on ${prefix}\` first`);
  if (webhook === null) return noWebhook(key);
  return webhook.disabled === null ? undefined : isDisabled(prefix, webhook.disabled);
}

function accessIneligibleReason(account: Account, atMs: number): Refused | undefined {
  const access = accessOf(account, atMs);
  if (access.open) return undefined;
  if (access.code === 'API_INTEGRATION_NOT_ENABLED') {
    return refused(
      `the integration of account ${account.id} is off. Run \`fuel account integration ${account.id} on\` first`,
    );
  }
  return refused(
    `account ${account.id} has no current charging profile. Run \`fuel account profile ${account.id} …\` first`,
  );
}

function noSecret({ prefix }: AccountKey): Refused {
  return refused(`key ${prefix} has no webhook secret. It gets one with \`fuel webhook set ${prefix} URL\``);
}

function noWebhook({ prefix }: AccountKey): Refused {
  return refused(`key ${prefix} has no webhook. Run \`fuel webhook set ${prefix} URL\` first`);
}

function isDisabled(prefix: string, { reason }: NonNullable<AccountWebhook['disabled']>): Refused {
  return refused(
    `the webhook of key ${prefix} is disabled (${reason}). Run \`fuel webhook enable ${prefix}\` first`,
  );
}

function evidenceData({ failedInARow, failingSinceMs, lastAnswers }: FailureEvidence) {
  return {
    failed_in_a_row: failedInARow,
    failing_since: dateTimeOrNull(failingSinceMs),
    last_answers: [...lastAnswers],
  };
}
