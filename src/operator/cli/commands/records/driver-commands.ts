import { formatDateTime } from '../../../../domain/values/date-time.ts';
import { driverAnswer } from '../../../answers/driver.ts';
import { readId } from '../../../answers/filters.ts';
import { findDriver } from '../../../drivers/find-driver.ts';
import { redactDriver } from '../../../drivers/redact-driver.ts';
import { removeErasedBytes } from '../../../erase/erased-bytes.ts';
import { command, noun } from '../../command/command.ts';
import { requireKnown } from '../../command/known-names.ts';
import { longWork, progressLine } from '../../command/long-work.ts';
import * as option from '../../command/options.ts';
import { abortOnInterrupt } from '../../command/output.ts';

/** More digits may be a part of a number as well. */
const ID_ALONE = /^\d{1,6}$/;

const find = command({
  usage: 'find <who>',
  summary:
    'list the transactions of a driver: by id, or by a part of the name or number. Reads the whole log',
  example: 'fuel driver find "sam field" --account 7',
  args: [option.readSearch],
  options: { account: option.id('of this account') },
  async work({ engines, out }, [who], { account }) {
    if (account !== undefined) await requireKnown(engines, { account });
    const driver = ID_ALONE.test(who) ? readId(who) : who;
    const progress = progressLine();
    const signal = abortOnInterrupt();
    const onProgress = (looked: number): void => progress.show(`events read ${looked}`);
    const parts = { view: engines.view(), queue: engines.queue() };
    let found = 0;
    const options = { store: engines.store(), signal, onProgress };
    for await (const transaction of findDriver({ accountId: account, driver }, options)) {
      progress.end();
      await out.row(await driverAnswer(transaction, parts), 'transaction');
      found += 1;
    }
    progress.end();
    if (found === 0 && !signal.aborted) out.note('no transaction has such a driver');
    return signal.aborted ? 1 : 0;
  },
});

const redact = command({
  usage: 'redact <id>',
  summary: "permanently remove a driver's name and number from an account's transactions",
  example: 'fuel driver redact 77 --account 7 --reason "request of 3 September 2026"',
  args: [readId],
  options: {
    account: option.required(option.id('whose driver it is')),
    reason: option.required(option.reason),
    dryRun: option.flag('count what would change, and change nothing'),
    compact: option.flag('rewrite embedded files of any size, which may take minutes'),
  },
  changes: ({ dryRun }) => dryRun !== true,
  async work({ config, engines, clock, author, out }, [driverId], { account, reason, dryRun, compact }) {
    const startedAt = formatDateTime(clock.now());
    const again = 'run the same command again';
    return longWork(out, { again }, async ({ endLine, onRefused, ...parts }) => {
      const { texts, ...figures } = await redactDriver(
        { driverId, accountId: account },
        {
          ...{ store: engines.store(), view: engines.view(), queue: engines.queue() },
          ...{ subscriptions: engines.subscriptions(), coordination: engines.coordination() },
          ...{ clock, author, reason, dryRun, ...parts },
        },
      );
      endLine();
      if (dryRun || parts.signal.aborted) return figures;
      const remains = await removeErasedBytes({
        folder: config.FUEL_DATA_DIR,
        ...{ texts, compact: compact === true },
      });
      for (const { file, reason: why } of remains)
        onRefused(file, `may still hold the name: ${why}; ${again}`);
      for (const { erasesLater } of engines.remote) if (erasesLater !== undefined) out.note(erasesLater);
      out.note(
        `Not in reach: what customers have pulled or received, and backups made before ${startedAt}: after one of ` +
          'those is restored, redact again.',
      );
      return figures;
    });
  },
});

export const addDriverCommands = noun({
  name: 'driver',
  summary: 'drivers in transactions: where one is named, and how to take the name out',
  example: 'fuel driver find 77 --account 7',
  commands: [find, redact],
});
