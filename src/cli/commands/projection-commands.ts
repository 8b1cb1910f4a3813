import type { Command } from 'commander';
import { assertViewFits } from '../../event-store/store-identity.ts';
import { type FollowerStatus, followerStatus } from '../../ops/followers.ts';
import { VIEW_NAME } from '../../transactions/view/projector.ts';
import { addCommand, addNoun } from '../command/command.ts';
import { addParkedCommands } from './parked-commands.ts';
import { addRebuildCommand, progressText } from './rebuild-command.ts';

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
      for (const status of await followerStatus(parts)) out.result(status, statusText(status));
      await assertViewFits(await engines.view().checkpoint(), engines.store(), VIEW_NAME);
      return 0;
    },
  });
  addRebuildCommand(projection);
  addParkedCommands(projection);
}

function statusText(status: FollowerStatus): string {
  const { name, position, lag_events, lag_seconds, parked, holder } = status;
  const lag = lag_events === 0 ? 'up to date' : `${lag_events ?? 'many'} events, ${lag_seconds} s behind`;
  const nobody = name === VIEW_NAME ? 'no projector works' : 'no process consumes it';
  const who = holder === null ? nobody : `${name === VIEW_NAME ? 'projector' : 'consumed by'} ${holder}`;
  const building = rebuildText(status);
  return `${name}: position ${position}, ${lag}, ${parked} parked, ${who}${building}`;
}

function rebuildText({ rebuild, unfinished_rebuild_percent: unfinished }: FollowerStatus): string {
  if (rebuild !== undefined) return `; ${progressText(rebuild)}`;
  if (unfinished === undefined) return '';
  return `; a rebuild stopped at ${unfinished} %: the same command continues it, with --accept where records differ`;
}
