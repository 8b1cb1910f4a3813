import { EventEmitter } from 'node:events';
import { JOBS } from '../../../src/operator/serve/jobs.ts';
import type { Engines } from '../../../src/service/engines/engines.ts';
import { type JobData, type OwnThread, runJob } from '../../../src/service/threads/job.ts';
import { type Owner, owners, type Timeline } from '../core/timeline.ts';

const STARTS_WITHIN_MS = 30;

/** Loads the work of each kind of thread before time is simulated, since loading takes real time. */
export async function loadJobs(): Promise<typeof JOBS> {
  const loaded = Object.entries(JOBS).map(async ([name, load]) => {
    const job = await load();
    return [name, async () => job] as const;
  });
  return Object.fromEntries(await Promise.all(loaded));
}

export interface ThreadParts {
  readonly timeline: Timeline;
  readonly process: Owner;
  readonly jobs: typeof JOBS;
  readonly openEngines: () => Engines;
  readonly createLog: OwnThread['createLog'];
}

/** A thread of a simulated process. Messages between it and its starter are copied and arrive a moment later. */
export class SimulatedThread extends EventEmitter {
  readonly #parts: ThreadParts;
  readonly #port = new EventEmitter();
  /** The messages that arrived before it could listen. */
  #waiting: unknown[] | undefined = [];

  constructor(parts: ThreadParts, data: JobData) {
    super();
    this.#parts = parts;
    const copy: JobData = { ...structuredClone(data), isCounted: false }; // nobody reads the metrics
    this.#later(() => this.#run(copy), STARTS_WITHIN_MS);
  }

  postMessage(message: unknown): void {
    const copy = structuredClone(message);
    this.#later(() => {
      if (this.#waiting === undefined) this.#port.emit('message', copy);
      else this.#waiting.push(copy);
    });
  }

  #run(data: JobData): void {
    const { jobs, openEngines, createLog } = this.#parts;
    const port = {
      on: (event: string, take: (message: unknown) => void) => this.#port.on(event, take),
      postMessage: (message: unknown) => {
        const copy = structuredClone(message);
        this.#later(() => this.emit('message', copy));
      },
      close: () => undefined,
    };
    const ended = runJob(jobs, async () => openEngines(), { data, port: port as never, createLog });
    for (const message of this.#waiting ?? []) this.#port.emit('message', message);
    this.#waiting = undefined;
    ended.then(
      () => this.#later(() => this.emit('exit', 0)),
      (error: unknown) => {
        this.#later(() => this.emit('error', error));
        this.#later(() => this.emit('exit', 1));
      },
    );
  }

  #later(run: () => void, withinMs = 0): void {
    const { timeline, process } = this.#parts;
    owners.run(process, () => void timeline.set(withinMs, run));
  }
}
