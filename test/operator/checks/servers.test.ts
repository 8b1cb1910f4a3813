import { describe, expect, onTestFinished, test } from 'vitest';
import { FuelError } from '../../../src/base/errors.ts';
import { eventStoreDb } from '../../../src/engines/eventstoredb/engine.ts';
import { mongoDb } from '../../../src/engines/mongodb/engine.ts';
import { checkEngine, checkMail, checkProxy } from '../../../src/operator/checks/servers.ts';
import type { Server, ServerKind } from '../../../src/service/engines/engines.ts';
import { said } from '../../support/checks/facts.ts';
import { ConnectProxy } from '../../support/proxies/connect-proxy.ts';
import { startSmtpServer } from '../../support/service/smtp.ts';
import { closedPort } from '../../support/tcp-server.ts';

interface Engine extends Partial<ServerKind> {
  readonly version?: string;
  /** The name that it gives itself. */
  readonly called?: string;
  readonly failing?: 'ping' | 'describe';
}

function engine({ version = '7.0.5', called, failing, ...kind }: Engine = {}): ServerKind & Server {
  const away = new FuelError('STORE_UNAVAILABLE', 'it cannot be reached');
  return {
    ...mongoDb,
    ...kind,
    ping: async () => {
      if (failing === 'ping') throw away;
    },
    describe: async () => {
      if (failing !== undefined) throw away;
      return { version, ...(called !== undefined && { name: called }) };
    },
  };
}

describe('an engine', () => {
  const eventStore = (version: string, called: string) => engine({ ...eventStoreDb, version, called });

  test.each([
    [engine(), true, 'MongoDB 7.0.5 answers'],
    [engine({ version: '6.0.0' }), true, 'MongoDB 6.0.0 answers'],
    [engine({ version: '5.9.9' }), false, 'MongoDB 5.9.9 answers'],
    [eventStore('23.10.6.0', 'EventStoreDB'), true, 'EventStoreDB 23.10.6.0 answers'],
    [eventStore('23.9.1', 'EventStoreDB'), false, 'EventStoreDB 23.9.1 answers'],
    [eventStore('25.0.0', 'KurrentDB'), true, 'KurrentDB 25.0.0 answers'],
    [engine({ failing: 'ping' }), false, 'it cannot be reached'],
    [engine({ failing: 'describe' }), true, 'does not tell its version'],
  ])('%o is right: %s', async (given, ok, detail) => {
    expect(await said(checkEngine(given))).toMatchObject({ ok, detail: expect.stringContaining(detail) });
  });

  test('that does not answer is named with its setting', async () => {
    expect(await said(checkEngine(engine({ failing: 'ping' })))).toMatchObject({
      do: 'start MongoDB, or correct MONGODB_URL',
    });
  });
});

describe('a mail server', () => {
  test('that takes connections is right, and gets no mail', async () => {
    const { url, mails } = await startSmtpServer();
    const { host } = new URL(url);
    expect(await said(checkMail(url))).toEqual({ ok: true, detail: `${host} accepts mail`, do: null });
    expect(mails).toEqual([]);
  });

  test('that cannot be reached is wrong, and its password is not named', async () => {
    const finding = await said(checkMail(`smtp://user:secret-word@127.0.0.1:${await closedPort()}`));
    expect(finding).toMatchObject({ ok: false, detail: expect.stringContaining('ECONNREFUSED') });
    expect(JSON.stringify(finding)).not.toContain('secret-word');
  });

  test('that is not set mails nobody', async () => {
    const detail = expect.stringContaining('nobody is mailed');
    expect(await said(checkMail(undefined))).toMatchObject({ ok: true, detail });
  });
});

describe('a proxy for webhooks', () => {
  const started = async (credentials?: string) => {
    const proxy = new ConnectProxy(credentials === undefined ? {} : { credentials });
    onTestFinished(() => proxy.kill());
    await proxy.start();
    return proxy;
  };
  const at = (port: number) => ({ host: '127.0.0.1', port });

  test('that answers is right, whatever it says of an address that nobody has', async () => {
    const proxy = await started();
    for (const answer of ['200 OK', '403 Forbidden', '503 Service Unavailable', '504 Gateway Timeout']) {
      proxy.react = () => ({ answer });
      expect(await said(checkProxy(at(proxy.port)))).toMatchObject({ ok: true });
    }
    proxy.react = () => 'silent';
    expect(await said(checkProxy(at(proxy.port)))).toMatchObject({ ok: true });
  });

  test('that refuses the credentials, or cannot be reached, is wrong and named', async () => {
    const [proxy, port] = [await started('fuel:right'), await closedPort()];
    for (const [used, why] of [
      [proxy.port, '407'],
      [port, 'ECONNREFUSED'],
    ] as const) {
      const detail = expect.stringMatching(new RegExp(`127.0.0.1:${used} fails: .*${why}`));
      expect(await said(checkProxy(at(used)))).toMatchObject({ ok: false, detail });
    }
  });
});
