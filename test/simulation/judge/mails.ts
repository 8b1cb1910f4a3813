import type { Model } from './model.ts';

/** Longer than mails are retried after a storm. */
const PATIENCE_MS = 20 * 60_000;
/** How long after a fault a mail may be sent twice. */
const FAULT_MS = 150_000;

/** A mail that was sent. */
export interface Mailed {
  readonly to: string;
  readonly subject: string;
  /** The time and the event, as a line. */
  readonly line: string;
  readonly atMs: number;
}

const SUBJECTS = {
  WebhookFailing: 'Webhook is failing',
  WebhookDisabled: 'Webhook was switched off',
  WebhookEnabled: 'Webhook was switched on again',
} as const;
export type NoticeType = keyof typeof SUBJECTS;

/** Checks that each event with a notice caused one mail to the customer and one to the operator. */
export function judgeMails(
  model: Model,
  mails: readonly Mailed[],
  { nowMs, faultsAtMs }: { readonly nowMs: number; readonly faultsAtMs: readonly number[] },
): string[] {
  const faults: string[] = [];
  const byPlace = Map.groupBy(mails, ({ to, subject }) => `${to} ${subject}`);
  const expected = new Set<string>();
  for (const { id, keys } of model.accounts.values())
    for (const { prefix, notices } of keys.values())
      for (const [type, events] of Map.groupBy(notices, (notice) => notice.type))
        for (const to of [`it@customer-${id}.example`, 'operator@fuel.example']) {
          const place = `${to} ${SUBJECTS[type]}: Customer ${id}, key ${prefix}`;
          expected.add(place);
          const sent = new Set((byPlace.get(place) ?? []).map(({ line }) => line)).size;
          const old = events.filter(({ atMs }) => nowMs - atMs > PATIENCE_MS).length;
          if (sent < old) faults.push(`${old} mails are due, and ${sent} were sent: ${place}`);
          if (sent > events.length)
            faults.push(`${sent} mails were sent, and ${events.length} are due: ${place}`);
        }
  for (const place of byPlace.keys())
    if (!expected.has(place)) faults.push(`a mail that nothing calls for: ${place}`);
  for (const [line, [, ...again]] of Map.groupBy(mails, (mail) => `${mail.to} ${mail.line}`))
    for (const { atMs } of again)
      if (!faultsAtMs.some((ms) => ms > atMs - FAULT_MS && ms <= atMs))
        faults.push(`a mail came twice, and nothing had gone wrong: ${line}`);
  return faults;
}
