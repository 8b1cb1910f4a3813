import { expect } from 'vitest';
import { REMOVED_AFTER_MS } from '../../../src/pull/view/generations.ts';
import type { TransactionsView } from '../../../src/pull/view/transactions-view.ts';

/** Removes what has left, as a projector does after a while. */
export async function removeLeft(view: TransactionsView, advance: (ms: number) => void): Promise<void> {
  const { generation = 0 } = (await view.checkpoint()) ?? {};
  const look = async () => expect(await view.apply([], { generation, position: 0 })).toEqual([]);
  await look();
  advance(REMOVED_AFTER_MS);
  await look();
}
