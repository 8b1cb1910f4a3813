import { systemClock } from '../../src/base/clock.ts';
import type { Config } from '../../src/base/config/config.ts';
import { ROLES } from '../../src/base/config/settings.ts';
import { createLog } from '../../src/base/log.ts';
import { startProcess } from '../../src/operator/serve/start-process.ts';
import type { Service } from '../../src/service/service.ts';
import { untilReady } from './serve.ts';

/** Starts all roles of the service in this process and waits until they are ready. */
export async function startServiceHere(config: Config): Promise<Service> {
  const log = createLog(config.FUEL_LOG_LEVEL);
  const service = await startProcess({ config, roles: ROLES, log, clock: systemClock });
  await untilReady(service.opsUrl);
  return service;
}
