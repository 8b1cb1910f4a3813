import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Clock } from '../../src/base/clock.ts';
import type { RateWindows } from '../../src/pull/edge/rate-windows/rate-windows.ts';
import { type StorePlan, tablePlan } from '../../src/tables/plan.ts';
import { put, type Tables } from '../../src/tables/tables.ts';
import { CuttablePort } from '../support/event-store/eventstoredb-double/cuttable-port.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { until } from '../support/waiting.ts';
import { allowed, rateWindowsContract } from './rate-windows.contract.ts';

const ITEMS = tablePlan({ name: 'items', key: 'id', columns: { id: 'integer' }, indexes: {} });
const PLAN: StorePlan = { name: 'items', version: 2, tables: [ITEMS], durability: 'full', withinMs: 5_000 };
const UNAVAILABLE = { code: 'STORE_UNAVAILABLE' };
const CLOSED = { code: 'STORE_CLOSED' };

export interface ServerConnection {
  ping(): Promise<void>;
  describe(): Promise<{ readonly version: string }>;
  close(): Promise<void>;
}

/** A server of tables with its adapters. */
export interface TableServer<C extends ServerConnection> {
  /** Returns the URL of a running server. */
  readonly url: () => string;
  /** Returns the name of a new database or schema. */
  readonly freshPlace: () => string;
  readonly connect: (url: string, place: string) => C;
  /** Runs an operation that goes through the connection to the server. */
  readonly ask: (connection: C) => Promise<unknown>;
  readonly openTables: (plan: StorePlan, options: { readonly connection: C }) => Tables;
  readonly createWindows: (options: { readonly connection: C; readonly steady?: Clock }) => RateWindows;
  /** Lets time pass on the server for its rate windows. */
  readonly pass: (connection: C, ms: number) => Promise<unknown>;
  /** Removes all rate windows from the server. */
  readonly forgetWindows: (connection: C) => Promise<unknown>;
  /** Starts a separate server; `undefined` if there is no binary. */
  readonly startOwn: (() => Promise<OwnServer>) | undefined;
}

/** A server that a test may kill and start again at the same URL. */
export interface OwnServer {
  readonly url: string;
  start(): Promise<unknown>;
  kill(): Promise<void>;
  remove(): Promise<void>;
}

