import { type RoleThread, startRoleThread } from './role-thread.ts';
import type { WebhooksThreadData, WebhooksThreadNews } from './webhooks-thread.ts';

/** Its directory of a hundred thousand accounts takes 150. */
const HEAP_MB = 768;

export interface RunningWebhooks extends RoleThread {
  /** Whether the subscription is there and the thread's directory has caught up. */
  readonly isConnected: boolean;
}

/**
 * Starts the webhooks role in a thread of its own; its `stop` resolves when attempts under way are recorded.
 * `onMoved` hears how far the thread's directory is.
 */
export function startWebhooks(
  data: WebhooksThreadData,
  onMoved: (position: number) => void,
): RunningWebhooks {
  let connected = false;
  const thread = startRoleThread<WebhooksThreadNews>({
    role: 'webhooks',
    entry: new URL('./webhooks-thread.ts', import.meta.url),
    data,
    heapMb: HEAP_MB,
    onNews: (news) => {
      if (news.kind === 'connected') connected = true;
      else onMoved(news.position);
    },
  });
  return {
    ...thread,
    get isConnected() {
      return connected;
    },
  };
}
