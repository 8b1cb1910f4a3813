import { STATUS_CODES } from 'node:http';
import type { Middleware, ParameterizedContext } from 'koa';
import type { Caller } from '../accounts/caller.ts';
import { systemClock } from '../base/clock.ts';
import type { IpAddress } from '../base/config/ip-address.ts';
import { errorKind } from '../base/errors.ts';
import type { ListQuery } from './parameters.ts';

/** Every refusal that a client can get. This is the only place where errors have HTTP statuses. */
export const refusals = {
  VALIDATION_FAILED: { status: 400, message: 'One or more parameters are not valid; see fields.' },
  BAD_REQUEST: { status: 400, message: 'The request is not valid HTTP.' },
  HTTPS_REQUIRED: { status: 400, message: 'Only HTTPS is served.' },
  INVALID_API_KEY: { status: 401, message: 'The API key is missing, unknown or switched off.' },
  IP_NOT_ALLOWED: { status: 403, edge: true },
  API_INTEGRATION_NOT_ENABLED: { status: 403, message: 'The API integration is off for this account.' },
  NO_ACTIVE_CHARGING_PROFILE: { status: 403, message: 'The account has no active charging profile.' },
  EDGE_NOT_ENFORCED: { status: 403, message: 'The service is set up wrongly; please tell its operator.' },
  NOT_FOUND: { status: 404, message: 'There is nothing at this path.' },
  CORPORATE_NOT_FOUND: {
    status: 404,
    message: 'A corporate is not part of the account or of the given group.',
  },
  CORPORATE_GROUP_NOT_FOUND: { status: 404, message: 'The corporate group is not part of the account.' },
  METHOD_NOT_ALLOWED: { status: 405, message: 'This path can only be read with GET.' },
  REQUEST_TIMEOUT: { status: 408, message: 'The request did not arrive in time.' },
  RATE_LIMITED: { status: 429, edge: true },
  HEADERS_TOO_LARGE: { status: 431, message: 'The request line and headers are too long.' },
  INTERNAL_ERROR: { status: 500, message: 'Something went wrong here. Please try again later.' },
  SERVICE_UNAVAILABLE: { status: 503, message: 'The service is not available now. Please try again later.' },
} as const satisfies Record<string, { status: number; message: string } | { status: number; edge: true }>;

export type RefusalCode = keyof typeof refusals;

export interface Refusal {
  readonly code: RefusalCode;
  /** The problem with each parameter, for `VALIDATION_FAILED`. */
  readonly fields?: Readonly<Record<string, string>>;
  /** The wait for `RATE_LIMITED`. `SERVICE_UNAVAILABLE` has a default. */
  readonly retryAfterSeconds?: number;
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer;
}

const UNAVAILABLE_RETRY_AFTER_SECONDS = 5;

/** The answer with a page. `body` is JSON. */
export function goodAnswer(body: Buffer, requestId: string): Answer {
  return { status: 200, headers: { ...commonHeaders, 'X-Request-Id': requestId }, body };
}

/** The answer for a refusal. Refusals of the edge contain only their code, without message and request id. */
export function refusalAnswer(refusal: Refusal, requestId: string): Answer {
  const terms = refusals[refusal.code];
  const headers: Record<string, string> = { ...commonHeaders };
  const retryAfter =
    refusal.retryAfterSeconds ??
    (refusal.code === 'SERVICE_UNAVAILABLE' ? UNAVAILABLE_RETRY_AFTER_SECONDS : undefined);
  if (retryAfter !== undefined) headers['Retry-After'] = String(retryAfter);
  if (refusal.code === 'METHOD_NOT_ALLOWED') headers.Allow = 'GET';
  const error: Record<string, unknown> = { code: refusal.code };
  if (!('edge' in terms)) {
    headers['X-Request-Id'] = requestId;
    error.message = terms.message;
    error.request_id = requestId;
  }
  if (refusal.fields !== undefined) error.fields = refusal.fields;
  return { status: terms.status, headers, body: JSON.stringify({ error }) };
}

/** The refusal for an error: 503 if a store is unavailable or closing, otherwise 500. */
export function refusalOf(error: unknown): Refusal {
  const kind = errorKind(error);
  return { code: kind === 'unavailable' || kind === 'closed' ? 'SERVICE_UNAVAILABLE' : 'INTERNAL_ERROR' };
}

/** An answer as HTTP/1.1 text, for a connection whose request could not be parsed; the connection ends with it. */
export function rawAnswer(answer: Answer): string {
  const headers = {
    ...answer.headers,
    Connection: 'close',
    Date: new Date(systemClock.now()).toUTCString(),
    'Content-Length': String(Buffer.byteLength(answer.body)),
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status]}\r\n${lines.join('')}\r\n${answer.body}`;
}

const commonHeaders = {
  'Content-Type': 'application/json; charset=utf-8',
  'Cache-Control': 'no-store',
} as const;

/** A step of a request, in milliseconds of the steady clock. */
export interface TracedStep {
  readonly name: string;
  readonly startMs: number;
  readonly endMs: number;
}

/** The facts about a request, filled in step by step. */
export interface RequestState {
  requestId: string;
  path: string;
  /** The text after `?`. */
  rawQuery: string;
  caller?: Caller;
  /** The address that it comes from. */
  address?: IpAddress | undefined;
  /** Called when check 3 is passed. */
  keyAccepted?: () => void;
  code?: RefusalCode;
  rows?: number;
  /** The steps that were measured, while spans are exported. */
  steps?: readonly TracedStep[];
  /** The query, once it has been read. */
  query?: ListQuery;
}

export type Context = ParameterizedContext<RequestState>;
export type Step = Middleware<RequestState>;

export function answer(ctx: Context, given: Answer): void {
  ctx.status = given.status;
  ctx.set(given.headers);
  ctx.body = given.body;
}

export function refuse(ctx: Context, refusal: Refusal): void {
  ctx.state.code = refusal.code;
  answer(ctx, refusalAnswer(refusal, ctx.state.requestId));
}
