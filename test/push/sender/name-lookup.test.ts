import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { silentLog } from '../../../src/base/log.ts';
import { createNameLookup } from '../../../src/push/sender/name-lookup.ts';
import { createSender } from '../../../src/push/sender/sender.ts';
import { addressesInHostsFile, type ResolveName } from '../../../src/push/targets/resolve-name.ts';
import { OK, openReceiver, receiverCertificate, sendRequest } from '../../support/deliveries/tls-receiver.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const never: ResolveName = () => new Promise(() => undefined);

/** A look-up that counts how often it resolves. */
function counting(resolve: ResolveName) {
  const asked: string[] = [];
  const clock = new FakeClock();
  const names = createNameLookup({
    steady: clock,
    resolve: (name, signal) => {
      asked.push(name);
      return resolve(name, signal);
    },
  });
  return { asked, clock, names };
}

describe('a look-up', () => {
  test('of an address needs none', async () => {
    const { names, asked } = counting(never);
    expect(await names.find('192.0.2.7')).toEqual({ ok: true, addresses: ['192.0.2.7'] });
    expect(await names.find('::1')).toEqual({ ok: true, addresses: ['::1'] });
    expect(asked).toEqual([]);
  });

  test('is shared by those who ask meanwhile, and its answer kept for 20 s', async () => {
    const { names, asked, clock } = counting(async () => ['192.0.2.7']);
    const found = { ok: true, addresses: ['192.0.2.7'] };
    expect(await Promise.all([names.find('a.test'), names.find('a.test')])).toEqual([found, found]);
    clock.advance(20_000);
    await names.find('a.test');
    expect(asked).toHaveLength(1);
    clock.advance(1);
    await names.find('a.test');
    expect(asked).toHaveLength(2);
  });

  test('that failed is kept for 1 s', async () => {
    const { names, asked, clock } = counting(() => Promise.reject(new Error('queryA ENOTFOUND a.test')));
    const failed = { ok: false, detail: 'queryA ENOTFOUND a.test' };
    expect(await names.find('a.test')).toEqual(failed);
    clock.advance(1_000);
    expect(await names.find('a.test')).toEqual(failed);
    expect(asked).toHaveLength(1);
    clock.advance(1);
    await names.find('a.test');
    expect(asked).toHaveLength(2);
  });

  test('is kept of 10,000 names: beyond that, of those asked for last', async () => {
    const { names, asked } = counting(async () => ['192.0.2.7']);
    for (let n = 0; n < 10_000; n++) await names.find(`${n}.test`);
    await names.find('0.test');
    await names.find('10000.test');
    expect(asked).toHaveLength(10_001);
    await names.find('0.test');
    expect(asked).toHaveLength(10_001);
    await names.find('1.test');
    expect(asked).toHaveLength(10_002);
  });

  test('is found for everybody, also where more than 10,000 are being looked up at once', async () => {
    const { promise, resolve } = Promise.withResolvers<readonly string[]>();
    const { names } = counting(() => promise);
    const found = Array.from({ length: 10_001 }, (_, n) => names.find(`${n}.test`));
    resolve(['192.0.2.7']);
    const failed = (await Promise.allSettled(found)).filter(
      (each) => each.status === 'rejected' || !each.value.ok,
    );
    expect(failed).toEqual([]);
  });

  test('that finds no address is a failure', async () => {
    const { names } = counting(async () => []);
    expect(await names.find('a.test')).toEqual({ ok: false, detail: 'a.test has no address' });
  });

  test('is given up after 500 ms, and its failure says so', async () => {
    let told: AbortSignal | undefined;
    const { names } = counting((_name, signal) => {
      told = signal;
      return never('', signal);
    });
    const startedAt = performance.now();
    expect(await names.find('dead.test')).toEqual({
      ok: false,
      detail: 'dead.test: no answer within 500 ms',
    });
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    expect(told?.aborted).toBe(true);
  });
});

test('the hosts file is read line by line, comments and other lines passed over', () => {
  const path = join(temporaryFolder(), 'hosts');
  writeFileSync(
    path,
    '# 1.1.1.1 a.test\n192.0.2.7 A.test b.test # c.test\n2001:db8::1\ta.test\nnonsense a.test\n',
  );
  expect(addressesInHostsFile('a.test', path)).toEqual(['192.0.2.7', '2001:db8::1']);
  expect(addressesInHostsFile('b.test', path)).toEqual(['192.0.2.7']);
  expect(addressesInHostsFile('c.test', path)).toEqual([]);
  expect(addressesInHostsFile('a.test', join(path, '..', 'none'))).toEqual([]);
});

test('zones that never answer delay no other receiver', async () => {
  const certificate = await receiverCertificate();
  const receiver = await openReceiver(certificate, ({ socket }) => socket.write(OK));
  const resolve: ResolveName = (name, signal) =>
    name === 'hook.test' ? Promise.resolve(['127.0.0.1']) : never(name, signal);
  const sender = createSender({ allowPrivate: true, extraCa: certificate.cert, resolve, log: silentLog });
  onTestFinished(() => sender.close());
  const dead = Array.from({ length: 50 }, (_, i) => sender.send(sendRequest(`https://dead${i}.test/`)));
  const { outcome, durationMs } = await sender.send(sendRequest(`https://hook.test:${receiver.port}/`));
  expect(outcome.ok).toBe(true);
  expect(durationMs).toBeLessThan(500); // the wait for a dead one
  for (const result of await Promise.all(dead)) {
    expect(result.outcome).toMatchObject({ ok: false, kind: 'dns', answer: null });
    expect(result.durationMs).toBeLessThan(5_000);
  }
});
