/**
 * A place in the source where a process can be made to kill itself: before a call, or after it has returned or
 * resolved. `crash-points.ts` wraps it; `src` has no code for it.
 */
export interface CrashSite {
  /** The name, which is the same for each engine's adapter. */
  readonly name: string;
  /** The path from the project's root. */
  readonly file: string;
  /** The wrapped call: a method of a class, a method of what a factory returns, or a function. */
  readonly target:
    | { readonly method: string; readonly ofClass: string }
    | { readonly method: string; readonly ofFactory: string }
    | { readonly fn: string };
}

/** A call of a site, such as `before enqueue`, the third time that a thread of the process reaches it. */
export interface CrashPoint {
  readonly name: string;
  readonly side: 'before' | 'after';
  readonly time: number;
}

const method = (name: string, file: string, ofClass: string, method: string): CrashSite => ({
  name,
  file,
  target: { ofClass, method },
});
const made = (name: string, file: string, ofFactory: string, method: string): CrashSite => ({
  name,
  file,
  target: { ofFactory, method },
});
const fn = (name: string, file: string, fn: string): CrashSite => ({ name, file, target: { fn } });

/** A method that every adapter of a port has under the same name. */
const ADAPTERS: readonly CrashSite[] = [
  ...(
    [
      ['src/engines/sqlite/event-store/event-store.ts', 'SqliteEventStore'],
      ['src/engines/eventstoredb/event-store.ts', 'EventStoreDb'],
    ] as const
  ).flatMap(([file, name]) => [
    method('append', file, name, 'append'),
    method('erase-events', file, name, 'erase'),
    method('rewrite-events', file, name, 'rewrite'),
  ]),
  method('ack', 'src/engines/sqlite/event-store/group-consumer.ts', 'SqliteGroupConsumer', 'ack'),
  method('ack', 'src/engines/eventstoredb/groups/consumer.ts', 'EventStoreDbGroupConsumer', 'ack'),
  ...(
    [
      ['enqueue', 'enqueue'],
      ['lease', 'lease'],
      ['record-outcomes', 'report'],
      ['change-deliveries', 'change'],
    ] as const
  ).map(([name, each]) => made(name, 'src/push/log/open.ts', 'openDeliveryLog', each)),
  ...(
    [
      ['apply', 'apply'],
      ['reset-view', 'reset'],
      ['replace-row', 'replace'],
      ['start-build', 'startBuild'],
      ['switch-view', 'serveBuild'],
    ] as const
  ).map(([name, called]) => method(name, 'src/pull/view/view.ts', 'TablesView', called)),
  made('acquire-lease', 'src/base/coordination/stored-coordination.ts', 'openCoordination', 'acquire'),
  made('move-follower', 'src/base/coordination/stored-coordination.ts', 'openCoordination', 'moveCheckpoint'),
];

export const CRASH_SITES: readonly CrashSite[] = [
  ...ADAPTERS,
  made('send', 'src/push/sender/sender.ts', 'createSender', 'send'),
  /** The write transaction of an embedded file. The point before the commit is after its work. */
  method('commit', 'src/engines/sqlite/driver/database.ts', 'Database', 'write'),
  /** A batch of account events: its rows are made, then written with the checkpoint. */
  fn('make-accounts', 'src/accounts/rows/writes-of.ts', 'writesOf'),
  method('write-accounts', 'src/accounts/rows/follower.ts', 'RowsWriter', 'write'),
  /** A batch of account events ends deliveries, before the checkpoint of `ends` moves. */
  fn('apply-ends', 'src/push/ends.ts', 'applyEnds'),
  /** A rebuild: a new generation, the switch to it, the removal of former ones, indexes at the end. */
  method('serve-build', 'src/pull/view/generations.ts', 'Generations', 'serveBuilt'),
  method('new-generation', 'src/pull/view/generations.ts', 'Generations', 'buildNew'),
  method('remove-generation', 'src/pull/view/generations.ts', 'Generations', 'remove'),
  method('make-indexes', 'src/engines/mongodb/tables/tables.ts', 'MongoTables', 'makeIndexes'),
  method('make-indexes', 'src/engines/postgresql/tables/tables.ts', 'PostgresTables', 'makeIndexes'),
  fn('move-checkpoint', 'src/pull/view/progress.ts', 'changeProgress'),
  /** The steps of `fuel store copy`, in order. */
  fn('name-target', 'src/operator/copy/copy-store.ts', 'nameTarget'),
  fn('adopt-log', 'src/operator/copy/copy-deliveries.ts', 'nameLog'),
  fn('begin-copy', 'src/service/stores/unfinished-copy.ts', 'beginCopy'),
  fn('append-copies', 'src/operator/copy/copy-events.ts', 'appendCopies'),
  fn('relocate-deliveries', 'src/operator/copy/copy-deliveries.ts', 'relocated'),
  fn('record-copy', 'src/operator/copy/copy-store.ts', 'recordCopy'),
  fn('end-copy', 'src/service/stores/unfinished-copy.ts', 'endCopy'),
];

/** Returns the text for `FUEL_CRASH_POINT`. */
export function pointText({ side, name, time }: CrashPoint): string {
  return `${side}-${name}:${time}`;
}

/** Parses a text of `pointText`. Throws for any other text and for a site that does not exist. */
export function readPoint(text: string): CrashPoint {
  const [, side, name = '', time] = /^(before|after)-([a-z-]+):([1-9]\d*)$/.exec(text) ?? [];
  if (CRASH_SITES.some((site) => site.name === name)) {
    return { side: side === 'before' ? 'before' : 'after', name, time: Number(time) };
  }
  throw new Error(`FUEL_CRASH_POINT names no point: ${text}`);
}
