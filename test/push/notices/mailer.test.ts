import { inspect } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createMailer } from '../../../src/push/notices/mailer.ts';
import { startSmtpServer } from '../../support/service/smtp.ts';
import { closedPort, tcpServer } from '../../support/tcp-server.ts';

const MAIL = { to: ['a@customer.example', 'b@customer.example'], subject: 'Subject', text: 'Text\n' };

function mailerTo(url: string, senders: { readonly from?: string; readonly operator?: string } = {}) {
  const mailer = createMailer({
    FUEL_SMTP_URL: url,
    FUEL_MAIL_FROM: senders.from,
    FUEL_OPERATOR_EMAIL: senders.operator,
  });
  onTestFinished(() => mailer.close());
  return mailer;
}

describe('a mail', () => {
  test('comes from the address set for it, else from the operator’s, else from one of this machine', async () => {
    const smtp = await startSmtpServer();
    const settings = [
      { from: 'from@fuel.example', operator: 'op@fuel.example' },
      { operator: 'op@fuel.example' },
      {},
    ];
    for (const senders of settings) await mailerTo(smtp.url, senders).send(MAIL);
    expect(smtp.mails.map(({ raw }) => /^From: (.*)$/m.exec(raw)?.[1]?.trim())).toEqual([
      'from@fuel.example',
      'op@fuel.example',
      'fuel-integration@localhost',
    ]);
  });

  test('that the server refuses permanently resolves as refused, one that it may take later rejects', async () => {
    const smtp = await startSmtpServer();
    const mailer = mailerTo(smtp.url);
    smtp.refuse.push(550, 550);
    expect(await mailer.send(MAIL)).toMatchObject({
      kind: 'refused',
      reason: expect.stringContaining('not now'),
    });
    smtp.refuse.push(550, 550);
    smtp.saying('No such user: <a@customer.example>, mailbox b@customer.example is unknown');
    const quoting = await mailer.send(MAIL);
    expect(quoting).toMatchObject({ kind: 'refused', reason: expect.stringContaining('<…>, mailbox … is') });
    smtp.refuse.push(451, 451);
    const late = await mailer.send(MAIL).catch((error: unknown) => error);
    expect(inspect(late)).toMatch(/mailbox … is unknown/);
    expect(inspect(late)).not.toContain('customer.example');
    smtp.refuse.push(500, 500);
    expect(await mailer.send(MAIL)).toMatchObject({ kind: 'refused' });
    smtp.refuse.push(499, 499);
    await expect(mailer.send(MAIL)).rejects.toThrow();
    smtp.refuse.push(450, null);
    expect(await mailer.send(MAIL)).toEqual({ kind: 'sent', rejected: 1 });
    expect(smtp.mails.map(({ to }) => to)).toEqual([['b@customer.example']]);
  });

  test('rejects where no mail server can be reached', async () => {
    await expect(mailerTo(`smtp://127.0.0.1:${await closedPort()}`).send(MAIL)).rejects.toThrow();
  });

  test('takes five seconds at most from a server that does not greet, or greets and then says nothing', async () => {
    const silent = await tcpServer(() => undefined);
    const mute = await tcpServer((socket) => void socket.write('220 here\r\n'));
    const startMs = performance.now();
    const sending = [silent, mute].map((port) => mailerTo(`smtp://127.0.0.1:${port}`).send(MAIL));
    const results = await Promise.allSettled(sending);
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(performance.now() - startMs).toBeGreaterThan(4_500);
    expect(performance.now() - startMs).toBeLessThan(9_000);
  });
});

describe('encryption', () => {
  test('is used where the server offers it, also with a certificate that cannot be verified', async () => {
    const smtp = await startSmtpServer();
    expect(await mailerTo(smtp.url).send(MAIL)).toEqual({ kind: 'sent', rejected: 0 });
    expect(smtp.mails).toMatchObject([{ secure: true }]);
  });

  test.each([
    ['requireTLS', (url: string) => `${url}/?requireTLS=true`],
    ['credentials', (url: string) => url.replace('smtp://', 'smtp://user:password@')],
  ])('by a certificate that can be verified is insisted on with %s', async (_, urlOf) => {
    const smtp = await startSmtpServer();
    await expect(mailerTo(urlOf(smtp.url)).send(MAIL)).rejects.toThrow(/certificate/);
    expect(smtp.mails).toEqual([]);
  });

  test('of smtps:// is with a certificate that can be verified', async () => {
    const smtp = await startSmtpServer({ secure: true });
    await expect(mailerTo(smtp.url).send(MAIL)).rejects.toThrow(/certificate/);
    expect(smtp.mails).toEqual([]);
  });
});
