import { describe, expect, onTestFinished, test } from 'vitest';
import { silentLog } from '../../../src/base/log.ts';
import { createSender } from '../../../src/push/sender/sender.ts';
import { receiverTrust } from '../../support/deliveries/test-sender.ts';
import { OK, openReceiver, sendRequest } from '../../support/deliveries/tls-receiver.ts';

const { certificate, sender } = receiverTrust();

async function outcomeOf(url: string, addresses: readonly string[] = []) {
  const strict = sender({ allowPrivate: false, resolve: async () => addresses });
  return (await strict.send(sendRequest(url))).outcome;
}

const FORBIDDEN = { ok: false, kind: 'forbidden', answer: null };

describe('nothing is sent to a URL', () => {
  test.each(['http://example.com/', 'https://example.com:8443/', 'https://10.1.2.3/', 'no URL'])(
    'that a webhook must not have, also one that was set under other rules: %s',
    async (url) => {
      expect(await outcomeOf(url, ['93.184.216.34'])).toMatchObject(FORBIDDEN);
    },
  );

  test.each([
    ['a private address', ['10.0.0.1']],
    ['a public and a loopback address', ['93.184.216.34', '127.0.0.1']],
    ['a public and a mapped address', ['93.184.216.34', '::ffff:169.254.169.254']],
    ['a link-local IPv6 address', ['fe80::1']],
    ['something that is no address', ['example.com']],
  ])('whose name has %s', async (_what, addresses) => {
    expect(await outcomeOf('https://hook.test/', addresses)).toMatchObject(FORBIDDEN);
  });
});

test('the refusal names the address', async () => {
  expect(await outcomeOf('https://hook.test/', ['93.184.216.34', '10.0.0.1'])).toMatchObject({
    detail: 'hook.test has the address 10.0.0.1',
  });
});

test('where the operator allows it, private addresses and other ports may be called', async () => {
  const receiver = await openReceiver(certificate(), ({ socket }) => socket.write(OK));
  const sender = createSender({ allowPrivate: true, extraCa: certificate().cert, log: silentLog });
  onTestFinished(() => sender.close());
  for (const host of ['127.0.0.1', 'localhost', '2130706433']) {
    const { outcome } = await sender.send(sendRequest(`https://${host}:${receiver.port}/`));
    expect(outcome.ok).toBe(true);
  }
});
