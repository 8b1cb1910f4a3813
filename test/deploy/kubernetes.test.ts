import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { loadConfig, showConfig } from '../../src/config/config.ts';
import { ROLES } from '../../src/service/roles/roles.ts';
import { ROOT } from './compose-file.ts';

interface Container {
  readonly image: string;
  readonly args: readonly string[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly volumeMounts: readonly { readonly mountPath: string }[];
  readonly lifecycle?: unknown;
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
/** What `fuel.env` holds, which becomes the secret `fuel-settings`. */
const SECRETS = {
  EVENTSTORE_URL: 'esdb://fuel:password@esdb:2113',
  MONGODB_URL: 'mongodb://fuel:password@mongodb/?replicaSet=rs0',
  FUEL_MASTER_KEY: Buffer.alloc(32, 1).toString('base64'),
  FUEL_IMAGES_ACCESS_KEY_ID: 'key',
  FUEL_IMAGES_SECRET_ACCESS_KEY: 'secret',
  FUEL_SMTP_URL: 'smtps://mail.example.com',
};

describe('deploy/kubernetes/fuel.yaml', () => {
  it('runs every role, the projector with a standby', () => {
    expect(deployments.map(({ container }) => container.args)).toEqual(
      ROLES.map((role) => ['serve', '--role', role]),
    );
    expect(deployments.find(({ name }) => name === 'fuel-projector')?.spec.replicas).toBe(2);
  });

  it('waits before an end by a program of the image, which Kubernetes before 1.30 takes too', () => {
    const api = deployments.find(({ name }) => name === 'fuel-api')?.container;
    expect(api?.lifecycle).toEqual({ preStop: { exec: { command: ['sleep', '5'] } } });
  });

  it.each(deployments)('gives $name settings that the service starts with', ({ container }) => {
    const [map] = ofKind('ConfigMap');
    const environment = { ...map?.data, ...SECRETS };
    expect(Object.keys(environment).filter((name) => !settings.includes(name))).toEqual([]);
    expect(loadConfig(environment, 'serve').FUEL_ENVIRONMENT).toBe('production');
    expect(container.volumeMounts).toContainEqual(expect.objectContaining({ mountPath: '/tls' }));
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
