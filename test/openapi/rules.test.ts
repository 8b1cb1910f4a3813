import { describe, expect, it } from 'vitest';
import type { TransactionEventType } from '../../src/domain/transaction-events.ts';
import { eventSchemaText } from '../../tools/event-docs/event-docs.ts';
import { type Schema, schemaAt, withoutReference } from '../support/openapi/document.ts';

/** The names in the record of members that have another name in the event. */
const RENAMED: Readonly<Record<string, string>> = { transaction_id: 'id' };

/** Intended differences between an event and its record. */
const BY_RIGHTS: readonly string[] = [
  'account_id: is not in the document',
  'driver.mobile_number: null in the event alone', // it is absent from the record then
  'images.pump: maxLength 1000 in the event, undefined in the document', // the URL of the photo that the event names
  'images.odometer: maxLength 1000 in the event, undefined in the document',
  'status: is not in the event',
  'station.is_external: is not in the event',
  'images.expires_at: is not in the event',
];

interface Rules {
  readonly type: string;
  readonly canBeNull: boolean;
  readonly minimum: unknown;
  readonly maximum: unknown;
  readonly maxLength: unknown;
  readonly decimals: number | undefined;
  readonly isDateTime: boolean;
  readonly members: Readonly<Record<string, Schema>> | undefined;
  readonly required: readonly string[];
}

/** Returns the rules of a schema of an event or of the document. Amounts are texts in one and numbers in the other. */
function rulesOf(given: Schema): Rules {
  const branches = ((given.anyOf ?? given.oneOf) as readonly Schema[] | undefined) ?? [given];
  const schemas = branches.map(withoutReference);
  const types = schemas.flatMap((schema) => schema.type as string | string[]);
  const schema = schemas.find(({ type }) => type !== 'null') ?? {};
  const fraction = /\{1,(\d)\}\)\?\$$/.exec(String(schema.pattern))?.[1];
  const decimals = schema['x-decimals'] ?? (fraction === undefined ? undefined : Number(fraction));
  const isDateTime = schema.format === 'date-time';
  return {
    type: decimals === undefined ? (types.find((type) => type !== 'null') ?? 'null') : 'decimal',
    canBeNull: types.includes('null'),
    minimum: schema.minimum,
    maximum: schema.maximum,
    maxLength: decimals === undefined ? schema.maxLength : undefined,
    decimals: decimals as number | undefined,
    isDateTime,
    members: schema.properties as Readonly<Record<string, Schema>> | undefined,
    required: (schema.required as readonly string[] | undefined) ?? [],
  };
}

/** Returns where two schemas have different rules. */
function differences(event: Schema, shown: Schema, path = ''): string[] {
  const [one, other] = [rulesOf(event), rulesOf(shown)];
  const found: string[] = [];
  if (one.canBeNull !== other.canBeNull) {
    found.push(`${path}: null in the ${one.canBeNull ? 'event' : 'document'} alone`);
  }
  for (const rule of ['type', 'minimum', 'maximum', 'maxLength', 'decimals', 'isDateTime'] as const) {
    if (one[rule] !== other[rule]) {
      found.push(`${path}: ${rule} ${one[rule]} in the event, ${other[rule]} in the document`);
    }
  }
  const members = Object.entries(one.members ?? {}).map(
    ([name, schema]) => [RENAMED[name] ?? name, schema, one.required.includes(name)] as const,
  );
  for (const [name, schema, isRequired] of members) {
    const at = path === '' ? name : `${path}.${name}`;
    const same = other.members?.[name];
    if (same === undefined) found.push(`${at}: is not in the document`);
    else {
      if (isRequired !== other.required.includes(name)) found.push(`${at}: required in one alone`);
      found.push(...differences(schema, same, at));
    }
  }
  const names = members.map(([name]) => name);
  for (const name of Object.keys(other.members ?? {})) {
    if (!names.includes(name)) found.push(`${path === '' ? name : `${path}.${name}`}: is not in the event`);
  }
  return found;
}

function differencesOf(type: TransactionEventType): string[] {
  const { properties } = JSON.parse(eventSchemaText(type)) as { properties: { data: Schema } };
  return differences(properties.data, schemaAt('Transaction'));
}

describe('the rules of an event and of the record that the document describes', () => {
  it('are the same for a confirmed transaction, but for what is by rights another', () => {
    const ofExternal = ['station.id', 'station.provider'].map(
      (name) => `${name}: null in the document alone`,
    );
    expect(differencesOf('TransactionConfirmed').toSorted()).toEqual(
      [...BY_RIGHTS, ...ofExternal].toSorted(),
    );
  });

  it('are the same for an external one, whose station has a name alone', () => {
    const found = differencesOf('ExternalTransactionRecorded');
    const elsewhere = found.filter((difference) => !/^station\.(?:id|provider)\b/.test(difference));
    expect(elsewhere.toSorted()).toEqual(BY_RIGHTS.toSorted());
  });
});
