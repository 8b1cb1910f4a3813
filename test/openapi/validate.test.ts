import { describe, expect, it } from 'vitest';
import { type Examples, operation, webhookOperations } from '../support/openapi/document.ts';
import {
  expectDocumentedAnswer,
  expectDocumentedDelivery,
  faultsOfValue,
} from '../support/openapi/validate.ts';

const ID = 'e6807ae2-bf19-4b92-a39c-220056b0eab7';
const HEADERS = {
  'content-type': 'application/json; charset=utf-8',
  'cache-control': 'no-store',
  'x-request-id': ID,
};
const PAGE = pageText();

const fault =
  (status: number, text: string, headers: Readonly<Record<string, string>> = HEADERS) =>
  () =>
    expectDocumentedAnswer({ status, headers, text });

describe('an answer passes the document', () => {
  it('as the examples show it', () => {
    for (const [status, response] of Object.entries(operation.responses)) {
      for (const { schema, example } of examplesOf(response.content ?? {})) {
        expect([status, faultsOfValue(schema, example)]).toEqual([status, []]);
      }
    }
    for (const [type, { requestBody }] of Object.entries(webhookOperations)) {
      const examples = examplesOf(requestBody?.content ?? {});
      expect([type, examples.length]).toEqual([type, 1]);
      for (const { schema, example } of examples) expect(faultsOfValue(schema, example)).toEqual([]);
    }
  });

  it('and a whole page does, text and headers', () => {
    expect(fault(200, PAGE)).not.toThrow();
  });

  it.each([
    ['"liters":45.20', '"liters":45.2'],
    ['"liters":45.20', '"liters":45.200'],
    ['"liters":45.20', '"liters":-0.00'],
    ['"liters":45.20', '"liters":"45.20"'],
    ['"total_amount":100.270000', '"total_amount":100.27'],
    ['"status":"CONFIRMED"', '"status":"PENDING"'],
    ['"status":"CONFIRMED"', '"status":"EXTERNAL"'],
    ['"id":501,', ''],
    ['"id":501,', '"id":501,"account":7,'],
    ['"id":501,', '"id":501.5,'],
    ['"confirmed_at":"2026-09-03T08:16:02.000Z"', '"confirmed_at":"2026-09-03T08:16:02Z"'],
    ['"corporate_group":{"id":3,"name":"Depots"},', ''],
    ['{"id":3,"name":"Depots"}', '{"name":"Depots","id":3}'],
    ['"mobile_number":"+15550100"', '"mobile_number":null'],
    ['"has_more":false', '"has_more":true'],
    ['"expires_at":"2026-09-04T07:30:00.000Z"', '"expires_at":null'],
  ])('but not with %s as %s', (one, other) => {
    expect(PAGE).toContain(one);
    expect(fault(200, PAGE.replace(one, other))).toThrow('does not describe');
  });

  it('but not with records in another order', () => {
    const [record = ''] = /\{"id":501.*?"expires_at":"[^"]*"\}\}/.exec(PAGE) ?? [];
    const twice = (second: string) => PAGE.replace(record, `${record},${second}`);
    expect(fault(200, twice(record.replace('501', '500')))).not.toThrow();
    expect(fault(200, twice(record.replace('501', '502')))).toThrow('newest first');
  });

  it('but not with headers that are missing, unknown or wrong', () => {
    const { 'x-request-id': _, ...without } = HEADERS;
    expect(fault(200, PAGE, without)).toThrow('X-Request-Id is missing');
    expect(fault(200, PAGE, { ...HEADERS, 'x-powered-by': 'x' })).toThrow('x-powered-by');
    expect(fault(200, PAGE, { ...HEADERS, 'cache-control': 'private' })).toThrow('Cache-Control');
    expect(fault(200, PAGE, { ...HEADERS, 'x-access-expires-at': 'soon' })).toThrow('X-Access-Expires-At');
  });

  it('as a refusal: each code under its status, with what belongs to it', () => {
    const error = (code: string, more: object = { message: 'm', request_id: ID }) =>
      JSON.stringify({ error: { code, ...more } });
    expect(fault(401, error('INVALID_API_KEY'))).not.toThrow();
    expect(fault(403, error('INVALID_API_KEY'))).toThrow();
    expect(fault(401, error('INVALID_API_KEY', {}))).toThrow();
    expect(
      fault(401, error('INVALID_API_KEY', { message: 'm', request_id: ID, fields: { a: 'b' } })),
    ).toThrow();
    expect(fault(400, error('VALIDATION_FAILED'))).toThrow();
    expect(fault(403, error('IP_NOT_ALLOWED'))).toThrow();
    expect(fault(403, error('IP_NOT_ALLOWED', {}), { ...HEADERS, 'x-request-id': ID })).toThrow();
    expect(fault(418, error('TEAPOT'))).toThrow('no such status');
  });
});

describe('a delivery passes the document', () => {
  const { requestBody } = webhookOperations['webhook.test'] ?? {};
  const [{ example } = { example: {} }] = examplesOf(requestBody?.content ?? {});
  const headers = {
    'content-type': 'application/json',
    'user-agent': 'svc-webhooks/2026-09-01',
    'x-service-event': 'webhook.test',
    'x-service-delivery': String((example as { id?: string }).id),
    'x-service-signature': `t=1788423362,v1=${'0a'.repeat(32)}`,
    'webhook-id': String((example as { id?: string }).id),
    'webhook-timestamp': '1788423362',
    'webhook-signature': `v1,${'A'.repeat(43)}=`,
  };
  const text = JSON.stringify(example);

  it('as it is sent', () => {
    expect(() => expectDocumentedDelivery({ method: 'POST', headers, text })).not.toThrow();
  });

  it.each([
    ['another method', { method: 'PUT' }],
    ['another type', { headers: { ...headers, 'x-service-event': 'transaction.voided' } }],
    ['a type that is not the body’s', { headers: { ...headers, 'x-service-event': 'transaction.external' } }],
    ['an id that is not the body’s', { headers: { ...headers, 'x-service-delivery': ID } }],
    [
      'a signature in capitals',
      { headers: { ...headers, 'x-service-signature': `t=1,v1=${'0A'.repeat(32)}` } },
    ],
    ['an unknown header', { headers: { ...headers, 'x-retry': '1' } }],
    ['another version', { text: text.replace('"2026-09-01"', '"2026-10-01"') }],
    ['an unknown member', { text: text.replace('"data":{}', '"data":{"a":1}') }],
  ])('but not with %s', (_name, changed) => {
    expect(() => expectDocumentedDelivery({ method: 'POST', headers, text, ...changed })).toThrow();
  });
});

type Content = Readonly<Record<string, { readonly schema: Readonly<Record<string, unknown>> } & Examples>>;

function examplesOf(content: Content) {
  return Object.values(content).flatMap(({ schema, example, examples = {} }) => [
    ...(example === undefined ? [] : [{ schema, example }]),
    ...Object.values(examples).map(({ value }) => ({ schema, example: value })),
  ]);
}

/** Returns the example of a page as the service would print it. */
function pageText(): string {
  const [page] = examplesOf(operation.responses[200]?.content ?? {});
  const decimals: Readonly<Record<string, number>> = {
    liters: 2,
    price_per_liter: 2,
    amount: 2,
    fuel_consumption: 2,
    total_fees: 2,
    total_vat: 2,
    total_amount: 6,
  };
  return JSON.stringify(page?.example).replace(/"(\w+)":(-?[\d.]+)/g, (text, name: string, number: string) =>
    decimals[name] === undefined ? text : `"${name}":${Number(number).toFixed(decimals[name])}`,
  );
}
