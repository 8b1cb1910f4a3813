import { describe, inject, it } from 'vitest';
import { describeWithMongodb } from '../support/engines/mongodb.ts';
import { EMBEDDED, startEngines, startPostgres } from './engines.ts';
import { EMBEDDED_POINTS, ENGINE_POINTS } from './point-lists.ts';
import { crashRounds, roundsTimeoutMs } from './rounds.ts';

const MEMBERS = 3;
/** Engines take longer to start, and need part of the machine too. */
const MEMBERS_ON_ENGINES = 2;

describe('processes that work on one embedded store and are killed at any time', () => {
  it(
    'lose nothing, send nothing that is not owed, and serve no key that is switched off',
    () => crashRounds({ start: async () => EMBEDDED, members: MEMBERS, points: EMBEDDED_POINTS }),
    roundsTimeoutMs(),
  );
});

describeWithMongodb('processes, EventStoreDB and MongoDB that are killed at any time', () => {
  it(
    'lose nothing, send nothing that is not owed, and serve no key that is switched off',
    () =>
      crashRounds({
        start: () => startEngines(inject('mongodBinary') ?? ''),
        members: MEMBERS_ON_ENGINES,
        points: ENGINE_POINTS,
      }),
    roundsTimeoutMs(),
  );
});

describe.runIf(inject('postgresBinaries') !== undefined)(
  'processes and PostgreSQL that are killed at any time',
  () => {
    it(
      'lose nothing, send nothing that is not owed, and serve no key that is switched off',
      () =>
        crashRounds({
          start: () => startPostgres(inject('postgresBinaries') ?? ''),
          members: MEMBERS_ON_ENGINES,
          points: ENGINE_POINTS,
        }),
      roundsTimeoutMs(),
    );
  },
);
