import {
  MongoClient,
  MongoError,
  MongoNetworkError,
  MongoNotConnectedError,
  MongoOperationTimeoutError,
  MongoServerError,
  MongoServerSelectionError,
  MongoTopologyClosedError,
  type TopologyDescription,
} from 'mongodb';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { MongoConnection } from '../../../src/engines/mongodb/driver/connection.ts';
import { toKnownError } from '../../../src/engines/mongodb/driver/errors.ts';
import { Mongod } from '../../support/engines/mongod.ts';
import { describeWithMongodb, mongodb } from '../../support/engines/mongodb.ts';
import { commandLine } from '../../support/service/command-line.ts';

interface Item {
  readonly _id: number;
  readonly name?: string | undefined;
}

/** Errors that the driver does not export. */
const errorNamed = (name: string) => Object.defineProperty(new MongoError(name), 'name', { value: name });
const serverError = (code: number) => new MongoServerError({ message: 'said no', code });

describeWithMongodb('a connection to MongoDB', () => {
  test('passes on an error of the server as it is', async () => {
    const connection = mongodb();
    const insert = () => connection.use((db) => db.collection<Item>('items').insertOne({ _id: 1 }));
    await insert();
    await expect(insert()).rejects.toMatchObject({ code: 11_000 });
    await expect(connection.use(() => Promise.reject(new RangeError('own')))).rejects.toThrow('own');
  });

  test('leaves out fields that are undefined', async () => {
    const connection = mongodb();
    const items = await connection.use(async (db) => {
      await db.collection<Item>('items').insertOne({ _id: 1, name: undefined });
      return db.collection('items').find().toArray();
    });
    expect(items).toEqual([{ _id: 1 }]);
  });
});

describe.runIf(inject('mongodBinary') !== undefined)('a single node', () => {
  test('is refused with what to type, also by a command', async () => {
    const mongod = new Mongod({ binary: inject('mongodBinary') ?? '', replicaSet: false });
    onTestFinished(() => mongod.remove());
    await mongod.start();
    const connection = new MongoConnection({ url: mongod.url, database: 'fuel' });
    onTestFinished(() => connection.close());
    for (let times = 0; times < 2; times++)
      await expect(connection.ping()).rejects.toMatchObject({
        code: 'CONFIG_INVALID',
        message: expect.stringMatching(/single node.*--replSet rs0.*rs\.initiate\(\)/),
      });
    const { fuel } = commandLine({ MONGODB_URL: mongod.url });
    const { code, stderr } = await fuel('projection', 'status');
    expect([code, stderr]).toEqual([1, expect.stringContaining('--replSet rs0')]);
  });
});

describe.runIf(inject('mongodBinary') !== undefined)('a mongod that answers and takes no writes', () => {
  const started = async (replicaSet: true | 'others initiate it') => {
    const mongod = new Mongod({ binary: inject('mongodBinary') ?? '', replicaSet });
    onTestFinished(() => mongod.remove());
    return mongod.start();
  };
  const ping = async (url: string) => {
    const connection = new MongoConnection({ url, database: 'fuel' });
    onTestFinished(() => connection.close());
    return connection.ping().catch((error: unknown) => error);
  };

  test('is told to be initiated where its set was not, however it is named', async () => {
    const { url } = await started('others initiate it');
    for (const each of [url, url.replace('directConnection=true', 'replicaSet=rs0')])
      expect(await ping(each)).toMatchObject({
        code: 'STORE_UNAVAILABLE',
        message: expect.stringContaining('was never initiated'),
        remedy: expect.stringContaining('rs.initiate()'),
      });
  });

  test('is no primary where directConnection=true leads to another member', async () => {
    const mongod = await started(true);
    expect(await ping(mongod.url)).toBeUndefined();
    const client = new MongoClient(mongod.url);
    onTestFinished(() => client.close());
    await client.db('admin').command({ replSetStepDown: 60, force: true });
    expect(await ping(mongod.url)).toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringContaining('not the primary'),
      remedy: expect.stringContaining('directConnection'),
    });
  });
});

describe('an error of the driver', () => {
  const codeOf = (error: unknown): unknown => {
    const known = toKnownError(error) as { readonly code?: unknown };
    return known.code ?? known;
  };

  test.each([
    6, 7, 43, 50, 64, 89, 91, 133, 134, 189, 262, 276, 9001, 10_107, 11_600, 11_602, 13_435, 13_436,
  ])(
    'with the server’s code %i is STORE_UNAVAILABLE: another server, or this one later, takes it',
    (code) => {
      expect(codeOf(serverError(code))).toBe('STORE_UNAVAILABLE');
    },
  );

  test.each([121, 10_334, 17_419, 17_420])('with the server’s code %i is ITEM_REFUSED', (code) => {
    expect(codeOf(serverError(code))).toBe('ITEM_REFUSED');
  });

  test.each([8_000, 13, 18, 11_000])('with the server’s code %i is passed on as it is', (code) => {
    expect(codeOf(serverError(code))).toBe(code);
  });

  test.each([
    new MongoNetworkError('cut'),
    new MongoOperationTimeoutError('late'),
    new MongoServerSelectionError('none', {} as TopologyDescription),
    new MongoTopologyClosedError('closed'),
    new MongoNotConnectedError('not yet'),
    errorNamed('MongoWaitQueueTimeoutError'),
    errorNamed('MongoPoolClearedError'),
    Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }),
    Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }),
    Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }),
    Object.assign(new Error('aborted'), { code: 'ECONNABORTED' }),
    Object.assign(new Error('connect ETIMEDOUT'), { code: 'ETIMEDOUT' }),
    new MongoError('of another', { cause: new MongoNetworkError('cut') }),
    new MongoServerError(new MongoNetworkError('cut') as never),
  ])('that means that no server answered is STORE_UNAVAILABLE: %s', (error) => {
    expect(codeOf(error)).toBe('STORE_UNAVAILABLE');
  });

  test('of another kind is passed on, whatever its cause', () => {
    const errors = [
      new MongoError('of another', { cause: serverError(121) }),
      Object.assign(new Error('no such file'), { code: 'ENOENT' }),
    ];
    expect(codeOf(errors[0])).toBe(errors[0]);
    expect(codeOf(errors[1])).toBe('ENOENT');
  });
});
