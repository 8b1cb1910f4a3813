import { setFlagsFromString } from 'node:v8';
import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads';
import { errorOfThread } from './errors.ts';
import { world } from './world.ts';

/** Of its heap. V8 lets it grow to the limit before it collects. */
export interface ThreadMemory {
  /** The young generation: what a batch of work creates and drops should fit, or is copied again and again. */
  readonly youngMb: number;
  /** The old generation: well above what is kept. */
  readonly oldMb: number;
}

export interface ThreadOptions<Message> {
  /** Names it in the error of its end: `the thread of the role projector`. */
  readonly name: string;
  readonly entry: URL;
  readonly data: object;
  readonly memory: ThreadMemory;
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
  const { name, entry, data, memory, signal, onMessage } = options;
  // bin/fuel keeps the main thread's young generation small by this flag, which would override that of each thread.
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

/** One number of this name for the whole process: threads inherit it as environment data. Begins with 0. */
export function sharedNumber(name: string): Uint32Array {
  const known = getEnvironmentData(name);
  if (known instanceof Uint32Array) return known;
  const made = new Uint32Array(new SharedArrayBuffer(Uint32Array.BYTES_PER_ELEMENT));
  setEnvironmentData(name, made);
  return made;
}
