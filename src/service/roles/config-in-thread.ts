import type { Config } from '../../base/config/config.ts';

/** The configuration as a thread uses it: keys arrive as plain bytes. */
export function configInThread(given: Config): Config {
  return { ...given, FUEL_MASTER_KEY: given.FUEL_MASTER_KEY?.map((key) => Buffer.from(key)) };
}
