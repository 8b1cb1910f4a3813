import { hash } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { Writable } from 'node:stream';
import { pino } from 'pino';
import { Agent } from 'undici';
import { onTestFinished } from 'vitest';
import type { Log } from '../../../src/base/log.ts';
import type { AccountEvent, Environment } from '../../../src/domain/account-events.ts';
import { type ApiOptions, BASE_PATH, createApi } from '../../../src/pull/app.ts';
import { createCursors } from '../../../src/pull/cursor.ts';
import { createMemoryRateWindows } from '../../../src/pull/edge/rate-windows/memory.ts';
import { ServerConnections } from '../../../src/pull/server/connections.ts';
import { createServer, type ServerOptions } from '../../../src/pull/server/server.ts';
import { createPresigner } from '../../../src/records/presign.ts';
import type { ViewChange } from '../../../src/records/project-event.ts';
import { createMetrics } from '../../../src/service/ops/metrics.ts';
import { accessOf } from '../accounts/access-of.ts';
import { AccountModel } from '../accounts/account-model.ts';
import { makeCertificate, type TestCertificate } from '../certificate.ts';
import { type Answer, fetchAnswer } from '../fetch-answer.ts';
import { expectDocumentedAnswer } from '../openapi/validate.ts';
import { viewInMemory } from '../transactions/open-view.ts';

export const ACCOUNT = 7;
export const PREFIX = 'abcdefghij';
export const SECRET = 'S'.repeat(43);
export const KEY = `svc_test_${PREFIX}_${SECRET}`;
export const LIVE_KEY = `svc_live_${PREFIX}_${SECRET}`;
export const RANGE = 'from=2026-09-01T00:00:00Z&to=2026-09-30T00:00:00Z';
export const NOW = Date.parse('2026-09-15T12:00:00.500Z');

export interface TestApi {
  readonly address: AddressInfo;
  readonly accounts: AccountModel;
  readonly logLines: Record<string, unknown>[];
  /** Applies further events of the account. */
  apply(...events: readonly AccountEvent[]): void;
  /** Makes the account unreadable from now on. */
  spoil(): void;
  show(...changes: readonly ViewChange[]): Promise<void>;
  at(nowMs: number): void;
  /** Makes a request. Throws if a refusal is not as docs/openapi.yaml describes it. */
  get(pathOrQuery: string, options?: RequestOptions): Promise<Answer>;
  stop(graceMs?: number): Promise<void>;
}

