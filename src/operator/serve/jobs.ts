import type { Jobs } from '../../service/threads/job.ts';

/** What the threads of a process or command do. */
export const JOBS: Jobs = {
  projector: async () => (await import('../../service/roles/projector.ts')).projector,
  rebuild: async () => (await import('../../service/roles/rebuild.ts')).rebuild,
  webhooks: async () => (await import('../../service/roles/webhooks.ts')).webhooks,
  api: async () => (await import('../../service/api/api-job.ts')).api,
  night: async () => (await import('./night.ts')).night,
  judge: async () => (await import('./judge.ts')).judge,
};
