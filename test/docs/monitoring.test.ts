import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { SyntaxNode } from '@lezer/common';
import { parser } from '@prometheus-io/lezer-promql';
import { describe, expect, it } from 'vitest';
import { parse as parseYaml } from 'yaml';
import { readDisk } from '../../src/base/disk/disk.ts';
import { addDiskMetrics, addReadiness, createMetrics } from '../../src/service/ops/metrics.ts';
import { SHARED } from '../../src/service/ops/shared-figures.ts';
import { anchorsOf, readDocument } from '../support/documents.ts';
import { evaluate, secondsOf, seriesOf, withoutName } from '../support/promql.ts';

const ROOT = join(import.meta.dirname, '../..');
const ALERTS = 'docs/monitoring/alerts.yaml';
/** As the file of the cases says. */
const EVALUATION_SECONDS = 60;
/** What Prometheus adds. */
const OF_PROMETHEUS = new Map([['up', ['job', 'instance']]]);
const LABELS_OF_ALL = ['instance', 'job'];
/** The values of the labels by which the expressions select. */
const VALUES: Readonly<Record<string, readonly string[]>> = {
  follower: ['transactions', 'deliveries', 'notices'],
  outcome: ['delivered', 'failed'],
  check: ['address', 'rate', 'key', 'integration', 'profile'],
  kind: ['secret', 'fault'],
  job: ['fuel'],
};

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly do: string; readonly runbook: string };
}

