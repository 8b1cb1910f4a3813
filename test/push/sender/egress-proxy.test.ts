import { describe, expect, onTestFinished, test } from 'vitest';
import type { SenderOptions } from '../../../src/push/sender/sender.ts';
import { receiverTrust } from '../../support/deliveries/test-sender.ts';
import { OK, openReceiver, sendRequest } from '../../support/deliveries/tls-receiver.ts';
import { ConnectProxy, type ProxyRules, type TestProxy } from '../../support/proxies/connect-proxy.ts';
import { findTinyproxy, Tinyproxy } from '../../support/proxies/tinyproxy.ts';
import { memoryLog } from '../../support/service/api.ts';
import { closedPort } from '../../support/tcp-server.ts';

const { certificate, sender } = receiverTrust();
const OWN_FAULT = { isWithheld: true, outcome: { ok: false, kind: 'proxy' } };
const resolve = async () => ['127.0.0.1'];
const urlOf = (port: number) => `https://hook.test:${port}/hook`;
const originOf = (port: number) => `https://hook.test:${port}`;
const answering = () => openReceiver(certificate(), ({ socket }) => socket.write(OK));

/** The waits of the sender do not end, however long a busy machine takes. */
const STANDING_CLOCK = { now: () => 1 };

/** A sender that connects through the proxy, and what it logs. */
function through(proxy: TestProxy, options: Partial<SenderOptions> = {}, authorization?: string) {
  const lines: Record<string, unknown>[] = [];
  const address = { host: '127.0.0.1', port: proxy.port, ...(authorization && { authorization }) };
  const given = { proxy: address, resolve, log: memoryLog(lines), steady: STANDING_CLOCK };
  return { sent: sender({ ...given, ...options }), lines };
}

const basic = (credentials: string) => `Basic ${Buffer.from(credentials).toString('base64')}`;

/** The rules that hold with any proxy. `begin` starts one that ends with the test. */
function proxyRules(begin: (rules?: ProxyRules) => Promise<TestProxy>): void {
  test('it is asked for the judged address once, and TLS is with the name of the receiver', async () => {
    const [proxy, receiver] = [await begin(), await answering()];
    const { sent } = through(proxy);
    for (let i = 0; i < 2; i++)
      expect(await sent.send(sendRequest(urlOf(receiver.port)))).toMatchObject({ outcome: { ok: true } });
    expect(proxy.asked()).toEqual([`127.0.0.1:${receiver.port}`]);
    expect(receiver.requests[0]?.head).toContain(`host: hook.test:${receiver.port}`);
    expect(receiver.requests[0]?.socket).toMatchObject({ servername: 'hook.test' });
  });

  test('a forbidden address is never named to it', async () => {
    const proxy = await begin();
    const { sent } = through(proxy, { allowPrivate: false });
    const { outcome } = await sent.send(sendRequest('https://hook.test/hook'));
    expect(outcome).toMatchObject({ kind: 'forbidden' });
    expect(proxy.asked()).toEqual([]);
  });

  test('it gets the credentials, and wrong ones are a fault that stops everything and does not show them', async () => {
    const [proxy, receiver] = [await begin({ credentials: 'fuel:right' }), await answering()];
    const right = through(proxy, {}, basic('fuel:right'));
    expect((await right.sent.send(sendRequest(urlOf(receiver.port)))).outcome.ok).toBe(true);
    const { sent, lines } = through(proxy, {}, basic('fuel:wrong'));
    const result = await sent.send(sendRequest(urlOf(receiver.port)));
    expect(result).toMatchObject(OWN_FAULT);
    expect(sent.proxyWaitMs('https://other.test')).toBeGreaterThan(0);
    expect(lines).toMatchObject([{ proxy: `127.0.0.1:${proxy.port}`, level: 40 }]);
    expect(JSON.stringify([result, lines])).not.toContain(basic('fuel:wrong'));
  });

  test('a receiver that it refuses waits, and the others do not', async () => {
    const [receiver, other] = [await answering(), await answering()];
    const { sent, lines } = through(await begin({ ports: [other.port] }));
    for (let i = 0; i < 2; i++)
      expect(await sent.send(sendRequest(urlOf(receiver.port)))).toMatchObject(OWN_FAULT);
    expect(lines).toMatchObject([
      { receiver: originOf(receiver.port), reason: expect.stringContaining('403') },
    ]);
    expect(sent.proxyWaitMs(originOf(receiver.port))).toBeGreaterThan(0);
    expect(sent.proxyWaitMs(originOf(other.port))).toBe(0);
    expect((await sent.send(sendRequest(urlOf(other.port)))).outcome.ok).toBe(true);
  });

  test('a receiver that it cannot connect to has failed itself', async () => {
    const [proxy, port] = [await begin(), await closedPort()];
    const { sent, lines } = through(proxy);
    const result = await sent.send(sendRequest(urlOf(port)));
    expect(result).toMatchObject({ isWithheld: false, outcome: { kind: 'connect' } });
    expect([sent.proxyWaitMs(originOf(port)), lines]).toEqual([0, []]);
  });

  test('a receiver that cuts a tunnel has failed itself', async () => {
    const receiver = await openReceiver(certificate(), ({ reset }) => reset());
    const { sent } = through(await begin());
    const result = await sent.send(sendRequest(urlOf(receiver.port)));
    expect(result).toMatchObject({ isWithheld: false, outcome: { kind: 'cut' } });
  });

  test('killed in the middle of an exchange, it has failed, and not the receiver', async () => {
    const proxy = await begin();
    const receiver = await openReceiver(certificate(), () => void proxy.kill());
    const { sent } = through(proxy);
    expect(await sent.send(sendRequest(urlOf(receiver.port)))).toMatchObject(OWN_FAULT);
    expect(sent.proxyWaitMs('https://other.test')).toBeGreaterThan(0);
  });

  test('killed while a connection is idle, and started again, it is used again', async () => {
    const [proxy, receiver] = [await begin(), await answering()];
    const { sent, lines } = through(proxy);
    await sent.send(sendRequest(urlOf(receiver.port)));
    await proxy.kill();
    await receiver.closed(1);
    expect(await sent.send(sendRequest(urlOf(receiver.port)))).toMatchObject(OWN_FAULT);
    await proxy.start();
    expect((await sent.send(sendRequest(urlOf(receiver.port)))).outcome.ok).toBe(true);
    expect(sent.proxyWaitMs(originOf(receiver.port))).toBe(0);
    expect(lines.map(({ msg }) => msg)).toEqual([
      expect.stringContaining('webhooks wait'),
      expect.stringContaining('webhooks continue'),
    ]);
  });
}

