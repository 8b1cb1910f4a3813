import type { Clock } from '../base/clock.ts';
import type { Environment } from '../domain/account-events.ts';
import {
  isOperationsEventType,
  OPERATIONS_STREAM,
  type OperationsEvent,
  type SealedLeaves,
} from '../domain/operations-events.ts';
import { transactionStream } from '../domain/transaction-events.ts';
import { parseDateTime } from '../domain/values/date-time.ts';
import { authorOf, decodeStrict, occurredAt, occurredAtMs } from './codec.ts';
import type { EventStore } from './event-store.ts';
import { type Author, newEvent } from './new-event.ts';
import { type EventRef, type Position, type RecordedEvent, textOfRef } from './recorded-event.ts';

/** How many of the newest events are kept, besides the newest of each type. */
const MAX_NEWEST = 50;

export interface RecordedMasterKey {
  readonly fingerprint: string;
  /** The id that ciphertexts contain. */
  readonly id: string;
}

/** The new addresses of a store, and when it was moved there. */
export interface Move {
  /** Addresses without credentials. */
  readonly to: readonly string[];
  readonly at: string;
}

/** An erased event, which still counts as a leaf, and the event that erased it. */
export type Gap = SealedLeaves[number] & {
  readonly by: {
    readonly type: string;
    readonly at: string;
    readonly actor: string;
    readonly reason: string;
  };
};

/** The events that were erased or redacted. */
export class Gaps {
  readonly #byIndex = new Map<number, Gap>();
  readonly #events = new Set<string>();
  readonly #erased = new Set<string>();

  add(leaf: SealedLeaves[number], by: Gap['by']): void {
    this.#byIndex.set(leaf.index, { ...leaf, by });
    this.#events.add(textOfRef(leaf));
  }

  addStream(stream: string): void {
    this.#erased.add(stream);
  }

  at(index: number): Gap | undefined {
    return this.#byIndex.get(index);
  }

  has(event: EventRef): boolean {
    return this.#events.has(textOfRef(event));
  }

  isErased(stream: string): boolean {
    return this.#erased.has(stream);
  }
}

/**
 * The state of the store according to its stream `operations`, folded from the events. It is folded in this file alone. Events that
 * can't be read change nothing.
 */
export class OperationsState {
  #first: RecordedEvent | undefined;
  #newest: readonly RecordedEvent[] = [];
  #skipped: ReadonlySet<string> = new Set();
  /** The revision of the last event; `undefined` if the stream is empty. */
  revision: number | undefined;
  /** The environment that the store belongs to. Later events can't move it to another one. */
  environment: Environment | undefined;
  /** The revisions of later events that set another environment. */
  readonly ignoredEnvironments: number[] = [];
  /** Every master key that the store ever had, by fingerprint, in the order in which they were recorded. */
  readonly masterKeys = new Map<string, RecordedMasterKey>();
  /** True if a master key was lost and replaced, so that some secrets may be unreadable. */
  hasLostKey = false;
  /** The engines that the store was moved to; `undefined` if it was not, or the mark was removed. */
  move: Move | undefined;
  /**
   * The delivery log that was started last, which is the only one that may be used, and when the first one was started,
   * in milliseconds.
   */
  deliveryLog: { readonly id: string; readonly firstStartedAtMs: number } | undefined;
  /** The first completed copy into this store. */
  copied: { readonly position: Position; readonly deliveries: number } | undefined;
  /** The last redaction of each driver, by `account/driver`. Later events are not redacted. */
  readonly redactedAt = new Map<string, Position>();
  readonly gaps = new Gaps();
  /** The positions of the events that the operator has skipped. */
  readonly skippedPositions = new Set<Position>();
  /** When a nightly verification left no difference last, in milliseconds. */
  verifiedAtMs: number | undefined;
  /** How much of the log was proven last to be what was sealed, in events. */
  provenSize: number | undefined;

  /** The stream's first event, which names the store. */
  get first(): RecordedEvent | undefined {
    return this.#first;
  }

  /** The newest fifty events, and the newest of each type however old it is, newest first. */
  get newest(): readonly RecordedEvent[] {
    return this.#newest;
  }

  /**
   * The places of the events that the operator has skipped. They are treated as if they did not exist. A parked one stays
   * parked, and a rebuild, a retry or a restart parks it again; lists and counts leave it out. The set is another one
   * whenever an event was skipped.
   */
  get skipped(): ReadonlySet<string> {
    return this.#skipped;
  }

