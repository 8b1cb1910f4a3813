import { Readable } from 'node:stream';
import { changeAccount } from '../../accounts/change-account.ts';
import { systemClock } from '../../base/clock.ts';
import { FuelError } from '../../base/errors.ts';
import type { AccountCommand } from '../../domain/account-commands.ts';
import type { TransactionEvent } from '../../domain/transaction-events.ts';
import { recordAnswer } from '../../operator/answers/transaction.ts';
import { importTransactions } from '../../operator/import/import-transactions.ts';
import { waitUntilApplied } from '../../operator/serve/wait-applied.ts';
import type { Engines } from '../../service/engines/engines.ts';

const MAX_TRANSACTIONS = 1_000_000; // more than anybody adds to a mock

export type MockOperator = ReturnType<typeof createOperator>;

/** Works on the mock's store as the operator's commands do. Every change resolves once the API serves it. */
export function createOperator(engines: Engines, accountId: number) {
  const [store, view, coordination] = [engines.store(), engines.view(), engines.coordination()];
  const accounts = engines.accounts();
  const writer = { store, clock: systemClock, author: { actor: 'mock', command: 'fuel mock' } };
  const applied = async () =>
    waitUntilApplied({ coordination, view, accounts, position: await store.head() });
  return {
    async change(...commands: readonly AccountCommand[]): Promise<void> {
      await changeAccount(writer, accountId, commands);
      await applied();
    },

    async record(events: readonly TransactionEvent[]): Promise<void> {
      await importTransactions({
        ...writer,
        input: Readable.from(events.map((event) => Buffer.from(`${JSON.stringify(event)}\n`))),
        onRefused: (_, reason) => {
          throw new FuelError('REFUSED', reason);
        },
        onProgress: () => undefined,
        signal: new AbortController().signal,
      });
      await applied();
    },

    /** The row of a transaction that the API shows. Rejects with `REFUSED` if there is none. */
    async shown(id: number) {
      const row = (await view.find([id])).get(id)?.shown;
      if (row) return row;
      throw new FuelError('REFUSED', `transaction: ${id} is not shown; pull to see which ones are`);
    },

    /** The transactions that a ledger should hold, in ascending order of ids. */
    async transactions() {
      const answers = (await view.rowsAfter(0, MAX_TRANSACTIONS)).map((row) => recordAnswer(accountId, row));
      return answers.map(({ id, status, total_amount }) => ({ id, status, total_amount }));
    },
  };
}
