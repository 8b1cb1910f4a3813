import { projectTransaction } from '../../projections/transactions.ts';
import { transactionStream } from '../../src/domain/transaction-events.ts';
import type { TransactionsView } from '../../src/pull/view/transactions-view.ts';
import type { ViewChange } from '../../src/records/project-event.ts';
import { progress } from './progress.ts';
import { sampleEvents } from './sample-events.ts';

const BATCH_EVENTS = 2_000;

/** Fills a view with the sample's events, each with both photos, like the projector. Returns the generation. */
export async function fillView(view: TransactionsView, lines: number): Promise<number> {
  const { generation } = await view.reset('bench', lines);
  const say = progress(lines);
  let position = 0;
  let changes: ViewChange[] = [];
  for (const { type, data } of sampleEvents({ lines, withPhotos: true })) {
    const id = data.transaction_id;
    const isFirst = type === 'TransactionConfirmed' || type === 'ExternalTransactionRecorded';
    const change = projectTransaction(type, data, isFirst ? 0 : 1);
    changes.push({ position: ++position, stream: transactionStream(id), type, change });
    if (changes.length < BATCH_EVENTS && position < lines) continue;
    await view.apply(changes, { generation, position });
    say('projected', position);
    changes = [];
  }
  return generation;
}
