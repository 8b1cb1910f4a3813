import { expect } from 'vitest';
import type { PageQuery, TransactionsView } from '../../../src/pull/view/transactions-view.ts';
import type { ViewChange } from '../../../src/records/project-event.ts';

/** Every transaction of the samples' account. */
export const WHOLE: PageQuery = {
  accountId: 7,
  fromMs: 0,
  toMs: 8e15,
  statuses: ['CONFIRMED', 'EXTERNAL'],
  limit: 50,
};

export interface OpenedView {
  readonly view: TransactionsView;
  /** Applies one batch, at the next position. */
  readonly apply: (...changes: ViewChange[]) => Promise<void>;
}

/** Opens a view that was reset and can be served, with a short way to apply changes. */
export async function openedView(open: () => Promise<TransactionsView>): Promise<OpenedView> {
  const view = await open();
  const { generation } = await view.reset('store-1', 0);
  let position = 0;
  return {
    view,
    async apply(...changes) {
      position += 1;
      expect(await view.apply(changes, { generation, position })).not.toBe('reset');
    },
  };
}