interface PromtoolTest {
  readonly interval: string;
  readonly input_series: readonly { readonly series: string; readonly values: string }[];
  readonly alert_rule_test: readonly {
    readonly eval_time: string;
    readonly alertname: string;
    readonly exp_alerts: readonly { readonly exp_labels: Readonly<Record<string, string>> }[];
  }[];
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

describe('the alert rules and the dashboard', () => {
  it.each(expressions)('name only metrics and labels that there are: $of', ({ expr }) => {
    expect(faultsOf(expr)).toEqual([]);
  });

  it('use every metric of the service', () => {
    const used = new Set(expressions.flatMap(({ expr }) => selectorsIn(expr).map(({ metric }) => metric)));
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

  it.each(
    tests.flatMap(({ alert_rule_test: cases, ...test }) => cases.map((each) => ({ ...test, ...each }))),
  )('fire as expected: $alertname at $eval_time of $input_series.0.series', (test) => {
    const expected = test.exp_alerts.map(({ exp_labels }) =>
      JSON.stringify(Object.entries(exp_labels).sort()),
    );
    expect(firing(test).sort()).toEqual(expected.sort());
  });

  it('are accepted by promtool, where it is installed', () => {
    if (spawnSync('promtool', ['--version']).error !== undefined) return;
    execFileSync('promtool', ['check', 'rules', join(ROOT, ALERTS)]);
    execFileSync('promtool', ['test', 'rules', join(import.meta.dirname, 'alerts.promtool.yaml')]);
  });
});

describe('a fault in an expression', () => {
  it.each([
    ['sum(rate(fuel_http_request_total[5m]))', 'fuel_http_request_total is no metric'],
    ['sum by (prefix) (fuel_http_requests_total)', 'fuel_http_requests_total has no label prefix'],
    ['fuel_http_requests_total{state="x"}', 'fuel_http_requests_total has no label state'],
    ['sum(fuel_deliveries_pending)', 'fuel_deliveries_pending is shared: aggregate it with max'],
    ['fuel_deliveries_pending > 1', 'fuel_deliveries_pending is shared: aggregate it with max'],
    ['max(fuel_follower_lag_seconds{follower="view"})', 'follower is never view'],
    ['sum(rate(fuel_http_requests_total[5m])', 'is no expression'],
    ['', 'is no expression'],
  ])('is found: %s', (expr, fault) => {
    expect(faultsOf(expr).join('; ')).toContain(fault);
  });
});

/** The labels of the alerts that fire then: those whose expression has held for as long as the rule says. */
function firing(
  test: Omit<PromtoolTest, 'alert_rule_test'> & PromtoolTest['alert_rule_test'][number],
): string[] {
  const rule = rules.find(({ alert }) => alert === test.alertname);
  const series = test.input_series.map((each) =>
    seriesOf(each.series, each.values, secondsOf(test.interval)),
  );
  let since = new Map<string, number>();
  const end = secondsOf(test.eval_time);
  for (let at = 0; at <= end; at += EVALUATION_SECONDS) {
    const samples = evaluate(rule?.expr ?? '', series, at) as readonly { labels: Record<string, string> }[];
    const held = samples.map(({ labels }) =>
      Object.entries({ ...withoutName(labels), ...rule?.labels }).sort(),
    );
    since = new Map(held.map((labels) => [JSON.stringify(labels), since.get(JSON.stringify(labels)) ?? at]));
  }
  const longEnough = ([, from]: [string, number]) => end - from >= secondsOf(rule?.for ?? '0s');
  return [...since].filter(longEnough).map(([labels]) => labels);
}

/** The labels of each series of the service, by its name; which are shared; and the names of its own metrics. */
function known() {
  const { registry, counted } = createMetrics();
  addDiskMetrics(registry, () => readDisk('/'));
  addReadiness(registry, async () => ({ ready: true }));
  const metrics = [registry, counted].flatMap((each) => each.getMetricsAsArray()) as unknown as {
    readonly name: string;
    readonly help: string;
    readonly labelNames: readonly string[];
    readonly buckets?: readonly number[];
  }[];
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

interface Selector {
  readonly metric: string;
  readonly matchers: readonly { readonly label: string; readonly value: string }[];
  /** From the inside out: the operator, and the labels it groups by. */
  readonly aggregations: readonly { readonly operator: string; readonly labels: readonly string[] }[];
}

/** Grafana replaces its variables before Prometheus sees the expression. */
function parsed(expr: string): { readonly text: string; readonly top: SyntaxNode } {
  const text = expr.replaceAll('$__rate_interval', '5m');
  return { text, top: parser.parse(text).topNode };
}

function selectorsIn(expr: string): Selector[] {
  const { text, top } = parsed(expr);
  return nodesIn(top, 'VectorSelector').map((node) => {
    const textOf = (of: SyntaxNode | null): string => (of === null ? '' : text.slice(of.from, of.to));
    const matchers = nodesIn(node, 'UnquotedLabelMatcher').map((matcher) => ({
      label: textOf(matcher.getChild('LabelName')),
      value: textOf(matcher.getChild('StringLiteral')).slice(1, -1),
    }));
    const aggregations: { operator: string; labels: string[] }[] = [];
    for (let at = node.parent; at !== null; at = at.parent) {
      if (at.name !== 'AggregateExpr') continue;
      const labels = nodesIn(at.getChild('AggregateModifier') ?? node, 'LabelName').map(textOf);
      const grouped = at.getChild('AggregateModifier') === null ? [] : labels;
      aggregations.push({ operator: textOf(at.getChild('AggregateOp')), labels: grouped });
    }
    return { metric: textOf(node.getChild('Identifier')), matchers, aggregations };
  });
}

function faultsOf(expr: string): string[] {
  const { top } = parsed(expr);
  const selectors = selectorsIn(expr);
  if (nodesIn(top, '⚠').length > 0 || selectors.length === 0) return [`${expr} is no expression`];
  return selectors.flatMap(({ metric, matchers, aggregations }) => {
    const labels = labelsOf.get(metric);
    if (labels === undefined) return [`${metric} is no metric`];
    const named = [...matchers.map(({ label }) => label), ...aggregations.flatMap((each) => each.labels)];
    const unknown = named.filter((label) => ![...labels, ...LABELS_OF_ALL].includes(label));
    const values = matchers.flatMap(({ label, value }) => {
      const permitted = VALUES[label];
      const given = permitted === undefined ? [] : value.split('|');
      return given
        .filter((each) => permitted?.includes(each) === false)
        .map((each) => `${label} is never ${each}`);
    });
    const isAdded = shared.has(metric) && aggregations[0]?.operator !== 'max';
    return [
      ...unknown.map((label) => `${metric} has no label ${label}`),
      ...values,
      ...(isAdded ? [`${metric} is shared: aggregate it with max`] : []),
    ];
  });
}

function nodesIn(top: SyntaxNode, name: string): SyntaxNode[] {
  const found: SyntaxNode[] = [];
  top.cursor().iterate((node) => {
    if (node.name === name || (name === '⚠' && node.type.isError)) found.push(node.node);
  });
  return found;
}
