import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Ledger } from '../../../../examples/ledger/ledger.ts';
import { createReceiver, type Receiver, type WebhookEvent } from '../../../../examples/receiver/receiver.ts';
import type { DeliveryState, DeliverySummary } from '../../../../src/push/queue/delivery.ts';
import { makeCertificate } from '../../../support/certificate.ts';
import { listed } from '../../../support/deliveries/listed.ts';
import { folder } from '../../../support/service/commands.ts';
import { ServiceProcess } from '../../../support/service/service-process.ts';
import { startSmtpServer } from '../../../support/service/smtp.ts';
import {
  confirmed,
  type EventLine,
  importEvents,
  openAccount,
  voided,
} from '../../../support/transactions/e2e-samples.ts';
import { until } from '../../../support/waiting.ts';

const LATER = { created_at: '2099-01-01T00:00:00.000Z' }; // after any URL was set

let service: ServiceProcess;
let receiver: Receiver;
let url: string;
let prefix: string;
let secret: string;
const events: WebhookEvent[] = [];

/** One service and one receiver for all the tests of this file: each uses its own transactions. */
beforeAll(async () => {
  const certificate = await makeCertificate();
  const ca = join(folder(), 'receiver.pem');
  writeFileSync(ca, certificate.cert);
  service = new ServiceProcess({
    env: {
      FUEL_WEBHOOK_ALLOW_PRIVATE: 'true',
      FUEL_WEBHOOK_CA: ca,
      FUEL_WEBHOOK_RETRY_DELAYS: '20ms,20ms',
    },
  });
  await service.start();
  ({ prefix } = await openAccount(service));
  const first = await service.done(['webhook', 'set', prefix, 'https://127.0.0.1:9/', '--json', '--wait']);
  secret = first.json.webhook_secret;
  receiver = createReceiver({
    secrets: [secret],
    ...certificate,
    ledger: new Ledger(':memory:'),
    onEvent: (event) => events.push(event),
  });
  receiver.server.listen(0, '127.0.0.1');
  await once(receiver.server, 'listening');
  url = `https://127.0.0.1:${(receiver.server.address() as AddressInfo).port}/hook`;
  await service.done(['webhook', 'set', prefix, url, '--wait']);
}, 60_000);

afterAll(() => {
  receiver.server.close();
  receiver.server.closeAllConnections();
});

const record = (...events: readonly EventLine[]) => importEvents(service, events);
const confirm = (id: number) => record(confirmed(id, LATER));

/** The delivery of a transaction once it is in this state. */
async function delivery(transactionId: number, state: DeliveryState): Promise<DeliverySummary> {
  return service.operator.with(async (engines) => {
    let found: DeliverySummary | undefined;
    await until(async () => {
      const all = await listed(engines.queue(), { accountId: 7 });
      found = all.find((candidate) => candidate.transactionId === transactionId);
      return found?.state === state;
    }, 15_000);
    if (found === undefined) throw new Error(`no delivery of ${transactionId}`);
    return found;
  });
}

describe('fuel webhook', () => {
  test('tests a webhook: the answer is shown, and the exit code says how it went', async () => {
    const good = await service.fuel(['webhook', 'test', prefix, '--json']);
    expect([good.code, good.json]).toMatchObject([0, { ok: true, status: 204, error: null }]);
    expect(events.at(-1)).toMatchObject({ id: good.json.delivery_id, type: 'webhook.test', data: {} });
    receiver.failNext(1);
    const bad = await service.fuel(['webhook', 'test', prefix, '--json']);
    expect([bad.code, bad.json]).toMatchObject([1, { ok: false, status: 503, error: { kind: 'status' } }]);
    const { json } = await service.done(['webhook', 'show', prefix, '--json']);
    expect(json.health.failed_in_a_row).toBe(0);
  });

  test('disables and enables: nothing is tested or redelivered in between, and deliveries are owed again after', async () => {
    const off = await service.done(['webhook', 'disable', prefix, '--json', '--wait']);
    expect(off.json).toMatchObject({ changed: true, state: 'disabled', reason: expect.any(String) });
    const refused = await service.fuel(['webhook', 'test', prefix]);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('fuel webhook enable')]);
    await confirm(100);
    const { json } = await service.done(['transaction', 'show', '100', '--json']);
    expect(json.not_sent).toContainEqual({ key: prefix, reason: expect.stringContaining('disabled') });
    expect(json.deliveries).toEqual([]);
    const on = await service.done(['webhook', 'enable', prefix, '--json', '--wait']);
    expect(on.json).toMatchObject({ changed: true, state: 'active' });
    await confirm(101);
    await delivery(101, 'delivered');
  });
});

describe('fuel delivery', () => {
  test('redelivers what failed under the same id, by id and by key, and names what it refuses', async () => {
    receiver.failNext(3);
    await confirm(220);
    const { id } = await delivery(220, 'failed');
    const again = await service.done(['delivery', 'redeliver', '--failed', '--key', prefix, '--json']);
    expect(again.json).toEqual({ redelivered: 1, unchanged: 0, refused: 0, left_out: 0 });
    expect((await delivery(220, 'delivered')).id).toBe(id);
    const delivered = await service.fuel(['delivery', 'redeliver', id]);
    expect([delivered.code, delivered.stderr]).toEqual([1, expect.stringContaining('--force')]);
    const before = events.filter((event) => event.id === id).length;
    await service.done(['delivery', 'redeliver', id, '--force']);
    await until(async () => events.filter((event) => event.id === id).length > before, 15_000);
    await record(voided(220));
    const gone = await service.fuel(['delivery', 'redeliver', id, '--force']);
    expect([gone.code, gone.stderr]).toEqual([1, expect.stringContaining('voided or cancelled')]);
    expect((await service.fuel(['delivery', 'redeliver', '--failed'])).code).toBe(2);
  });
});

test('a service with a mail server mails contacts and operator when a webhook is disabled', async () => {
  const smtp = await startSmtpServer();
  const env = { FUEL_SMTP_URL: smtp.url, FUEL_OPERATOR_EMAIL: 'operator@fuel.example' };
  const mailing = new ServiceProcess({ env: { ...env, FUEL_WEBHOOK_ALLOW_PRIVATE: 'true' } });
  await mailing.start();
  const { prefix: key } = await openAccount(mailing, { webhookUrl: 'https://127.0.0.1:9/' });
  await mailing.done(['account', 'contact', '7', '--email', 'fleet@customer.example']);
  await mailing.done(['webhook', 'disable', key]);
  const mails = await smtp.received(2);
  expect(mails.map(({ to }) => to)).toEqual([['fleet@customer.example'], ['operator@fuel.example']]);
  expect(await mailing.stop()).toBe(0);
});
