import { steadyClock } from '../../base/clock.ts';
import type { ProxyAddress } from '../../base/config/values.ts';
import { FuelError, isUnavailable } from '../../base/errors.ts';
import { silentLog } from '../../base/log.ts';
import { verifyMailServer } from '../../push/notices/mailer.ts';
import { EgressProxy } from '../../push/sender/egress-proxy.ts';
import { createNameLookup } from '../../push/sender/name-lookup.ts';
import { resolveName } from '../../push/targets/resolve-name.ts';
import type { Server, ServerKind } from '../../service/engines/engines.ts';
import { type Finding, right, wrong } from './check.ts';

type Engine = ServerKind & Server;

/** Checks that the engine answers, and that its version is not too old. */
export async function checkEngine({ ping, describe, ...kind }: Engine): Promise<Finding> {
  const { title, setting, oldestVersion: oldest } = kind;
  const pinged = await answerOf(ping);
  if (pinged instanceof FuelError)
    return wrong(pinged.message, pinged.remedy ?? `start ${title}, or correct ${setting}`);
  const found = await answerOf(describe);
  if (found instanceof FuelError)
    return right(`${title} answers, but does not tell its version: ${found.message}`);
  const [major = 0, minor = 0] = found.version.split('.').map(Number);
  const [oldestMajor, oldestMinor] = oldest;
  const isOld = major < oldestMajor || (major === oldestMajor && minor < oldestMinor);
  const detail = `${found.name ?? title} ${found.version} answers`;
  return isOld ? wrong(detail, `update it to ${oldest.join('.')} or newer`) : right(detail);
}

/** Returns the answer, or why there is none. */
async function answerOf<T>(ask: () => Promise<T>): Promise<T | FuelError> {
  try {
    return await ask();
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    return error as FuelError;
  }
}

/** Checks that the mail server accepts a connection with the given credentials. */
export async function checkMail(url: string | undefined): Promise<Finding> {
  if (url === undefined)
    return right('FUEL_SMTP_URL is not set: nobody is mailed, and the log names each notice');
  const { host } = new URL(url);
  try {
    await verifyMailServer(url);
    return right(`${host} accepts mail`);
  } catch (error) {
    return wrong(`${host}: ${(error as Error).message}`, 'start the mail server, or correct FUEL_SMTP_URL');
  }
}

/** Checks that the proxy for webhooks can be reached and accepts the given credentials. */
export async function checkProxy(address: ProxyAddress): Promise<Finding> {
  const names = createNameLookup({ resolve: resolveName });
  const proxy = new EgressProxy({ ...address, names, steady: steadyClock, log: silentLog });
  try {
    await proxy.check();
    return right(`${proxy.name} takes connections for webhooks`);
  } catch (error) {
    return wrong((error as Error).message, 'start the proxy, or correct FUEL_WEBHOOK_PROXY');
  }
}
