import { createPresigner, type PhotoStore } from '../../pull/images/presign.ts';
import { type Finding, right, wrong } from './check.ts';

const VALID_SECONDS = 60;
/** Need not exist. */
const OBJECT = 'fuel-doctor';

/** Whether the photo store accepts a signature: one HEAD. Only customers' browsers need to reach it, the service does not. */
export async function checkPhotos(
  store: PhotoStore,
  {
    isSample,
    nowMs,
    signal,
  }: { readonly isSample: boolean; readonly nowMs: number; readonly signal: AbortSignal },
): Promise<Finding> {
  if (isSample)
    return right('FUEL_IMAGES_* are not set: photo links name a sample store, which is not asked');
  const { presign } = createPresigner(store, 'HEAD').at(nowMs, VALID_SECONDS);
  const place = `${store.endpoint}, bucket ${store.bucket}`;
  try {
    const { status } = await fetch(presign(OBJECT), { method: 'HEAD', redirect: 'manual', signal });
    return judge(place, status);
  } catch (error) {
    const { message, cause } = error as Error;
    const why = cause instanceof Error ? cause.message : message;
    return right(
      `${place}: not checked, since only customers' browsers can reach it, not this machine (${why})`,
    );
  }
}

function judge(place: string, status: number): Finding {
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
