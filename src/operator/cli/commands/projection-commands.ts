import type { Command } from 'commander';
import { assertViewFits } from '../../../event-store/store-identity.ts';
import { VIEW_NAME } from '../../../pull/view/projector.ts';
import { followerStatus } from '../../../service/ops/followers.ts';
import { FOLLOWER_COLUMNS } from '../../answers/follower.ts';
import { addCommand, addNoun } from '../command/command.ts';
import { addParkedCommands } from './parked-commands.ts';
import { addRebuildCommand } from './rebuild-command.ts';

export function addProjectionCommands(program: Command): void {
  const projection = addNoun(program, {
    name: 'projection',
    summary: 'the views built from the events',
    example: 'fuel projection status',
  });
  addCommand(projection, {
    usage: 'status',
    summary: 'how far each follower of the log is, what it parked and who works on it',
    example: 'fuel projection status',
    async work({ engines, clock, out }) {
      const parts = {
        store: engines.store(),
        view: engines.view(),
        subscriptions: engines.subscriptions(),
        coordination: engines.coordination(),
        clock,
      };
      for (const status of await followerStatus(parts)) await out.row(FOLLOWER_COLUMNS, status);
      await assertViewFits(await engines.view().checkpoint(), engines.store(), VIEW_NAME);
      return 0;
    },
  });
  addRebuildCommand(projection);
  addParkedCommands(projection);
}
