import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Random } from '../../src/customers/sample/random.ts';
import type { CommandResult } from '../support/service/command-result.ts';
import { folder, startFuel } from '../support/service/commands.ts';
import { type EventLine, linesOf } from '../support/transactions/e2e-samples.ts';
import { crashingAt } from './environment.ts';
import { judgeErasedBytes } from './erased-bytes.ts';
import { drawAll, type PointLists } from './point-lists.ts';
import type { Stage } from './stage.ts';
import type { Workload } from './workload.ts';

const IMPORTED = [500, 2_500] as const;
const MISTAKES = [1, 1_500] as const;
const PAUSE_MS = [200, 1_000] as const;
/** A command that is killed at random is killed this long after its start. */
const KILLED_AFTER_MS = [100, 1_500] as const;
/** The number of runs within which a command reaches its point or is done. */
const MAX_RUNS = 200;
/** The error of a command that failed because an engine was unavailable. */
const UNAVAILABLE = /EventStoreDB|MongoDB|PostgreSQL|not built yet|stayed locked/;

/** One command, and how it is killed. */
interface Run {
  readonly args: readonly string[];
  readonly points: Iterator<string, never>;
}

/** An operator at the command line, whose commands are killed and repeated until they are done. */
export class Commands {
  readonly #stage: Stage;
  readonly #workload: Workload;
  readonly #random: Random;
  readonly #points: Readonly<Record<keyof Omit<PointLists, 'start' | 'serve'>, Run['points']>>;

  constructor(
    stage: Stage,
    workload: Workload,
    { points, seed }: { readonly points: PointLists; readonly seed: number },
  ) {
    this.#stage = stage;
    this.#workload = workload;
    this.#random = new Random(seed);
    this.#points = {
      import: drawAll(points.import, this.#random),
      void: drawAll(points.void, this.#random),
      redact: drawAll(points.redact, this.#random),
      erase: drawAll(points.erase, this.#random),
      rebuild: drawAll(points.rebuild, this.#random),
    };
  }

  /** Runs commands until the signal aborts; resolves when the last one is done. */
  async run(signal: AbortSignal): Promise<void> {
    const random = this.#random;
    while (!signal.aborted) {
      const dice = random.next();
      if (dice < 0.4) await this.#erase();
      else if (dice < 0.55) await this.#import();
      else if (dice < 0.7) await this.#importByMistake();
      else if (dice < 0.8) await this.#redact();
      else await this.#rebuild();
      await sleep(random.between(PAUSE_MS));
    }
  }

  async #erase(): Promise<void> {
    const { known } = this.#workload;
    const erasable = this.#workload.erasable();
    const id = erasable[this.#random.between([0, Math.max(0, erasable.length - 1)])];
    if (id === undefined) return;
    const args = ['transaction', 'erase', String(id), '--reason', 'a test', '--yes', '--json'];
    await this.#done({ args, points: this.#points.erase });
    const transaction = known.get(id);
    if (transaction !== undefined) transaction.state = 'erased';
    judgeErasedBytes(this.#stage, [id]);
  }

  async #import(): Promise<void> {
    const [bulk] = this.#stage.withPurpose('bulk');
    this.#workload.recorded(await this.#imported(bulk?.account ?? 0, IMPORTED));
  }

  /** Imports a file in however many runs, then voids it import by import. */
  async #importByMistake(): Promise<void> {
    const since = new Date().toISOString();
    const [steady] = this.#stage.withPurpose('steady');
    const lines = await this.#imported(steady?.account ?? 0, MISTAKES);
    const points = this.#points.void;
    const imports = await this.#done({ args: ['import', 'list', '--since', since, '--json'], points });
    let ended = 0;
    for (const { id } of imports.lines as { readonly id: string }[]) {
      const args = ['import', 'void', id, '--reason', 'a test', '--json'];
      const { voided, already } = (await this.#done({ args, points })).json;
      ended += voided + already;
    }
    if (ended !== lines.length)
      this.#stage.fault(
        `of ${lines.length} imported lines ${ended} were voided: ${JSON.stringify(imports.lines)}`,
      );
    this.#workload.recorded(lines, 'hidden');
  }

  /** Redacts what was recorded so far. All drivers have the same id, but each transaction names a different one. */
  async #redact(): Promise<void> {
    const [steady] = this.#stage.withPurpose('steady');
    const account = String(steady?.account ?? 0);
    const args = ['driver', 'redact', '77', '--account', account, '--reason', 'a test', '--json'];
    const { known, redacted } = this.#workload;
    const before = [...known].filter(
      ([, { account: owner, state }]) => owner === steady?.account && state !== 'erased',
    );
    if (before.length === 0) return;
    await this.#done({ args, points: this.#points.redact });
    for (const [id] of before) redacted.add(id);
    judgeErasedBytes(this.#stage, [...redacted]);
  }

  async #imported(account: number, count: readonly [number, number]): Promise<readonly EventLine[]> {
    const lines = this.#workload.make(account, this.#random.between(count), this.#random);
    const file = join(folder(), 'import.jsonl');
    writeFileSync(file, linesOf(lines));
    const run = { args: ['transaction', 'import', file, '--json'], points: this.#points.import };
    const { recorded, unchanged, refused } = (await this.#done(run)).json;
    if (recorded + unchanged !== lines.length || refused !== 0) {
      this.#stage.fault(`an import of ${lines.length} lines: ${recorded} recorded, ${unchanged} unchanged`);
    }
    return lines;
  }

  async #rebuild(): Promise<void> {
    const args = ['projection', 'rebuild', 'transactions', '--json'];
    await this.#done({ args, points: this.#points.rebuild });
  }

  /** Repeats a command until it ends with 0. Each run draws what kills it, if anything. */
  async #done(run: Run): Promise<CommandResult> {
    for (let runs = 1; runs <= MAX_RUNS; runs++) {
      const result = await this.#once(run);
      if (result.code === 0) return result;
      if (result.code !== null && !UNAVAILABLE.test(result.stderr)) {
        throw new Error(`fuel ${run.args.join(' ')} ended with ${result.code}: ${result.stderr}`);
      }
      if (result.code === null) continue;
      this.#stage.retries += 1;
      this.#stage.lastRefusal = result.stderr;
    }
    throw new Error(`fuel ${run.args.join(' ')} did not come to an end in ${MAX_RUNS} runs`);
  }

  async #once({ args, points }: Run): Promise<CommandResult> {
    const random = this.#random;
    const [dice, afterMs] = [random.next(), random.between(KILLED_AFTER_MS)];
    const point = dice < 0.5 ? points.next().value : undefined;
    const { dataDir } = this.#stage;
    const env = { ...this.#stage.env, ...(point === undefined ? {} : crashingAt(point)) };
    const command = startFuel(args, { dataDir, env });
    const killing = new AbortController();
    if (dice >= 0.75) {
      const kill = (): void => void command.child.kill('SIGKILL');
      void sleep(afterMs, undefined, { signal: killing.signal }).then(kill, () => undefined);
    }
    const result = await command.result;
    killing.abort();
    if (command.child.signalCode === 'SIGKILL') {
      this.#stage.killed(`fuel ${args[0]} ${args[1]}`, point ?? 'at random');
    }
    return result;
  }
}
