import { world } from '../../base/world.ts';

/** Of new connections. Their handshakes take milliseconds each, in which no answer is read. */
const STARTS_IN_A_TURN = 8;

/** Lets a few connections start in each turn of the event loop, in the order of the calls. */
export class StartGate {
  readonly #waiting: (() => void)[] = [];
  #left = STARTS_IN_A_TURN;
  #isRefilling = false;

  /** Resolves when one more may start: before the connection's time begins to count. */
  async pass(): Promise<void> {
    this.#refillNextTurn();
    if (this.#left > 0) this.#left--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  #refillNextTurn(): void {
    if (this.#isRefilling) return;
    this.#isRefilling = true;
    world.setImmediate(() => {
      this.#isRefilling = false;
      const next = this.#waiting.splice(0, STARTS_IN_A_TURN);
      this.#left = STARTS_IN_A_TURN - next.length;
      for (const start of next) start();
      if (this.#waiting.length > 0 || next.length > 0) this.#refillNextTurn();
    });
  }
}
