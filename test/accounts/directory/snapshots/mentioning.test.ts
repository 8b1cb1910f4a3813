import { expect, test } from 'vitest';
import { mentioning } from '../../../../src/accounts/directory/snapshots/mentioning.ts';

const HEADER = { version: 1, storeId: 'store', position: 10 };

test('of a snapshot only the beginning and the parts with the text are given, and all are read', async () => {
  const read: string[] = [];
  async function* parts(): AsyncGenerator<Uint8Array> {
    for (const text of ['beginning', 'one', 'two: abc', 'three', 'four: abc', 'five']) {
      read.push(text);
      yield Buffer.from(text);
    }
  }
  const stored = await mentioning('abc', { load: async () => ({ header: HEADER, parts: parts() }) }).load();
  const given = await Array.fromAsync(stored?.parts ?? [], (part) => Buffer.from(part).toString());
  expect([stored?.header, given, read.length]).toEqual([HEADER, ['beginning', 'two: abc', 'four: abc'], 6]);
});
