import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';

import { expect, test } from '@jest/globals';
import { parse, parseAllDocuments } from 'yaml';

/*
 * What the shipped pods promise of themselves. The chart renders the same (test/integration/layouts.test.ts).
 */
const DEPLOY = path.resolve(import.meta.dirname, '../../deploy');
const read = (file: string): unknown => parse(readFileSync(path.join(DEPLOY, file), 'utf8'));

interface Container {
  readonly name: string;
  readonly image: string;
  readonly securityContext: unknown;
  readonly resources?: { readonly requests?: object; readonly limits?: object };
  readonly livenessProbe?: object;
  readonly readinessProbe?: object;
  readonly volumeMounts?: readonly { readonly name: string }[];
}

interface Deployment {
  readonly spec: {
    readonly replicas: number;
    readonly template: {
      readonly metadata: { readonly labels: object };
      readonly spec: {
        readonly securityContext: unknown;
        readonly affinity: { readonly podAntiAffinity: object };
        readonly priorityClassName: string;
        readonly containers: readonly Container[];
        readonly [field: string]: unknown;
      };
    };
  };
}

const { spec } = read('base/deployment.yaml') as Deployment;
const pod = spec.template.spec;
/** Those of the Deployment, and those that layouts and drivers add to it. */
const CONTAINERS = [
  ...pod.containers,
  ...globSync('{layouts/*/containers,drivers/*/driver}.yaml', { cwd: DEPLOY }).flatMap((file) => {
    const patch = read(file) as readonly { readonly path: string; readonly value?: Container }[];
    return patch.flatMap(({ path: at, value }) => (at.endsWith('/containers/-') && value !== undefined ? [value] : []));
  }),
];

test('pods run without root, with the default seccomp profile, and reach nothing of their Node', () => {
  expect(pod.securityContext).toMatchObject({
    runAsNonRoot: true,
    runAsUser: 65532,
    seccompProfile: { type: 'RuntimeDefault' },
  });
  expect(Object.keys(pod).filter((field) => field.startsWith('host'))).toEqual([]);
});

test.each(CONTAINERS)('container $name of $image cannot gain rights, nor write its image', ({ securityContext }) => {
  expect(securityContext).toEqual({
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  });
});

test.each(CONTAINERS.filter(({ image }) => image.startsWith('machinist:')))(
  'container $name is probed, asks for what was measured, and ends before it takes more memory',
  ({ livenessProbe, readinessProbe, resources }) => {
    expect(livenessProbe).toMatchObject({ httpGet: { path: '/healthz' } });
    expect(readinessProbe).toMatchObject({ httpGet: { path: '/readyz' } });
    expect(resources).toEqual({
      requests: { cpu: expect.any(String), memory: expect.any(String) },
      limits: { memory: expect.any(String) },
    });
  },
);

test('one of two replicas may be away at a time, and they keep apart', () => {
  const { labels } = spec.template.metadata;
  const selector = { matchLabels: labels };

  expect(CONTAINERS.length).toBeGreaterThan(3);
  expect(spec.replicas).toBe(2);
  expect((read('base/pod-disruption-budget.yaml') as { spec: unknown }).spec).toEqual({ maxUnavailable: 1, selector });
  const [{ podAffinityTerm }] = Object.values(pod.affinity.podAntiAffinity)[0] as [{ podAffinityTerm: unknown }];
  expect(podAffinityTerm).toEqual({ topologyKey: 'kubernetes.io/hostname', labelSelector: selector });
  expect((read('base/priority-class.yaml') as { metadata: unknown }).metadata).toEqual({ name: pod.priorityClassName });
});

test('the network policy limits who comes in, and not where the manager goes: API servers and drivers are anywhere', () => {
  const { spec: policy } = read('base/network-policy.yaml') as { spec: Record<string, unknown> };

  expect(policy).toEqual({
    podSelector: { matchLabels: spec.template.metadata.labels },
    policyTypes: ['Ingress'],
    ingress: [{ ports: [{ protocol: 'TCP', port: 10258 }] }],
  });
});

test('a driver as a service is one, for its tokens are counted once, and keeps them on a volume that outlives its pod', () => {
  const file = readFileSync(path.join(DEPLOY, 'examples/driver-service.yaml'), 'utf8');
  const all = parseAllDocuments(file).map((document) => document.toJS() as { kind: string; spec: unknown });
  const service = all.find(({ kind }) => kind === 'Deployment') as unknown as Deployment & {
    spec: { strategy: unknown };
  };
  const [driver] = service.spec.template.spec.containers as [Container & { args: readonly string[] }];

  expect(service.spec).toMatchObject({ replicas: 1, strategy: { type: 'Recreate' } });
  expect(service.spec.template.spec).toMatchObject({
    automountServiceAccountToken: false,
    securityContext: pod.securityContext,
    volumes: [{ name: 'state', persistentVolumeClaim: {} }, { name: 'tls' }],
  });
  expect(driver.volumeMounts).toContainEqual({ name: 'state', mountPath: '/var/lib/driver' });
  expect(driver.args).toContain('--state-directory=/var/lib/driver/state');
  expect(driver.securityContext).toEqual(CONTAINERS[0]?.securityContext);
});

test('every driver beside the manager keeps its tokens on the volume of the pod', () => {
  const drivers = globSync('drivers/*/driver.yaml', { cwd: DEPLOY });

  expect(drivers.filter((file) => !JSON.stringify(read(file)).includes('--state-directory=/run/driver/'))).toEqual([]);
  expect(drivers).toHaveLength(6);
});

test('only who needs it is given the permissions of the manager: no driver but those that work in a cluster', () => {
  const isGiven = ({ volumeMounts = [] }: Container): boolean =>
    volumeMounts.some(({ name }) => name === 'service-account');

  expect(pod).toMatchObject({ automountServiceAccountToken: false });
  expect(
    CONTAINERS.filter(isGiven)
      .map(({ image }) => image.replace(/:.*/, ''))
      .toSorted(),
  ).toEqual([
    'machinist',
    'machinist',
    'machinist-cluster-api-driver',
    'machinist-kwok-driver',
    'machinist-sim-driver',
  ]);
});
