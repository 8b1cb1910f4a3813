import { systemClock } from '../../src/base/clock.ts';
import { openEngines } from '../../src/engines/engines.ts';
import type { Engines } from '../../src/service/engines/engines.ts';
import { Operator } from '../support/service/operator.ts';

/** An operator who keeps the connections to the engines while they are killed. */
export class LastingOperator extends Operator {
  #engines: Promise<Engines> | undefined;

  override async with<T>(work: (engines: Engines) => Promise<T>): Promise<T> {
    this.#engines ??= openEngines(this.config, systemClock);
    return work(await this.#engines);
  }

  async close(): Promise<void> {
    await (await this.#engines)?.close();
    this.#engines = undefined;
  }
}
