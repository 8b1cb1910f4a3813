import { expect, test } from 'vitest';
import { checkMail } from '../../../src/operator/checks/servers.ts';
import { said } from '../../support/checks/facts.ts';
import { startSmtpServer } from '../../support/service/smtp.ts';
import { closedPort } from '../../support/tcp-server.ts';

test('a mail server that takes connections is right, and gets no mail', async () => {
  const { url, mails } = await startSmtpServer();
  const { host } = new URL(url);
  const finding = await said(checkMail(url));
  expect(finding).toEqual({ ok: true, detail: `${host} accepts mail`, do: null });
  expect(mails).toEqual([]);
});

test('a mail server that cannot be reached is wrong, and its password is not named', async () => {
  const url = `smtp://user:secret-word@127.0.0.1:${await closedPort()}`;
  const finding = await said(checkMail(url));
  expect(finding).toMatchObject({ ok: false, detail: expect.stringContaining('ECONNREFUSED') });
  expect(JSON.stringify(finding)).not.toContain('secret-word');
});

test('without a mail server nobody is mailed', async () => {
  const finding = await said(checkMail(undefined));
  expect(finding).toMatchObject({ ok: true, detail: expect.stringContaining('nobody is mailed') });
});
