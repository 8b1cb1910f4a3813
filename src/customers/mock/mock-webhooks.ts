import { randomUUID } from 'node:crypto';
import type { TransactionRow } from '../../../projections/transactions.ts';
import { WEBHOOK_TYPES } from '../../domain/transaction-events.ts';
import type { Presigner } from '../../pull/images/presign.ts';
import { deliveryId, type Envelope, pushedRecordText, webhookRequest } from '../../push/message/envelope.ts';
import type { SendRequest } from '../../push/sender/sender.ts';

export interface PlannedWebhook {
  readonly request: SendRequest;
  readonly deliveryId: string;
  /** `null` for a test. */
  readonly transactionId: number | null;
  /** Says whether a receiver should accept the webhook. */
  readonly expected: 'accepted' | 'refused';
}

export interface WebhookTerms {
  readonly url: string;
  readonly prefix: string;
  readonly secret: string;
  readonly presigner: Presigner;
  readonly nowMs: number;
}

export interface WebhookKind {
  readonly what: string;
  /** The number of transactions that this kind needs. */
  readonly transactions: number;
  /** Returns the webhooks in the order in which they are sent. `rows` are in the order of their creation. */
  plan(rows: readonly TransactionRow[], terms: WebhookTerms): PlannedWebhook[];
  /** The waits before they are planned and sent again, until the receiver does what is expected. */
  readonly retryDelaysMs?: readonly number[];
}

const LATE_MS = 10 * 60_000;
const FORGERS_SECRET = 'x'.repeat(43);

/** The kinds of webhooks that can be sent on demand. */
export const KINDS = {
  good: { what: 'one webhook, as the service sends it', transactions: 1, plan: good },
  twice: {
    what: 'the same webhook twice',
    transactions: 1,
    plan: (rows, terms) => [...good(rows, terms), ...good(rows, terms)],
  },
  unordered: {
    what: 'two webhooks, the later transaction first',
    transactions: 2,
    plan: (rows, terms) => good(rows, terms).toReversed(),
  },
  retry: {
    what: 'one webhook, again after 1 s and after 5 s until it is accepted',
    transactions: 1,
    plan: good,
    retryDelaysMs: [1_000, 5_000],
  },
  test: {
    what: 'a webhook.test, which holds no transaction',
    transactions: 0,
    plan: (_, terms) => [testWebhook(terms)],
  },
  late: {
    what: 'a webhook that was signed ten minutes ago',
    transactions: 1,
    plan: (rows, terms) => bad(rows, { ...terms, nowMs: terms.nowMs - LATE_MS }),
  },
  forged: {
    what: 'a webhook signed with another secret',
    transactions: 1,
    plan: (rows, terms) => bad(rows, { ...terms, secret: FORGERS_SECRET }),
  },
  changed: {
    what: 'a webhook whose amount was changed after signing',
    transactions: 1,
    plan: (rows, terms) =>
      bad(rows, terms).map(({ request: { body, ...request }, ...rest }) => ({
        ...rest,
        request: { ...request, body: body.replace(/"amount":-?/, '$&1') }, // also of a refund: -98.54 becomes -198.54
      })),
  },
} as const satisfies Record<string, WebhookKind>;

export type Kind = keyof typeof KINDS;

function good(rows: readonly TransactionRow[], terms: WebhookTerms): PlannedWebhook[] {
  return rows.map((row) => {
    const { id, status, createdAtMs } = row;
    const recordText = pushedRecordText(row, terms.presigner, terms.nowMs);
    const envelope = {
      id: deliveryId(terms.prefix, id),
      type: WEBHOOK_TYPES[status],
      createdAtMs,
      recordText,
    };
    return planned(envelope, id, terms);
  });
}

function bad(rows: readonly TransactionRow[], terms: WebhookTerms): PlannedWebhook[] {
  return good(rows, terms).map((webhook) => ({ ...webhook, expected: 'refused' }));
}

function testWebhook(terms: WebhookTerms): PlannedWebhook {
  const createdAtMs = terms.nowMs;
  return planned({ id: randomUUID(), type: 'webhook.test', createdAtMs, recordText: null }, null, terms);
}

function planned(
  envelope: Envelope,
  transactionId: number | null,
  { url, secret, nowMs: atMs }: WebhookTerms,
): PlannedWebhook {
  const request = webhookRequest({ url, secret, envelope, atMs });
  return { request, deliveryId: envelope.id, transactionId, expected: 'accepted' };
}
