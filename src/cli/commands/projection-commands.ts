import type { Command } from 'commander';
import { formatDateTime } from '../../domain/values/date-time.ts';
import { FuelError } from '../../errors.ts';
import { assertViewFits } from '../../event-store/store-identity.ts';
import { type FollowerStatus, followerStatus } from '../../ops/followers.ts';
import { printableLine } from '../../printable.ts';
import type { ParkedTransactionEvent } from '../../transactions/view/checkpoint.ts';
import { retryParked } from '../../transactions/view/operate.ts';
import { VIEW_NAME } from '../../transactions/view/projector.ts';
import { addCommand, addNoun } from '../command/command.ts';
import { idOption } from '../command/options.ts';
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

function addParkedCommands(projection: Command): void {
  const parked = addCommand(projection, {
    usage: 'parked',
    summary: 'list the events that a view could not apply, oldest first',
    example: 'fuel projection parked',
    async work({ engines, out }) {
      for (const event of await engines.view().parked()) out.result(parkedJson(event), parkedText(event));
      return 0;
    },
  });
  addCommand(parked, {
    usage: 'show <position>',
    summary: 'show one parked event with its data',
    example: 'fuel projection parked show 1042',
    async work({ engines, out }, [position = '']) {
      const wanted = idOption(position);
      const event = (await engines.view().parked()).find((candidate) => candidate.position === wanted);
      if (event === undefined) throw notParked(wanted);
      const [recorded] = await engines.store().readStream(event.stream, { fromRevision: event.revision });
      const data = recorded?.data ?? null;
      out.result({ ...parkedJson(event), data }, `${parkedText(event)}\n${JSON.stringify(data, null, 2)}`);
      return 0;
    },
  });
  addCommand<{ all?: true }>(parked, {
    usage: 'retry [position]',
    summary: 'apply a parked event again (or --all of them)',
    example: 'fuel projection parked retry --all',
    options: (command) => command.option('--all', 'every parked event'),
    changes: true,
    async work({ engines, clock, author, out }, [position], { all }) {
      if ((position === undefined) === (all === undefined)) {
        throw new FuelError('USAGE', 'name one position or --all');
      }
      const only = position === undefined ? undefined : idOption(position);
      await engines.bind();
      const result = await retryParked(engines.store(), engines.view(), { only, author, atMs: clock.now() });
      if (only !== undefined && result.retried === 0) throw notParked(only);
      out.result(result, `retried ${result.retried}, still parked ${result.still_parked}`);
      return result.still_parked === 0 ? 0 : 1;
    },
  });
}

function notParked(position: number): FuelError {
  return new FuelError(
    'REFUSED',
    `no event is parked at position ${position}: fuel projection parked lists them all`,
  );
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

function parkedJson({ parkedAtMs, ...event }: ParkedTransactionEvent) {
  return { ...event, parked_at: formatDateTime(parkedAtMs) };
}

function parkedText(event: ParkedTransactionEvent): string {
  return printableLine(
    `${event.position}  ${event.stream}@${event.revision}  ${event.type}  ${event.reason}`,
  );
}
