import type { Command } from 'commander';
import {
  type Config,
  loadConfig,
  showConfig,
  type UnknownSetting,
  unknownSettings,
} from '../../../base/config/config.ts';
import { printableLine } from '../../../base/printable.ts';
import { addNoun, output } from '../command/command.ts';

/** `fuel config show` works with an invalid configuration: it is how an operator finds the fault. */
export function addConfigCommands(program: Command): void {
  const config = addNoun(program, {
    name: 'config',
    summary: 'the settings this process would run with',
    example: 'FUEL_LISTEN=0.0.0.0:443 fuel config show',
  });
  config
    .command('show')
    .description('show every setting, its source and what is wrong with it; secrets are masked')
    .option('--json', 'print one JSON document and nothing else')
    .addHelpText('after', '\nExample:\n  FUEL_LISTEN=0.0.0.0:443 fuel config show')
    .action(async (options: { json?: true }) => {
      const { settings, faults: ofSettings } = showConfig(process.env);
      const faults =
        ofSettings.length > 0 ? ofSettings : await faultsOfNamed(loadConfig(process.env, 'serve'));
      const unknown = unknownSettings(process.env);
      const width = settings.reduce((most, { name }) => Math.max(most, name.length), 0);
      const lines = settings.map((setting) => {
        const fault = setting.fault === null ? '' : '  <- not valid';
        return `${setting.name.padEnd(width)}  ${printableLine(setting.value ?? '(none)')}  [${setting.source}]${fault}`;
      });
      const out = output(options.json === true);
      const verdict =
        faults.length === 0 ? ['valid for fuel serve'] : ['not valid for fuel serve:', ...faults];
      const document = { valid: faults.length === 0, settings, faults, unknown };
      out.result(document, [...lines, '', ...unknown.map(unknownText), ...verdict].join('\n'));
      process.exitCode = faults.length === 0 ? 0 : 1;
    });
}

/** Loaded here, since only `serve` and `config show` read certificates, and connection strings without a use. */
async function faultsOfNamed(config: Config): Promise<string[]> {
  const files = await import('../../serve/config-files.ts');
  return files.faultsOfNamed(config);
}

export function unknownText({ name, resembles }: UnknownSetting): string {
  return `${name} is no setting${resembles === null ? '' : `: did you mean ${resembles}?`}`;
}
