import type { RequestListener } from 'node:http';
import Koa from 'koa';
import type { AccessRows } from '../accounts/caller.ts';
import type { Environment } from '../domain/account-events.ts';
import {
  type EdgeOptions,
  embeddedEdge,
  externalEdge,
  identify,
  present,
  requireAvailability,
  requireForwardedHttps,
  requireHost,
  takeTurns,
} from './admission.ts';
import { type RequestState, refuse, type Step } from './answers.ts';

import { keepProvenConnections, type ProvenConnections } from './proven-connections.ts';
import { type RequestLogOptions, requestLog } from './request-log.ts';
import { listTransactions, type TransactionsOptions } from './transactions.ts';

export const BASE_PATH = '/api/v1/integration';

export interface ApiOptions extends TransactionsOptions, RequestLogOptions {
  readonly environment: Environment;
  readonly accounts: AccessRows;
  /** `ready` while the rows of accounts are fresh enough to judge access. */
  readonly availability: () => 'ready' | 'unavailable';
  readonly edge: EdgeOptions;
  /** True if a trusted proxy in front ends TLS and says so in each request. */
  readonly tlsTerminated: boolean;
  /** The connections on which the requests arrive. */
  readonly connections: ProvenConnections;
  /** A different time limit, for tests. */
  readonly unprovenIdleMs?: number;
}

/** Creates the pull API as a request listener. Its steps are in the order of the checks. */
export function createApi(options: ApiOptions): RequestListener {
  const { log, edge } = options;
  const app = new Koa<RequestState>();
  // The steps answer and log the errors of a request. What arrives here is a broken connection.
  app.on('error', (error: unknown) => log.info({ err: error }, 'the connection ended before the answer did'));
  app.use(keepProvenConnections(options));
  app.use(requestLog(options));
  app.use(requireHost);
  app.use(present);
  // The gateway's token is checked before anything else. Checks 1 and 2 need up-to-date rows of accounts.
  if (edge.kind === 'external') app.use(externalEdge(edge.tokens, options));
  app.use(requireAvailability(options.availability));
  if (options.tlsTerminated) app.use(requireForwardedHttps);
  app.use(identify(options));
  app.use(takeTurns());
  if (edge.kind === 'embedded') app.use(embeddedEdge(edge.windows));
  app.use(route);
  app.use(listTransactions(options));
  const handle = app.callback();
  return (request, response) => void handle(request, response);
}

/** Accepts only the one endpoint and only GET. HEAD is a different method. */
const route: Step = async (ctx, next) => {
  // CONNECT names a host instead of a path.
  if (ctx.method === 'CONNECT') return refuse(ctx, { code: 'METHOD_NOT_ALLOWED' });
  if (ctx.state.path !== `${BASE_PATH}/transactions`) return refuse(ctx, { code: 'NOT_FOUND' });
  if (ctx.method !== 'GET') return refuse(ctx, { code: 'METHOD_NOT_ALLOWED' });
  await next();
};
