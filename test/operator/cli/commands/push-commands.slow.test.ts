import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { Ledger } from '../../../../examples/ledger/ledger.ts';
import { createReceiver, type WebhookEvent } from '../../../../examples/receiver/receiver.ts';
import { makeCertificate } from '../../../support/certificate.ts';
import { folder } from '../../../support/service/commands.ts';
import { ServiceProcess } from '../../../support/service/service-process.ts';
import { startSmtpServer } from '../../../support/service/smtp.ts';
import { openAccount } from '../../../support/transactions/e2e-samples.ts';

test('fuel webhook test shows what the receiver answers, and the exit code says how it went', async () => {
  const certificate = await makeCertificate();
  const ca = join(folder(), 'receiver.pem');
  writeFileSync(ca, certificate.cert);
  const service = new ServiceProcess({
    env: { FUEL_WEBHOOK_ALLOW_PRIVATE: 'true', FUEL_WEBHOOK_CA: ca },
  });
  await service.start();
  const { prefix } = await openAccount(service);
  const set = ['webhook', 'set', prefix, 'https://127.0.0.1:9/', '--json'];
  const { webhook_secret } = (await service.done(set)).json;
  const events: WebhookEvent[] = [];
  const receiver = createReceiver({
    secrets: [webhook_secret],
    ...certificate,
    ledger: new Ledger(':memory:'),
    onEvent: (event) => events.push(event),
  });
  onTestFinished(() => {
    receiver.server.close();
    receiver.server.closeAllConnections();
  });
  receiver.server.listen(0, '127.0.0.1');
  await once(receiver.server, 'listening');
  const { port } = receiver.server.address() as AddressInfo;
  await service.done(['webhook', 'set', prefix, `https://127.0.0.1:${port}/hook`]);
  const good = await service.fuel(['webhook', 'test', prefix, '--json']);
  expect([good.code, good.json]).toMatchObject([0, { ok: true, status: 204, error: null }]);
  expect(events.at(-1)).toMatchObject({ id: good.json.delivery_id, type: 'webhook.test', data: {} });
  receiver.failNext(1);
  const bad = await service.fuel(['webhook', 'test', prefix, '--json']);
  expect([bad.code, bad.json]).toMatchObject([1, { ok: false, status: 503, error: { kind: 'status' } }]);
  const { json } = await service.done(['webhook', 'show', prefix, '--json']);
  expect(json.health.failed_in_a_row).toBe(0);
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
