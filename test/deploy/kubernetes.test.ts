import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ipaddr from 'ipaddr.js';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { ROLES } from '../../src/base/config/settings.ts';
import { loadConfig, showConfig } from '../../src/engines/engines.ts';
import { isPublicAddress } from '../../src/push/targets/public-address.ts';
import { SEAL_KEY } from '../support/service/production.ts';
import { ROOT } from './compose-file.ts';

interface Container {
  readonly image: string;
  readonly args: readonly string[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly volumeMounts: readonly { readonly mountPath: string }[];
  readonly envFrom: readonly { readonly secretRef?: { readonly name: string } }[];
  readonly env?: readonly { readonly name: string; readonly value: string }[];
  readonly resources: { readonly limits: { readonly memory: string } };
  readonly securityContext: unknown;
  readonly livenessProbe: { readonly httpGet: { readonly path: string; readonly port: string } };
  readonly readinessProbe: { readonly httpGet: { readonly path: string; readonly port: string } };
}

interface Item {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly data?: Readonly<Record<string, string>>;
  // biome-ignore lint/suspicious/noExplicitAny: each kind has a form of its own
  readonly spec: any;
}

const { items } = parse(readFileSync(join(ROOT, 'deploy/kubernetes/fuel.yaml'), 'utf8')) as {
  readonly items: readonly Item[];
};
const ofKind = (kind: string) => items.filter((item) => item.kind === kind);
const deployments = ofKind('Deployment').map(({ metadata, spec }) => ({
  name: metadata.name,
  spec,
  container: spec.template.spec.containers[0] as Container,
}));
const settings = showConfig({}).settings.map(({ name }) => name);
/** The contents of the secrets, each made from a file with that name. */
const SECRETS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'fuel-settings': {
    EVENTSTORE_URL: 'esdb://fuel:password@esdb:2113',
    MONGODB_URL: 'mongodb://fuel:password@mongodb/?replicaSet=rs0',
    FUEL_MASTER_KEY: Buffer.alloc(32, 1).toString('base64'),
  },
  'fuel-seal': { FUEL_SEAL_KEY: SEAL_KEY },
  'fuel-photos': { FUEL_IMAGES_ACCESS_KEY_ID: 'key', FUEL_IMAGES_SECRET_ACCESS_KEY: 'secret' },
  'fuel-mail': { FUEL_SMTP_URL: 'smtps://mail.example.com' },
};
const secretsOf = ({ envFrom }: Container): string[] =>
  envFrom.flatMap(({ secretRef }) => (secretRef === undefined ? [] : [secretRef.name]));

