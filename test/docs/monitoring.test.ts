import { spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse as parseYaml, stringify as yamlOf } from 'yaml';
import { SHARED } from '../../src/service/ops/shared-figures.ts';
import { declaredMetrics } from '../../tools/doc-tables/doc-tables.ts';
import { anchorsOf, readDocument } from '../support/documents.ts';
import { folder } from '../support/service/commands.ts';

const ROOT = join(import.meta.dirname, '../..');
const ALERTS = 'docs/monitoring/alerts.yaml';
/** The series and labels that Prometheus adds. */
const OF_PROMETHEUS = new Map([['up', ['job', 'instance']]]);
const LABELS_OF_ALL = ['instance', 'job'];
interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly do: string; readonly runbook: string };
}

interface PromtoolTest {
  readonly alert_rule_test: readonly { readonly alertname: string; readonly exp_alerts: readonly object[] }[];
}

interface Panel {
  readonly title: string;
  readonly targets: readonly { readonly expr: string }[];
}

const rules = (parseYaml(readDocument(ALERTS)) as { groups: { rules: Rule[] }[] }).groups.flatMap(
  (group) => group.rules,
);
const { tests } = parseYaml(readDocument('test/docs/alerts.promtool.yaml')) as { tests: PromtoolTest[] };
const { panels } = JSON.parse(readDocument('docs/monitoring/dashboard.json')) as { panels: Panel[] };
const expressions = [
  ...rules.map(({ alert, expr }) => ({ of: alert, expr })),
  ...panels.flatMap(({ title, targets }) => targets.map(({ expr }) => ({ of: title, expr }))),
];
const { labelsOf, shared, own } = known();
const hasPromtool = spawnSync('promtool', ['--version']).error === undefined;
if (!hasPromtool)
  console.log(
    'of the alert rules only the names are checked: promtool is missing (apt-get install prometheus)',
  );

describe('the alert rules and the dashboard', () => {
  it.each(expressions)('name only metrics and labels that there are: $of', ({ expr }) => {
    expect(faultsOf(expr)).toEqual([]);
  });

  it('use every metric of the service', () => {
    const used = new Set(expressions.flatMap(({ expr }) => metricsIn(expr)));
    const family = (name: string) => [name, `${name}_bucket`, `${name}_sum`, `${name}_count`];
    expect(own.filter((name) => !family(name).some((each) => used.has(each)))).toEqual([]);
  });

  it('say of each alert how urgent it is, what it is, what to do and where that is written', () => {
    for (const { alert, labels, annotations } of rules) {
      expect(['page', 'ticket'], alert).toContain(labels.severity);
      for (const text of [annotations.summary, annotations.do]) expect(text, alert).toMatch(/\w{3}/);
      const [file = '', anchor = ''] = annotations.runbook.split('#');
      expect(existsSync(join(ROOT, file)), `${alert}: ${file}`).toBe(true);
      expect(anchorsOf(readDocument(file)), alert).toContain(anchor);
    }
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
  });

  it('have a case each in which they fire, and one in which they do not', () => {
    const cases = tests.flatMap((each) => each.alert_rule_test);
    for (const { alert } of rules) {
      const expected = cases
        .filter(({ alertname }) => alertname === alert)
        .map((each) => each.exp_alerts.length);
      expect([alert, expected.includes(0), expected.some((count) => count > 0)]).toEqual([alert, true, true]);
    }
  });

  it.runIf(hasPromtool)('are valid and fire in their cases, as promtool says', () => {
    const groups = [{ name: 'panels', rules: expressions.map(({ expr }) => ({ record: 'panel', expr })) }];
    const all = join(folder(), 'expressions.yaml');
    writeFileSync(all, yamlOf({ groups }).replaceAll('$__rate_interval', '5m')); // as Grafana does
    promtool('check', 'rules', '--lint=none', all);
    promtool('check', 'rules', join(ROOT, ALERTS));
    promtool('test', 'rules', join(import.meta.dirname, 'alerts.promtool.yaml'));
  });
});

function promtool(...args: readonly string[]): void {
  const { status, stdout, stderr } = spawnSync('promtool', args, { encoding: 'utf8' });
  expect(status, stdout + stderr).toBe(0);
}

/**
 * Returns the labels of each series by its name, which series are shared, and the names of the service's own metrics.
 */
function known() {
  const metrics = declaredMetrics();
  const series = metrics.flatMap(({ name, labelNames, buckets }): [string, readonly string[]][] =>
    buckets === undefined
      ? [[name, labelNames]]
      : [
          [`${name}_bucket`, [...labelNames, 'le']],
          [`${name}_sum`, labelNames],
          [`${name}_count`, labelNames],
        ],
  );
  const isOwn = ({ name }: { readonly name: string }): boolean => name.startsWith('fuel_');
  return {
    labelsOf: new Map([...OF_PROMETHEUS, ...series]),
    shared: new Set(metrics.filter(({ help }) => help.startsWith(SHARED)).map(({ name }) => name)),
    own: metrics.filter(isOwn).map(({ name }) => name),
  };
}

const OPERATORS = new Set(['and', 'or', 'unless']);

/** Returns the names in an expression that are not labels, ranges or functions. */
function metricsIn(expr: string): string[] {
  const bare = expr.replace(/\{[^}]*\}|\[[^\]]*\]|\bby *\([^)]*\)|\boffset \w+/g, ' ');
  return [...bare.matchAll(/(?<![\w.])[a-z_]\w*\b(?! *\()/g)]
    .map(([name]) => name)
    .filter((name) => !OPERATORS.has(name));
}

function faultsOf(expr: string): string[] {
  const metrics = metricsIn(expr);
  const labels = [...LABELS_OF_ALL, ...metrics.flatMap((name) => labelsOf.get(name) ?? [])];
  const grouped = [...expr.matchAll(/\bby *\(([^)]*)\)/g)].flatMap(([, names = '']) => names.split(/, */));
  const matched = [...expr.matchAll(/(\w+) *=~? *"/g)].map(([, name = '']) => name);
  const isMax = (name: string): boolean =>
    new RegExp(`max *(by *\\([^)]*\\) *)?\\((\\w+\\()?${name}\\b`).test(expr);
  return [
    ...metrics.filter((name) => !labelsOf.has(name)).map((name) => `${name} is no metric`),
    ...[...grouped, ...matched]
      .filter((name) => !labels.includes(name))
      .map((name) => `there is no label ${name}`),
    ...metrics
      .filter((name) => shared.has(name) && !isMax(name))
      .map((name) => `${name} is shared: aggregate it with max`),
  ];
}