interface RequestOptions {
  readonly method?: 'GET' | 'HEAD' | 'POST' | 'DELETE' | 'OPTIONS';
  /** The key to send; `null` for none. */
  readonly key?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The account of most tests: one key, integration on, a profile of September to October. */
export function accountEvents(environment: Environment = 'staging'): AccountEvent[] {
  const account = { account_id: ACCOUNT };
  return [
    { type: 'AccountOpened', data: { ...account, name: 'Seven' } },
    { type: 'IntegrationEnabled', data: account },
    {
      type: 'ChargingProfileSet',
      data: { ...account, profile: 'p', from: '2026-09-01T00:00:00Z', to: '2026-11-01T00:00:00Z' },
    },
    { type: 'CorporateGroupAdded', data: { ...account, corporate_group_id: 3, name: 'Depots' } },
    { type: 'CorporateGroupAdded', data: { ...account, corporate_group_id: 4, name: 'Yards' } },
    { type: 'CorporateAdded', data: { ...account, corporate_id: 31, name: 'North', corporate_group_id: 3 } },
    {
      type: 'CorporateAdded',
      data: { ...account, corporate_id: 51, name: 'Lone', corporate_group_id: null },
    },
    {
      type: 'KeyIssued',
      data: {
        ...account,
        prefix: PREFIX,
        environment,
        label: null,
        secret_sha256: hash('sha256', SECRET),
        allow_list: ['127.0.0.1', '203.0.113.0/24'],
        rate_limit: 60,
        driver_mobile: false,
      },
    },
  ];
}

let certificate: Promise<TestCertificate> | undefined;

/** Returns a self-signed certificate, made once for each test file. */
export function testCertificate(): Promise<TestCertificate> {
  certificate ??= makeCertificate();
  return certificate;
}

/** Starts the pull API on a real socket, with a view in a temporary folder and accounts folded from events. */
export async function startTestApi(
  overrides: Partial<ApiOptions> & {
    readonly events?: readonly AccountEvent[];
    readonly pem?: ServerOptions['pem'];
    readonly limits?: ServerOptions['limits'];
  } = {},
): Promise<TestApi> {
  const environment = overrides.environment ?? 'staging';
  const accounts = new AccountModel();
  let revision = 0;
  const apply = (decoded: Parameters<AccountModel['apply']>[0]['decoded']): void => {
    accounts.apply({ position: revision + 1, stream: `account-${ACCOUNT}`, revision: revision++, decoded });
  };
  const applyAll = (...events: readonly AccountEvent[]): void => {
    for (const event of events) apply({ ok: true, event, atMs: NOW });
  };
  applyAll(...(overrides.events ?? accountEvents(environment)));

  let nowMs = NOW;
  const clock = { now: () => nowMs };
  const view = viewInMemory(clock);
  const { generation } = await view.reset('store', 0);
  const logLines: Record<string, unknown>[] = [];
  const log = memoryLog(logLines);
  const connections = new ServerConnections();
  const handler = createApi({
    environment,
    connections,
    accounts: accessOf(accounts),
    availability: () => 'ready',
    edge: {
      kind: 'embedded',
      windows: { keys: createMemoryRateWindows(), unproven: createMemoryRateWindows({ maxIds: 10 }) },
    },
    proxies: [],
    tlsTerminated: false,
    log,
    view,
    presigner: testPresigner(),
    cursors: createCursors([Buffer.alloc(32, 1)]),
    clock,
    metrics: createMetrics(),
    requests: { add: () => undefined },
    ...overrides,
  });
  const { tlsTerminated = false, proxies = [], limits } = overrides;
  const pem = tlsTerminated ? undefined : (overrides.pem ?? (await testCertificate()));
  const server = createServer({ handler, pem, proxies, log, connections, ...(limits && { limits }) });
  const address = await server.listen({ host: '127.0.0.1', port: 0 });
  const agent = new Agent({ connect: { rejectUnauthorized: false } });
  let stopped: Promise<void> | undefined;
  const stop = (graceMs = 1_000): Promise<void> => {
    stopped ??= server.stop(graceMs);
    return stopped;
  };
  onTestFinished(async () => {
    await agent.destroy();
    await stop(0);
    await view.close();
  });
  const origin = `${pem === undefined ? 'http' : 'https'}://127.0.0.1:${address.port}`;
  return {
    address,
    accounts,
    logLines,
    apply: applyAll,
    spoil: () => apply({ ok: false, reason: 'unknown event type' }),
    async show(...changes) {
      await view.apply(changes, { generation, position: 1_000 });
    },
    at(ms) {
      nowMs = ms;
    },
    async get(pathOrQuery, { method = 'GET', key = KEY, headers } = {}) {
      const keyHeader: Record<string, string> = key === null ? {} : { 'x-api-key': key };
      const sent = { ...keyHeader, ...headers };
      const url = `${origin}${pathOf(pathOrQuery)}`;
      const answer = await fetchAnswer(url, { method, headers: sent, dispatcher: agent });
      if (answer.status >= 400) expectDocumentedAnswer({ ...answer, method }); // pages may have shortened records
      return answer;
    },
    stop,
  };
}

function pathOf(pathOrQuery: string): string {
  return pathOrQuery.startsWith('/') ? pathOrQuery : `${BASE_PATH}/transactions?${pathOrQuery}`;
}

function testPresigner() {
  return createPresigner({
    endpoint: 'https://photos.example.com',
    region: 'us-east-1',
    bucket: 'fuel-photos',
    accessKeyId: 'AKIAEXAMPLE',
    secretAccessKey: 'secret',
  });
}

export function memoryLog(lines: Record<string, unknown>[]): Log {
  const sink = new Writable({
    write(chunk, _, done) {
      lines.push(JSON.parse(String(chunk)));
      done();
    },
  });
  return pino({ level: 'debug' }, sink);
}
