import { randomUUID } from 'node:crypto';
import type { RenderedRecord } from '../../../projections/transactions.ts';
import { type VisibleStatus, WEBHOOK_TYPES } from '../../domain/transaction-events.ts';
import type { Presigner } from '../../pull/images/presign.ts';
import { deliveryId, type Envelope, pushedRecordText, webhookRequest } from '../../push/message/envelope.ts';
import type { SendRequest } from '../../push/sender/sender.ts';

/** What can be sent on demand, and what it is. */
export const KINDS = {
  good: 'one webhook, as the service sends it',
  twice: 'the same webhook two times',
  unordered: 'two webhooks, the later transaction first',
  test: 'a webhook.test, which holds no transaction',
  late: 'a webhook that was signed ten minutes ago',
  forged: 'a webhook that another secret signed',
  changed: 'a webhook with an amount that was changed after it was signed',
} as const;

export type Kind = keyof typeof KINDS;

const LATE_MS = 10 * 60_000;
const FORGERS_SECRET = 'x'.repeat(43);

export interface Pushed {
  readonly id: number;
  readonly status: VisibleStatus;
  readonly createdAtMs: number;
  readonly record: RenderedRecord;
}

export interface PlannedWebhook {
  readonly request: SendRequest;
  readonly deliveryId: string;
  /** `null` for a test. */
  readonly transactionId: number | null;
  /** What a receiver should do with it. */
  readonly expected: 'accepted' | 'refused';
}

export interface WebhookTerms {
  readonly url: string;
  readonly prefix: string;
  readonly secret: string;
  readonly presigner: Presigner;
  readonly nowMs: number;
}

/** How many transactions a kind needs. */
export function transactionsFor(kind: Kind): number {
  if (kind === 'test') return 0;
  return kind === 'unordered' ? 2 : 1;
}

/** The webhooks of a kind in the order in which they are sent; `transactions` in the order of their creation. */
export function planWebhooks(
  kind: Kind,
  transactions: readonly Pushed[],
  terms: WebhookTerms,
): PlannedWebhook[] {
  if (kind === 'test') return [testWebhook(terms)];
  const good = transactions.map((transaction) => plan(transaction, terms));
  switch (kind) {
    case 'good':
      return good;
    case 'twice':
      return [...good, ...good];
    case 'unordered':
      return good.toReversed();
    case 'late':
      return refused(transactions, { ...terms, nowMs: terms.nowMs - LATE_MS });
    case 'forged':
      return refused(transactions, { ...terms, secret: FORGERS_SECRET });
    case 'changed':
      return refused(transactions, terms).map(({ request, ...rest }) => ({
        ...rest,
        request: { ...request, body: request.body.replace('"amount":', '"amount":1') },
      }));
  }
}

function refused(transactions: readonly Pushed[], terms: WebhookTerms): PlannedWebhook[] {
  return transactions.map((transaction) => ({ ...plan(transaction, terms), expected: 'refused' }));
}

function plan(transaction: Pushed, terms: WebhookTerms): PlannedWebhook {
  const { id, status, createdAtMs, record } = transaction;
  const recordText = pushedRecordText(record, terms.presigner, terms.nowMs);
  const envelope = { id: deliveryId(terms.prefix, id), type: WEBHOOK_TYPES[status], createdAtMs, recordText };
  return planned(envelope, id, terms);
}

function testWebhook(terms: WebhookTerms): PlannedWebhook {
  const envelope: Envelope = {
    id: randomUUID(),
    type: 'webhook.test',
    createdAtMs: terms.nowMs,
    recordText: null,
  };
  return planned(envelope, null, terms);
}

function planned(
  envelope: Envelope,
  transactionId: number | null,
  { url, secret, nowMs: atMs }: WebhookTerms,
): PlannedWebhook {
  const request = webhookRequest({ url, secret, envelope, atMs });
  return { request, deliveryId: envelope.id, transactionId, expected: 'accepted' };
}
