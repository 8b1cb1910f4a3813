import type { Config } from '../../base/config/config.ts';
import { world } from '../../base/world.ts';
import type { ThreadHost } from '../../service/threads/job.ts';

export const THREAD_ENTRY = new URL('./thread.ts', import.meta.url);

/** Where the threads of a command begin. */
export function threadsOfCommand(config: Config): ThreadHost {
  return { entry: THREAD_ENTRY, config, holder: `fuel-${world.self().pid}` };
}
