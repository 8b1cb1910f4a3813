import { driverAnswer } from '../../../answers/driver.ts';
import { readId } from '../../../answers/filters.ts';
import { findDriver } from '../../../drivers/find-driver.ts';
import { redactDriver } from '../../../drivers/redact-driver.ts';
import { COPIES_REMAIN, removeErasedBytes } from '../../../erase/erased-bytes.ts';
import { command, noun, unlessDryRun } from '../../command/command.ts';
import { requireKnown } from '../../command/known-names.ts';
import { longWork } from '../../command/long-work.ts';
import * as option from '../../command/options.ts';

/** A longer number may also be a part of a mobile number. */
const ID_ALONE = /^\d{1,6}$/;

const find = command({
  name: 'find',
  summary:
    'list the transactions of a driver by id, or by a part of the name or number; this reads the whole log',
  example: 'fuel driver find "sam field" --account 7',
  lists: { what: 'transactions of such a driver' },
  syntax: (it) =>
    it
      .argument('<who>', 'an id, or a part of the name or the mobile number', option.readSearch)
      .option('--account <id>', 'only transactions of this account', readId),
  async work(session, [who], { account }) {
    const { engines, out, signal } = session;
    if (account !== undefined) await requireKnown(session, { account });
    const driver = ID_ALONE.test(who) ? readId(who) : who;
    const onProgress = (looked: number): void => out.progress(`events read ${looked}`);
    const options = { store: engines.store(), signal, onProgress };
    const parts = { view: engines.view(), queue: engines.queue() };
    for await (const transaction of findDriver({ accountId: account, driver }, options)) {
      await out.row(await driverAnswer(transaction, parts), { id: 'transaction' });
    }
    return signal.aborted ? 1 : 0;
  },
});

const redact = command({
  name: 'redact',
  summary: "permanently remove a driver's name and number from an account's transactions",
  example: 'fuel driver redact 77 --account 7 --reason "request of 3 September 2026"',
  syntax: (it) =>
    it
      .argument('<id>', 'the driver', readId)
      .requiredOption('--account <id>', 'the account of the driver', readId)
      .requiredOption('--reason <reason>', option.REASON, option.readText)
      .option('--dry-run', 'count what would change, and change nothing'),
  changes: unlessDryRun,
  async work(session, [driverId], { account: accountId, reason, dryRun }) {
    const { config, engines, clock, author, out } = session;
    return longWork(session, async ({ onRefused, ...parts }) => {
      const figures = await redactDriver(
        { driverId, accountId },
        {
          store: engines.store(),
          view: engines.view(),
          queue: engines.queue(),
          subscriptions: engines.subscriptions(),
          coordination: engines.coordination(),
          clock,
          author,
          reason,
          dryRun,
          ...parts,
        },
      );
      if (dryRun || parts.signal.aborted) return figures;
      const onStep = (step: string): void => out.progress(step);
      const remains = await removeErasedBytes(engines, { folder: config.FUEL_DATA_DIR, onStep });
      for (const { file, reason: why } of remains) onRefused(file, `may still contain the name: ${why}`);
      for (const { erasesLater } of engines.remote) if (erasesLater !== undefined) out.note(erasesLater);
      out.note(COPIES_REMAIN);
      return figures;
    });
  },
});

export const addDriverCommands = noun({
  name: 'driver',
  summary: 'find the transactions of a driver, and remove the name from them',
  example: 'fuel driver find 77 --account 7',
  commands: [find, redact],
});
