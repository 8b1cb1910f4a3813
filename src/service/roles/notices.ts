import type { Clock } from '../../base/clock.ts';
import type { Config } from '../../base/config/config.ts';
import type { Log } from '../../base/log.ts';
import { createMailer } from '../../push/notices/mailer.ts';
import { runNotifier } from '../../push/notices/notifier.ts';
import type { Engines } from '../engines/engines.ts';

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
