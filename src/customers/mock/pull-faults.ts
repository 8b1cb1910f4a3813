import { randomUUID } from 'node:crypto';
import type { RequestListener, ServerResponse } from 'node:http';
import { type Refusal, refusalAnswer } from '../../pull/answers.ts';

const BAD_GATEWAY = 502;
const HTML = { 'Content-Type': 'text/html' };

/** How a pull request can fail. Refusals are answered as the API does. */
export const FAULTS = {
  500: refuse({ code: 'INTERNAL_ERROR' }),
  503: refuse({ code: 'SERVICE_UNAVAILABLE' }),
  408: refuse({ code: 'REQUEST_TIMEOUT' }),
  429: refuse({ code: 'RATE_LIMITED', retryAfterSeconds: 2 }),
  IP_NOT_ALLOWED: refuse({ code: 'IP_NOT_ALLOWED' }),
  NO_ACTIVE_CHARGING_PROFILE: refuse({ code: 'NO_ACTIVE_CHARGING_PROFILE' }),
  reset: (response: ServerResponse) => response.destroy(),
  /** The page ends within its last record. */
  cut(response: ServerResponse, answer: () => void) {
    const end = (page: string | Buffer) => {
      const text = `${page}`;
      response.write(text.slice(0, text.lastIndexOf('"status":')), () => response.destroy());
    };
    Object.assign(response, { end });
    answer();
  },
  html: (response: ServerResponse) =>
    response.writeHead(BAD_GATEWAY, HTML).end('<html><h1>502 Bad Gateway</h1></html>\n'),
} as const;

export type Fault = keyof typeof FAULTS;

function refuse(refusal: Refusal) {
  return (response: ServerResponse) => {
    const { status, headers, body } = refusalAnswer(refusal, randomUUID());
    response.writeHead(status, { ...headers, 'Content-Length': Buffer.byteLength(body) }).end(body);
  };
}

/** Returns a listener that answers the next requests with these faults, one each, and passes the others on. */
export function failing(listener: RequestListener, faults: Fault[]): RequestListener {
  return (request, response) => {
    const fault = faults.shift();
    const answer = () => listener(request, response);
    if (fault === undefined) answer();
    else FAULTS[fault](response, answer);
  };
}
