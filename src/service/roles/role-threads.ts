import type { Config } from '../../base/config/config.ts';
import { startThread } from '../../base/thread.ts';
import type { Metrics } from '../ops/metrics.ts';
import type { ProjectorThreadData, ProjectorThreadMessage } from './projector-thread.ts';
import type { WebhooksThreadData, WebhooksThreadMessage } from './webhooks-thread.ts';

/** Small, since embedded engines share the memory of one machine with everything else. */
const YOUNG_MB = 12;
/** An attempt creates objects of undici and TLS; with a smaller generation a tenth of its time goes into copying them. */
const YOUNG_WEBHOOKS_MB = 24;
/** Larger, since the drivers of remote engines create many short-lived objects per event. */
const YOUNG_REMOTE_MB = 32;

const PROJECTOR_HEAP_MB = 96; // one batch of events
const PROJECTOR_HEAP_EVENTSTOREDB_MB = 256; // and the driver's buffer, which is bounded by number only
/** A directory takes 150 MB for a hundred thousand accounts. */
export const DIRECTORY_HEAP_MB = 768;

export interface RoleThread {
  /** Rejects when the thread ends with an error or without being asked; stays pending while it works. */
  readonly failed: Promise<never>;
  /** Sends it a message of its own kind, for a role that takes some. */
  post(message: object): void;
  /** Asks it to stop; resolves when it has ended. */
  stop(): Promise<void>;
}

/**
 * Starts a role in its own thread. The message `stop` asks the thread to stop; `onMessage` gets what it posts. Nobody has to
 * handle `failed`.
 */
export function startRoleThread<Message = never>(options: {
  readonly role: string;
  readonly entry: URL;
  readonly data: { readonly config: Config };
  readonly heapMb: number;
  /** The young generation on the embedded engines. */
  readonly youngMb?: number;
  readonly onMessage?: (message: Message) => void;
}): RoleThread {
  const { role, entry, data, heapMb, youngMb = YOUNG_MB, onMessage } = options;
  const { EVENTSTORE_URL: eventStore, MONGODB_URL: mongodb } = data.config;
  const isRemote = eventStore !== undefined || mongodb !== undefined;
  const stopping = new AbortController();
  const { ended, post } = startThread({
    name: `the thread of the role ${role}`,
    entry,
    data,
    memory: { youngMb: isRemote ? YOUNG_REMOTE_MB : youngMb, oldMb: heapMb },
    signal: stopping.signal,
    ...(onMessage && { onMessage }),
  });
  const failed = ended.then(() => {
    if (!stopping.signal.aborted) throw new Error(`the thread of the role ${role} ended without being asked`);
    return new Promise<never>(() => undefined);
  });
  failed.catch(() => undefined);
  return {
    failed,
    post,
    async stop() {
      stopping.abort();
      await ended.catch(() => undefined); // `failed` reports it
    },
  };
}

/** Starts the projector in its own thread. */
export function startProjector(
  data: ProjectorThreadData,
  { loopDelay }: Pick<Metrics, 'loopDelay'>,
): RoleThread {
  const entry = new URL('./projector-thread.ts', import.meta.url);
  const heapMb =
    data.config.EVENTSTORE_URL === undefined ? PROJECTOR_HEAP_MB : PROJECTOR_HEAP_EVENTSTOREDB_MB;
  const onMessage = ({ loopDelayMs }: ProjectorThreadMessage): void => loopDelay('projector', loopDelayMs);
  return startRoleThread({ role: 'projector', entry, data, heapMb, onMessage });
}

export interface RunningWebhooks extends RoleThread {
  /** What it waits for before its subscription is connected; `undefined` once that is. */
  readonly waitsFor: string | undefined;
}

/**
 * Starts the webhooks role in its own thread; its `stop` resolves when attempts in progress are recorded. `onMoved` gets
 * the position of the thread's directory; the metrics get what the thread counts.
 */
export function startWebhooks(
  data: WebhooksThreadData,
  onMoved: (position: number) => void,
  { deliveries, loopDelay }: Pick<Metrics, 'deliveries' | 'loopDelay'>,
): RunningWebhooks {
  let waitsFor: string | undefined =
    'the accounts of the thread that sends webhooks: it reads them from the log';
  const thread = startRoleThread<WebhooksThreadMessage>({
    role: 'webhooks',
    entry: new URL('./webhooks-thread.ts', import.meta.url),
    data,
    heapMb: DIRECTORY_HEAP_MB,
    youngMb: YOUNG_WEBHOOKS_MB,
    onMessage: (message) => {
      if (message.kind === 'caught up')
        waitsFor =
          'the persistent subscription that webhooks are made from: the event store has not let it join';
      if (message.kind === 'connected') waitsFor = undefined;
      if (message.kind === 'moved') onMoved(message.position);
      if (message.kind === 'counted') {
        deliveries.add(message.attempts);
        loopDelay('webhooks', message.loopDelayMs);
      }
    },
  });
  return {
    ...thread,
    get waitsFor() {
      return waitsFor;
    },
  };
}
