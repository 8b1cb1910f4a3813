/**
 * A place in the source where a process can be made to kill itself: before a call, or after it has returned or
 * resolved. `crash-points.ts` wraps it; `src` has no code for it.
 */
export interface CrashSite {
  /** The same for each engine's adapter. */
  readonly name: string;
  /** From the project's root. */
  readonly file: string;
  /** What is wrapped: a method of a class, a method of what a factory returns, or a function. */
  readonly target:
    | { readonly method: string; readonly ofClass: string }
    | { readonly method: string; readonly ofFactory: string }
    | { readonly fn: string };
}

/** Which call of which site: `before enqueue`, the third time that a thread of the process reaches it. */
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
      ['src/engines/sqlite/queue/queue.ts', 'openSqliteDeliveryQueue'],
      ['src/engines/mongodb/queue/queue.ts', 'openMongoDeliveryQueue'],
    ] as const
  ).flatMap(([file, name]) => [
    made('enqueue', file, name, 'enqueue'),
    made('claim', file, name, 'claim'),
    made('record-outcomes', file, name, 'report'),
    made('withdraw', file, name, 'withdraw'),
    made('end-lane', file, name, 'endLane'),
    made('resume', file, name, 'resume'),
    made('erase-deliveries', file, name, 'erase'),
    made('redact-deliveries', file, name, 'redact'),
  ]),
  ...(
    [
      ['src/engines/sqlite/view/view.ts', 'SqliteTransactionsView'],
      ['src/engines/mongodb/view/view.ts', 'MongoTransactionsView'],
    ] as const
  ).flatMap(([file, name]) => [
    method('apply', file, name, 'apply'),
    method('reset-view', file, name, 'reset'),
    method('erase-row', file, name, 'erase'),
    method('replace-row', file, name, 'replace'),
    method('start-build', file, name, 'startBuild'),
    method('switch-view', file, name, 'serveBuild'),
  ]),
  made('save-directory', 'src/engines/sqlite/directory-rows.ts', 'openSqliteDirectoryRows', 'save'),
  made('save-directory', 'src/engines/mongodb/directory-rows.ts', 'openMongoDirectoryRows', 'save'),
  made('acquire-lease', 'src/engines/sqlite/coordination.ts', 'openSqliteCoordination', 'acquire'),
  made('acquire-lease', 'src/engines/mongodb/coordination.ts', 'openMongoCoordination', 'acquire'),
];

export const CRASH_SITES: readonly CrashSite[] = [
  ...ADAPTERS,
  made('send', 'src/push/sender/sender.ts', 'createSender', 'send'),
  /** The write transaction of an embedded file; the point before the commit is after its work. */
  method('commit', 'src/engines/sqlite/driver/database.ts', 'Database', 'write'),
  /** The stored directory: read to be restored, or sealed anew before a commit of rows. */
  method('seal-rows', 'src/accounts/directory/rows/stored-directory.ts', 'Sealing', 'seals'),
  /** A rebuild in MongoDB: a new generation, the switch to it, the former ones dropped, indexes at the end. */
  fn('serve-build', 'src/engines/mongodb/view/generations.ts', 'serveBuild'),
  fn('new-generation', 'src/engines/mongodb/view/generations.ts', 'newGeneration'),
  fn('drop-generations', 'src/engines/mongodb/view/generations.ts', 'dropUnused'),
  fn('make-indexes', 'src/engines/mongodb/view/generations.ts', 'makeIndexes'),
  fn('move-checkpoint', 'src/engines/mongodb/view/generations.ts', 'moveCheckpoint'),
  /** `fuel store copy`, in its order. */
  fn('name-target', 'src/operator/copy/copy-store.ts', 'nameTarget'),
  fn('adopt-log', 'src/engines/mongodb/queue/control.ts', 'adopt'),
  fn('begin-copy', 'src/accounts/unfinished-copy.ts', 'beginCopy'),
  fn('append-copies', 'src/operator/copy/copy-events.ts', 'appendCopies'),
  fn('store-withdrawals', 'src/engines/mongodb/queue/control.ts', 'storeWithdrawn'),
  fn('store-deliveries', 'src/engines/mongodb/queue/control.ts', 'storeDeliveries'),
  fn('record-copy', 'src/operator/copy/copy-store.ts', 'recordCopy'),
  fn('end-copy', 'src/accounts/unfinished-copy.ts', 'endCopy'),
];

/** The text for `FUEL_CRASH_POINT`. */
export function pointText({ side, name, time }: CrashPoint): string {
  return `${side}-${name}:${time}`;
}

/** Parses a text of `pointText`; throws for any other text, and for a site that does not exist. */
export function readPoint(text: string): CrashPoint {
  const [, side, name = '', time] = /^(before|after)-([a-z-]+):([1-9]\d*)$/.exec(text) ?? [];
  if (CRASH_SITES.some((site) => site.name === name)) {
    return { side: side === 'before' ? 'before' : 'after', name, time: Number(time) };
  }
  throw new Error(`FUEL_CRASH_POINT names no point: ${text}`);
}
