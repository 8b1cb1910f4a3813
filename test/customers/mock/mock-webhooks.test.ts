import { Webhook, WebhookVerificationError } from 'standardwebhooks';
import { describe, expect, it, vi } from 'vitest';
import { projectTransaction, type TransactionRow } from '../../../projections/transactions.ts';
import { standardSecret } from '../../../src/accounts/key-text.ts';
import { KINDS, type Kind } from '../../../src/customers/mock/mock-webhooks.ts';
import { createPresigner } from '../../../src/records/presign.ts';
import { isGenuine } from '../../support/deliveries/is-genuine.ts';
import { expectDocumentedDelivery } from '../../support/openapi/validate.ts';
import { confirmedData, externalData } from '../../support/transactions/records.ts';

const SECRET = 's'.repeat(43);
const NOW = Date.parse('2026-10-05T12:00:00.250Z');
const terms = {
  url: 'https://erp.example.com/fuel-events',
  prefix: 'abcdefghij',
  secret: SECRET,
  atMs: NOW,
  presigner: createPresigner({
    endpoint: 'https://photos.example.com',
    region: 'us-east-1',
    bucket: 'fuel-photos',
    accessKeyId: 'A',
    secretAccessKey: 'B',
  }),
};

function pushed(id: number, isExternal = false): TransactionRow {
  const change = isExternal
    ? projectTransaction('ExternalTransactionRecorded', externalData({ transaction_id: id }), 0)
    : projectTransaction('TransactionConfirmed', confirmedData({ transaction_id: id }), 0);
  return rowOf(change);
}

function rowOf(change: ReturnType<typeof projectTransaction>): TransactionRow {
  if (change.kind !== 'show') throw new Error('it is not shown');
  return change.row;
}

const planned = (kind: Kind) =>
  KINDS[kind].plan([pushed(501), pushed(502, true)].slice(0, KINDS[kind].transactions ?? 1), terms);
const genuine = (request: ReturnType<typeof planned>[0]): boolean =>
  isGenuine({
    header: request.headers['X-Service-Signature'] ?? '',
    secret: SECRET,
    nowMs: NOW,
    body: Buffer.from(request.body),
  });

/** Asks the published library for Standard Webhooks, which takes the time from the system's clock. */
function isStandard(request: ReturnType<typeof planned>[0]): boolean {
  vi.useFakeTimers({ toFake: ['Date'], now: NOW });
  try {
    new Webhook(standardSecret(SECRET)).verify(request.body, request.headers);
    return true;
  } catch (error) {
    if (error instanceof WebhookVerificationError) return false;
    throw error;
  } finally {
    vi.useRealTimers();
  }
}

describe('the webhooks of a mock', () => {
  it.each(Object.keys(KINDS) as Kind[])(
    'of kind %s are genuine exactly where a receiver should accept them',
    (kind) => {
      const webhooks = planned(kind);
      expect(webhooks.length).toBeGreaterThan(0);
      for (const webhook of webhooks) {
        expect(KINDS[kind].expected).toBe(genuine(webhook) ? 'accepted' : 'refused');
        expect(KINDS[kind].expected).toBe(isStandard(webhook) ? 'accepted' : 'refused');
      }
    },
  );

  const known = (Object.keys(KINDS) as Kind[]).filter((kind) => !kind.startsWith('unknown'));
  it.each(known)('of kind %s are as docs/openapi.yaml describes them', (kind) => {
    for (const request of planned(kind)) {
      const headers = Object.entries(request.headers).map(([name, value]) => [name.toLowerCase(), value]);
      const text = kind === 'changed' ? request.body.replace('"amount":1', '"amount":') : request.body;
      expectDocumentedDelivery({ method: 'POST', headers: Object.fromEntries(headers), text });
    }
  });

  it('are refused for one reason each: the time, the secret, the body', () => {
    const [late] = planned('late');
    const [, t] = /t=(\d+)/.exec(late?.headers['X-Service-Signature'] ?? '') ?? [];
    expect(NOW / 1000 - Number(t)).toBeGreaterThan(590);
    expect(JSON.parse(planned('changed')[0]?.body ?? '').data.transaction.fuel.amount).toBe(198.54);
    expect(planned('forged')[0]?.body).toBe(planned('good')[0]?.body);
  });

  it('of a changed refund are JSON with another amount, so that only the signature tells', () => {
    const fuel = { ...(confirmedData().fuel as object), amount: '-98.54' };
    const refund = rowOf(projectTransaction('TransactionConfirmed', confirmedData({ fuel }), 0));
    const [changed] = KINDS.changed.plan([refund], terms);
    expect(JSON.parse(changed?.body ?? '').data.transaction.fuel.amount).toBe(-198.54);
  });

  it('of unknown types and fields differ from a good one in nothing else', () => {
    const good = JSON.parse(planned('good')[0]?.body ?? '');
    const { unknown_field, ...transaction } = JSON.parse(planned('unknown-field')[0]?.body ?? '').data
      .transaction;
    expect(unknown_field).toBe('new');
    expect(transaction).toEqual(good.data.transaction);
    const [request] = planned('unknown-type');
    const { type, ...unknown } = JSON.parse(request?.body ?? '');
    expect([type, request?.headers['X-Service-Event']]).toEqual(['card.blocked', 'card.blocked']);
    expect(Object.keys({ type, ...unknown }).toSorted()).toEqual(Object.keys(good).toSorted());
  });

  it('of the same transaction have the same id and body each time', () => {
    const [first, second] = planned('twice');
    expect(second).toEqual(first);
    expect(planned('good')).toEqual([first]);
  });

  it('come in the wrong order where that is asked for', () => {
    const ids = planned('unordered').map(({ body }) => JSON.parse(body).data.transaction.id);
    expect(ids).toEqual([502, 501]);
    expect(planned('unordered')[0]?.headers['X-Service-Event']).toBe('transaction.external');
  });
});
