import type { Command } from 'commander';
import { backupDataDir } from '../backup/backup.ts';
import { formatDateTime } from '../domain/date-time.ts';
import { addCommand, addNoun } from './command.ts';
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
    async work({ config, clock, out }, [dir = '']) {
      if (config.EVENTSTORE_URL !== undefined || config.MONGODB_URL !== undefined) {
        out.note(
          'only the embedded files are copied: engines are backed up by their own tools, see docs/operations.md',
        );
      }
      const manifest = await backupDataDir(config.FUEL_DATA_DIR, dir, formatDateTime(clock.now()));
      out.result({ dir, ...manifest }, `copied ${manifest.files.join(', ')} to ${dir}`);
      return 0;
    },
  });
  addStoreCopyCommand(store);
}
