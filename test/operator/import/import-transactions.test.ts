import { addAbortSignal, PassThrough } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { formatDateTime } from '../../../src/domain/values/date-time.ts';
import { cancelled, confirmed, linesOf, minutely, voided } from '../../support/transactions/e2e-samples.ts';
import { IMPORT_AUTHOR, type ImportStore, startImports } from '../../support/transactions/importing.ts';
import { recordsThatDifferInOneField } from '../../support/transactions/record-fields.ts';

/** The store, with its calls and the number of streams that each is about. */
function watch(store: ImportStore): { readonly watched: ImportStore; readonly calls: string[] } {
  const calls: string[] = [];
  const watched: ImportStore = {
    readStreams(streams) {
      calls.push(`read ${streams.length}`);
      return store.readStreams(streams);
    },
    append(appends) {
      calls.push(`append ${appends.length}`);
      return store.append(appends);
    },
  };
  return { watched, calls };
}

describe('an import', () => {
  test('names each line that repeats a confirmed event with another value in one field', async () => {
    const { run, typesOf } = startImports();
    const others = recordsThatDifferInOneField().filter(({ field }) => field !== 'transaction_id');
    const lines = others.map(({ data }) => ({ type: 'TransactionConfirmed', data }));
    const { counts, refused } = await run([confirmed(501), ...lines, confirmed(501)]);
    expect(counts).toEqual({ recorded: 1, unchanged: 1, refused: others.length });
    const reason = expect.stringMatching(/^transaction-501: it was recorded before as TransactionConfirmed/);
    expect(refused).toEqual(others.map((_, index) => [index + 2, reason]));
    expect((await run(lines)).counts).toEqual({ recorded: 0, unchanged: 0, refused: others.length });
    expect(await typesOf(501)).toHaveLength(1);
  });

  test('reads its input in batches of at most 1,000 lines, and loses none between them', async () => {
    const { store, run } = startImports();
    const { watched, calls } = watch(store);
    const { counts, progress } = await run(minutely(1_001), { store: watched });
    expect(counts).toEqual({ recorded: 1_001, unchanged: 0, refused: 0 });
    expect(calls.filter((call) => call.startsWith('append'))).toEqual(['append 1000', 'append 1']);
    expect(progress.map(({ recorded }) => recorded)).toEqual([1_000, 1_001]);
    expect((await run(minutely(1_000))).progress).toHaveLength(1);
  });

  test('decides a line by those before it in the same batch, and asks the store for each stream once', async () => {
    const { store, run, typesOf } = startImports();
    const { watched, calls } = watch(store);
    const lines = [voided(1), confirmed(1), confirmed(1), voided(1), voided(1), cancelled(1)];
    expect(await run(lines, { store: watched })).toMatchObject({
      counts: { recorded: 2, unchanged: 2, refused: 2 },
      refused: [
        [1, expect.stringContaining('transaction-1: it was never recorded')],
        [6, expect.stringContaining('transaction-1: it was voided already')],
      ],
    });
    expect(calls).toEqual(['read 1', 'append 1']);
    expect(await typesOf(1)).toEqual(['TransactionConfirmed', 'TransactionVoided']);
  });

  test('records new transactions without reading after a batch of new ones, and reads what begins with a void', async () => {
    const { store, run, typesOf } = startImports();
    await run([confirmed(2)]);
    const { watched, calls } = watch(store);
    const lines = [confirmed(1), voided(2), confirmed(3), voided(1)];
    const { counts } = await run([...minutely(1_000, 5_000), ...lines], { store: watched });
    expect(counts).toEqual({ recorded: 1_004, unchanged: 0, refused: 0 });
    expect(calls.slice(-3)).toEqual(['append 1000', 'read 1', 'append 3']);
    expect(await typesOf(1)).toEqual(['TransactionConfirmed', 'TransactionVoided']);
  });

  test('reads the streams of a batch first, until most of them are new', async () => {
    const { store, run } = startImports();
    await run(minutely(1_000));
    const { watched, calls } = watch(store);
    const { counts } = await run(minutely(3_000), { store: watched });
    expect(counts).toEqual({ recorded: 2_000, unchanged: 1_000, refused: 0 });
    const batchRead = [...Array(7).fill('read 128'), 'read 104'];
    expect(calls).toEqual([...batchRead, 'append 0', ...batchRead, 'append 1000', 'append 1000']);
  });

  test('says with each event who recorded it, when, and that one command did it all', async () => {
    const { store, clock, run } = startImports();
    await run([confirmed(1), confirmed(2)]);
    const metadataOf = async (id: number) =>
      (await store.readStream(`transaction-${id}`))[0]?.metadata as { readonly correlation_id: string };
    const first = await metadataOf(1);
    expect(first).toMatchObject({ ...IMPORT_AUTHOR, at: formatDateTime(clock.now()) });
    expect((await metadataOf(2)).correlation_id).toBe(first.correlation_id);
    await run([confirmed(3)]);
    expect((await metadataOf(3)).correlation_id).not.toBe(first.correlation_id);
    await run([confirmed(4)], { author: { ...IMPORT_AUTHOR, correlationId: 'given' } });
    expect((await metadataOf(4)).correlation_id).toBe('given');
  });

  test('refuses every line of an erased transaction, and records the others', async () => {
    const { store, run, typesOf } = startImports();
    await store.erase('transaction-1');
    expect(await run([confirmed(1), confirmed(1), confirmed(2)])).toMatchObject({
      counts: { recorded: 1, unchanged: 0, refused: 2 },
      refused: [
        [1, 'transaction-1 was erased and is never recorded again'],
        [2, 'transaction-1 was erased and is never recorded again'],
      ],
    });
    expect(await typesOf(1)).toEqual([]);
  });

  test('records nothing after an event that it cannot read', async () => {
    const { append, run, typesOf } = startImports();
    await append('transaction-1', ...[confirmed(1), { type: 'TransactionGuessed', data: {} }]);
    expect(await run([confirmed(1), voided(1), confirmed(2)])).toMatchObject({
      counts: { recorded: 1, unchanged: 0, refused: 2 },
      refused: [
        [1, "transaction-1: its stream holds an event that this version can't read"],
        [2, "transaction-1: its stream holds an event that this version can't read"],
      ],
    });
    expect(await typesOf(1)).toHaveLength(2);
  });

  test('records the right event after one that was parked because it does not fit, as the view shows it', async () => {
    const { append, run, typesOf } = startImports();
    const foreign = { type: 'KeySwitchedOff', data: { prefix: 'aaaaaaaaaa' } };
    await append('transaction-1', confirmed(1, { created_at: 'yesterday' }), confirmed(2), foreign);
    expect((await run([voided(1)])).refused).toEqual([[1, expect.stringContaining('it was never recorded')]]);
    expect((await run([confirmed(1), voided(1)])).counts).toEqual({ recorded: 2, unchanged: 0, refused: 0 });
    expect((await typesOf(1)).slice(3)).toEqual(['TransactionConfirmed', 'TransactionVoided']);
    expect((await run([confirmed(1), voided(1)])).counts).toEqual({ recorded: 0, unchanged: 2, refused: 0 });
  });

  test('counts and reports what is no event, with the number of its line', async () => {
    const { run } = startImports();
    const text = `\nbroken\n${linesOf([confirmed(1)])}\n[]`;
    expect(await run(text)).toMatchObject({
      counts: { recorded: 1, unchanged: 0, refused: 2 },
      refused: [
        [2, expect.stringMatching(/^is not JSON: /)],
        [5, 'is not an object with "type" and "data"'],
      ],
    });
  });
});