describe('deploy/kubernetes/fuel.yaml', () => {
  it('runs every role, the projector with a standby', () => {
    expect(deployments.map(({ container }) => container.args)).toEqual(
      ROLES.map((role) => ['serve', '--role', role]),
    );
    expect(deployments.find(({ name }) => name === 'fuel-projector')?.spec.replicas).toBe(2);
  });

  it('lets the API serve on while new connections still arrive, and end within the time that a pod has', () => {
    const api = deployments.find(({ name }) => name === 'fuel-api');
    const delay = api?.container.env?.find(({ name }) => name === 'FUEL_STOP_DELAY')?.value;
    expect(delay).toBe('5s');
    expect(api?.spec.template.spec.terminationGracePeriodSeconds).toBeGreaterThan(5 + 10);
  });

  it.each(deployments)('gives $name settings that its role starts with', ({ container }) => {
    const [map] = ofKind('ConfigMap');
    const own = (container.env ?? []).map(({ name, value }) => [name, value] as const);
    const given = secretsOf(container).map((name) => SECRETS[name]);
    const environment = Object.assign({ ...map?.data }, ...given, Object.fromEntries(own));
    expect(Object.keys(environment).filter((name) => !settings.includes(name))).toEqual([]);
    const roles = ROLES.filter((role) => container.args.includes(role));
    expect(loadConfig(environment, 'serve', roles).FUEL_ENVIRONMENT).toBe('production');
  });

  it('gives a secret to those alone who use it', () => {
    const given = deployments.map(({ name, container }) => [name, secretsOf(container).slice(1)]);
    expect(given).toEqual([
      ['fuel-api', ['fuel-photos']],
      ['fuel-projector', ['fuel-seal']],
      ['fuel-webhooks', ['fuel-photos']],
      ['fuel-notices', ['fuel-mail']],
    ]);
    const withKey = deployments.filter(({ spec }) =>
      spec.template.spec.volumes.some(({ secret }: { secret?: object }) => secret !== undefined),
    );
    expect(withKey.map(({ name }) => name)).toEqual(['fuel-api']);
  });

  it.each(deployments)('lets $name do nothing but its work', ({ container }) => {
    expect(container.resources.limits.memory).toBe('2Gi');
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
  });

  it('lets the pods connect to the engines, the webhooks to public addresses too, the notices to mail', () => {
    const policies = ofKind('NetworkPolicy').map(({ metadata, spec }) => ({
      name: metadata.name,
      ports: spec.egress.map((rule: { ports: { port: number }[] }) => rule.ports.map(({ port }) => port)),
      labels: spec.podSelector.matchLabels,
    }));
    expect(policies).toEqual([
      {
        name: 'fuel',
        ports: [
          [53, 53],
          [2113, 27017, 5432],
        ],
        labels: { app: 'fuel' },
      },
      { name: 'fuel-webhooks', ports: [[443]], labels: { app: 'fuel', role: 'webhooks' } },
      { name: 'fuel-notices', ports: [[25, 465, 587]], labels: { app: 'fuel', role: 'notices' } },
    ]);
  });

  it('lets the webhooks connect to no address that the sender refuses', () => {
    const rules = ofKind('NetworkPolicy').find(({ metadata }) => metadata.name === 'fuel-webhooks')?.spec
      .egress;
    const blocks: { cidr: string; except: string[] }[] = rules[0].to.map(
      ({ ipBlock }: { ipBlock: object }) => ipBlock,
    );
    const isIn = (address: string, cidr: string): boolean => {
      const [parsed, range] = [ipaddr.parse(address), ipaddr.parseCIDR(cidr)];
      return parsed.kind() === range[0].kind() && parsed.match(range);
    };
    const isAllowed = (address: string): boolean =>
      blocks.some(({ cidr, except }) => isIn(address, cidr) && !except.some((each) => isIn(address, each)));
    const refused = [
      '0.0.0.1',
      '10.0.0.1',
      '100.64.0.1',
      '127.0.0.1',
      '168.63.129.16',
      '169.254.169.254',
      '172.16.0.1',
      ...[
        '192.0.0.1',
        '192.0.2.1',
        '192.31.196.1',
        '192.52.193.1',
        '192.88.99.1',
        '192.168.0.1',
        '192.175.48.1',
      ],
      '198.18.0.1',
      '198.51.100.1',
      '203.0.113.1',
      '224.0.0.1',
      '240.0.0.1',
      '255.255.255.255',
      '::1',
      ...[
        '::ffff:10.0.0.1',
        '64:ff9b::a00:1',
        '100::1',
        'fc00::1',
        'fe80::1',
        'fec0::1',
        'ff02::1',
        '5f00::1',
      ],
      '2001::1',
      '2001:2::1',
      '2001:3::1',
      '2001:4:112::1',
      '2001:10::1',
      '2001:20::1',
      '2001:30::1',
      '2001:db8::1',
      '2002:a00:1::1',
      '2620:4f:8000::1',
      '3fff::1',
    ];
    expect(refused.filter(isPublicAddress)).toEqual([]);
    expect(refused.filter(isAllowed)).toEqual([]);
    expect(['1.1.1.1', '2606:4700::1111', '192.0.3.1', '2001:4860::1'].filter(isAllowed)).toHaveLength(4);
  });

  it('replaces what does not live, and sends nothing to what is not ready', () => {
    for (const { container } of deployments) {
      expect(container.livenessProbe.httpGet).toEqual({ path: '/healthz', port: 'ops' });
      expect(container.readinessProbe.httpGet).toEqual({ path: '/readyz', port: 'ops' });
      expect(container.ports).toContainEqual({ name: 'ops', containerPort: 9464 });
    }
  });

  it('leaves what is under way more than the 10 s that it may take', () => {
    for (const { spec } of deployments)
      expect(spec.template.spec.terminationGracePeriodSeconds).toBeGreaterThan(15);
  });

  it('selects in each part what the part before it labels', () => {
    const labels = deployments.map(({ spec }) => spec.template.metadata.labels);
    expect(deployments.map(({ spec }) => spec.selector.matchLabels)).toEqual(labels);
    const [service] = ofKind('Service');
    expect(labels).toContainEqual(service?.spec.selector);
  });

  it('keeps the operations listener from customers', () => {
    const [service] = ofKind('Service');
    expect(service?.spec.ports.map((port: { targetPort: string }) => port.targetPort)).toEqual(['https']);
    const [policy] = ofKind('NetworkPolicy');
    const open = policy?.spec.ingress.filter((rule: { from?: unknown }) => rule.from === undefined);
    expect(open).toEqual([{ ports: [{ port: 'https' }] }]);
  });

  it('runs the image of this version', () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    expect(new Set(deployments.map(({ container }) => container.image))).toEqual(
      new Set([`fuel-integration:${version}`]),
    );
  });
});
