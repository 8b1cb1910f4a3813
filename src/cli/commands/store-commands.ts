import type { Command } from 'commander';
import { trustMasterKey } from '../../accounts/store-binding.ts';
import { backupDataDir } from '../../backup/backup.ts';
import { formatDateTime } from '../../domain/values/date-time.ts';
import { addCommand, addNoun } from '../command/command.ts';
import { requireStore } from '../command/judged-engines.ts';
import { nameOption } from '../command/options.ts';
import { addStoreCopyCommand } from './store-copy-command.ts';

export function addStoreCommands(program: Command): void {
  const store = addNoun(program, {
    name: 'store',
    summary: 'the stores behind the service',
    example: 'fuel store backup /backups/2026-09-03',
  });
  addCommand(store, {
    usage: 'backup <dir>',
    summary:
      'copy the embedded files, consistently, while the service runs; the copy can be used as FUEL_DATA_DIR',
    example: 'fuel store backup /backups/2026-09-03',
    judgesStore: true,
    async work({ config, clock, out }, [dir = '']) {
      if (config.EVENTSTORE_URL !== undefined || config.MONGODB_URL !== undefined) {
        out.note(
          'only the embedded files are copied: engines are backed up by their own tools, see docs/operations/backup.md',
        );
      }
      const manifest = await backupDataDir(config.FUEL_DATA_DIR, dir, formatDateTime(clock.now()));
      out.result({ dir, ...manifest }, `copied ${manifest.files.join(', ')} to ${dir}`);
      return 0;
    },
  });
  addStoreCopyCommand(store);
  addCommand<{ reason: string }>(store, {
    usage: 'trust-key',
    summary:
      "take the present master key for the store's, where the former is lost for good: webhook secrets under that " +
      'one can not be read any more',
    example: 'fuel store trust-key --reason "master.key lost with the disk of node 1"',
    options: (command) =>
      command
        .requiredOption('--reason <reason>', 'why, for the auditors', nameOption)
        .option('--actor <name>', 'who does this (default: the login name)', nameOption),
    judgesStore: true,
    async work({ config, engines, clock, author, out }, _args, { reason }) {
      requireStore(config);
      const fingerprint = await trustMasterKey(engines.store(), config, { author, reason, clock });
      out.result({ fingerprint }, `the store's master key is ${fingerprint} (fingerprint) from now on`);
      return 0;
    },
  });
}
