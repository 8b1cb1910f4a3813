import type { Command } from 'commander';
import { loadDirectory } from '../../accounts/directory/load-directory.ts';
import { openMasterKeys } from '../../accounts/master-key.ts';
import { type RewrapCounts, rewrapSecrets } from '../../accounts/webhook-secrets.ts';
import { abortOnInterrupt, addCommand, type Session } from '../command/command.ts';
import { requireStore } from '../command/command-engines.ts';
import { progressLine } from '../command/progress.ts';

export function addRewrapCommand(key: Command): void {
  addCommand(key, {
    usage: 'rewrap',
    summary: 'encrypt webhook secrets anew under the first key of FUEL_MASTER_KEY, so that the others can go',
    example: 'FUEL_MASTER_KEY=new,old fuel key rewrap',
    changes: true,
    work: rewrap,
  });
}

async function rewrap({ config, engines, clock, author, out }: Session): Promise<number> {
  requireStore(config);
  await engines.bind(); // before the master key is read: a lost one must not be replaced
  const store = engines.store();
  const masterKeys = openMasterKeys(config);
  const signal = abortOnInterrupt();
  const progress = progressLine();
  const counts = await rewrapSecrets(
    { store, clock, author },
    {
      directory: await loadDirectory(store, engines.snapshots()),
      masterKeys,
      onUnreadable(prefix, reason) {
        progress.end();
        out.note(`key ${prefix}: ${reason}`);
      },
      onProgress: (soFar) => progress.show(text(soFar)),
      signal,
    },
  );
  progress.end();
  out.result(counts, text(counts));
  const [first, ...others] = masterKeys.ids();
  if (counts.rewrapped === 0 && others.length > 0)
    out.note(`the first key of FUEL_MASTER_KEY, ${first}, encrypts: to change to another, put that first`);
  if (signal.aborted) out.note('interrupted: run it again to continue');
  return counts.unreadable > 0 || signal.aborted ? 1 : 0;
}

function text({ rewrapped, unchanged, unreadable }: RewrapCounts): string {
  return `rewrapped ${rewrapped}, unchanged ${unchanged}, unreadable ${unreadable}`;
}
