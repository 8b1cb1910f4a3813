import type { Struct } from 'superstruct';
import { type AccountEvent, accountEvents } from './account-events.ts';
import { type OperationsEvent, operationsEvents } from './operations-events.ts';
import { type TransactionEvent, transactionEvents } from './transaction-events.ts';
import { shortened } from './values/bounds.ts';

/** Every event that this service knows. Unknown fields are allowed; they stay in the stream and are never shown. */
export type DomainEvent = TransactionEvent | AccountEvent | OperationsEvent;
export type DomainEventType = DomainEvent['type'];

const schemas: Readonly<Record<string, Struct<never, unknown>>> = {
  ...transactionEvents,
  ...accountEvents,
  ...operationsEvents,
} as unknown as Readonly<Record<string, Struct<never, unknown>>>;

/** The version of the schemas that this code writes, which is also the newest that it reads. */
export const SCHEMA_VERSION = 1;

export const eventTypes = Object.keys(schemas) as DomainEventType[];

/** The maximum length of a fault. It quotes the value, which may be of any length. */
const MAX_FAULT_CHARACTERS = 200;

/** The schema of an event's data; `undefined` for a type this service does not know. */
export function schemaOf(type: string): Struct<never, unknown> | undefined {
  return Object.hasOwn(schemas, type) ? schemas[type] : undefined;
}

/** Returns every fault of `data` as `path: problem`; none if it fits the schema. */
export function faultsOf<T, S>(schema: Struct<T, S>, data: unknown): string[] {
  try {
    const [error] = schema.validate(data);
    if (error === undefined) return [];
    return error.failures().map((failure) => {
      const path = failure.path.length === 0 ? 'data' : failure.path.join('.');
      const shown = JSON.stringify(failure.value) ?? 'nothing';
      const problem =
        failure.type === 'never'
          ? `is not a member here (they are ${membersAt(schema, failure.path.slice(0, -1)).join(', ')})`
          : failure.message.replace(/received: .*$/s, () => `received: ${shown}`);
      return shortened(`${path}: ${failure.refinement ?? problem}`, MAX_FAULT_CHARACTERS);
    });
  } catch (error) {
    if (!(error instanceof TypeError)) throw error; // the validator prints values, and fails if one has a `toString`
    return [`data: does not fit, and holds a value that can't be printed: ${error.message}`];
  }
}

/** The names of the members of the object at this place of a schema. */
function membersAt<T, S>(schema: Struct<T, S>, path: readonly (string | number)[]): string[] {
  let at: { readonly schema: unknown; readonly type: string } = schema;
  for (const step of path) at = (at.type === 'array' ? at.schema : membersOf(at.schema)[step]) as typeof at;
  return Object.keys(membersOf(at.schema));
}

function membersOf(schema: unknown): Readonly<Record<string | number, unknown>> {
  return schema as Record<string | number, unknown>;
}

/** The metadata of every event: who caused it, when and by which command. */
export interface EventMetadata {
  readonly schema_version: number;
  /** When the command ran, by its own clock. A copy of the event keeps this time. */
  readonly at: string;
  readonly actor: string;
  /** The operating system's user who ran the command, whatever name `--actor` gives. */
  readonly os_user?: string;
  readonly command: string;
  readonly correlation_id: string;
  readonly causation_id: string;
}
