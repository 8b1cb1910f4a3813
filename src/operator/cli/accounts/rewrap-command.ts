import type { Command } from 'commander';
import { loadDirectory } from '../../../accounts/directory/load-directory.ts';
import { openMasterKeys } from '../../../accounts/master-key.ts';
import { rewrapSecrets } from '../../../accounts/webhook-secrets.ts';
import { addCommand, type Session } from '../command/command.ts';
import { requireStore } from '../command/command-engines.ts';
import { longWork } from '../command/long-work.ts';

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
  const directory = await loadDirectory(store, engines.directory());
  return longWork(out, { again: 'run it again' }, async ({ onRefused, ...parts }) => {
    const onUnreadable = (prefix: string, reason: string): void => onRefused(`key ${prefix}`, reason);
    const work = { directory, masterKeys, onUnreadable, ...parts };
    const counts = await rewrapSecrets({ store, clock, author }, work);
    const [first, ...others] = masterKeys.ids();
    if (counts.rewrapped === 0 && others.length > 0)
      out.note(`the first key of FUEL_MASTER_KEY, ${first}, encrypts: to change to another, put that first`);
    return counts;
  });
}
