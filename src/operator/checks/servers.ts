import { FuelError, isUnavailable } from '../../base/errors.ts';
import { createPresigner, type PhotoStore } from '../../pull/images/presign.ts';
import { verifyMailServer } from '../../push/notices/mailer.ts';
import type { Server, ServerKind } from '../../service/engines/engines.ts';
import { type Finding, right, wrong } from './check.ts';

type Engine = ServerKind & Server;

/** Of the photo store, whose check then names it. */
const ANSWER_MS = 5_000;
const VALID_SECONDS = 60;
/** Need not exist. */
const OBJECT = 'fuel-doctor';

/** Whether the engine takes work, and its version is one that the service knows. */
export async function checkEngine({ ping, describe, ...kind }: Engine): Promise<Finding> {
  const { title, setting, oldestVersion: oldest } = kind;
  const pinged = await answerOf(ping);
  if (pinged instanceof FuelError)
    return wrong(pinged.message, pinged.remedy ?? `start ${title}, or correct ${setting}`);
  const found = await answerOf(describe);
  if (found instanceof FuelError)
    return right(`${title} answers, and does not tell its version: ${found.message}`);
  const [major = 0, minor = 0] = found.version.split('.').map(Number);
  const [oldestMajor, oldestMinor] = oldest;
  const isOld = major < oldestMajor || (major === oldestMajor && minor < oldestMinor);
  const detail = `${found.name ?? title} ${found.version} answers`;
  return isOld ? wrong(detail, `update it to ${oldest.join('.')} or newer`) : right(detail);
}

/** What it answers, or why it is unavailable. */
async function answerOf<T>(ask: () => Promise<T>): Promise<T | FuelError> {
  try {
    return await ask();
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    return error as FuelError;
  }
}

/** Whether the mail server takes a connection, with the credentials that it was given. */
export async function checkMail(url: string | undefined): Promise<Finding> {
  if (url === undefined)
    return right('FUEL_SMTP_URL is not set: nobody is mailed, the log names each notice');
  const { host } = new URL(url);
  try {
    await verifyMailServer(url);
    return right(`${host} takes mails`);
  } catch (error) {
    return wrong(`${host}: ${(error as Error).message}`, 'start the mail server, or correct FUEL_SMTP_URL');
  }
}

/**
 * Whether the photo store accepts a signature: one HEAD. Only customers' browsers need to reach it, the service does not.
 * `undefined` is the sample store.
 */
export async function checkPhotos(store: PhotoStore | undefined, nowMs: number): Promise<Finding> {
  if (store === undefined)
    return right('FUEL_IMAGES_* are not set: photo links name a sample store, which is not asked');
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
      `${place}: not checked, since only customers' browsers can reach it, not this machine (${why})`,
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