/** The contract of every server of tables, apart from that of its tables. */
export function tableServerContract<C extends ServerConnection>(server: TableServer<C>): void {
  const { openTables, createWindows } = server;
  const connected = (place = server.freshPlace(), url = server.url()): C => {
    const connection = server.connect(url, place);
    onTestFinished(() => connection.close());
    return connection;
  };
  /** Connects through a port that can be frozen and cut. */
  const throughPort = async () => {
    const url = new URL(server.url());
    const port = await CuttablePort.open({ port: 0, target: Number(url.port), host: url.hostname });
    onTestFinished(() => port.close());
    url.host = `127.0.0.1:${port.port}`;
    return { port, connection: connected(server.freshPlace(), url.href) };
  };
  const insert = (tables: Tables) => tables.write([put(ITEMS, { id: 1 }, 'missing')]);

  describe('a connection', () => {
    test('says the version of the server', async () => {
      const { version } = await connected().describe();
      expect(version).toMatch(/^\d+\.\d+/);
    });

    test('gives up within two seconds if the server does not answer, and finds it later', async () => {
      const { port, connection } = await throughPort();
      for (const before of ['the first use', 'a later use']) {
        port.freeze();
        const startMs = performance.now();
        await expect(connection.ping(), before).rejects.toMatchObject(UNAVAILABLE);
        expect(performance.now() - startMs).toBeLessThan(2_000);
        port.thaw();
        await expect.poll(() => connection.ping().catch(() => 'unavailable')).toBeUndefined();
      }
    });

    test('rejects with STORE_CLOSED once it is closed, also for operations under way', async () => {
      const { port, connection } = await throughPort();
      await connection.ping();
      port.freeze();
      const underWay = expect(server.ask(connection)).rejects.toMatchObject(CLOSED);
      await sleep(50); // so that it is on its way
      await connection.close();
      await underWay;
      await expect(server.ask(connection)).rejects.toMatchObject(CLOSED);
    });

    test('does not accept a URL that the driver can’t read, and does not tell its password', () => {
      const url = new URL(server.url());
      const make = () => server.connect(`${url.protocol}//fuel:pepper@host:port:1/x`, 'fuel');
      expect(make).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID' }));
      expect(make).not.toThrow(/pepper/);
    });
  });

  describe('the tables', () => {
    test('are made by several processes at once', async () => {
      const place = server.freshPlace();
      const opened = Array.from({ length: 6 }, () => openTables(PLAN, { connection: connected(place) }));
      const done = await Promise.all(opened.map(insert));
      expect(done.flat().filter(Boolean)).toHaveLength(1);
    });

    test('of an older version get what is missing, and those of a newer one are refused', async () => {
      const connection = connected();
      await openTables({ ...PLAN, tables: [], version: 1 }, { connection }).find(ITEMS, {
        index: 'key',
        limit: 1,
      });
      expect(await insert(openTables(PLAN, { connection }))).toEqual([true]);
      for (let times = 0; times < 2; times++)
        await expect(insert(openTables({ ...PLAN, version: 1 }, { connection }))).rejects.toMatchObject({
          code: 'STORE_NEWER',
        });
    });

    test('that could not be made are made by a later use', async () => {
      const { port, connection } = await throughPort();
      const tables = openTables({ ...PLAN, withinMs: 1_000 }, { connection });
      port.freeze();
      await expect(insert(tables)).rejects.toMatchObject(UNAVAILABLE);
      port.thaw();
      await expect.poll(() => insert(tables).catch(() => 'unavailable')).toBeInstanceOf(Array);
    });

    test('never count a write as done whose connection is cut', async () => {
      const { port, connection } = await throughPort();
      const tables = openTables(PLAN, { connection });
      await tables.get(ITEMS, [1]);
      port.freeze();
      const writing = expect(insert(tables)).rejects.toMatchObject(UNAVAILABLE);
      await sleep(50); // so that it is on its way
      await port.close();
      await writing;
    });

    test('leave the connection open when they are closed', async () => {
      const connection = connected();
      await openTables(PLAN, { connection }).close();
      await connection.ping();
    });
  });

  describe('rate windows', () => {
    /** Windows that are made already, since a hit waits for little more than a second. */
    const windowsIn = async (place = server.freshPlace()) => {
      const connection = connected(place);
      const clock = new FakeClock();
      const windows = createWindows({ connection, steady: clock });
      const pass = async (ms: number): Promise<void> => {
        clock.advance(ms);
        await server.pass(connection, ms);
      };
      await until(async () => (await windows.hit('first', 1).catch(() => undefined)) !== undefined);
      return { windows, connection, clock, pass };
    };

    rateWindowsContract(windowsIn);

    test('are shared by all processes: simultaneous hits of several never let more through', async () => {
      const place = server.freshPlace();
      const processes = await Promise.all([1, 2, 3].map(() => windowsIn(place)));
      for (const round of [1, 2]) {
        const hits = processes.map(({ windows }) => allowed(windows, { limit: 60, hits: 40 }));
        const through = (await Promise.all(hits)).reduce((sum, count) => sum + count);
        expect(through, `round ${round}`).toBe(60);
        for (const { clock } of processes.slice(1)) clock.advance(60_000);
        await processes[0]?.pass(60_000);
      }
    });

    test('let nothing through with a limit of 0', async () => {
      const { windows } = await windowsIn();
      expect(await allowed(windows, { limit: 0, hits: 2 })).toBe(0);
    });

    test('refuse a key without asking the server once its window is full, until that ends', async () => {
      const { windows, connection, pass } = await windowsIn();
      expect(await allowed(windows, { limit: 3, hits: 3 })).toBe(3);
      await server.forgetWindows(connection);
      expect(await allowed(windows, { limit: 3, hits: 4 })).toBe(0);
      await pass(60_000);
      expect(await allowed(windows, { limit: 3, hits: 4 })).toBe(3);
    });
  });

  describe.runIf(server.startOwn !== undefined)('a server that is not there', () => {
    /** Returns the code that the work rejects with, in time for an answer within 2 s. */
    const refusal = async (work: Promise<unknown>): Promise<unknown> => {
      const startedAt = performance.now();
      const code = await work.then(
        () => 'done',
        (error: { code?: unknown }) => error.code,
      );
      expect(performance.now() - startedAt).toBeLessThan(1_900);
      return code;
    };

    test('is unavailable, for several first uses at once too, and is found once it is there', async () => {
      const own = await server.startOwn?.();
      if (own === undefined) throw new Error('there is no binary');
      onTestFinished(() => own.remove());
      await own.kill();
      const connection = connected('fuel', own.url);
      const [tables, windows] = [openTables(PLAN, { connection }), createWindows({ connection })];
      for (const each of await Promise.allSettled([insert(tables), insert(tables)]))
        expect(each).toMatchObject({ status: 'rejected', reason: UNAVAILABLE });
      expect(await refusal(windows.hit('key', 2))).toBe('STORE_UNAVAILABLE');
      await own.start();
      await until(async () => (await refusal(windows.hit('key', 100))) === 'done');
      expect(await insert(tables)).toEqual([true]);
      await own.kill();
      expect(await refusal(windows.hit('other', 2))).toBe('STORE_UNAVAILABLE');
      await own.start();
      await until(async () => (await refusal(windows.hit('other', 2))) === 'done');
    }, 120_000);
  });
}
