import type { Command } from '@commander-js/extra-typings';
import { standardSecret } from '../../../accounts/key-text.ts';
import { openMasterKeys } from '../../../accounts/master-key.ts';
import type { Config } from '../../../base/config/config.ts';
import { silentLog } from '../../../base/log.ts';
import type { AccountKey } from '../../../domain/account.ts';
import { MAX_PER_SECOND, perSecond } from '../../../domain/values/primitives.ts';
import { createNameLookup } from '../../../push/sender/name-lookup.ts';
import { resolveName } from '../../../push/targets/resolve-name.ts';
import { outcomeAnswer } from '../../answers/delivery.ts';
import { readPrefix } from '../../answers/names.ts';
import { paceShown, readPace, webhookAnswer } from '../../answers/webhook.ts';
import { testWebhook } from '../../deliveries/test-webhook.ts';
import { setWebhook, type WebhookOptions } from '../../keys/set-webhook.ts';
import { changeKey, type KeyChange, printChange, UNCHANGED } from '../command/change.ts';
import { command, noun, type Session } from '../command/command.ts';
import { findKey, keyOf, knownKey } from '../command/known-names.ts';
import { usage } from '../command/options.ts';

const BY_OPERATOR = 'switched off by the operator';

const set = command({
  name: 'set',
  summary: 'set or change the URL; a newly generated secret is shown only once',
  example: 'fuel webhook set a1b2c3d4e5 https://erp.example.com/fuel-events',
  syntax: (it) => onKey(it).argument('<url>', 'where transactions are sent; it starts with https://'),
  changes: true,
  async work(session, [prefix, url]) {
    const { config, writer, out } = session;
    const { accountId } = await knownKey(session, prefix);
    const options = webhookOptions(config, url);
    const { changed, webhookSecret, warning, account } = await setWebhook(
      writer(),
      { accountId, prefix },
      options,
    );
    const document = await answer(accountId, keyOf(account, prefix), session);
    if (warning !== null) out.note(warning);
    const done = changed
      ? `Set the webhook of key ${prefix} to ${document.url}. Next: fuel webhook test ${prefix}`
      : UNCHANGED;
    const secret = secretAnswer(webhookSecret);
    const shown = { ...secret, changed, ...document, warning };
    if (webhookSecret === null) return out.result(shown, done);
    await out.secret(
      shown,
      `${done}${secretText(secret)}\nKeep it now: it is never shown again.`,
      `the webhook of key ${prefix} was set, but its secret could not be written to standard output and is lost. A key gets ` +
        `no second secret: switch the key off (fuel key off ${prefix}) and issue another ` +
        `(fuel key issue ${accountId} --webhook-url …)`,
    );
  },
});

const remove = command({
  name: 'remove',
  summary: 'remove the URL: nothing more is sent, and pending deliveries end as failed',
  example: 'fuel webhook remove a1b2c3d4e5',
  syntax: onKey,
  changes: true,
  asksWhy: () => true,
  work: (session, [prefix], { reason }) =>
    change(
      session,
      prefix,
      (of) => ({ type: 'RemoveWebhook', ...of, reason }),
      (key) => `Removed the webhook of key ${key}. Its pending deliveries end as failed`,
    ),
});

/** Resets the count of failures itself, so that it is 0 when the command returns, even if no process runs. */
const enable = command({
  name: 'enable',
  summary: 'switch a disabled webhook on again and reset its count of failures',
  example: 'fuel webhook enable a1b2c3d4e5',
  syntax: onKey,
  changes: true,
  async work(session, [prefix]) {
    const { changed, accountId, key } = await changeKey(session, prefix, (of) => ({
      type: 'EnableWebhook',
      ...of,
    }));
    const atMs = session.writer().clock.now();
    if (changed) await session.engines.queue().change({ kind: 'enabled', prefix, atMs }, atMs);
    printChange(
      session,
      changed,
      await answer(accountId, key, session),
      `Enabled the webhook of key ${prefix}. Next: fuel delivery redeliver --failed --key ${prefix} --since 7d --dry-run`,
    );
  },
});

const disable = command({
  name: 'disable',
  summary: 'switch a webhook off: nothing is queued for it until it is enabled again',
  example: 'fuel webhook disable a1b2c3d4e5 --reason "receiver is being moved"',
  syntax: onKey,
  changes: true,
  asksWhy: () => true,
  async work(session, [prefix], { reason = BY_OPERATOR }) {
    const evidence = await session.engines.queue().health(prefix);
    return change(
      session,
      prefix,
      (of) => ({ type: 'DisableWebhook', ...of, reason, evidence }),
      (key) =>
        `Disabled the webhook of key ${key}. Nothing is queued for it until fuel webhook enable ${key}`,
    );
  },
});

