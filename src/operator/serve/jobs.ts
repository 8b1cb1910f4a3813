import type { Jobs } from '../../service/threads/job.ts';

/** The file that runs in each thread of a process. */
export const THREAD_ENTRY = new URL('./thread.ts', import.meta.url);

/** The jobs of a process's threads. */
export const JOBS: Jobs = {
  accounts: async () => (await import('../../service/roles/accounts.ts')).accounts,
  projector: async () => (await import('../../service/roles/projector.ts')).projector,
  rebuild: async () => (await import('../../service/roles/rebuild.ts')).rebuild,
  webhooks: async () => (await import('../../service/roles/webhooks.ts')).webhooks,
};
