import type { VNode } from 'preact';
import { noAccessReason } from '../../../accounts/account-state.ts';
import { withHeldReason } from '../../../deliveries/describe-delivery.ts';
import type { Delivery } from '../../../deliveries/queue/delivery-queue.ts';
import { type TimelineEntry, timelineOf } from '../../../deliveries/timeline.ts';
import { transactionDeliveries } from '../../../deliveries/transaction-deliveries.ts';
import { transactionStream } from '../../../domain/transaction-events.ts';
import { membersOf, printableData } from '../../../event-store/codec.ts';
import type { RecordedEvent } from '../../../event-store/event-store.ts';
import { effectsOf } from '../../../transactions/as-of.ts';
import type { Checkpoint } from '../../../transactions/view/checkpoint.ts';
import { recordFacts, withoutDriver } from '../figures/record-facts.ts';
import { type Command, commands } from '../html/commands.ts';
import { html, line } from '../html/html.ts';
import type { Page } from '../html/layout.ts';
import { malformed, notFound } from '../html/problems.ts';
import { facts, table } from '../html/table.ts';
import { badge, exactTime, links, plural, state, type Tone } from '../html/values.ts';
import type { PageContext } from './page-context.ts';

/** Deliveries whose attempts are shown: an account has a handful of keys. */
const MAX_DELIVERIES = 50;

export async function transactionPage({ parts, query, name }: PageContext): Promise<Page> {
  const text = name === '' ? (query.id ?? '') : name;
  if (text === '') return { title: 'Transaction', main: html`<h1>Transaction</h1>${form('')}` };
  const id = Number(text);
  if (!/^\d{1,16}$/.test(text) || !Number.isSafeInteger(id)) {
    const page = malformed('Transaction', [`${text} is no id of a transaction: it is a whole number`]);
    return { ...page, main: html`${form(text)}${page.main}` };
  }
  const stream = transactionStream(id);
  const [events, row, checkpoint] = await Promise.all([
    parts.store.readStream(stream),
    parts.view.find(id),
    parts.view.checkpoint(),
  ]);
  const { deliveries, notSent } = await transactionDeliveries(id, events, parts);
  const isErased = events.length === 0 && (await parts.store.isErased(stream));
  const isThere = row !== undefined && row !== 'hidden';
  const nowMs = parts.clock.now();
  const accountOf = (accountId: number) => parts.directory.account(accountId)?.account;
  const noAccess = isThere ? noAccessReason(accountOf(row.accountId), nowMs) : undefined;
  const isVisible = isThere && noAccess === undefined;
  if (events.length === 0 && !isThere && (isErased || deliveries.length === 0)) return missing(id, isErased);
  const found = await Promise.all(
    deliveries.slice(0, MAX_DELIVERIES).map((each) => parts.queue.find(each.id)),
  );
  const whole = found
    .filter((delivery): delivery is Delivery => delivery !== undefined)
    .map((delivery) => withHeldReason(delivery, accountOf, nowMs));
  const applied = effectsOf(events);
  const entries = timelineOf({ applied, deliveries: whole, notSent }).map(({ entry }) =>
    entry.what === 'event' && entry.reason === null
      ? { ...entry, reason: reasonGiven(events, entry) }
      : entry,
  );
  const record = events[0] && printableData(events[0]);
  return {
    title: `Transaction ${id}`,
    main: html`<h1>Transaction ${id} ${isVisible ? badge('visible', 'good') : badge('not visible', 'quiet')}</h1>
      <div class="grid">
        <section><h2>What customers see</h2>${visibility({ events, isVisible, noAccess, isErased, checkpoint })}</section>
        <section class="halves"><h2>Record</h2>${record === undefined ? 'No event was recorded.' : facts(recordFacts(record).map(([what, value]) => [what, what === 'account' ? links.account(Number(value)) : value] as const))}</section>
      </div>
      <section class="timeline">${timelineTable(entries, record)}
        ${deliveries.length > MAX_DELIVERIES ? html`<p class="note">Of ${plural(deliveries.length, 'delivery', 'deliveries')} the newest ${MAX_DELIVERIES}.</p>` : null}
      </section>
      ${commands(
        commandsOf(
          id,
          deliveries.some((each) => each.state === 'failed'),
        ),
      )}`,
  };
}

function form(text: string): VNode {
  return html`<form class="filters" action="/transactions" method="get">
    <label>Id of the transaction<input name="id" value=${text} size="20" autocomplete="off" /></label>
    <button type="submit">Show</button>
  </form>`;
}

