import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import type { AccountCommand } from '../../domain/account-commands.ts';
import { loadConfig, openEngines } from '../../engines/engines.ts';
import { startProcess } from '../../operator/serve/start-process.ts';
import { configuredPresigner } from '../../pull/images/presign.ts';
import { openingCommands } from '../sample/sample-directory.ts';
import { startControlServer } from './control-server.ts';
import { createControls } from './controls.ts';
import { type MockData, mockData } from './mock-data.ts';
import { MockOperator } from './mock-operator.ts';

const HOST = '127.0.0.1';
const RATE_LIMIT = 60; // as for a key that is issued without --rate-limit

export interface MockOptions {
  readonly seed: number;
  /** The end of the times of its transactions. */
  readonly toMs: number;
  /** The port of the API. The control listener has the next one, or any free port if this is 0. */
  readonly port: number;
}

export interface Mock {
  readonly data: MockData;
  readonly baseUrl: string;
  /** The PEM file of the API's certificate. */
  readonly caFile: string;
  /** The listener that takes requests for webhooks and voids. */
  readonly controlUrl: string;
  /** Rejects when a part of the mock ends with an error. */
  readonly failed: Promise<never>;
  /** Ends the mock and removes its folder. */
  stop(): Promise<void>;
}

/**
 * Starts the service on generated data, in a temporary folder, and a control listener. It takes no settings from the environment.
 * Rejects with `REFUSED` if a port is taken.
 */
export async function startMock({ seed, toMs, port }: MockOptions): Promise<Mock> {
  const parts = new AsyncDisposableStack();
  const stop = () => parts.disposeAsync();
  try {
    const folder = await mkdtemp(join(tmpdir(), 'fuel-mock-'));
    parts.defer(() => rm(folder, { recursive: true, force: true }));
    const settings = {
      FUEL_DATA_DIR: folder,
      FUEL_LISTEN: `${HOST}:${port}`,
      FUEL_OPS_LISTEN: `${HOST}:0`,
      FUEL_STOP_DELAY: '0s',
      FUEL_LOG_LEVEL: 'silent',
    };
    const config = loadConfig(settings, 'serve');
    const service = await startProcess({
      ...{ config, roles: ['api', 'projector'], log: silentLog, clock: systemClock },
    });
    parts.defer(() => service.stop());
    const engines = await openEngines(config, systemClock);
    parts.defer(() => engines.close());
    const data = mockData(seed, toMs);
    const operator = new MockOperator(engines, data.account.id);
    await operator.change(...openingCommands(data.account, 0), keyOf(data));
    await operator.record(data.events);
    const { apiUrl: baseUrl = '', failed } = service;
    const stopping = new AbortController();
    const presigner = configuredPresigner(config);
    const controls = createControls({ operator, data, presigner, signal: stopping.signal });
    const control = await startControlServer(controls, port === 0 ? 0 : port + 1);
    parts.defer(() => control.stop());
    parts.defer(() => stopping.abort());
    return { data, baseUrl, caFile: join(folder, 'tls-cert.pem'), controlUrl: control.url, failed, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function keyOf({ account, prefix, secretSha256 }: MockData): AccountCommand {
  const key = { accountId: account.id, prefix, secretSha256, label: 'mock', rateLimit: RATE_LIMIT };
  return { type: 'IssueKey', ...key, environment: 'staging', allowList: [], driverMobile: true };
}
