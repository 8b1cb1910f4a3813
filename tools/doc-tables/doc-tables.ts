import { posix } from 'node:path';
import type { CommandUnknownOpts } from '@commander-js/extra-typings';
import type { SettingTable } from '../../src/base/config/setting.ts';
import { NEEDED_IN_PRODUCTION, ownSettings, ROLES } from '../../src/base/config/settings.ts';
import { readDisk } from '../../src/base/disk/disk.ts';
import { servers } from '../../src/engines/engines.ts';
import { createProgram } from '../../src/operator/cli/program.ts';
import { addDiskMetrics, addReadiness, createMetrics } from '../../src/service/ops/metrics.ts';

/** A page with a table that is made from the code, between two comments that name it. */
export interface MadeTable {
  /** From the project's root. */
  readonly page: string;
  readonly name: string;
  /** Markdown, with a line feed at its end. */
  text(): string;
}

/** A metric of the service, as prom-client has it. */
export interface DeclaredMetric {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
  /** Those of a histogram. */
  readonly buckets?: readonly number[];
}

/** A rule of `docs/monitoring/alerts.yaml`. */
export interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: { readonly runbook: string };
}

const WATCHING = 'docs/operations/watching.md';
const RUNNING = 'docs/operations/running.md';
const CUSTOMERS = 'docs/operations/customers.md';
/** The tables of commands by their names, and the commands of each. */
const COMMANDS: Readonly<Record<string, readonly string[]>> = {
  'commands for imports': ['import list', 'import show', 'import void'],
  'commands for accounts': ['account rename', 'account corporate', 'account close', 'account reopen'],
  'commands for webhooks': [
    ...['set', 'show', 'test', 'disable', 'enable', 'rate', 'remove'].map((verb) => `webhook ${verb}`),
    ...['list', 'show', 'redeliver'].map((verb) => `delivery ${verb}`),
  ],
  'commands to find things': ['transaction list', 'transaction show', 'account show', 'audit'],
};
/** Options that many commands have. The page says once what they do. */
const COMMON = ['--json', '--csv', '--actor', '--wait', '--help'];

/** Returns every table that documents have from the code. */
export function madeTables(rules: readonly AlertRule[]): MadeTable[] {
  return [
    { page: WATCHING, name: 'metrics', text: () => metricsTable(declaredMetrics(), rules) },
    {
      page: RUNNING,
      name: 'settings',
      text: () => settingsTable([ownSettings, ...servers.map(({ settings }) => settings)]),
    },
    ...Object.entries(COMMANDS).map(([name, commands]) => ({
      page: CUSTOMERS,
      name,
      text: () => commandsTable(commands),
    })),
  ];
}

/** Returns the metrics of one process with its threads, including Node's own. */
export function declaredMetrics(): DeclaredMetric[] {
  const { registry, counted } = createMetrics();
  addDiskMetrics(registry, () => readDisk('/'));
  addReadiness(registry, async () => ({ ready: true }));
  return [registry, counted].flatMap((each) => each.getMetricsAsArray()) as unknown as DeclaredMetric[];
}

/** Returns a row for each metric of the service: its labels, its help, and the alerts that use it. */
function metricsTable(metrics: readonly DeclaredMetric[], rules: readonly AlertRule[]): string {
  const rows = metrics
    .filter(({ name }) => name.startsWith('fuel_'))
    .toSorted((one, other) => one.name.localeCompare(other.name, 'en'))
    .map(({ name, help, labelNames }) => {
      const labels = labelNames.length === 0 ? '' : `{${labelNames.join(',')}}`;
      const uses = rules.filter(({ expr }) => new RegExp(`\\b${name}(_bucket|_sum|_count)?\\b`).test(expr));
      const alerts = uses.map(({ alert, annotations }) => `[${alert}](${fromWatching(annotations.runbook)})`);
      return [`\`${name}${labels}\``, help, alerts.join(', ')];
    });
  return tableOf([['Metric', 'Meaning', 'Alerts'], ...rows]);
}

function fromWatching(path: string): string {
  const link = posix.relative(posix.dirname(WATCHING), path);
  return link.replace('watching.md#', '#');
}

/** Returns a row for each setting: its default, what it is for, and which roles need it in production. */
function settingsTable(tables: readonly SettingTable[]): string {
  const rows = tables.flatMap((table) =>
    Object.entries(table).map(([name, { fallback, about }]) => [
      `\`${name}\``,
      fallback === undefined ? 'none' : `\`${fallback}\``,
      about,
      inProduction(name),
    ]),
  );
  return tableOf([['Name', 'Default', 'Meaning', 'Production'], ...rows]);
}

function inProduction(setting: string): string {
  const [roles] = NEEDED_IN_PRODUCTION.find(([, names]) => names.some((name) => name === setting)) ?? [[]];
  if (roles.length === ROLES.length) return 'needed';
  return roles.length === 0 ? '' : `needed by ${roles.map((role) => `\`${role}\``).join(', ')}`;
}

/** Returns a row for each command: how it is called, what its help says, and its options apart from the common ones. */
function commandsTable(names: readonly string[]): string {
  const program = createProgram();
  const rows = names.map((name) => {
    const found = name
      .split(' ')
      .reduce<CommandUnknownOpts | undefined>(
        (parent, word) => parent?.commands.find((each) => each.name() === word),
        program,
      );
    if (found === undefined) throw new Error(`there is no command fuel ${name}`);
    const usage = found.registeredArguments.map((argument) => ` ${argumentText(argument)}`).join('');
    const options = found.options.filter(({ long }) => !COMMON.includes(long ?? ''));
    return [
      `\`fuel ${name}${usage}\``,
      found.description(),
      options.map(({ flags }) => `\`${flags}\``).join(', '),
    ].map((cell) => cell.replaceAll('|', '\\|'));
  });
  return tableOf([['Command', 'Meaning', 'Options'], ...rows]);
}

/** An argument as the help shows it. */
function argumentText(argument: CommandUnknownOpts['registeredArguments'][number]): string {
  const name = `${argument.name()}${argument.variadic ? '…' : ''}`;
  return argument.required ? `<${name}>` : `[${name}]`;
}

function tableOf([head = [], ...rows]: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |\n`.replaceAll('|  |', '| |');
  return [line(head), `|${'---|'.repeat(head.length)}\n`, ...rows.map(line)].join('');
}

/** Returns the page with the table in its place. Throws if the page does not name it. */
export function withTable(page: string, { name, text }: MadeTable): string {
  const [begin, end] = [`<!-- ${name}: made by npm run docs:tables -->\n`, `<!-- end of ${name} -->\n`];
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`there is no place for the table ${name}`);
  return page.slice(0, from + begin.length) + text() + page.slice(to);
}
