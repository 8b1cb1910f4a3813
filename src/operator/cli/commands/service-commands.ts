import { once } from 'node:events';
import { Option } from '@commander-js/extra-typings';
import { systemClock } from '../../../base/clock.ts';
import { type Config, invalidConfig, type UnknownSetting } from '../../../base/config/config.ts';
import { ROLES, type Role } from '../../../base/config/settings.ts';
import { createLog } from '../../../base/log.ts';
import { printableLine } from '../../../base/printable.ts';
import { loadConfig, showConfig, unknownSettings } from '../../../engines/engines.ts';
import { factLines } from '../../print/document-text.ts';
import { leaf, noun } from '../command/command.ts';
import { JSON_OPTION } from '../command/options.ts';
import { abortOnInterrupt, Output } from '../command/output.ts';

export const addServeCommand = leaf({
  name: 'serve',
  summary: 'run the service in all roles, or in the given ones',
  example: 'fuel serve --role api --role projector',
  syntax: (it) =>
    it.addOption(new Option('--role <role...>', 'one or more roles (default: all)').choices(ROLES)),
  run: (_, { role }) => serve(role ?? ROLES),
});

/** Runs until SIGTERM, SIGINT or SIGHUP (exit 0), or until a role fails (exit 1). */
async function serve(roles: readonly Role[]): Promise<number> {
  const config = loadConfig(process.env, 'serve', roles);
  // Loaded here, since loading the servers takes longer than most commands run.
  const { startProcess } = await import('../../serve/start-process.ts');
  const faults = await faultsOfNamed(config);
  if (faults.length > 0) throw invalidConfig(faults);
  const signal = abortOnInterrupt(); // before the first line of the log, since a supervisor may wait for that line
  const log = createLog(config.FUEL_LOG_LEVEL);
  for (const unknown of unknownSettings(process.env)) log.warn(unknown, unknownText(unknown));
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

/** This works with an invalid configuration, since it is how an operator finds the fault. */
const showSettings = leaf({
  name: 'show',
  summary: 'show every setting with its source and its fault, if any; secrets are masked',
  example: 'FUEL_LISTEN=0.0.0.0:443 fuel config show',
  syntax: (it) => it.option(...JSON_OPTION),
  async run(_, { json }) {
    const { settings, faults: ofSettings } = showConfig(process.env);
    const faults = ofSettings.length > 0 ? ofSettings : await faultsOfNamed(loadConfig(process.env, 'serve'));
    const unknown = unknownSettings(process.env);
    const facts = settings.map(({ name, value, source, fault }) => {
      const verdict = fault === null ? '' : '  <- not valid';
      return [name, `${value ?? '(none)'}  [${source}]${verdict}`] as const;
    });
    const verdict = faults.length === 0 ? ['valid for fuel serve'] : ['not valid for fuel serve:', ...faults];
    const document = { valid: faults.length === 0, settings, faults, unknown };
    const text = [...factLines(facts), '', ...unknown.map(unknownText), ...verdict].join('\n');
    new Output(json === true).result(document, text);
    return faults.length === 0 ? 0 : 1;
  },
});

export const addConfigCommands = noun({
  name: 'config',
  summary: 'show the configuration of the service',
  example: 'FUEL_LISTEN=0.0.0.0:443 fuel config show',
  commands: [showSettings],
});

/** Faults of the files and the connection strings that settings name. Only two commands check them, so this is loaded here. */
async function faultsOfNamed(config: Config): Promise<string[]> {
  const files = await import('../../checks/configuration.ts');
  return files.faultsOfNamed(config);
}

function unknownText({ name, resembles }: UnknownSetting): string {
  return `${name} is not a setting${resembles === null ? '' : `: did you mean ${resembles}?`}`;
}

/** This works with an invalid configuration and unreachable engines, since it is how an operator finds the fault. */
export const addDoctorCommand = leaf({
  name: 'doctor',
  summary: 'check everything that the service depends on, and say what is wrong and how to repair it',
  example: 'fuel doctor',
  syntax: (it) => it.option(...JSON_OPTION),
  async run(_, { json }) {
    const { examine } = await import('../../checks/doctor.ts'); // loads much that no other command needs
    const out = new Output(json === true);
    const results = await examine(process.env, systemClock);
    const width = results.reduce((most, { check }) => Math.max(most, check.length), 0);
    for (const result of results.toSorted((a, b) => Number(a.ok) - Number(b.ok))) {
      const { check, ok, detail, do: remedy } = result;
      const line = printableLine(`${ok ? 'ok   ' : 'WRONG'}  ${check.padEnd(width)}  ${detail}`);
      const todo = remedy === null ? '' : `\n       ${''.padEnd(width)}  do: ${printableLine(remedy)}`;
      out.result(result, line + todo);
    }
    return results.every(({ ok }) => ok) ? 0 : 1;
  },
});
