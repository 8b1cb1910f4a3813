import { describe, expect, test } from 'vitest';
import { cancelled, confirmed, external, voided } from '../../support/transactions/e2e-samples.ts';
import { type ImportStore, startImports } from '../../support/transactions/importing.ts';

/** The store, where `meanwhile` happens once between an import's look at the streams and its first append. */
function interrupted(store: ImportStore, meanwhile: () => Promise<unknown>): ImportStore {
  let waiting = true;
  return {
    readStreams: (streams) => store.readStreams(streams),
    async append(appends) {
      if (waiting) {
        waiting = false;
        await meanwhile();
      }
      return store.append(appends);
    },
  };
}

/** The store, whose first `times` appends meet a conflict that nothing explains. */
function conflicting(store: ImportStore, times: number): ImportStore & { readonly rounds: () => number } {
  let rounds = 0;
  return {
    rounds: () => rounds,
    readStreams: (streams) => store.readStreams(streams),
    append: async (appends) =>
      rounds++ < times ? appends.map(() => ({ kind: 'conflict', actual: 0 })) : store.append(appends),
  };
}

describe('two imports at once', () => {
  test('of the same lines record each once, and what the other one recorded is unchanged', async () => {
    const { store, run, typesOf } = startImports();
    const events = [confirmed(1), external(2), voided(1)];
    const other = () => run(events);
    expect(await run(events, { store: interrupted(store, other) })).toMatchObject({
      counts: { recorded: 0, unchanged: 3, refused: 0 },
      refused: [],
    });
    expect(await typesOf(1)).toEqual(['TransactionConfirmed', 'TransactionVoided']);
    expect(await typesOf(2)).toEqual(['ExternalTransactionRecorded']);
  });

  test('never record two records under one id: the later one is refused and named', async () => {
    const { store, run, typesOf } = startImports();
    const other = () => run([confirmed(1, { odometer_reading: 1 })]);
    const outcome = await run([confirmed(1), confirmed(2)], { store: interrupted(store, other) });
    expect(outcome).toMatchObject({
      counts: { recorded: 1, unchanged: 0, refused: 1 },
      refused: [[1, expect.stringContaining('transaction-1: it was recorded before')]],
    });
    expect(await typesOf(1)).toHaveLength(1);
    expect(await typesOf(2)).toHaveLength(1);
  });

  test('withdraw a transaction once', async () => {
    const { store, run, typesOf } = startImports();
    await run([confirmed(1)]);
    const other = () => run([voided(1)]);
    expect(await run([cancelled(1)], { store: interrupted(store, other) })).toMatchObject({
      counts: { recorded: 0, unchanged: 0, refused: 1 },
      refused: [[1, 'transaction-1: it was voided already, and that is final']],
    });
    expect(await typesOf(1)).toEqual(['TransactionConfirmed', 'TransactionVoided']);
  });

  test('do not block each other: what has no conflict is recorded at once, and counted once', async () => {
    const { store, run } = startImports();
    const other = () => run([confirmed(2)]);
    const asked: string[][] = [];
    const watched: ImportStore = {
      ...interrupted(store, other),
      readStreams: (streams) => {
        asked.push([...streams]);
        return store.readStreams(streams);
      },
    };
    const { counts } = await run([confirmed(1), confirmed(2), confirmed(3)], { store: watched });
    expect(counts).toEqual({ recorded: 2, unchanged: 1, refused: 0 });
    expect(asked).toEqual([['transaction-1', 'transaction-2', 'transaction-3'], ['transaction-2']]);
  });

  test('decide every line of a transaction again after what the other one recorded', async () => {
    const { store, run } = startImports();
    const other = () => run([confirmed(1, { odometer_reading: 1 })]);
    const lines = [confirmed(1), confirmed(1), confirmed(1, { odometer_reading: 1 }), voided(1)];
    expect(await run(lines, { store: interrupted(store, other) })).toMatchObject({
      counts: { recorded: 1, unchanged: 1, refused: 2 },
      refused: [
        [1, expect.stringContaining('recorded before')],
        [2, expect.stringContaining('recorded before')],
      ],
    });
  });

  test('with a conflict in every round are decided again, but not forever', async () => {
    const { store, run } = startImports();
    const almost = conflicting(store, 99);
    expect((await run([confirmed(1)], { store: almost })).counts.recorded).toBe(1);
    const always = conflicting(store, Number.POSITIVE_INFINITY);
    await expect(run([confirmed(2)], { store: always })).rejects.toThrow(/conflict in each of 100 rounds/);
    expect(always.rounds()).toBe(100);
  });
});
