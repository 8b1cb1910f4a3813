import { parse } from 'yaml';
import { readDocument } from '../documents.ts';

export type Schema = Readonly<Record<string, unknown>>;

export interface Parameter {
  readonly name: string;
  readonly in: 'query' | 'header';
  readonly required?: boolean;
  readonly explode?: boolean;
  readonly description: string;
  readonly schema: Schema;
}

export interface Header {
  readonly required?: boolean;
  readonly schema: Schema;
}

interface Response {
  readonly headers?: Readonly<Record<string, Header>>;
  readonly content?: Readonly<Record<string, { readonly schema: Schema }>>;
}

interface Operation {
  readonly parameters: readonly Parameter[];
  readonly requestBody?: {
    readonly content: Readonly<Record<string, { readonly schema: Schema } & Examples>>;
  };
  readonly responses: Readonly<Record<string, Response>>;
}

export interface Examples {
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}

interface OpenApi {
  readonly paths: Readonly<Record<string, { readonly get: Operation }>>;
  readonly webhooks: Readonly<Record<string, { readonly post: Operation }>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly parameters: Readonly<Record<string, Parameter>>;
  };
}

/** The parsed docs/openapi.yaml, with unresolved references. */
export const openApi: OpenApi = parse(readDocument('docs/openapi.yaml'));

/** The pull endpoint, with its references to all but schemas resolved. */
export const operation: Operation = resolved(openApi.paths['/transactions']?.get) as Operation;

/** The webhooks by the type of their event, resolved in the same way. */
export const webhookOperations: Readonly<Record<string, Operation>> = Object.fromEntries(
  Object.entries(openApi.webhooks).map(([type, { post }]) => [type, resolved(post) as Operation]),
);

/** Returns the schema with this name. Throws if there is none. */
export function schemaAt(name: string): Schema {
  const schema = openApi.components.schemas[name];
  if (schema === undefined) throw new Error(`docs/openapi.yaml has no schema ${name}`);
  return schema;
}

/** Returns the schema that a reference stands for, or the schema itself. */
export function withoutReference(schema: Schema): Schema {
  const { $ref, ...rest } = schema;
  return typeof $ref === 'string' ? { ...withoutReference(at($ref) as Schema), ...rest } : schema;
}

function resolved(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(resolved);
  if (typeof value !== 'object' || value === null) return value;
  const { $ref } = value as { $ref?: unknown };
  if (typeof $ref === 'string' && !$ref.startsWith('#/components/schemas/')) return resolved(at($ref));
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, resolved(member)]));
}

function at(reference: string): unknown {
  const found = reference
    .split('/')
    .slice(1)
    .reduce<unknown>((value, name) => (value as Schema | undefined)?.[name], openApi);
  if (found === undefined) throw new Error(`docs/openapi.yaml has nothing at ${reference}`);
  return found;
}
