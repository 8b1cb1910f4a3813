import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../base/clock.ts';
import { silentLog } from '../../base/log.ts';
import { loadConfig, openEngines } from '../../engines/engines.ts';
import { startProcess } from '../../operator/serve/start-process.ts';
import { configuredPresigner } from '../../records/presign.ts';
import { startControlServer } from './control-server.ts';
import { createControls } from './controls.ts';
import { mockCommands, mockData } from './mock-data.ts';
import { createOperator } from './mock-operator.ts';
import { type Fault, failing } from './pull-faults.ts';

const HOST = '127.0.0.1';

export interface MockOptions {
  readonly seed: number;
  /** The end of the times of its transactions. */
  readonly toMs: number;
  /** The port of the API. The control listener has the next one, or any free port if this is 0. */
  readonly port: number;
}

export type Mock = Awaited<ReturnType<typeof startMock>>;

/**
 * Starts the service on generated data, in a temporary folder, and a control listener. It takes no settings from the environment.
 * Rejects with `REFUSED` if a port is taken. `failed` rejects when a part ends with an error; `stop` also removes the folder.
 */
export async function startMock({ seed, toMs, port }: MockOptions) {
  const parts = new AsyncDisposableStack();
  const stop = () => parts.disposeAsync();
  try {
    const folder = await mkdtemp(join(tmpdir(), 'fuel-mock-'));
    parts.defer(() => rm(folder, { recursive: true, force: true }));
    const listen = { FUEL_LISTEN: `${HOST}:${port}`, FUEL_OPS_LISTEN: `${HOST}:0` };
    const settings = { ...listen, FUEL_DATA_DIR: folder, FUEL_LOG_LEVEL: 'silent', FUEL_STOP_DELAY: '0s' };
    const config = loadConfig(settings, 'serve');
    const faults: Fault[] = [];
    const service = await startProcess({
      config,
      roles: ['api', 'projector'],
      log: silentLog,
      clock: systemClock,
      wrapApi: (listener) => failing(listener, faults),
    });
    parts.defer(() => service.stop());
    const engines = await openEngines(config, systemClock);
    parts.defer(() => engines.close());
    const data = mockData(seed, toMs);
    const operator = createOperator(engines, data.account.id);
    await operator.change(...mockCommands(data));
    await operator.record(data.events);
    const { apiUrl: baseUrl = '', failed } = service;
    const stopping = new AbortController();
    const presigner = configuredPresigner(config);
    const controls = createControls({ operator, data, presigner, faults, signal: stopping.signal });
    const control = await startControlServer(controls, port === 0 ? 0 : port + 1);
    parts.defer(() => control.stop());
    parts.defer(() => stopping.abort());
    return { data, baseUrl, caFile: join(folder, 'tls-cert.pem'), controlUrl: control.url, failed, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