const binary = findTinyproxy();
if (binary === undefined)
  console.log('not tested here: a real proxy (set TINYPROXY_BINARY, or install the package tinyproxy-bin)');

describe.runIf(binary !== undefined)('with tinyproxy', () => {
  proxyRules(async (rules) => {
    const proxy = new Tinyproxy(binary ?? '', rules);
    onTestFinished(() => proxy.remove());
    await proxy.start();
    return proxy;
  });
});

async function started(rules?: ProxyRules): Promise<ConnectProxy> {
  const proxy = new ConnectProxy(rules);
  onTestFinished(() => proxy.kill());
  await proxy.start();
  return proxy;
}

describe('with a proxy that answers as squid does', () => {
  proxyRules(started);

  test('killed before it answers CONNECT, it has failed', async () => {
    const proxy = await started();
    proxy.react = () => {
      void proxy.kill();
      return 'silent';
    };
    expect(await through(proxy).sent.send(sendRequest(urlOf(443)))).toMatchObject(OWN_FAULT);
  });

  test.each(['500 Internal Server Error', '503 Service Unavailable', '429 Too Many Requests', '302 Found'])(
    'its own %s counts as no failure of the receiver',
    async (answer) => {
      const proxy = await started();
      proxy.react = () => ({ answer });
      const { sent } = through(proxy);
      expect(await sent.send(sendRequest(urlOf(443)))).toMatchObject(OWN_FAULT);
      expect(sent.proxyWaitMs('https://other.test')).toBe(0);
    },
  );

  test.each([
    '502 Bad Gateway',
    '504 Gateway Timeout',
    '503 Unavailable\r\nProxy-Status: p; error=connection_refused',
  ])('%s is a failure of the receiver', async (answer) => {
    const proxy = await started();
    proxy.react = () => ({ answer });
    const result = await through(proxy).sent.send(sendRequest(urlOf(443)));
    expect(result).toMatchObject({ isWithheld: false, outcome: { kind: 'connect' } });
  });

  test('a receiver that hangs is too late, since CONNECT begins its time', async () => {
    const proxy = await started();
    proxy.react = () => 'silent';
    const result = await through(proxy).sent.send(sendRequest(urlOf(443)));
    expect(result).toMatchObject({ isWithheld: false, outcome: { kind: 'timeout' } });
  });

  test('the next address is tried if it refuses one', async () => {
    const [proxy, receiver] = [await started(), await answering()];
    proxy.react = (authority) =>
      authority.startsWith('127.0.0.2') ? { answer: '403 Forbidden' } : 'connect';
    const { sent } = through(proxy, { resolve: async () => ['127.0.0.2', '127.0.0.1'] });
    expect((await sent.send(sendRequest(urlOf(receiver.port)))).outcome.ok).toBe(true);
    expect(proxy.asked()).toEqual([`127.0.0.2:${receiver.port}`, `127.0.0.1:${receiver.port}`]);
  });

  test('its name is resolved, and a name without an address is its fault', async () => {
    const [proxy, receiver] = [await started(), await answering()];
    const address = { host: 'proxy.test', port: proxy.port };
    expect(
      (await through(proxy, { proxy: address }).sent.send(sendRequest(urlOf(receiver.port)))).outcome.ok,
    ).toBe(true);
    const unknown = async (name: string) => (name === 'proxy.test' ? [] : ['127.0.0.1']);
    const { sent } = through(proxy, { proxy: address, resolve: unknown });
    expect(await sent.send(sendRequest(urlOf(receiver.port)))).toMatchObject(OWN_FAULT);
  });

  test('the waits grow with each failure, and many at once are one', async () => {
    const port = await closedPort();
    const nowMs = { now: 0 };
    const lines: Record<string, unknown>[] = [];
    const away = sender({
      proxy: { host: '127.0.0.1', port },
      resolve,
      log: memoryLog(lines),
      steady: { now: () => nowMs.now },
    });
    const waits: number[] = [];
    for (let i = 0; i < 4; i++) {
      await Promise.all(Array.from({ length: 5 }, () => away.send(sendRequest(urlOf(443)))));
      waits.push(away.proxyWaitMs(originOf(443)));
      nowMs.now += waits[i] ?? 0;
    }
    for (const [n, ms] of waits.entries()) {
      expect(ms).toBeGreaterThanOrEqual(50 * 2 ** n);
      expect(ms).toBeLessThanOrEqual(100 * 2 ** n);
    }
    expect(lines).toHaveLength(1);
  });
});
