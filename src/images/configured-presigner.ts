import type { Config } from '../config/config.ts';
import { createPresigner, type Presigner } from './presign.ts';

/** The presigner of the photo store that the configuration names. */
export function configuredPresigner(config: Config): Presigner {
  return createPresigner({
    endpoint: config.FUEL_IMAGES_ENDPOINT,
    region: config.FUEL_IMAGES_REGION,
    bucket: config.FUEL_IMAGES_BUCKET,
    accessKeyId: config.FUEL_IMAGES_ACCESS_KEY_ID,
    secretAccessKey: config.FUEL_IMAGES_SECRET_ACCESS_KEY,
  });
}
