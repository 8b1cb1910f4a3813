import { FuelError, isUnavailable } from '../../base/errors.ts';
import { verifyMailServer } from '../../push/notices/mailer.ts';
import { createPresigner, type PhotoStore } from '../../records/presign.ts';
import type { Server, ServerKind } from '../../service/engines/engines.ts';
import { type Finding, right, wrong } from './check.ts';
import type { Facts } from './facts.ts';

type Engine = ServerKind & Server;

/** Less than doctor's limit, so that the check itself names a photo store that does not answer. */
const ANSWER_MS = 5_000;
const VALID_SECONDS = 60;
/** This object need not exist. */
const OBJECT = 'fuel-doctor';

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

/**
 * Checks that the photo store accepts a signature, by one HEAD request. The service never connects to it, only customers'
 * browsers do. `undefined` stands for the sample store.
 */
export async function checkPhotos(store: PhotoStore | undefined, nowMs: number): Promise<Finding> {
  if (store === undefined)
    return right('FUEL_IMAGES_* are not set: photo links lead to a sample store, which is not asked');
  const { presign } = createPresigner(store, 'HEAD').at(nowMs, VALID_SECONDS);
  const place = `${store.endpoint}, bucket ${store.bucket}`;
  const signal = AbortSignal.timeout(ANSWER_MS);
  try {
    const { status } = await fetch(presign(OBJECT), { method: 'HEAD', redirect: 'manual', signal });
    return photosFinding(place, status);
  } catch (error) {
    const { message, cause } = error as Error;
    const why = cause instanceof Error ? cause.message : message;
    return right(
      `${place}: not checked, because this machine cannot reach it; customers' browsers must (${why})`,
    );
  }
}

function photosFinding(place: string, status: number): Finding {
  if (status === 200 || status === 404) return right(`${place}: accepts the signature (${status})`);
  if (status === 401 || status === 403) {
    return wrong(
      `${place}: refuses the signature (${status}), or its key may not list the bucket`,
      'compare FUEL_IMAGES_ACCESS_KEY_ID, FUEL_IMAGES_SECRET_ACCESS_KEY and FUEL_IMAGES_BUCKET with the store, and ' +
        'let the key list the bucket and read its objects',
    );
  }
  return wrong(
    `${place}: answers with ${status}`,
    'compare FUEL_IMAGES_ENDPOINT, FUEL_IMAGES_REGION and FUEL_IMAGES_BUCKET with the store',
  );
}

type EngineWithClock = Pick<ServerKind & Server, 'title' | 'clockStepMs' | 'describe'>;

/**
 * Receivers reject a signature whose time is five minutes off. Leases, the times at which webhooks were set and presigned
 * URLs depend on several clocks. With NTP these differ by less than 0.1 s.
 */
const MAX_SKEW_MS = 2_000;

/** Compares the engines' clocks with this machine's. */
export async function checkClocks({
  clock,
  engines: { remote: engines },
}: Pick<Facts, 'clock'> & {
  readonly engines: { readonly remote: readonly EngineWithClock[] };
}): Promise<Finding> {
  const now = (): number => clock.now();
  if (engines.length === 0) return right('the embedded stores use the clock of this machine');
  const skews = await Promise.all(engines.map((engine) => skewOf(engine, now)));
  const named = skews.map(
    ({ name, ms }) => `${name} ${ms === undefined ? 'unknown' : `${(ms / 1000).toFixed(1)} s`}`,
  );
  const detail = `the engines' clocks minus this machine's: ${named.join(', ')}`;
  if (!skews.some(({ ms = 0 }) => Math.abs(ms) > MAX_SKEW_MS)) return right(detail);
  return wrong(
    `clocks differ, and receivers reject signatures that are five minutes off: ${detail}`,
    'run chrony on every machine: docs/operations/troubleshooting.md, "A wrong clock"',
  );
}

/** The skew of an engine that does not answer is unknown; its own check says why. */
async function skewOf({ title, clockStepMs = 0, describe }: EngineWithClock, now: () => number) {
  const askedAtMs = now();
  const found = await describe().catch(() => undefined);
  if (found === undefined) return { name: title, ms: undefined };
  const earliestMs = found.clockMs - now();
  const latestMs = found.clockMs + clockStepMs - askedAtMs;
  return { name: found.name ?? title, ms: earliestMs > 0 ? earliestMs : Math.min(0, latestMs) };
}