  /** Applies events in the order of the stream. Those that were applied before have no effect. */
  apply(events: readonly RecordedEvent[]): void {
    const later = events.filter(({ revision }) => revision > (this.revision ?? -1));
    for (const event of later) {
      this.#first ??= event;
      this.revision = event.revision;
      const operation = operationOf(event);
      if (operation !== undefined) this.#evolve(operation);
    }
    if (later.length > 0) this.#newest = newestOf([...later.toReversed(), ...this.#newest]);
  }

  #evolve({ type, data, recorded }: Operation): void {
    switch (type) {
      case 'EnvironmentSet':
        this.environment ??= data.environment;
        if (data.environment !== this.environment) this.ignoredEnvironments.push(recorded.revision);
        return;
      case 'MasterKeyAdded':
        this.masterKeys.set(data.fingerprint, { fingerprint: data.fingerprint, id: data.master_key_id });
        this.hasLostKey ||= data.reason !== null;
        return;
      case 'DeliveryLogStarted': {
        const startedAtMs = parseDateTime(data.started_at) ?? recorded.recordedAtMs;
        const { firstStartedAtMs = startedAtMs } = this.deliveryLog ?? {};
        this.deliveryLog = { id: data.log_id, firstStartedAtMs };
        return;
      }
      case 'StoreMoved':
        this.move = { to: data.to, at: occurredAt(recorded) };
        return;
      case 'StoreUnmarked':
        this.move = undefined;
        return;
      case 'StoreCopied':
        this.copied ??= { position: recorded.position, deliveries: data.deliveries };
        return;
      case 'ParkedSkipped':
        this.#skipped = new Set([...this.#skipped, textOfRef(data)]);
        this.skippedPositions.add(data.position);
        return;
      case 'TransactionErased':
        this.gaps.addStream(transactionStream(data.transaction_id));
        this.#remove(data.leaves, data.reason, recorded);
        return;
      case 'DriverRedacted':
        this.redactedAt.set(`${data.account_id}/${data.driver_id}`, recorded.position);
        this.#remove(data.leaves, data.reason, recorded);
        return;
      case 'AgreementVerified':
        if (data.left === 0) this.verifiedAtMs = occurredAtMs(recorded);
        return;
      case 'LogProven':
        this.provenSize = data.size;
        return;
      default: // says something about itself alone
    }
  }

  #remove(leaves: SealedLeaves, reason: string, recorded: RecordedEvent): void {
    const by = { type: recorded.type, at: occurredAt(recorded), actor: authorOf(recorded), reason };
    for (const leaf of leaves) this.gaps.add(leaf, by);
  }
}

function newestOf(events: readonly RecordedEvent[]): RecordedEvent[] {
  const types = new Set<string>();
  return events.filter(({ type }, at) => {
    const isNewestOfType = !types.has(type);
    types.add(type);
    return isNewestOfType || at < MAX_NEWEST;
  });
}

type Reads = Pick<EventStore, 'readStream'>;

/** The state of each open store. */
const states = new WeakMap<Reads, OperationsState>();

/**
 * Returns what the stream `operations` says by now. The stream is read once for each open store; a call reads what is new.
 * All callers share the returned state, which later calls advance.
 */
export async function operationsOf(store: Reads): Promise<OperationsState> {
  const state = states.get(store) ?? new OperationsState();
  states.set(store, state);
  state.apply(await store.readStream(OPERATIONS_STREAM, { fromRevision: (state.revision ?? -1) + 1 }));
  return state;
}

export type Operation = OperationsEvent & { readonly recorded: RecordedEvent };

/**
 * Decodes an event of the stream `operations`; `undefined` for an event of another stream or one that can't be read.
 */
export function operationOf(recorded: RecordedEvent): Operation | undefined {
  return recorded.stream === OPERATIONS_STREAM ? readOperation(recorded) : undefined;
}

/** Decodes an operations event of any stream; `undefined` if it can't be read. */
export function readOperation(recorded: RecordedEvent): Operation | undefined {
  const decoded = decodeStrict(recorded);
  if (!decoded.ok || !isOperationsEventType(decoded.type)) return undefined;
  return { type: decoded.type, data: decoded.data, recorded } as Operation;
}

/** Appends events to the stream `operations`, whatever others have recorded there meanwhile. */
export async function recordOperations(
  store: Pick<EventStore, 'append'>,
  events: readonly OperationsEvent[],
  { author, clock }: { readonly author: Author; readonly clock: Clock },
): Promise<void> {
  const recorded = events.map((event) => newEvent(event, author, clock.now()));
  await store.append([{ stream: OPERATIONS_STREAM, expected: 'any', events: recorded }]);
}
