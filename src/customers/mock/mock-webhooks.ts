import { randomUUID } from 'node:crypto';
import type { TransactionRow } from '../../../projections/transactions.ts';
import { WEBHOOK_TYPES } from '../../domain/transaction-events.ts';
import {
  deliveryId,
  pushedRecordText,
  type WebhookRequest,
  webhookRequest,
} from '../../push/message/envelope.ts';
import type { SendRequest } from '../../push/sender/timed-send.ts';
import type { Presigner } from '../../records/presign.ts';

interface WebhookTerms extends Omit<WebhookRequest, 'envelope'> {
  readonly prefix: string;
  readonly presigner: Presigner;
}

/** Makes the requests in the order in which they are sent. `rows` are in the order of their creation. */
type Plan = (rows: readonly TransactionRow[], terms: WebhookTerms) => SendRequest[];

/** The expected reaction of a receiver. An attempt that is followed by another one may get 503. */
export type Expected = 'accepted' | 'accepted or 503' | 'refused';

export interface WebhookKind {
  readonly what: string;
  readonly plan: Plan;
  readonly expected: Expected;
  /** The number of transactions that this kind needs; one unless given. */
  readonly transactions?: number;
  /** The waits before they are planned and sent again, until the receiver accepts them. */
  readonly retryDelaysMs?: readonly number[];
}

const LATE_MS = 10 * 60_000;
const FORGERS_SECRET = 'x'.repeat(43);

/** The kinds of webhooks that can be sent on demand. */
export const KINDS = {
  good: kind('one webhook, as the service sends it', good),
  twice: kind('the same webhook twice', (rows, terms) => [...good(rows, terms), ...good(rows, terms)]),
  unordered: kind('two webhooks, the later transaction first', (...of) => good(...of).toReversed(), {
    transactions: 2,
  }),
  retry: kind('one webhook, again after 1 s and after 5 s until it is accepted', good, {
    retryDelaysMs: [1_000, 5_000],
  }),
  test: kind('a webhook.test, which holds no transaction', empty('webhook.test'), { transactions: 0 }),
  'unknown-type': kind('a webhook of a type that may be added', empty('card.blocked'), { transactions: 0 }),
  'unknown-field': kind('a webhook whose transaction has a field that may be added', (rows, terms) =>
    good(rows, terms, (record) => record.replace(/}$/, ',"unknown_field":"new"}')),
  ),
  late: bad('a webhook that was signed ten minutes ago', (rows, terms) =>
    good(rows, { ...terms, atMs: terms.atMs - LATE_MS }),
  ),
  forged: bad('a webhook signed with another secret', (rows, terms) =>
    good(rows, { ...terms, secret: FORGERS_SECRET }),
  ),
  changed: bad('a webhook whose amount was changed after signing', (rows, terms) =>
    good(rows, terms).map(({ body, ...request }) => ({
      ...request,
      body: body.replace(/"amount":-?/, '$&1'), // also of a refund: -98.54 becomes -198.54
    })),
  ),
};

export type Kind = keyof typeof KINDS;

function good(
  rows: readonly TransactionRow[],
  { prefix, presigner, ...terms }: WebhookTerms,
  alter = (recordText: string) => recordText,
): SendRequest[] {
  return rows.map(({ id, status, createdAtMs, record }) => {
    const recordText = alter(pushedRecordText(record, presigner, terms.atMs));
    const envelope = { id: deliveryId(prefix, id), type: WEBHOOK_TYPES[status], createdAtMs, recordText };
    return webhookRequest({ ...terms, envelope });
  });
}

/** Makes one without a transaction. */
function empty(type: string): Plan {
  return (_, { url, secret, atMs }) => {
    const envelope = { id: randomUUID(), type, createdAtMs: atMs, recordText: null };
    return [webhookRequest({ url, secret, envelope, atMs })];
  };
}

function kind(what: string, plan: Plan, terms: Partial<WebhookKind> = {}): WebhookKind {
  return { what, plan, expected: 'accepted', ...terms };
}

function bad(what: string, plan: Plan): WebhookKind {
  return kind(what, plan, { expected: 'refused' });
}
