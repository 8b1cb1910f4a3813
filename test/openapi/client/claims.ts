import type * as api from './client.ts';

/**
 * Code that customers can and can't write with the types of the generated client. A test compiles it with them, so that
 * a type which changes is noticed here; code that must not compile stands under `@ts-expect-error`.
 */
type Same<One, Other> =
  (<T>() => T extends One ? 1 : 2) extends <T>() => T extends Other ? 1 : 2 ? true : false;
const holds = <_Claim extends true>(): void => undefined;

holds<Same<api.Transaction['status'], 'CONFIRMED' | 'EXTERNAL'>>();
holds<Same<api.Transaction['confirmed_at'], string | null>>();
holds<Same<api.Transaction['correction_reference_id'], number | null>>();
holds<Same<api.Transaction['fuel_consumption'], number | null>>();
holds<Same<api.Transaction['station']['id'], number | null>>();
holds<Same<api.Transaction['vehicle']['department'], { id: number; name: string } | null>>();
holds<Same<api.Transaction['driver']['mobile_number'], string | undefined>>();
holds<Same<api.Pagination['next_cursor'], string | null>>();

/** The compiler names a code that is missing. */
export const cures: Record<api.ErrorCode, 'correct it' | 'wait' | 'ask the operator'> = {
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

type WebhookEvent = api.TransactionConfirmedEvent | api.TransactionExternalEvent | api.WebhookTestEvent;

/** A receiver tells the events apart by their type. */
export function received(event: WebhookEvent): api.Transaction | undefined {
  return event.type === 'webhook.test' ? undefined : event.data.transaction;
}

const range = { from: '2026-09-01T00:00:00Z', to: '2026-09-30T00:00:00Z' };
export const allowed: api.ListTransactionsQuery[] = [
  range,
  { ...range, status: ['CONFIRMED', 'EXTERNAL'], corporate_id: [31, 51], corporate_group_id: 3, limit: 100 },
];
export const refused: api.ListTransactionsQuery[] = [
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
export const email = (transaction: api.Transaction): string => transaction.driver.email;
// @ts-expect-error: it may be absent
export const mobile = (transaction: api.Transaction): string => transaction.driver.mobile_number;
