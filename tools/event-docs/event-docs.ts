import { type DomainEventType, eventTypes, faultsOf, schemaOf } from '../../src/domain/events.ts';
import { jsonSchemaOf } from './json-schema.ts';

export const schemaFile = (type: DomainEventType): string => `${type}.schema.json`;
export const exampleFile = (type: DomainEventType): string => `${type}.example.json`;

/**
 * Returns the published schema of an event type, as the text of its file. It describes the document `{"type", "data"}`,
 * which is the form of an import line and of an example. The schema of an event's data is its `properties.data`.
 */
export function eventSchemaText(type: DomainEventType): string {
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: type,
    type: 'object',
    properties: { type: { const: type }, data: jsonSchemaOf(knownSchema(type)) },
    required: ['type', 'data'],
  };
  return `${JSON.stringify(schema, null, 2)}\n`;
}

/** Returns the faults of a published example, given the text of its file; none if it is a valid event. */
export function exampleFaults(type: DomainEventType, text: string): string[] {
  let example: { readonly type?: unknown; readonly data?: unknown };
  try {
    example = JSON.parse(text);
  } catch (error) {
    return [`not JSON: ${(error as SyntaxError).message}`];
  }
  if (example.type !== type) return [`type: must be "${type}"`];
  return faultsOf(knownSchema(type), example.data);
}

/** Returns the names of the files that belong in the folder of published events, in order. */
export function eventDocFiles(): string[] {
  return ['README.md', ...eventTypes.flatMap((type) => [schemaFile(type), exampleFile(type)])].sort();
}

function knownSchema(type: DomainEventType): NonNullable<ReturnType<typeof schemaOf>> {
  const schema = schemaOf(type);
  if (schema === undefined) throw new RangeError(`${type} has no schema`);
  return schema;
}
