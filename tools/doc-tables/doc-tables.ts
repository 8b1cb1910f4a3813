import { posix } from 'node:path';
import type { SettingTable } from '../../src/base/config/setting.ts';
import { NEEDED_IN_PRODUCTION, ownSettings, ROLES } from '../../src/base/config/settings.ts';
import { readDisk } from '../../src/base/disk/disk.ts';
import { servers } from '../../src/engines/engines.ts';
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

/** Returns every table that documents have from the code. */
export function madeTables(rules: readonly AlertRule[]): MadeTable[] {
  return [
    { page: WATCHING, name: 'metrics', text: () => metricsTable(declaredMetrics(), rules) },
    {
      page: RUNNING,
      name: 'settings',
      text: () => settingsTable([ownSettings, ...servers.map(({ settings }) => settings)]),
    },
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
