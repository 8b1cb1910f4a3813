import type { Engines } from '../../app.ts';
import type { Clock } from '../../clock.ts';
import type { Config } from '../../config/config.ts';
import type { Log } from '../../log.ts';
import { createMailer } from '../../notices/mailer.ts';
import { runNotifier } from '../../notices/notifier.ts';

export interface NoticesParts {
  readonly config: Config;
  readonly engines: Engines;
  readonly clock: Clock;
  readonly log: Log;
}

export interface RunningNotices {
  /** Rejects when the notifier ends with an error; stays pending while it works. */
  readonly failed: Promise<never>;
  stop(): Promise<void>;
}

/** Starts the notifier. It waits for the mail server most of the time, so it needs no thread. */
export function startNotices({ config, engines, clock, log }: NoticesParts): RunningNotices {
  const stopping = new AbortController();
  const mailer = createMailer(config, log);
  const ended = runNotifier({
    store: engines.store(),
    subscriptions: engines.subscriptions(),
    mailer,
    operatorEmail: config.FUEL_OPERATOR_EMAIL ?? null,
    clock,
    log,
    signal: stopping.signal,
  });
  return {
    failed: ended.then(() => new Promise<never>(() => undefined)),
    async stop() {
      stopping.abort();
      await ended.catch(() => undefined); // reported through `failed`
      mailer.close();
    },
  };
}
