import { Worker, type WorkerOptions } from 'node:worker_threads';
import { errorOfThread } from './errors.ts';

export interface ThreadOptions<Message> {
  /** Names it in the error of its end: `a thread of the rebuild`. */
  readonly name: string;
  readonly entry: URL;
  readonly data: object;
  /** The old generation well above what is needed: without a limit V8 lets the heap grow instead of collecting it. */
  readonly limits: NonNullable<WorkerOptions['resourceLimits']>;
  /** Asks the thread to stop, by a message. */
  readonly signal?: AbortSignal;
  readonly onMessage?: (message: Message) => void;
}

export interface Thread {
  /** Resolves when it has ended; rejects with its error, or when it ended with another code than 0. */
  readonly ended: Promise<void>;
  post(message: unknown): void;
}

/** Starts a thread. Someone has to handle its end. */
export function startThread<Message = never>(options: ThreadOptions<Message>): Thread {
  const { name, entry, data, limits, signal, onMessage } = options;
  const worker = new Worker(entry, { workerData: data, resourceLimits: limits });
  if (onMessage !== undefined) worker.on('message', onMessage);
  const stop = (): void => worker.postMessage('stop');
  if (signal?.aborted) stop();
  signal?.addEventListener('abort', stop);
  const ended = new Promise<void>((resolve, reject) => {
    let failure: unknown;
    worker.once('error', (error) => {
      failure = errorOfThread(error);
    });
    worker.once('exit', (code) => {
      if (code === 0) resolve();
      else reject(failure ?? new Error(`${name} ended with code ${code}`));
    });
  }).finally(() => signal?.removeEventListener('abort', stop));
  return { ended, post: (message) => worker.postMessage(message) };
}