describe('an import of lines of the maximum size', () => {
  test('takes them in batches of a few MiB', async () => {
    const { store, run } = startImports();
    const { watched, calls } = watch(store);
    const extra = 'x'.repeat(64_000);
    const lines = minutely(200).map(({ type, data }) => ({ type, data: { ...data, extra } }));
    const { counts } = await run(lines, { store: watched });
    expect(counts).toEqual({ recorded: 200, unchanged: 0, refused: 0 });
    const sizes = calls.flatMap((call) => (call.startsWith('append') ? [Number(call.slice(7))] : []));
    expect(sizes.length).toBeGreaterThan(2);
    expect(Math.max(...sizes) * 65_536).toBeLessThan(5 * 1024 * 1024);
    expect((await run(lines)).counts).toEqual({ recorded: 0, unchanged: 200, refused: 0 });
  });

  test('reads the streams of a batch some at a time', async () => {
    const { store, run } = startImports();
    const { watched, calls } = watch(store);
    await run(minutely(300));
    await run(minutely(300), { store: watched });
    expect(calls).toEqual(['read 128', 'read 128', 'read 44', 'append 0']);
  });

  test('names each of 200,000 short lines in one chunk', async () => {
    const { run } = startImports();
    const { counts, refused } = await run(`${'1\n'.repeat(200_000)}${linesOf([confirmed(1)])}`);
    expect(counts).toEqual({ recorded: 1, unchanged: 0, refused: 200_000 });
    expect(refused.at(-1)).toEqual([200_000, 'is not an object with "type" and "data"']);
  });
});

describe('an import that is interrupted', () => {
  const batches = async function* (then: () => void): AsyncGenerator<Buffer> {
    yield Buffer.from(linesOf(minutely(1_000)));
    then();
    yield Buffer.from(linesOf(minutely(1_000, 2_000)));
  };

  test('while it waits for its input ends with what it recorded', async () => {
    const { run } = startImports();
    const stopped = new AbortController();
    const input = addAbortSignal(stopped.signal, new PassThrough());
    input.write(linesOf([...minutely(1_000), confirmed(5_000)]));
    const onProgress = () => stopped.abort();
    const { counts } = await run('', { input, signal: stopped.signal, onProgress });
    expect(counts.recorded).toBe(1_000);
  });

  test.each([new Error('the disk is broken'), new DOMException('aborted', 'AbortError')])(
    'by its input alone is reported: %s',
    async (fault) => {
      const { run } = startImports();
      const input = batches(() => {
        throw fault;
      });
      await expect(run('', { input })).rejects.toBe(fault);
    },
  );
});
