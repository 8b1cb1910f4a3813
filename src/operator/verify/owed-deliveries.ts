import { isWithdrawalType, transactionStream } from '../../domain/transaction-events.ts';
import type { EventStore } from '../../event-store/event-store.ts';
import { readInParts } from '../../event-store/reads.ts';
import { isDamaged } from '../../event-store/recorded-event.ts';
import { type DecisionContext, decideAsOf, newDelivery } from '../../push/fan-out/decide-event.ts';
import type { NewDelivery } from '../../push/queue/delivery.ts';
import { judgeEvent, projectEvent } from '../../records/project-event.ts';

export interface DecidedStream {
  readonly transactionId: number;
  readonly isWithdrawn: boolean;
  /** What keys are owed; nothing if no event records the transaction. `unreadable` if an event or the account is. */
  readonly decision: readonly NewDelivery[] | 'erased' | 'unreadable';
}

/** Decides by whole streams what is owed, in the given order. Only some streams are in memory at a time. */
export async function* decideStreams(
  transactionIds: readonly number[],
  context: DecisionContext & { readonly store: EventStore },
): AsyncGenerator<DecidedStream> {
  const { store, clock } = context;
  const ids = transactionIds.values();
  for await (const [stream, history] of readInParts(store, transactionIds.map(transactionStream))) {
    const transactionId = ids.next().value as number;
    let decision: DecidedStream['decision'] = [];
    if (history.length === 0 && (await store.isErased(stream))) decision = 'erased';
    for (const event of history) {
      if ('parkReason' in projectEvent(event)) decision = 'unreadable';
      const judged = judgeEvent(event, history);
      if (judged === undefined || 'parkReason' in judged || judged.change.kind !== 'show') continue;
      const { row } = judged.change;
      const decided = await decideAsOf(event, row, context);
      decision =
        'unreadable' in decided
          ? 'unreadable'
          : decided.owed.map((owed) => newDelivery({ event, row, owed, nowMs: clock.now() }));
      break;
    }
    if (history.some(isDamaged)) decision = 'unreadable';
    yield { transactionId, isWithdrawn: history.some(({ type }) => isWithdrawalType(type)), decision };
  }
}
