import type { IncomingHttpHeaders } from 'node:http';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { type Header, openApi, operation, type Schema, webhookOperations } from './document.ts';

/** The headers that Node and HTTP add to every answer or request. */
const TRANSPORT_HEADERS = ['connection', 'content-length', 'content-type', 'date', 'host', 'keep-alive'];

interface GivenAnswer {
  readonly method?: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly text: string;
}

interface GivenDelivery {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** The numbers as they are written, for `x-decimals`, at the same places as in the parsed document. */
type Sources = { readonly sources: unknown };

const ajv = new Ajv2020({ allErrors: true, passContext: true, strictTypes: false, strictRequired: false });
(addFormats as unknown as (target: Ajv2020) => void)(ajv);
ajv.addFormat('decimal', true); // it is for generators of clients; x-decimals is checked
ajv.addKeyword({
  keyword: 'x-decimals',
  type: 'number',
  schemaType: 'number',
  errors: false,
  validate(this: Sources, places: number, _value: unknown, _schema: unknown, context: unknown) {
    const { instancePath } = context as { instancePath: string };
    if (this.sources === undefined) return true;
    const source = String(at(this.sources, instancePath));
    return new RegExp(`^-?(0|[1-9][0-9]*)[.][0-9]{${places}}$`).test(source) && !/^-[0.]*$/.test(source);
  },
});
ajv.addKeyword({
  keyword: 'membersInOrder',
  type: 'object',
  errors: false,
  validate: (_on: true, value: object, schema: unknown) => {
    const order = Object.keys((schema as { properties?: object }).properties ?? {});
    const places = Object.keys(value).map((name) => order.indexOf(name));
    return places.every((place, index) => index === 0 || place > (places[index - 1] ?? 0));
  },
});
ajv.addSchema({ $id: 'openapi', $defs: strict(openApi.components.schemas) });

const validators = new Map<string, ValidateFunction>();
// They are compiled before the first delivery arrives, since its sender counts the milliseconds until the answer.
for (const { requestBody } of Object.values(webhookOperations)) {
  compiled(requestBody?.content['application/json']?.schema ?? {});
}

/** Throws unless the document describes this answer of the pull API: its status, headers and body, and nothing else. */
export function expectDocumentedAnswer({ method = 'GET', status, headers, text }: GivenAnswer): void {
  const response = operation.responses[status];
  if (response === undefined) throw undocumented(`an answer with ${status}`, ['no such status'], text);
  const faults = faultsOfHeaders(response.headers ?? {}, headers);
  const schema = response.content?.['application/json']?.schema;
  if (schema !== undefined && method !== 'HEAD') {
    if (!String(headers['content-type']).startsWith('application/json')) faults.push('it is no JSON');
    else faults.push(...faultsOfText(schema, text), ...(status === 200 ? faultsOfOrder(text) : []));
  }
  const requestId = headers['x-request-id'];
  if (requestId !== undefined && status >= 400 && method !== 'HEAD' && !text.includes(`"${requestId}"`)) {
    faults.push('the error has another request id than the header');
  }
  if (faults.length > 0) throw undocumented(`an answer with ${status}`, faults, text);
}

/** Throws unless the document describes this webhook. */
export function expectDocumentedDelivery({ method, headers, text }: GivenDelivery): void {
  const type = String(headers['x-service-event']);
  const webhook = webhookOperations[type];
  if (webhook === undefined) throw undocumented(`a webhook of type ${type}`, ['no such type'], text);
  const faults = faultsOfHeaders(
    Object.fromEntries(webhook.parameters.map((parameter) => [parameter.name, parameter])),
    headers,
  );
  if (method !== 'POST') faults.push(`its method is ${method}`);
  if (headers['content-type'] !== 'application/json') faults.push(`it is ${headers['content-type']}`);
  const schema = webhook.requestBody?.content['application/json']?.schema ?? {};
  faults.push(...faultsOfText(schema, text));
  if (faults.length === 0) {
    const { id } = JSON.parse(text) as { id: string };
    if (headers['x-service-delivery'] !== id) faults.push('the id in its header is another one');
  }
  if (faults.length > 0) throw undocumented(`a webhook of type ${type}`, faults, text);
}

/** Returns how a JSON text violates a schema of the document; nothing if it fits. */
export function faultsOfText(schema: Schema, text: string): string[] {
  return faultsOf(schema, JSON.parse(text), JSON.parse(text, keepSource));
}

/** Returns how a value violates a schema of the document. Without a text, decimals are not checked. */
export function faultsOfValue(schema: Schema, value: unknown): string[] {
  return faultsOf(schema, value, undefined);
}

function faultsOf(schema: Schema, value: unknown, sources: unknown): string[] {
  const validate = compiled(schema);
  if (validate.call({ sources } satisfies Sources, value)) return [];
  return (validate.errors ?? []).map(
    ({ instancePath, message, params }) => `${instancePath}: ${message} ${JSON.stringify(params)}`,
  );
}

function compiled(schema: Schema): ValidateFunction {
  const key = JSON.stringify(schema);
  const validate = validators.get(key) ?? ajv.compile(strict(schema) as Schema);
  validators.set(key, validate);
  return validate;
}

function faultsOfHeaders(
  documented: Readonly<Record<string, Header>>,
  given: Readonly<Record<string, unknown>>,
): string[] {
  const faults: string[] = [];
  const names = Object.keys(documented).map((name) => name.toLowerCase());
  for (const name of Object.keys(given)) {
    const isKnown = names.includes(name) || TRANSPORT_HEADERS.includes(name);
    if (given[name] !== undefined && !isKnown) faults.push(`the header ${name} is not in the document`);
  }
  for (const [name, { required = false, schema }] of Object.entries(documented)) {
    const text = given[name.toLowerCase()];
    if (text === undefined && required) faults.push(`the header ${name} is missing`);
    if (text === undefined) continue;
    const value = schema.type === 'integer' ? Number(text) : text;
    faults.push(...faultsOfValue(schema, value).map((fault) => `the header ${name}${fault}`));
  }
  return faults;
}

function faultsOfOrder(text: string): string[] {
  const { data } = JSON.parse(text) as { data: readonly { created_at: string; id: number }[] };
  const isInOrder = data.every((one, index) => {
    const before = data[index - 1];
    if (before === undefined || before.created_at > one.created_at) return true;
    return before.created_at === one.created_at && before.id > one.id;
  });
  return isInOrder ? [] : ['data is not newest first'];
}

/** Forbids undocumented members. The document lets clients expect new ones, but the service adds none undocumented. */
function strict(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(strict);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.fromEntries(Object.entries(value).map(([name, member]) => [name, strict(member)]));
  const { $ref, type } = value as { $ref?: unknown; type?: unknown };
  if (typeof $ref === 'string') members.$ref = $ref.replace('#/components/schemas/', 'openapi#/$defs/');
  if (type !== 'object') return members;
  return { additionalProperties: false, ...members, ...('properties' in value && { membersInOrder: true }) };
}

function keepSource(_name: string, value: unknown, context?: { readonly source: string }): unknown {
  return typeof value === 'number' ? context?.source : value;
}

function at(value: unknown, path: string): unknown {
  const names = path.split('/').slice(1);
  return names.reduce((part, name) => (part as Readonly<Record<string, unknown>> | undefined)?.[name], value);
}

function undocumented(what: string, faults: readonly string[], text: string): Error {
  return new Error(
    `docs/openapi.yaml does not describe ${what}:\n${faults.join('\n')}\n${text.slice(0, 2_000)}`,
  );
}