function missing(id: number, isErased: boolean): Page {
  const why = isErased
    ? 'It was erased: its events, its records and what receivers answered were removed. The operations say when and why.'
    : 'No event of it was ever recorded here, the view does not show it and nothing was sent of it: the core system did not deliver it, or its line was refused by the import. Import it, then it appears here.';
  const list: Command[] = isErased
    ? [{ what: 'Who erased it', words: ['audit', '--transaction', String(id)] }]
    : [
        { what: 'Import it', words: ['transaction', 'import', 'FILE'] },
        { what: 'Events that were parked', words: ['projection', 'parked'] },
      ];
  return notFound(`Transaction ${id}`, why, list);
}

/** Whether it is shown, and where not, whether that will change by itself. */
function visibility(options: {
  readonly events: readonly RecordedEvent[];
  readonly isVisible: boolean;
  /** Why requests for a record that is there are refused. */
  readonly noAccess: string | undefined;
  readonly isErased: boolean;
  readonly checkpoint: Checkpoint | undefined;
}): VNode {
  const { events, isVisible, noAccess, isErased, checkpoint } = options;
  const last = events.at(-1);
  const position = checkpoint?.position ?? 0;
  const isWaiting = last !== undefined && last.position > position;
  const why = isErased
    ? 'erased, and still shown: fuel verify repairs that'
    : events.length === 0
      ? 'no event calls for what is shown: fuel verify repairs that'
      : isWaiting
        ? `not applied yet: the view is at ${position} of the log, the newest event at ${last.position}`
        : 'every event of it was applied';
  return facts([
    ['now', isVisible ? 'visible' : 'not visible'],
    ...(noAccess === undefined ? [] : [['requests of the account', `refused: ${noAccess}`] as const]),
    ['the view', html`${why}${isWaiting ? html` – <a href="/projections">the projector</a>` : null}`],
    ['events', events.length],
  ]);
}

/** Why it was voided or cancelled, as whoever did it wrote. */
function reasonGiven(events: readonly RecordedEvent[], { revision }: TimelineEntry): string | null {
  const event = events.find((each) => each.revision === revision);
  const { reason } = membersOf(event && printableData(event));
  return typeof reason === 'string' ? reason : null;
}

function timelineTable(entries: readonly TimelineEntry[], record: unknown): VNode {
  return table({
    caption: 'Timeline',
    columns: ['Time', 'What', 'Key', 'Details'],
    rows: entries.map((entry, at) => ({ id: `entry-${at}`, cells: cellsOf(entry, record) })),
    empty: 'Nothing happened.',
  });
}

const EFFECT_TONES: Readonly<Record<string, Tone>> = { shown: 'good', parked: 'bad', removed: 'warn' };

function cellsOf(entry: TimelineEntry, record: unknown): readonly unknown[] {
  const { at, what, key, delivery, type, reason } = entry;
  const when = at === '' ? '–' : exactTime(Date.parse(at));
  const why = typeof reason === 'string' ? line(withoutDriver(reason, record), 1_000) : '';
  const of = typeof key === 'string' ? links.webhook(key) : '';
  const link = typeof delivery === 'string' ? links.delivery(delivery) : '';
  switch (what) {
    case 'event':
      return [
        when,
        html`<strong>${line(String(type))}</strong>`,
        '',
        html`${badge(String(entry.effect), EFFECT_TONES[String(entry.effect)] ?? 'quiet')} ${why}`,
      ];
    case 'not_sent':
      return [when, 'not sent', of, why];
    case 'delivery':
      return [when, 'delivery made', of, html`${link} now ${state(String(entry.state))} ${why}`];
    case 'attempt':
      return [when, 'attempt', of, html`${attemptOf(entry)} of ${link}`];
    case 'due':
      return [when, 'next attempt', of, link];
    default:
      return what satisfies never;
  }
}

function attemptOf({ cycle, number, duration_ms, ok, status, error }: TimelineEntry): VNode {
  const { kind = '', detail = '' } = (error ?? {}) as { readonly kind?: string; readonly detail?: string };
  const name = cycle === 1 ? `attempt ${number}` : `redelivery ${Number(cycle) - 1}, attempt ${number}`;
  const answer = status === null ? `${kind}: ${line(detail)}` : `answered ${status}`;
  return html`${badge(ok === true ? 'delivered' : 'failed', ok === true ? 'good' : 'bad')} ${name}: ${answer} after ${duration_ms} ms`;
}

function commandsOf(id: number, hasFailed: boolean): Command[] {
  const again = {
    what: 'Find what failed, to send it again',
    words: ['delivery', 'list', '--transaction', String(id), '--state', 'failed'],
  };
  return [
    { what: 'The same on the command line, with every record', words: ['transaction', 'show', String(id)] },
    ...(hasFailed ? [again] : []),
    { what: 'Who recorded what of it', words: ['audit', '--transaction', String(id)] },
  ];
}