const rate = command({
  name: 'rate',
  summary: 'limit the deliveries per second, from 1 to 1000; off removes the limit',
  example: 'fuel webhook rate a1b2c3d4e5 20',
  syntax: (it) => onKey(it).argument('<n|off>', 'deliveries per second, or off', readRate),
  changes: true,
  work: (session, [prefix, perSecond]) =>
    change(
      session,
      prefix,
      (of) => ({ type: 'SetWebhookRate', ...of, perSecond }),
      (key) =>
        perSecond === null
          ? `Removed the limit of deliveries to key ${key}`
          : `Limited deliveries to key ${key} to ${perSecond} per second`,
    ),
});

const test = command({
  name: 'test',
  summary: "send one webhook.test now and show the receiver's answer",
  example: 'fuel webhook test a1b2c3d4e5',
  syntax: onKey,
  changes: true,
  async work(session, [prefix]) {
    const { config, writer, out } = session;
    const { accountId } = await knownKey(session, prefix);
    // Loaded here, since loading the HTTP client is slow and no other command needs it.
    const { configuredSender } = await import('../../../push/sender/sender.ts');
    const sender = configuredSender(config, silentLog); // the printed answer includes any fault
    try {
      const parts = { writer: writer(), masterKeys: openMasterKeys(config), sender };
      const { deliveryId, url, outcome, durationMs } = await testWebhook(parts, { accountId, prefix });
      const duration_ms = Math.round(durationMs);
      out.answer({ delivery_id: deliveryId, url, ...outcomeAnswer(outcome), duration_ms });
      return outcome.ok ? 0 : 1;
    } finally {
      await sender.close();
    }
  },
});

const show = command({
  name: 'show',
  summary: "show a key's webhook: its state, its failures in a row and its receiver's pace",
  example: 'fuel webhook show a1b2c3d4e5',
  syntax: onKey,
  async work(session, [prefix]) {
    const { engines, clock, out } = session;
    const { accountId, key } = await findKey(session, prefix);
    const queue = engines.queue();
    const document = webhookAnswer(accountId, key, await queue.health(prefix));
    const { pace } = await readPace({ queue, rows: engines.accounts(), nowMs: clock.now() }, prefix);
    out.answer({ ...document, pace }, { shown: { ...document, pace: paceShown(pace) } });
  },
});

export const addWebhookCommands = noun({
  name: 'webhook',
  summary: 'manage the webhooks that transactions are pushed to',
  example: 'fuel webhook show a1b2c3d4e5',
  commands: [set, remove, enable, disable, rate, test, show],
});

/** The key that a command is about. */
export function onKey(it: Command) {
  return it.argument('<prefix>', "the key's prefix", readPrefix);
}

/** A new webhook secret in both forms; `null` if none was generated. */
export function secretAnswer(secret: string | null) {
  return { webhook_secret: secret, webhook_secret_standard: standardSecret(secret) };
}

export function secretText(secret: ReturnType<typeof secretAnswer>): string {
  if (secret.webhook_secret === null) return '';
  return `\nwebhook secret: ${secret.webhook_secret}\nfor Standard Webhooks: ${secret.webhook_secret_standard}`;
}

/** A count, or `null` for off. */
function readRate(text: string): number | null {
  if (text === 'off') return null;
  const value = Number(text);
  if (/^\d+$/.test(text) && perSecond.is(value)) return value;
  throw usage(`must be off, or a whole number from 1 to ${MAX_PER_SECOND}`);
}

async function change(
  session: Session,
  prefix: string,
  commandOf: KeyChange,
  done: (prefix: string) => string,
): Promise<void> {
  const { changed, accountId, key } = await changeKey(session, prefix, commandOf);
  printChange(session, changed, await answer(accountId, key, session), done(prefix));
}

async function answer(accountId: number, key: AccountKey, { engines }: Session) {
  return webhookAnswer(accountId, key, await engines.queue().health(key.prefix));
}

/** The parts that setting a webhook's URL needs, made from this process's configuration. */
export function webhookOptions(config: Config, url: string): WebhookOptions {
  return {
    url,
    allowPrivate: config.FUEL_WEBHOOK_ALLOW_PRIVATE,
    masterKeys: openMasterKeys(config),
    names: createNameLookup({ resolve: resolveName }),
  };
}
