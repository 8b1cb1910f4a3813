import type { VNode } from 'preact';
import type { FollowerStatus } from '../../../service/ops/followers.ts';
import { type Column, time as cellOfTime, table } from '../../answers/columns.ts';
import { duration } from '../../answers/follower.ts';
import { PARKED_COLUMNS, type ParkedAnswer } from '../../answers/parked.ts';
import { known } from '../figures/known.ts';
import { parkedEvents } from '../figures/parked-events.ts';
import type { Snapshot } from '../figures/snapshot.ts';
import type { Operation } from '../figures/tails.ts';
import { type Command, cmd, commands } from '../html/commands.ts';
import { html, line } from '../html/html.ts';
import type { Page, PageContext } from '../html/layout.ts';
import { facts, tableOf } from '../html/table.ts';
import { asOf, badge, count, orUnknown, time, unknown } from '../html/values.ts';
import { detailsOf } from './account.ts';
import { followersTable } from './overview.ts';

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

function parkedTable(parked: readonly ParkedAnswer[]): VNode {
  return tableOf(
    table('Parked events, oldest first', PARKED_COLUMNS, {
      of: parked,
      idOf: ({ follower, position }) => `${follower}-${position}`,
      empty: 'None.',
    }),
  );
}

const OPERATIONS: readonly Column<Operation>[] = [
  { head: 'Time', cell: ({ atMs }) => cellOfTime(atMs) },
  { head: 'Operation', cell: ({ type }) => type },
  { head: 'By', cell: ({ actor }) => actor ?? 'unknown' },
  { head: 'Details', cell: ({ data }) => detailsOf(data).join(', ') },
];

function operationsTable({ operations }: Snapshot): VNode {
  if ('unknown' in operations) return html`<h2>Operations</h2><p>${unknown(operations.unknown)}</p>`;
  const of = operations.value.slice(0, MAX_OPERATIONS);
  return tableOf(table('Newest operations on the stores', OPERATIONS, { of, empty: 'None.' }));
}

function commandsOf(followers: readonly FollowerStatus[], events: readonly ParkedAnswer[]): Command[] {
  const parked = followers.filter((follower) => follower.parked > 0);
  return [
    ...parked.flatMap(({ name }): Command[] => {
      const of = name === 'transactions' ? [] : ['--follower', name];
      return [
        cmd(`What ${name} parked, all of it`)`projection parked ${of}`,
        ...events
          .filter(({ follower }) => follower === name)
          .slice(0, 1)
          .map(
            ({ position }) =>
              cmd('The first of them with its data')`projection parked show ${position} ${of}`,
          ),
        cmd(`Try the parked events of ${name} again`)`projection parked retry --all ${of}`,
      ];
    }),
    cmd('How far each follower is')`projection status`,
    cmd('Build the view again beside the served one')`projection rebuild transactions`,
    cmd('Compare view and deliveries with the events')`verify --explain`,
    cmd('Repair what differs')`verify --repair`,
  ];
}
