import { setFlagsFromString } from 'node:v8';
import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads';
import { errorOfThread } from './errors.ts';
import { world } from './world.ts';

/** The limits of a thread's heap. V8 lets it grow to the limit before it collects garbage. */
export interface ThreadMemory {
  /** The young generation. The garbage of one batch of work should fit, or it is copied again and again. */
  readonly youngMb: number;
  /** The old generation. It should be well above what the thread keeps. */
  readonly oldMb: number;
}

export interface ThreadOptions<Message> {
  /** The thread's name in the error of its end, such as `the thread of the role projector`. */
  readonly name: string;
  readonly entry: URL;
  readonly data: object;
  readonly memory: ThreadMemory;
  /** Aborting it sends the thread a message that asks it to stop. */
  readonly signal?: AbortSignal;
  readonly onMessage?: (message: Message) => void;
}

export interface Thread {
  /** Resolves when the thread has ended. Rejects with its error, or if it ended with a code other than 0. */
  readonly ended: Promise<void>;
  post(message: unknown): void;
}

/** Starts a thread. The caller has to handle its end. */
export function startThread<Message = never>(options: ThreadOptions<Message>): Thread {
  const { name, entry, data, memory, signal, onMessage } = options;
  // bin/fuel uses this flag to keep the main thread's young generation small. It would override the limit of each thread.
  setFlagsFromString('--max-semi-space-size=0');
  const resourceLimits = { maxYoungGenerationSizeMb: memory.youngMb, maxOldGenerationSizeMb: memory.oldMb };
  const worker = world.thread(entry, { workerData: data, resourceLimits });
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

/** One number of this name for the whole process, initially 0. Threads inherit it as environment data. */
export function sharedNumber(name: string): Uint32Array {
  const known = getEnvironmentData(name);
  if (known instanceof Uint32Array) return known;
  const made = new Uint32Array(new SharedArrayBuffer(Uint32Array.BYTES_PER_ELEMENT));
  setEnvironmentData(name, made);
  return made;
}
