import { setTimeout as sleep } from 'node:timers/promises';
import { inject, it } from 'vitest';
import { Random } from '../../src/customers/sample/random.ts';
import { describeWithMongodb } from '../support/engines/mongodb.ts';
import { type RunningCommand, startFuel } from '../support/service/commands.ts';
import { linesOf } from '../support/transactions/e2e-samples.ts';
import { EMBEDDED, type Engine, type Engines, startEngines } from './engines.ts';
import { crashingAt } from './environment.ts';
import { judge } from './judge.ts';
import { COPY_POINTS, COPY_POINTS_BEFORE_EVENTS, draw, EMBEDDED_POINTS } from './point-lists.ts';
import { crashRounds } from './rounds.ts';
import type { EndedRun } from './run.ts';
import type { Stage } from './stage.ts';
import type { Workload } from './workload.ts';

const MEMBERS = 2;
const SECONDS = 30;
/** Several batches. Each run of the copy appends all events again. */
const IMPORTED = 4_000;
/** How long after the start of a copy an engine is killed. */
const ENGINE_KILLED_AFTER_MS = [300, 2_000] as const;
const DEAD_MS = 500;
const UNAVAILABLE = /EventStoreDB|MongoDB/;

describeWithMongodb('a copy of a store whose processes were killed, and that is killed itself', () => {
  it('is complete in the end: the service works on the engines as before, and sends nothing twice', async () => {
    const engines = await startEngines(inject('mongodBinary') ?? '');
    try {
      await crashRounds({
        start: async () => EMBEDDED,
        members: MEMBERS,
        points: EMBEDDED_POINTS,
        seconds: SECONDS,
        next: (run) => moved(run, engines),
      });
    } finally {
      await engines.remove();
    }
  }, 900_000);
});

/** Copies the store, with the copy killed at each point and its engines killed, and continues the work there. */
async function moved({ stage, workload, seed }: EndedRun, engines: Engines): Promise<void> {
  const random = new Random(seed);
  stage.doing = 'copying';
  const lines = workload.make(stage.withPurpose('bulk')[0]?.account ?? 0, IMPORTED, random);
  await stage.operator.import(linesOf(lines), { wait: false });
  workload.recorded(lines);
  if (workload.erased().length === 0) await erased(stage, workload);
  const killedAt = async (point: string): Promise<void> => {
    const { child, result } = copying(stage, engines, point);
    const { code, stderr } = await result;
    if (child.signalCode === 'SIGKILL') stage.killed('fuel store copy', point);
    else stage.fault(`a copy did not come to ${point}: it ended with ${code}: ${stderr}`);
  };
  for (const drawn of COPY_POINTS_BEFORE_EVENTS) await killedAt(draw(drawn, random));
  for (const engine of engines.list) await killedMeanwhile(stage, engines, { engine, random });
  for (const drawn of COPY_POINTS) await killedAt(draw(drawn, random));
  const { code, stdout, stderr } = await copying(stage, engines).result;
  if (code !== 0) stage.fault(`the last copy ended with ${code}: ${stdout} ${stderr}`);
  stage.doing = 'working on the copy';
  stage.moveTo({ engines, members: MEMBERS });
  for (const member of stage.members) await member.start();
  await judge(stage, workload);
  for (const member of stage.members) await member.stop();
}

/** Erases something, since some points need an erasure and a short run may not have made one. */
async function erased(stage: Stage, { known }: Workload): Promise<void> {
  const [id, transaction] = [...known].find(([, { state }]) => state === 'visible') ?? [];
  if (transaction === undefined) return;
  const args = ['transaction', 'erase', String(id), '--reason', 'a test', '--yes'];
  const { code, stderr } = await startFuel(args, stage).result;
  if (code === 0) transaction.state = 'erased';
  else stage.fault(`the erasure of transaction ${id} ended with ${code}: ${stderr}`);
}

/** Kills an engine during the copy. The copy is killed too, so that it does not finish first. */
async function killedMeanwhile(
  stage: Stage,
  engines: Engines,
  { engine, random }: { readonly engine: Engine; readonly random: Random },
): Promise<void> {
  const { result } = copying(stage, engines, 'after-append-copies:1');
  await sleep(random.between(ENGINE_KILLED_AFTER_MS));
  const fromMs = Date.now();
  await engine.kill();
  await sleep(DEAD_MS);
  await engine.start();
  stage.killed(engine.name, 'while it is copied into', fromMs);
  const { code, stderr } = await result;
  if (code !== null && !UNAVAILABLE.test(stderr)) stage.fault(`a copy ended with ${code}: ${stderr}`);
}

function copying({ env, dataDir }: Stage, engines: Engines, point?: string): RunningCommand {
  const crashing = point === undefined ? {} : crashingAt(point);
  return startFuel(['store', 'copy', '--json'], { dataDir, env: { ...env, ...engines.env, ...crashing } });
}
