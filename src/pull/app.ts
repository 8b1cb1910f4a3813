import type { RequestListener } from 'node:http';
import Koa from 'koa';
import type { AccessDirectory } from '../accounts/caller.ts';
import type { Environment } from '../domain/account-events.ts';
import {
  type EdgeOptions,
  embeddedEdge,
  externalEdge,
  identify,
  requireAvailability,
  requireForwardedHttps,
  requireHost,
} from './admission.ts';
import { type RequestState, refuse, type Step } from './answers.ts';
import { keepProvenConnections } from './proven-connections.ts';
import { type RequestLogOptions, requestLog } from './request-log.ts';
import { listTransactions, type TransactionsOptions } from './transactions.ts';

export const BASE_PATH = '/api/v1/integration';

export interface ApiOptions extends TransactionsOptions, RequestLogOptions {
  readonly environment: Environment;
  readonly directory: AccessDirectory;
  /** `ready` while the directory has caught up and is fresh enough to judge access. */
  readonly availability: () => 'ready' | 'unavailable';
  readonly edge: EdgeOptions;
  /** A trusted proxy in front ends TLS, and says so on each request. */
  readonly tlsTerminated: boolean;
  /** Another time, for tests. */
  readonly unprovenIdleMs?: number;
}

/** The pull API as a request listener. The order of its steps is the order of acceptance. */
export function createApi(options: ApiOptions): RequestListener {
  const { log, edge } = options;
  const app = new Koa<RequestState>();
  // Errors of a request are answered and logged by its steps; what arrives here is a broken connection.
  app.on('error', (error: unknown) => log.info({ err: error }, 'the connection ended before the answer did'));
  app.use(keepProvenConnections(options));
  app.use(requestLog(options));
  app.use(requireHost);
  app.use(identify(options));
  // The gateway's token is checked before anything else; checks 1 and 2 need an up-to-date directory.
  if (edge.kind === 'external') app.use(externalEdge(edge.tokens, options));
  app.use(requireAvailability(options.availability));
  if (options.tlsTerminated) app.use(requireForwardedHttps);
  if (edge.kind === 'embedded') app.use(embeddedEdge(edge.windows));
  app.use(route);
  app.use(listTransactions(options));
  const handle = app.callback();
  return (request, response) => void handle(request, response);
}

/** There is one endpoint, read with GET; HEAD is another method. */
const route: Step = async (ctx, next) => {
  if (ctx.state.path !== `${BASE_PATH}/transactions`) return refuse(ctx, { code: 'NOT_FOUND' });
  if (ctx.method !== 'GET') return refuse(ctx, { code: 'METHOD_NOT_ALLOWED' });
  await next();
};
