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
  test.each([
    'http://example.com/',
    'https://example.com:8443/',
    'https://user@example.com/',
    'https://example.com/#part',
    'ftp://example.com/',
    'no URL',
  ])('of a form that a webhook must not have: %s', async (url) => {
    expect(await outcomeOf(url, ['93.184.216.34'])).toMatchObject(FORBIDDEN);
  });

  test.each([
    'https://127.0.0.1/',
    'https://0x7f.1/',
    'https://2130706433/',
    'https://017700000001/',
    'https://127.1/',
    'https://0/',
    'https://10.1.2.3/',
    'https://172.16.0.1/',
    'https://192.168.1.1/',
    'https://169.254.169.254/latest/meta-data/',
    'https://168.63.129.16/',
    'https://100.64.0.1/',
    'https://224.0.0.1/',
    'https://255.255.255.255/',
    'https://[::1]/',
    'https://[::]/',
    'https://[fe80::1]/',
    'https://[fd00:ec2::254]/',
    'https://[::ffff:127.0.0.1]/',
    'https://[::ffff:7f00:1]/',
    'https://[64:ff9b::7f00:1]/',
    'https://[64:ff9b::8.8.8.8]/',
    'https://[2002:7f00:1::]/',
    'https://１２７.0.0.1/',
    'https://localhost/',
    'https://LOCALHOST./',
    'https://a.localhost/',
  ])('whose host is not public: %s', async (url) => {
    expect(await outcomeOf(url, ['93.184.216.34'])).toMatchObject(FORBIDDEN);
  });

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
