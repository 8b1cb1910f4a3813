import type { VNode } from 'preact';
import { TRANSACTION_STREAMS } from '../../../domain/transaction-events.ts';
import type { FollowerStatus } from '../../followers.ts';
import { known } from '../figures/known.ts';
import { type ParkedFigure, parkedEvents } from '../figures/parked-events.ts';
import type { Snapshot } from '../figures/snapshot.ts';
import { type Command, commands } from '../html/commands.ts';
import { html, line } from '../html/html.ts';
import type { Page } from '../html/layout.ts';
import { facts, table } from '../html/table.ts';
import { asOf, badge, count, duration, orUnknown, time, unknown } from '../html/values.ts';
import { followersTable } from './overview.ts';
import type { PageContext } from './page-context.ts';

const MAX_OPERATIONS = 20;

/** How far each follower is, what it parked, and whether view and deliveries agree with the events. */
export async function projectionsPage({ parts, snapshots }: PageContext): Promise<Page> {
  const snapshot = await snapshots.get();
  const followers = 'unknown' in snapshot.followers ? [] : snapshot.followers.value;
  const parked = await known(
    () => parkedEvents(parts, followers),
    () => parts.clock.now(),
  );
  return {
    title: 'Projections and agreement',
    main: html`<h1>Projections and agreement</h1>
      <div class="grid wide">
        <section>${followersTable(snapshot)}${asOf(snapshot.followers, snapshot.atMs)}</section>
        <section><h2>Rebuild of the view</h2>${rebuild(
          followers.find((follower) => follower.name === 'transactions'),
          snapshot,
        )}</section>
        <section><h2>Agreement with the events</h2>${agreement(parts, snapshot)}</section>
        <section><h2>Readiness of this process</h2>${readiness(snapshot)}</section>
      </div>
      <section>${orUnknown(parked, parkedTable)}</section>
      <section>${operationsTable(snapshot)}</section>
      ${commands(commandsOf(followers, 'unknown' in parked ? [] : parked.value))}`,
  };
}

function rebuild(view: FollowerStatus | undefined, { followers }: Snapshot): VNode {
  if ('unknown' in followers) return unknown(followers.unknown);
  const { rebuild: progress, unfinished_rebuild_percent: unfinished } = view ?? {};
  if (progress !== undefined) {
    const { percent, rate, seconds_left } = progress;
    return html`<p><progress max="100" value=${percent} aria-label="Rebuild"></progress> ${percent} %</p>
      ${facts([
        ['events a second', count(rate)],
        ['left', seconds_left === null ? 'unknown' : duration(seconds_left)],
      ])}`;
  }
  if (unfinished === undefined) return html`<p>None is under way.</p>`;
  return html`<p>${badge('stopped', 'warn')} at ${unfinished} %: the same command continues it.</p>`;
}

function agreement({ lastProof, roles, startedAtMs }: PageContext['parts'], { operations }: Snapshot): VNode {
  const proof = lastProof();
  const night =
    proof !== undefined
      ? html`${time(proof.atMs)}: ${proof.view + proof.deliveries === 0 ? badge('they agreed', 'good') : badge(`repaired ${proof.view} rows, ${proof.deliveries} deliveries`, 'warn')}`
      : roles.includes('projector')
        ? html`${unknown('another process may have verified')} here: this process has verified none since it started at ${time(startedAtMs)}`
        : html`${unknown('this process does not verify')} here: processes with the role projector verify`;
  return facts([
    ['last night’s proof', night],
    [
      'last repair',
      orUnknown(operations, (list) => {
        const last = list.find(({ type }) => type === 'AgreementRepaired');
        return last === undefined
          ? 'none among the newest operations'
          : html`${time(last.atMs)}: ${String(last.data.repaired)} of ${line(String(last.data.what))}`;
      }),
    ],
  ]);
}

function readiness({ readiness: found }: Snapshot): unknown {
  return orUnknown(found, ({ checks }) =>
    facts(
      Object.entries(checks).map(
        ([name, holds]) => [name, holds ? badge('yes', 'good') : badge('no', 'bad')] as const,
      ),
    ),
  );
}

function parkedTable(parked: readonly ParkedFigure[]): VNode {
  return table({
    caption: 'Parked events, oldest first',
    columns: ['Parked', 'Follower', { head: 'Position', number: true }, 'Stream', 'Event', 'Why'],
    rows: parked.map(({ follower, position, stream, revision, type, reason, parkedAtMs }) => ({
      id: `parked-${follower}-${position}`,
      cells: [
        time(parkedAtMs),
        follower,
        position,
        html`${streamLink(stream)}@${revision}`,
        line(type),
        line(reason, 1_000),
      ],
    })),
    empty: 'None.',
  });
}

function streamLink(stream: string): VNode | string {
  const [, id] = new RegExp(`^${TRANSACTION_STREAMS}(\\d+)$`).exec(stream) ?? [];
  return id === undefined ? line(stream) : html`<a href=${`/transactions/${id}`}>${stream}</a>`;
}

function operationsTable({ operations }: Snapshot): VNode {
  if ('unknown' in operations) return html`<h2>Operations</h2><p>${unknown(operations.unknown)}</p>`;
  return table({
    caption: 'Newest operations on the stores',
    columns: ['Time', 'Operation', 'By', 'Details'],
    rows: operations.value.slice(0, MAX_OPERATIONS).map(({ atMs, type, actor, data }) => ({
      cells: [time(atMs), line(type), line(actor ?? 'unknown'), line(detailsOf(data), 160)],
    })),
    empty: 'None.',
  });
}

function detailsOf(data: Readonly<Record<string, unknown>>): string {
  const shown = Object.entries(data).filter(([, value]) => ['string', 'number'].includes(typeof value));
  return shown.map(([name, value]) => `${name.replaceAll('_', ' ')} ${value}`).join(', ');
}

function commandsOf(followers: readonly FollowerStatus[], events: readonly ParkedFigure[]): Command[] {
  const parked = followers.filter((follower) => follower.parked > 0);
  return [
    ...parked.flatMap(({ name }): Command[] => {
      const of = name === 'transactions' ? [] : ['--follower', name];
      return [
        { what: `What ${name} parked, all of it`, words: ['projection', 'parked', ...of] },
        ...events
          .filter(({ follower }) => follower === name)
          .slice(0, 1)
          .map(({ position }) => ({
            what: 'The first of them with its data',
            words: ['projection', 'parked', 'show', String(position), ...of],
          })),
        {
          what: `Try the parked events of ${name} again`,
          words: ['projection', 'parked', 'retry', '--all', ...of],
        },
      ];
    }),
    { what: 'How far each follower is', words: ['projection', 'status'] },
    { what: 'Build the view again beside the served one', words: ['projection', 'rebuild', 'transactions'] },
    { what: 'Compare view and deliveries with the events', words: ['verify', '--explain'] },
    { what: 'Repair what differs', words: ['verify', '--repair'] },
  ];
}
