import { describe, expect, test } from 'vitest';
import { isPublicAddress } from '../../../src/push/targets/public-address.ts';
import { readTarget } from '../../../src/push/targets/target.ts';

function read(text: string, allowPrivate: boolean) {
  const found = readTarget(text, allowPrivate);
  return found.ok ? { ok: true, url: found.target.url } : found;
}
const strictly = (text: string) => read(text, false);
const loosely = (text: string) => read(text, true);
const refusedFor = (reason: RegExp) => ({ ok: false, reason: expect.stringMatching(reason) });

describe('a webhook URL', () => {
  test('is brought to its normal form', () => {
    expect(strictly(' HTTPS://Example.COM:443/a b?c=d ')).toEqual({
      ok: true,
      url: 'https://example.com/a%20b?c=d',
    });
  });

  test.each<[string, RegExp]>([
    ['', /must be a URL/],
    ['example.com/hook', /must be a URL/],
    ['http://example.com/', /must start with https/],
    ['ftp://example.com/', /must start with https/],
    ['https://user@example.com/', /user name or a password/],
    ['https://:secret@example.com/', /user name or a password/],
    ['https://example.com/#part', /fragment/],
    ['https://example.com/#', /fragment/],
    [`https://example.com/${'a'.repeat(2_048)}`, /at most 2048/],
  ])('is refused anywhere as %s', (text, reason) => {
    expect(strictly(text)).toEqual(refusedFor(reason));
    expect(loosely(text)).toEqual(refusedFor(reason));
  });

  test.each([
    'https://localhost/',
    'https://LOCALHOST./',
    'https://api.localhost/',
    'https://127.0.0.1/',
    'https://127.1/',
    'https://127.0.0.1./',
    'https://0x7f000001/',
    'https://0177.0.0.1/',
    'https://2130706433/',
    'https://%31%32%37.0.0.1/',
    'https://１２７.0.0.1/',
    'https://0/',
    'https://10.1.2.3/',
    'https://169.254.169.254/latest/meta-data',
    'https://[::1]/',
    'https://[::ffff:10.0.0.1]/',
    'https://[fd00:ec2::254]/',
    'https://[::]/',
    'https://[64:ff9b::a00:1]/',
    'https://[2002:7f00:1::]/',
  ])('that names the own network is refused but where private targets are allowed: %s', (text) => {
    expect(strictly(text)).toEqual(refusedFor(/public internet/));
    expect(loosely(text)).toMatchObject({ ok: true });
  });

  test('has at most 2,048 characters in its normal form', () => {
    const longest = `https://example.com/${'a'.repeat(2_048 - 20)}`;
    expect(strictly(longest)).toEqual({ ok: true, url: longest });
    expect(strictly(`${longest}a`)).toEqual(refusedFor(/at most 2048/));
    expect(strictly(`https://example.com/${'é'.repeat(400)}`)).toEqual(refusedFor(/at most 2048/)); // %C3%A9
    expect(strictly(`   ${longest}   `)).toEqual({ ok: true, url: longest });
  });

  test('uses port 443, but where private targets are allowed', () => {
    expect(strictly('https://example.com:8443/')).toEqual(refusedFor(/port 443/));
    expect(loosely('https://127.0.0.1:8443/')).toEqual({ ok: true, url: 'https://127.0.0.1:8443/' });
  });

  test.each(['https://203.0.114.5/', 'https://[2606:4700::1111]/', 'https://notlocalhost/'])(
    'may name a public host: %s',
    (text) => {
      expect(strictly(text)).toEqual({ ok: true, url: text });
    },
  );
});

describe('an address', () => {
  test.each(['1.1.1.1', '8.8.8.8', '172.32.0.1', '223.255.255.255', '2606:4700:4700::1111', '2a00::1'])(
    '%s is public',
    (address) => {
      expect(isPublicAddress(address)).toBe(true);
    },
  );

  test.each([
    ['', 'example.com', '127.1', '0x7f.0.0.1', '1.1.1.1/32', '1.1.1.1 '],
    ['0.0.0.0', '0.1.2.3', '::'],
    ['127.0.0.1', '127.255.255.255', '::1'],
    ['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1'],
    ['100.64.0.1', '100.100.100.200', '169.254.169.254', '192.0.0.192', '168.63.129.16'],
    ['192.0.2.1', '198.18.0.1', '198.51.100.1', '203.0.113.1', '240.0.0.1'],
    ['224.0.0.1', '255.255.255.255', 'ff02::1'],
    ['fe80::1', 'fe80::1%eth0', 'fec0::1', 'fc00::1', 'fd00:ec2::254'],
    ['::ffff:8.8.8.8', '::ffff:127.0.0.1', '::127.0.0.1', '::8.8.8.8', '::ffff:0:8.8.8.8'],
    ['64:ff9b::8.8.8.8', '64:ff9b:1::1', '2002:7f00:1::', '2001:0:1::1', '100::1'],
    ['2001:db8::1', '2001:2::1', '3fff::1', '4000::1', '5f00::1'],
  ])('%s is not public, nor its like', (...addresses) => {
    for (const address of addresses) expect([address, isPublicAddress(address)]).toEqual([address, false]);
  });
});

describe('an ISATAP address', () => {
  test.each([
    ['2001:db8:1::5efe:7f00:1', false],
    ['2606:4700::5efe:10.0.0.1', false],
    ['2606:4700::5efe:169.254.169.254', false],
    ['2606:4700::200:5efe:192.168.1.1', false],
    ['2606:4700::200:5efe:168.63.129.16', false],
    ['2606:4700::5efe:8.8.8.8', true],
    ['2606:4700::200:5efe:8.8.8.8', true],
    ['2606:4700::100:5efe:10.0.0.1', true], // any other interface id
    ['2606:4700::5eff:10.0.0.1', true],
    ['fd00::5efe:8.8.8.8', false],
  ])('%s is public where the IPv4 address within is: %s', (address, isPublic) => {
    expect(isPublicAddress(address)).toBe(isPublic);
  });
});
