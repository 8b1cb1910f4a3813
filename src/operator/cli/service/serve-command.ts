import { once } from 'node:events';
import { type Command, Option } from 'commander';
import { systemClock } from '../../../base/clock.ts';
import { invalidConfig, loadConfig, ROLES, type Role, unknownSettings } from '../../../base/config/config.ts';
import { FuelError } from '../../../base/errors.ts';
import { createLog } from '../../../base/log.ts';
import { abortOnInterrupt } from '../command/command.ts';
import { unknownText } from './config-commands.ts';

export function addServeCommand(program: Command): void {
  program
    .command('serve')
    .description('run the service: all of its roles, or those named')
    .addOption(
      new Option('--role <role>', 'repeat it for several').choices(ROLES).argParser(collectRole).default([]),
    )
    .addHelpText('after', '\nExample:\n  fuel serve --role api --role projector')
    .action(async ({ role }: { role: Role[] }) => {
      process.exitCode = await serve(role.length === 0 ? ROLES : role);
    });
}

/** Runs until SIGTERM or SIGINT (exit 0), or until a role fails (exit 1). */
async function serve(roles: readonly Role[]): Promise<number> {
  const config = loadConfig(process.env, 'serve', roles);
  // Loaded here: loading the servers takes longer than most commands run.
  const [{ startProcess }, { faultsOfNamed }] = await Promise.all([
    import('../../serve/start-process.ts'),
    import('../../serve/config-files.ts'),
  ]);
  const faults = await faultsOfNamed(config);
  if (faults.length > 0) throw invalidConfig(faults);
  const log = createLog(config.FUEL_LOG_LEVEL);
  for (const unknown of unknownSettings(process.env)) log.warn(unknown, unknownText(unknown));
  const signal = abortOnInterrupt();
  const asked = once(signal, 'abort').then(() => 'asked' as const);
  const service = await startProcess({ config, roles, log, clock: systemClock, signal }).catch((error) => {
    if (error !== signal.reason) throw error;
    return undefined;
  });
  if (service === undefined) {
    log.info('stopped while it waited for an engine');
    return 0;
  }
  const ending = await Promise.race([asked, service.failed.catch((error: unknown) => ({ error }))]);
  if (ending !== 'asked') log.fatal({ err: ending.error }, 'a role failed; the service stops');
  else log.info('asked to stop');
  const isInOrder = await service.stop().then(
    () => true,
    () => false, // each failure is logged by its part
  );
  log.info('stopped');
  return ending === 'asked' && isInOrder ? 0 : 1;
}

function collectRole(text: string, before: Role[]): Role[] {
  const role = ROLES.find((candidate) => candidate === text);
  if (role === undefined)
    throw new FuelError('USAGE', `there is no role ${text}: the roles are ${ROLES.join(', ')}`);
  return [...before, role];
}
