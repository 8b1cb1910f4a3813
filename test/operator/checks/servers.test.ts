import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { FuelError } from '../../../src/base/errors.ts';
import { eventStoreDb } from '../../../src/engines/eventstoredb/engine.ts';
import { mongoDb } from '../../../src/engines/mongodb/engine.ts';
import { checkClocks, checkEngine, checkMail, checkPhotos } from '../../../src/operator/checks/servers.ts';
import type { Server, ServerKind } from '../../../src/service/engines/engines.ts';
import { said } from '../../support/checks/facts.ts';
import { startSmtpServer } from '../../support/service/smtp.ts';
import { closedPort } from '../../support/tcp-server.ts';

const NOW_MS = Date.parse('2026-09-01T12:00:00Z');

interface Engine extends Partial<ServerKind> {
  readonly version?: string;
  /** The name that it gives itself. */
  readonly called?: string;
  /** How far its clock is from this machine's. */
  readonly skewMs?: number;
  readonly failing?: 'ping' | 'describe';
}

function engine({
  version = '7.0.5',
  called,
  skewMs = 0,
  failing,
  ...kind
}: Engine = {}): ServerKind & Server {
  const away = new FuelError('STORE_UNAVAILABLE', 'it cannot be reached');
  return {
    ...mongoDb,
    ...kind,
    ping: async () => {
      if (failing === 'ping') throw away;
    },
    describe: async () => {
      if (failing !== undefined) throw away;
      return { version, clockMs: NOW_MS + skewMs, ...(called !== undefined && { name: called }) };
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

describe('the clocks', () => {
  const check = (...remote: readonly ReturnType<typeof engine>[]) =>
    said(
      checkClocks({
        clock: { now: () => NOW_MS },
        engines: { remote },
      }),
    );

  test.each([
    [2_000, 0, true],
    [-2_000, 0, true],
    [2_001, 0, false],
    [-2_600, 0, false],
    [-4_000, 2_000, true], // it is known only to its step
    [-4_001, 2_000, false],
    [2_001, 2_000, false],
  ])(
    'may differ by two seconds: %i ms of one that steps by %i ms is right: %s',
    async (skewMs, clockStepMs, ok) => {
      expect(await check(engine({ skewMs, clockStepMs }))).toMatchObject({ ok });
    },
  );

  test('that differ are named, with how much they differ and what to do', async () => {
    expect(await check(engine({ skewMs: -2_600 }))).toMatchObject({
      detail: expect.stringContaining('MongoDB -2.6 s'),
      do: expect.stringContaining('chrony'),
    });
  });

  test('are named after the server that was found, and unknown if it does not answer', async () => {
    expect(await check(engine({ called: 'KurrentDB' }), engine({ failing: 'describe' }))).toMatchObject({
      ok: true,
      detail: expect.stringContaining('KurrentDB 0.0 s, MongoDB unknown'),
    });
  });

  test('are only that of this machine if everything is embedded', async () => {
    const detail = 'the embedded stores use the clock of this machine';
    expect(await check()).toMatchObject({ ok: true, detail });
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

describe('a photo store', () => {
  const TERMS = { region: 'us-east-1', bucket: 'photos', accessKeyId: 'AKIA', secretAccessKey: 'secret' };
  const check = (endpoint: string) => said(checkPhotos({ ...TERMS, endpoint }, NOW_MS));

  async function answering(status: number) {
    const asked: string[] = [];
    const server = createServer(({ method, url }, response) => {
      asked.push(`${method} ${url}`);
      response.writeHead(status).end();
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    return { asked, finding: await check(`http://127.0.0.1:${(server.address() as AddressInfo).port}`) };
  }

  test.each([200, 404])('that accepts the signature is right: %s', async (status) => {
    const { asked, finding } = await answering(status);
    expect(finding).toMatchObject({ ok: true, do: null });
    expect(asked).toEqual([expect.stringMatching(/^HEAD \/photos\/fuel-doctor\?X-Amz-/)]);
  });

  test.each([
    [403, 'refuses the signature', 'FUEL_IMAGES_SECRET_ACCESS_KEY'],
    [401, 'refuses the signature', 'FUEL_IMAGES_SECRET_ACCESS_KEY'],
    [301, 'answers with 301', 'FUEL_IMAGES_REGION'],
    [500, 'answers with 500', 'FUEL_IMAGES_ENDPOINT'],
  ])('that answers with %s is wrong', async (status, detail, remedy) => {
    const { finding } = await answering(status);
    expect(finding).toMatchObject({
      ok: false,
      detail: expect.stringContaining(detail),
      do: expect.stringContaining(remedy),
    });
  });

  test('that this machine cannot reach is not checked, because the service never connects to it; nor is the sample store', async () => {
    const { ok, detail } = await check(`http://127.0.0.1:${await closedPort()}`);
    expect([ok, detail]).toEqual([true, expect.stringMatching(/not checked.*browsers.*ECONNREFUSED/)]);
    expect(await said(checkPhotos(undefined, NOW_MS))).toMatchObject({ ok: true });
  });
});
