import { type AccountWriter, changeAccount } from '../../accounts/change-account.ts';
import { systemClock } from '../../base/clock.ts';
import { FuelError } from '../../base/errors.ts';
import type { AccountCommand } from '../../domain/account-commands.ts';
import type { TransactionEvent } from '../../domain/transaction-events.ts';
import { importTransactions } from '../../operator/import/import-transactions.ts';
import { waitUntilApplied } from '../../operator/serve/wait-applied.ts';
import type { Engines } from '../../service/engines/engines.ts';

const AUTHOR = { actor: 'mock', command: 'fuel mock' };

/** Works on the mock's store as the operator's commands do. Every change resolves once the API serves it. */
export class MockOperator {
  readonly #engines: Engines;
  readonly #accountId: number;
  readonly #writer: AccountWriter;

  constructor(engines: Engines, accountId: number) {
    this.#engines = engines;
    this.#accountId = accountId;
    this.#writer = { store: engines.store(), clock: systemClock, author: AUTHOR };
  }

  async change(...commands: readonly AccountCommand[]): Promise<void> {
    await changeAccount(this.#writer, this.#accountId, commands);
    await this.#applied();
  }

  async record(events: readonly TransactionEvent[]): Promise<void> {
    await importTransactions({
      ...this.#writer,
      input: linesOf(events),
      onRefused: (_, reason) => {
        throw new FuelError('REFUSED', reason);
      },
      onProgress: () => undefined,
      signal: new AbortController().signal,
    });
    await this.#applied();
  }

  /** The row of a transaction that the API shows. Rejects with `REFUSED` if there is none. */
  async shown(id: number) {
    const row = (await this.#engines.view().find([id])).get(id)?.shown;
    if (row) return row;
    throw new FuelError('REFUSED', `transaction: ${id} is not shown; pull to see which ones are`);
  }

  async #applied(): Promise<void> {
    const position = await this.#engines.store().head();
    const [coordination, view] = [this.#engines.coordination(), this.#engines.view()];
    await waitUntilApplied({ coordination, view, position });
  }
}

async function* linesOf(events: readonly TransactionEvent[]): AsyncGenerator<Buffer> {
  for (const event of events) yield Buffer.from(`${JSON.stringify(event)}\n`);
}
