import { Worker } from 'node:worker_threads';
import type { Config } from '../../config/config.ts';
import type { ProjectorThreadData } from './projector-thread.ts';
import type { WebhooksThreadData, WebhooksThreadNews } from './webhooks-thread.ts';

/** Small: on the embedded engines, which lie on one machine with everything else, memory is what is scarce. */
const YOUNG_GENERATION_MB = 4;
/** The drivers of remote engines make many short-lived objects for each event. */
const YOUNG_GENERATION_REMOTE_MB = 32;

const PROJECTOR_HEAP_MB = 96; // one batch of events
const PROJECTOR_HEAP_EVENTSTOREDB_MB = 256; // and what its driver holds, which is bounded by number alone
/** Its directory of a hundred thousand accounts takes 150. */
const WEBHOOKS_HEAP_MB = 768;

export interface RoleThread {
  /** Rejects when the thread ends with an error or unasked; stays pending while it works. */
  readonly failed: Promise<never>;
  /** Asks it to end; resolves when it has. */
  stop(): Promise<void>;
}

/**
 * Starts a role in a thread of its own. Any message asks the thread to end; `onNews` hears what it posts. What
 * comes of `failed` is for the one who started it: it may be nobody's concern any more.
 */
export function startRoleThread<News = never>(options: {
  readonly role: string;
  readonly entry: URL;
  readonly data: { readonly config: Config };
  /** Well above what the role needs: without a limit V8 would rather let its heap grow than clear it. */
  readonly heapMb: number;
  readonly onNews?: (news: News) => void;
}): RoleThread {
  const { role, entry, data, heapMb, onNews } = options;
  const { EVENTSTORE_URL: eventStore, MONGODB_URL: mongodb } = data.config;
  const isRemote = eventStore !== undefined || mongodb !== undefined;
  const resourceLimits = {
    maxYoungGenerationSizeMb: isRemote ? YOUNG_GENERATION_REMOTE_MB : YOUNG_GENERATION_MB,
    maxOldGenerationSizeMb: heapMb,
  };
  const worker = new Worker(entry, { workerData: data, resourceLimits });
  if (onNews !== undefined) worker.on('message', onNews);
  let stopping = false;
  const ended = new Promise<void>((resolve) => worker.once('exit', () => resolve()));
  const failed = new Promise<never>((_, reject) => {
    worker.once('error', reject);
    worker.once('exit', (code) => {
      if (!stopping) reject(new Error(`the thread of the role ${role} ended with code ${code}`));
    });
  });
  failed.catch(() => undefined);
  return {
    failed,
    async stop() {
      stopping = true;
      worker.postMessage('stop');
      await ended;
    },
  };
}

/** Starts the projector in a thread of its own. */
export function startProjector(data: ProjectorThreadData): RoleThread {
  const entry = new URL('./projector-thread.ts', import.meta.url);
  const heapMb =
    data.config.EVENTSTORE_URL === undefined ? PROJECTOR_HEAP_MB : PROJECTOR_HEAP_EVENTSTOREDB_MB;
  return startRoleThread({ role: 'projector', entry, data, heapMb });
}

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
    heapMb: WEBHOOKS_HEAP_MB,
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
