import { getEventListeners } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { createNameLookup } from '../../../src/push/sender/name-lookup.ts';
import { nameResolver } from '../../../src/push/targets/resolve-name.ts';
import { type DnsAnswer, type DnsFamily, dnsServer } from '../../support/deliveries/dns-server.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const machine = { hosts: '', dns: '' };

beforeEach(() => {
  machine.hosts = '127.0.0.1 localhost\n';
});

/** Answers DNS like this, and counts what it is asked. */
async function answering(answer: (family: DnsFamily, asked: number) => DnsAnswer): Promise<string[]> {
  const asked: string[] = [];
  machine.dns = await dnsServer((name, family) => {
    asked.push(`${family} ${name}`);
    return answer(family, asked.filter((query) => query.startsWith(`${family} `)).length);
  });
  return asked;
}

function find(name: string, signal = new AbortController().signal): Promise<readonly string[]> {
  const hostsFile = join(temporaryFolder(), 'hosts');
  writeFileSync(hostsFile, machine.hosts);
  return nameResolver({ hostsFile, servers: [machine.dns] })(name, signal);
}

test('a name has the addresses of both families, each of which the sender judges', async () => {
  await answering(() => ['192.0.2.1', '192.0.2.2', '2001:db8::1']);
  expect([...(await find('hook.test'))].sort()).toEqual(['192.0.2.1', '192.0.2.2', '2001:db8::1']);
});

test.each<[string, DnsAnswer]>([
  ['has no address', []],
  ['can’t be asked for', 'fails'],
  ['is never answered', 'silent'],
])('a family that %s does not hide the other', async (_what, other) => {
  for (const [family, address] of [
    ['A', '192.0.2.1'],
    ['AAAA', '2001:db8::1'],
  ] as const) {
    await answering((asked) => (asked === family ? [address] : other));
    // As the sender looks it up: within 500 ms.
    const names = createNameLookup({ resolve: find, steady: new FakeClock() });
    expect(await names.find('hook.test')).toEqual({ ok: true, addresses: [address] });
  }
});

test('a name without an address of either family is refused with the reason', async () => {
  await answering(() => 'no such name');
  await expect(find('hook.test')).rejects.toMatchObject({ code: 'ENOTFOUND' });
});

test('a query that was lost is asked again in time', async () => {
  const durationsMs: number[] = [];
  // The fastest counts: on a busy machine one may take longer.
  while (durationsMs.length < 4 && Math.min(...durationsMs) >= 375) {
    await answering((_family, asked) => (asked === 1 ? 'silent' : ['192.0.2.1']));
    const startedAt = performance.now();
    expect(await find('hook.test')).toEqual(['192.0.2.1']);
    durationsMs.push(performance.now() - startedAt);
  }
  expect(Math.min(...durationsMs)).toBeLessThan(375); // of the 500 ms that a look-up may take
});

test('a name of which nothing is known yet is waited for as long as DNS allows', async () => {
  await answering(() => 'silent');
  await expect(find('hook.test')).rejects.toMatchObject({ code: 'ETIMEOUT' });
});

test('a look-up that is given up ends at once', async () => {
  const asked = await answering(() => 'silent');
  const stopping = new AbortController();
  const found = find('hook.test', stopping.signal);
  setTimeout(() => stopping.abort(), 50);
  await expect(found).rejects.toMatchObject({ code: 'ECANCELLED' });
  expect(asked.length).toBeLessThanOrEqual(2); // nothing was asked a second time
});

test('what the hosts file says goes before DNS, and localhost is never asked for', async () => {
  machine.hosts = '192.0.2.7 hook.test\n192.0.2.8 named.localhost\n';
  const asked = await answering(() => ['192.0.2.1']);
  expect(await find('hook.test')).toEqual(['192.0.2.7']);
  expect(await find('named.localhost')).toEqual(['192.0.2.8']);
  expect(await find('other.localhost')).toEqual(['127.0.0.1', '::1']);
  expect(await find('localhost')).toEqual(['127.0.0.1', '::1']);
  expect(asked).toEqual([]);
  expect(await find('notlocalhost')).toEqual(['192.0.2.1']);
});

test('a look-up that has ended leaves no timer, and nothing on the signal that could have ended it', async () => {
  const { signal } = new AbortController();
  await answering(() => ['192.0.2.1', '2001:db8::1']);
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  await find('hook.test', signal);
  expect([vi.getTimerCount(), getEventListeners(signal, 'abort')]).toEqual([0, []]);
});
