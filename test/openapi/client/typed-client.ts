import type { components, operations, webhooks } from './api-types.ts';

/**
 * A small client on the types that are made of docs/openapi.yaml. A test compiles it beside them, so that a type which
 * changes is noticed here; what a client must not be able to write stands under `@ts-expect-error`.
 */

export type Transaction = components['schemas']['Transaction'];
type Query = operations['listTransactions']['parameters']['query'];
type Responses = operations['listTransactions']['responses'];
type Page = Responses[200]['content']['application/json'];
type Refusal = components['schemas']['ErrorResponse'];
type BodyOf<Type extends keyof webhooks> =
  webhooks[Type]['post']['requestBody']['content']['application/json'];
type WebhookEvent = BodyOf<'transaction.confirmed' | 'transaction.external' | 'webhook.test'>;

export type Answer =
  | { readonly ok: true; readonly page: Page }
  | { readonly ok: false; readonly error: Refusal };
export type Send = (query: string) => Promise<Answer>;

/** Every transaction of a range, page by page. */
export async function listAll(send: Send, query: Omit<Query, 'cursor'>): Promise<Transaction[]> {
  const found: Transaction[] = [];
  let cursor: string | null = null;
  do {
    const answer: Answer = await send(textOf(cursor === null ? query : { ...query, cursor }));
    if (!answer.ok) throw new Error(explain(answer.error));
    found.push(...answer.page.data);
    cursor = answer.page.pagination.next_cursor;
  } while (cursor !== null);
  return found;
}

function textOf(query: Query): string {
  return Object.entries(query)
    .map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`)
    .join('&');
}

/** What to do about each code; the compiler names one that is missing. */
function explain({ error }: Refusal): string {
  const cures: Record<typeof error.code, 'correct it' | 'wait' | 'ask the operator'> = {
    VALIDATION_FAILED: 'correct it',
    BAD_REQUEST: 'correct it',
    HTTPS_REQUIRED: 'ask the operator',
    INVALID_API_KEY: 'ask the operator',
    IP_NOT_ALLOWED: 'ask the operator',
    API_INTEGRATION_NOT_ENABLED: 'ask the operator',
    NO_ACTIVE_CHARGING_PROFILE: 'ask the operator',
    EDGE_NOT_ENFORCED: 'ask the operator',
    NOT_FOUND: 'correct it',
    CORPORATE_NOT_FOUND: 'correct it',
    CORPORATE_GROUP_NOT_FOUND: 'correct it',
    METHOD_NOT_ALLOWED: 'correct it',
    REQUEST_TIMEOUT: 'wait',
    RATE_LIMITED: 'wait',
    HEADERS_TOO_LARGE: 'correct it',
    INTERNAL_ERROR: 'wait',
    SERVICE_UNAVAILABLE: 'wait',
  };
  const fields = Object.entries(error.fields ?? {}).map(([name, problem]) => `${name} ${problem}`);
  return [error.code, cures[error.code], ...fields].join('; ');
}

/** What a receiver stores of an event; `undefined` of a test. */
export function received(event: WebhookEvent): Transaction | undefined {
  switch (event.type) {
    case 'transaction.confirmed':
    case 'transaction.external':
      return event.data.transaction;
    case 'webhook.test':
      return undefined;
    default:
      return event satisfies never;
  }
}

type Same<One, Other> =
  (<T>() => T extends One ? 1 : 2) extends <T>() => T extends Other ? 1 : 2 ? true : false;
const holds = <_Claim extends true>(): void => undefined;

holds<Same<Transaction['status'], 'CONFIRMED' | 'EXTERNAL'>>();
holds<Same<Transaction['confirmed_at'], string | null>>();
holds<Same<Transaction['correction_reference_id'], number | null>>();
holds<Same<Transaction['fuel_consumption'], number | null>>();
holds<Same<Transaction['station']['id'], number | null>>();
holds<Same<Transaction['vehicle']['department'], { id: number; name: string } | null>>();
holds<Same<Transaction['driver']['mobile_number'], string | undefined>>();
holds<Same<Page['pagination']['next_cursor'], string | null>>();
holds<Same<keyof Responses, 200 | 400 | 401 | 403 | 404 | 405 | 408 | 429 | 431 | 500 | 503>>();
holds<Same<Responses[429]['headers']['Retry-After'], number>>();
holds<Same<keyof webhooks, WebhookEvent['type']>>();
holds<Same<webhooks['webhook.test']['post']['parameters']['header']['X-Service-Signature'], string>>();

const range = { from: '2026-09-01T00:00:00Z', to: '2026-09-30T00:00:00Z' };
export const allowed: Query[] = [
  range,
  { ...range, status: ['CONFIRMED', 'EXTERNAL'], corporate_id: [31, 51], corporate_group_id: 3, limit: 100 },
];
export const refused: Query[] = [
  // @ts-expect-error: `to` is required
  { from: range.from },
  // @ts-expect-error: no such status
  { ...range, status: ['VOID'] },
  // @ts-expect-error: a number
  { ...range, limit: '100' },
  // @ts-expect-error: no such parameter
  { ...range, page: 2 },
];
// @ts-expect-error: an e-mail address is never returned
export const email = (transaction: Transaction): string => transaction.driver.email;
// @ts-expect-error: it may be absent
export const mobile = (transaction: Transaction): string => transaction.driver.mobile_number;
