import { TRANSACTION_STREAMS } from '../../../domain/transaction-events.ts';
import { formatDateTime } from '../../../domain/values/date-time.ts';
import {
  type EventStore,
  MAX_PARKED_READ,
  type PersistentSubscriptions,
} from '../../../event-store/event-store.ts';
import { notSkipped, parkedByGroup } from '../../../event-store/skipped-events.ts';
import type { ParkedTransactionEvent } from '../../../pull/view/checkpoint.ts';
import { VIEW_NAME } from '../../../pull/view/projector.ts';
import type { ViewReads } from '../../../pull/view/transactions-view.ts';
import { type Cell, type Column, link, time } from '../columns.ts';

export interface ParkedParts {
  readonly store: EventStore;
  readonly view: Pick<ViewReads, 'parked'>;
  readonly subscriptions: Pick<PersistentSubscriptions, 'parked'>;
}

/** What a follower of the log has parked and the operator has not skipped, oldest first. */
export async function* parkedBy(
  follower: string,
  { store, view, subscriptions }: ParkedParts,
  limit = MAX_PARKED_READ,
): AsyncGenerator<ParkedTransactionEvent> {
  if (follower === VIEW_NAME) {
    yield* parkedByView(store, view);
    return;
  }
  for (const { event, reason, parkedAtMs } of await parkedByGroup(store, subscriptions, {
    group: follower,
    limit,
  })) {
    const { position, stream, revision, type } = event;
    yield { position, stream, revision, type, reason, parkedAtMs };
  }
}

/** What the view has parked, oldest first, without what was skipped. */
async function* parkedByView(
  store: Pick<EventStore, 'readStream'>,
  view: Pick<ViewReads, 'parked'>,
): AsyncGenerator<ParkedTransactionEvent> {
  for (let page = await view.parked(), last = page.at(-1); last !== undefined; last = page.at(-1)) {
    yield* await notSkipped(store, page);
    page = await view.parked({ after: last.position });
  }
}

export function parkedAnswer(follower: string, { parkedAtMs, ...event }: ParkedTransactionEvent) {
  return { follower, ...event, parked_at: formatDateTime(parkedAtMs) };
}

export type ParkedAnswer = ReturnType<typeof parkedAnswer>;

export const PARKED_COLUMNS: readonly Column<ParkedAnswer>[] = [
  { head: 'Parked', width: 24, cell: ({ parked_at }) => time(parked_at) },
  { head: 'Follower', width: 12, cell: ({ follower }) => follower },
  { head: 'Position', width: 8, number: true, cell: ({ position }) => position },
  { head: 'Stream', width: 20, cell: ({ stream, revision }) => streamCell(stream, `${stream}@${revision}`) },
  { head: 'Event', width: 20, cell: ({ type }) => type },
  { head: 'Why', cell: ({ reason }) => reason },
];

function streamCell(stream: string, text: string): Cell {
  const [, id] = new RegExp(`^${TRANSACTION_STREAMS}(\\d+)$`).exec(stream) ?? [];
  return id === undefined ? text : link('transaction', Number(id), text);
}
