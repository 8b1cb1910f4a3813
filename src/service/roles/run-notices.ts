import type { Engines } from '../../app.ts';
import type { Clock } from '../../clock.ts';
import type { Config } from '../../config/config.ts';
import type { Log } from '../../log.ts';
import { createMailer } from '../../notices/mailer.ts';
import { runNotifier } from '../../notices/notifier.ts';

/** The notices role. It waits for the mail server most of the time, so it needs no thread. */
export async function runNotices({
  config,
  engines,
  clock,
  log,
  signal,
}: {
  readonly config: Config;
  readonly engines: Engines;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}): Promise<void> {
  const mailer = createMailer(config);
  try {
    await runNotifier({
      store: engines.store(),
      subscriptions: engines.subscriptions(),
      mailer,
      operatorEmail: config.FUEL_OPERATOR_EMAIL ?? null,
      clock,
      log,
      signal,
    });
  } finally {
    mailer.close();
  }
}
