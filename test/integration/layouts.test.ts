import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

import { beforeAll, describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';

import packageJson from '../../package.json' with { type: 'json' };
import { CELLS_FLAGS } from '../../hack/bench/bed.ts';
import { resolveProgram } from '../../hack/control-plane/binaries.ts';
import { applyManifests, type Manifest, parseManifests } from '../../hack/control-plane/apply.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { Config } from '../../pkg/operator/config/config.ts';
import type { Program as FlagsOf } from '../../pkg/operator/config/flag.ts';
import { InProcessManager } from '../cloud/manager.ts';
import { QUICK, SimulatedCloud } from '../cloud/sim-cloud.ts';
import { Site } from '../cloud/site.ts';
import { connect, namespace } from '../env/environment.ts';
import { built, type Kustomization, kustomize } from '../env/kustomize.ts';
import { Program } from '../e2e/program.ts';
import { eventually } from '../expect/eventually.ts';
import { parseFlags } from '../parse-flags.ts';
import { moveTo } from './shipped-roles.ts';
import { feed } from '../processes/feed.ts';

/*
 * What deploy/ ships for an installation: the layouts of kustomize and the chart of Helm, which render the same objects; the API server
 * takes them, and the programs their arguments.
 */
const ROOT = resolve(import.meta.dirname, '../..');
const CHART = join(ROOT, 'deploy/helm/machinist');
const SIM = {
  component: 'deploy/drivers/sim',
  provider: 'sim',
  image: `machinist-sim-driver:${packageJson.version}`,
  args: ['--kubeconfig=inClusterConfig', '--state-directory=/run/driver/state'],
  serviceAccount: true,
};
const KWOK = {
  ...SIM,
  component: 'deploy/drivers/kwok',
  provider: 'kwok',
  image: `machinist-kwok-driver:${packageJson.version}`,
};
const CLUSTER_API = {
  ...SIM,
  component: 'deploy/drivers/cluster-api',
  provider: 'cluster-api',
  image: `machinist-cluster-api-driver:${packageJson.version}`,
};
const OPENSTACK = {
  component: 'deploy/drivers/openstack',
  provider: 'OpenStack',
  image: `machinist-openstack-driver:${packageJson.version}`,
  args: ['--state-directory=/run/driver/state'],
};
const EXAMPLE = {
  component: 'deploy/drivers/example',
  provider: 'example',
  image: 'example-driver:latest',
  args: ['--state-directory=/run/driver/state'],
};
const CASES = [
  { layout: 'one-process', with: 'no driver' },
  { layout: 'split', with: 'no driver' },
  { layout: 'two-namespaces', with: 'no driver' },
  { layout: 'cells', with: 'no driver' },
  { layout: 'named-cells', with: 'no driver' },
  { layout: 'beside-provider', with: 'no driver' },
  { layout: 'one-process', with: 'the simulated cloud', driver: SIM },
  { layout: 'split', with: 'a driver of ones own', driver: EXAMPLE },
  { layout: 'two-namespaces', with: 'a driver of ones own', driver: EXAMPLE },
  { layout: 'cells', with: 'a driver of ones own', driver: EXAMPLE },
  { layout: 'one-process', with: 'OpenStack', driver: OPENSTACK },
  { layout: 'one-process', with: 'kwok', driver: KWOK },
  { layout: 'one-process', with: 'Cluster API', driver: CLUSTER_API },
] as const;

/** The containers with a program of ours, in order. */
const PROGRAMS_OF: Readonly<
  Record<(typeof CASES)[number]['layout'], readonly { container: string; program: FlagsOf; folder?: string }[]>
> = {
  'one-process': [{ container: 'machinist', program: 'machinist run' }],
  'two-namespaces': [{ container: 'machinist', program: 'machinist run' }],
  cells: [{ container: 'machinist', program: 'machinist run' }],
  'named-cells': [{ container: 'machinist', program: 'machinist run' }],
  split: [
    { container: 'machine-controller', program: 'machine-controller', folder: 'machine-controller' },
    {
      container: 'machine-controller-manager',
      program: 'machine-controller-manager',
      folder: 'machine-controller-manager',
    },
  ],
  'beside-provider': [
    {
      container: 'machine-controller-manager',
      program: 'machine-controller-manager',
      folder: 'machine-controller-manager',
    },
  ],
};

let helm: string;
beforeAll(async () => {
  ({ path: helm } = await resolveProgram('helm'));
});

async function runHelm(...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(helm, args, { maxBuffer: 16e6 });
  return stdout;
}

async function template(...args: string[]): Promise<Manifest[]> {
  return templateIn('machinist', ...args);
}

async function templateIn(space: string, ...args: string[]): Promise<Manifest[]> {
  return parseManifests(await runHelm('template', 'machinist', CHART, `--namespace=${space}`, ...args));
}

/** A driver as the chart takes it. */
function driverValues({
  component: _component,
  ...values
}: {
  readonly component: string;
  readonly provider: string;
}): object {
  return values;
}

/** Arguments as the kubelet passes them on, from the environment that the manifest gives. */
function expanded(args: readonly string[]): readonly string[] {
  return args.map((arg) => arg.replace('$(POD_NAMESPACE)', 'machinist'));
}

/** By what they are called, so that order does not matter. */
function byName(manifests: readonly Manifest[]): Record<string, Manifest> {
  const named = manifests.map((manifest) => [`${manifest.kind} ${manifest.metadata.name}`, manifest] as const);
  expect(new Set(named.map(([name]) => name)).size).toBe(manifests.length);
  return Object.fromEntries(named);
}

describe.each(CASES)('layout $layout with $with', (shipped) => {
  const { layout } = shipped;
  const driver = 'driver' in shipped ? shipped.driver : undefined;
  let manifests: Manifest[];
  beforeAll(async () => {
    manifests = await kustomize([`deploy/layouts/${layout}`], driver === undefined ? [] : [driver.component]);
  });

  /** The values of the chart that mean this case. */
  function settings(): string[] {
    const values = {
      ...(layout === 'named-cells' ? { layout: 'cells', cells: { namespaces: ['cell-a'] } } : { layout }),
      drivers: driver === undefined ? [] : [driverValues(driver)],
      rbac: { simDriver: driver === SIM, kwokDriver: driver === KWOK, clusterAPIDriver: driver === CLUSTER_API },
    };
    return Object.entries(values).map(([name, value]) => `--set-json=${name}=${JSON.stringify(value)}`);
  }

  test('is the same from kustomize and from Helm', async () => {
    expect(byName(await template(...settings()))).toEqual(byName(manifests));
  });

  test('is the same from kustomize and from Helm in another namespace, but for what belongs to kube-system', async () => {
    const components = [...(driver === undefined ? [] : [driver.component]), 'deploy/another-namespace'];
    const elsewhere = await kustomize([`deploy/layouts/${layout}`], components);

    expect(byName(await templateIn('elsewhere', ...settings()))).toEqual(byName(elsewhere));
    expect(JSON.stringify(elsewhere)).not.toContain('"namespace":"machinist"');
    expect(new Set(elsewhere.map(({ metadata }) => metadata.namespace))).toEqual(
      new Set(manifests.map(({ metadata: { namespace: space } }) => (space === 'machinist' ? 'elsewhere' : space))),
    );
  });

  test('holds no namespace, whose deletion would delete all Machines', () => {
    expect(manifests.filter(({ kind }) => kind === 'Namespace')).toEqual([]);
  });

  test('is taken by the API server down to the last field', async () => {
    await using own = await namespace();
    const moved = manifests.map((manifest) => moveTo(own.name, manifest));

    const said = await apply(moved);

    expect(said.filter((line) => !/(created|configured|unchanged|applied) \(server dry run\)$/.test(line))).toEqual([]);
    expect(said).toHaveLength(moved.length);
  });

  test('starts programs that are in the image, with arguments that they take, on the ports that are probed', async () => {
    const containers = containersOf(manifests).filter(({ image }) => image === `machinist:${packageJson.version}`);

    expect(containers.map(({ name }) => name)).toEqual(PROGRAMS_OF[layout].map(({ container }) => container));
    for (const [at, { program, folder }] of PROGRAMS_OF[layout].entries()) {
      const {
        command,
        args: written = [],
        ports,
        livenessProbe,
        readinessProbe,
        securityContext,
      } = containers[at] as Container;
      expect(command).toEqual(folder === undefined ? undefined : ['/nodejs/bin/node', `/app/cmd/${folder}/main.js`]);
      const args = expanded(written);
      const { config, warnings } = await parseFlags(program, program === 'machinist run' ? args.slice(1) : args);
      expect(warnings).toEqual([]);
      expect(config.clusters.namespace).toBe(layout === 'two-namespaces' ? 'machines' : 'machinist');
      expect(config.leader.namespace).toBe('machinist');
      expect(config.cells?.selector || undefined).toBe(layout === 'cells' ? 'machines=managed' : undefined);
      expect(config.cells?.names).toEqual(layout === 'named-cells' ? ['cell-a'] : undefined);
      expect(config.drivers.map(({ provider }) => provider)).toEqual(
        driver === undefined || program === 'machine-controller-manager' ? [] : [driver.provider],
      );
      expect(ports).toEqual([{ name: livenessProbe.httpGet.port, containerPort: config.server.port }]);
      expect(readinessProbe.httpGet.port).toBe(livenessProbe.httpGet.port);
      expect(securityContext).toMatchObject({ readOnlyRootFilesystem: true, allowPrivilegeEscalation: false });
    }
  });
});

test.each([
  { program: 'sim-driver', component: SIM.component },
  { program: 'kwok-driver', component: KWOK.component },
  { program: 'openstack-driver', component: OPENSTACK.component },
  { program: 'cluster-api-driver', component: CLUSTER_API.component },
])('$program is started with flags that it knows', async ({ program, component }) => {
  const manifests = await kustomize(['deploy/layouts/one-process'], [component]);
  const [, { args = [] }] = containersOf(manifests) as [Container, Container];
  // No folder can be made below a device: that is all that it finds wrong.
  const elsewhere = args.map((arg) => arg.replace('/run/driver', '/dev/null'));

  const { code, stderr, stdout } = await Program.run(program, elsewhere);

  expect({ code, said: stdout + stderr }).toEqual({ code: 1, said: expect.stringContaining('/dev/null/state') });
});

test.each(['sim-driver', 'kwok-driver', 'cluster-api-driver'])(
  '%s looks for the cluster of its pod where every pod finds it',
  async (program) => {
    const place = mkdtempSync(join(tmpdir(), 'pod-'));
    const args = [
      `--address=unix://${place}/socket`,
      `--state-directory=${place}/state`,
      '--kubeconfig=inClusterConfig',
    ];

    const { code, stderr } = await Program.run(program, args, {
      env: { KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '443' },
    });

    rmSync(place, { recursive: true });
    // No pod is here: the first thing that is missing is the token.
    expect({ code, said: stderr }).toEqual({ code: 1, said: expect.stringContaining('serviceaccount/token') });
  },
);

test('a driver as a service is taken by the API server down to the last field', async () => {
  await using own = await namespace();
  const manifests = parseManifests(readFileSync(join(ROOT, 'deploy/examples/driver-service.yaml'), 'utf8'));

  const said = await apply(manifests.map((manifest) => moveTo(own.name, manifest)));

  expect(said.filter((line) => !/(created|applied) \(server dry run\)$/.test(line))).toEqual([]);
  expect(said).toHaveLength(4);
});

test('the chart gives what deploy/autoscaler gives: the port, its certificates, and a way to it', async () => {
  const plain = await kustomize(
    ['deploy/layouts/one-process'],
    [],
    readFileSync(join(ROOT, 'deploy/autoscaler/machinist-port.patch'), 'utf8'),
  );
  const port = parseManifests(readFileSync(join(ROOT, 'deploy/autoscaler/service.yaml'), 'utf8'));

  expect(byName(await template('--set=autoscaler.enabled=true'))).toEqual(byName([...plain, ...port]));
});

/** Of the pod of a Deployment, what the autoscaler's certificates are mounted from and where. */
function certificatesOf(manifests: readonly Manifest[], name: string): unknown {
  const { spec } = manifests.find(
    ({ kind, metadata }) => kind === 'Deployment' && metadata.name === name,
  ) as unknown as {
    spec: {
      template: {
        spec: {
          containers: [{ volumeMounts: { name: string; mountPath: string }[] }];
          volumes: { name: string; secret?: { secretName: string } }[];
        };
      };
    };
  };
  const {
    containers: [{ volumeMounts }],
    volumes,
  } = spec.template.spec;
  return volumes.flatMap(({ name: volume, secret }) =>
    secret === undefined
      ? []
      : [{ secret: secret.secretName, at: volumeMounts.find((mount) => mount.name === volume)?.mountPath }],
  );
}

describe('the URLs of the runbooks', () => {
  const prefix = 'https://git.example.com/machinist/blob/main/';
  const urlsIn = (manifests: readonly Manifest[]): string[] => {
    const rule = manifests.find(({ kind }) => kind === 'PrometheusRule') as unknown as {
      spec: { groups: { rules: { annotations: { runbook_url: string } }[] }[] };
    };
    return rule.spec.groups.flatMap(({ rules }) => rules.map(({ annotations }) => annotations.runbook_url));
  };

  test('are paths in the repository until a prefix is given', async () => {
    const ofKustomize = urlsIn(await kustomize(['deploy/monitoring'], []));

    expect(ofKustomize.filter((url) => !url.startsWith('docs/runbooks/'))).toEqual([]);
    expect(urlsIn(await template('--set=prometheusRule.enabled=true'))).toEqual(ofKustomize);
  });

  test('are prefixed by the chart, and by the overlay that the page on monitoring shows', async () => {
    const page = readFileSync(join(ROOT, 'docs/operations/monitoring.md'), 'utf8');
    const [, overlay = ''] = /```yaml\n(apiVersion: kustomize[^`]*)```/.exec(page) ?? [];
    const folder = mkdtempSync(join(tmpdir(), 'machinist-kustomize-'));
    const shown = { ...(parse(overlay) as Kustomization), resources: ['deploy/monitoring'], components: [] };

    const ofKustomize = urlsIn(await built(folder, shown));

    expect(ofKustomize.filter((url) => !url.startsWith(`${prefix}docs/runbooks/`))).toEqual([]);
    const ofHelm = await template(`--set=prometheusRule.enabled=true,prometheusRule.runbookURLPrefix=${prefix}`);
    expect(urlsIn(ofHelm)).toEqual(ofKustomize);
  });

  test('are rejected by the chart with a prefix that is no URL of a folder', async () => {
    await expect(template('--set=prometheusRule.runbookURLPrefix=git.example.com')).rejects.toThrow('runbookURLPrefix');
  });
});

test.each(['one-process', 'two-namespaces'])(
  'layout %s with the component deploy/autoscaler is a pair that trusts each other, which the API server takes',
  async (layout) => {
    const folder = mkdtempSync(join(tmpdir(), 'machinist-kustomize-'));
    const certificates = join(ROOT, 'deploy/autoscaler/certificates.sh');
    await promisify(execFile)('sh', [certificates, join(folder, 'certs')]);
    const filesOf = (whose: string): string[] =>
      ['tls.crt', 'tls.key', 'ca.crt'].map((file) => `certs/${whose}/${file}`);
    const manifests = await built(folder, {
      resources: [`deploy/layouts/${layout}`],
      components: [EXAMPLE.component, 'deploy/autoscaler'],
      secretGenerator: [
        { name: 'machinist-autoscaler-tls', namespace: 'machinist', files: filesOf('machinist') },
        { name: 'cluster-autoscaler-tls', namespace: 'machinist', files: filesOf('cluster-autoscaler') },
      ],
    });
    const secretOf = (prefix: string): Manifest & { readonly data: Readonly<Record<string, string>> } => {
      const found = manifests.find(({ kind, metadata }) => kind === 'Secret' && metadata.name.startsWith(prefix));
      return found as Manifest & { readonly data: Readonly<Record<string, string>> };
    };
    const [server, client] = [secretOf('machinist-autoscaler-tls-'), secretOf('cluster-autoscaler-tls-')];
    const certificateIn = (secret: typeof server): X509Certificate =>
      new X509Certificate(Buffer.from(secret.data['tls.crt'] ?? '', 'base64'));
    await using own = await namespace();

    const said = await apply(manifests.map((manifest) => moveTo(own.name, manifest)));

    expect(said.filter((line) => !/(created|configured|unchanged|applied) \(server dry run\)$/.test(line))).toEqual([]);
    expect(certificatesOf(manifests, 'machine-controller-manager')).toEqual([
      { secret: server.metadata.name, at: '/etc/autoscaler' },
    ]);
    expect(certificatesOf(manifests, 'cluster-autoscaler')).toEqual([
      { secret: client.metadata.name, at: '/etc/cloud-config-tls' },
    ]);
    expect(server.data['ca.crt']).toBe(client.data['ca.crt']);
    const config = manifests.find(({ kind }) => kind === 'ConfigMap') as unknown as { data: { 'config.yaml': string } };
    const { address } = parse(config.data['config.yaml']) as { address: string };
    expect(certificateIn(server).checkHost(address.replace(/:\d+$/, ''))).toBeDefined();
    const manager = manifests.filter(({ metadata }) => metadata.name === 'machine-controller-manager');
    const [{ args = [] }] = containersOf(manager) as [Container];
    const { autoscaler } = (await parseFlags('machinist run', expanded(args).slice(1))).config;
    expect(autoscaler?.listen).toMatchObject({ port: Number(/\d+$/.exec(address)?.[0]) });
    expect(certificateIn(client).subject).toBe(`CN=${autoscaler?.clientNames[0]}`);
  },
);

test('the chart serves the namespace of its release, with roles for that namespace only', async () => {
  const text = await runHelm('template', 'machinist', CHART, '--namespace=machines');

  expect(text).toContain('--namespace=$(POD_NAMESPACE)');
  expect(text).not.toMatch(/namespace[:=] ?machinist/);
});

test('the chart takes odd names: a namespace and a class of digits, no priority class, a provider as the original writes it', async () => {
  const odd = ['--namespace=123', '--set=priorityClass.create=false'];
  const driver = '--set=drivers[0].provider=AWS,drivers[0].image=x';
  const classed = await template(...odd, driver, '--set-string=priorityClass.name=456');
  const plain = await template(...odd, '--set=priorityClass.name=');

  const podOf = (manifests: readonly Manifest[]): { priorityClassName?: unknown; containers: Container[] } => {
    const deployment = manifests.find(({ kind }) => kind === 'Deployment') as unknown as {
      spec: { template: { spec: { priorityClassName?: unknown; containers: Container[] } } };
    };
    return deployment.spec.template.spec;
  };
  const namespaces = classed.flatMap(({ metadata }) => metadata.namespace ?? []);
  expect(new Set(namespaces)).toEqual(new Set(['123', 'kube-system']));
  const subjects = classed.flatMap((manifest) => (manifest['subjects'] ?? []) as { namespace?: unknown }[]);
  expect(new Set(subjects.map(({ namespace: of }) => of))).toEqual(new Set(['123', undefined]));
  expect(podOf(classed).priorityClassName).toBe('456');
  expect(podOf(classed).containers[0]?.args).toContain('--driver=AWS=unix:///run/driver/driver.sock');
  expect(podOf(plain)).not.toHaveProperty('priorityClassName');
});

test.each(['one-process', 'split', 'beside-provider'])(
  'the chart mounts the kubeconfig of another cluster, and places pods, in layout %s; the API server takes it',
  async (layout) => {
    await using own = await namespace();
    const values = {
      layout,
      args: ['--target-kubeconfig=/etc/target/kubeconfig'],
      volumes: [{ name: 'target', secret: { secretName: 'target-kubeconfig', defaultMode: 0o440 } }],
      volumeMounts: [{ name: 'target', mountPath: '/etc/target', readOnly: true }],
      imagePullSecrets: [{ name: 'registry' }],
      nodeSelector: { 'node-role.kubernetes.io/control-plane': '' },
      tolerations: [{ key: 'node-role.kubernetes.io/control-plane', operator: 'Exists', effect: 'NoSchedule' }],
    };
    const manifests = await template(
      ...Object.entries(values).map(([name, value]) => `--set-json=${name}=${JSON.stringify(value)}`),
    );

    const said = await apply(manifests.map((manifest) => moveTo(own.name, manifest)));

    expect(said.filter((line) => !line.endsWith('(server dry run)'))).toEqual([]);
    const { args: _args, layout: _layout, volumes, volumeMounts, ...placement } = values;
    const deployment = manifests.find(({ kind }) => kind === 'Deployment') as unknown as {
      spec: { template: { spec: Record<string, readonly unknown[]> } };
    };
    const pod = deployment.spec.template.spec;
    expect(pod).toMatchObject(placement);
    expect(pod['volumes']).toContainEqual(volumes[0]);
    for (const container of containersOf(manifests)) expect(container.volumeMounts).toContainEqual(volumeMounts[0]);
  },
);

/** What the programs of layout split make of their arguments: the machine controllers, then the other controllers. */
async function splitConfigs(manifests: readonly Manifest[]): Promise<readonly [Config, Config]> {
  const read = async ({ container, program }: (typeof PROGRAMS_OF)['split'][number]): Promise<Config> => {
    const { args = [] } = containersOf(manifests).find(({ name }) => name === container) as Container;
    return (await parseFlags(program, expanded(args))).config;
  };
  const [machines, owners] = PROGRAMS_OF.split as [
    (typeof PROGRAMS_OF)['split'][number],
    (typeof PROGRAMS_OF)['split'][number],
  ];
  return [await read(machines), await read(owners)];
}

describe('layout split', () => {
  const TARGET = '--target-kubeconfig=/etc/target/kubeconfig';
  const DRY_RUN = '--machine-safety-orphan-vms-dry-run';
  const templateSplit = async (values: Readonly<Record<string, readonly string[]>>): Promise<Manifest[]> =>
    await template(
      '--set=layout=split',
      ...Object.entries(values).map(([name, value]) => `--set-json=${name}=${JSON.stringify(value)}`),
    );

  test('has both programs take the args of the chart, so that a dry run is one, and both have the same target', async () => {
    const [machines, owners] = await splitConfigs(
      await templateSplit({ args: [TARGET, DRY_RUN, '--driver=a=unix:///a'] }),
    );

    expect(machines.safety.orphanVMsDryRun).toBe(true);
    expect(machines.drivers).toHaveLength(1);
    expect(owners.drivers).toEqual([]);
    expect([machines, owners].map(({ clusters }) => clusters.targetKubeconfig)).toEqual(
      Array<string>(2).fill('/etc/target/kubeconfig'),
    );
  });

  test('has the machine controllers prefer args of their own, and takes a flag that stands in both lists', async () => {
    const driver = '--driver=a=unix:///a';
    const [machines, owners] = await splitConfigs(
      await templateSplit({
        args: [TARGET, driver, '--concurrent-syncs=5'],
        machineControllerArgs: [TARGET, driver, '--concurrent-syncs=7'],
      }),
    );

    expect([machines.machine.concurrency, owners.sets.concurrency]).toEqual([7, 5]);
    expect(machines.drivers).toHaveLength(1);
  });

  test('has both programs take the flags that the page on running adds with kustomize', async () => {
    const page = readFileSync(join(ROOT, 'docs/operations/running.md'), 'utf8');
    const [, patches = ''] = /```yaml\n(patches:[^`]*)```/.exec(page) ?? [];
    const folder = mkdtempSync(join(tmpdir(), 'machinist-kustomize-'));
    const [machines, owners] = await splitConfigs(
      await built(folder, {
        ...(parse(patches) as Partial<Kustomization>),
        resources: ['deploy/layouts/split'],
        components: [EXAMPLE.component],
      }),
    );

    expect(machines.safety.orphanVMsDryRun).toBe(true);
    expect(owners.safety.orphanVMsDryRun).toBe(true);
  });

  test.each(['--target-kubeconfig=/other', '--target_kubeconfig=/other', '--node-conditions=Ready'])(
    'is refused with %s for the machine controllers alone',
    async (flag) => {
      const alone = templateSplit({ args: [TARGET], machineControllerArgs: [flag] });

      await expect(alone).rejects.toThrow(/machineControllerArgs: --[a-z-]+ has to be the same for both programs/);
    },
  );
});

test('the chart gives drivers, pods and the service account what a site needs; the API server takes it', async () => {
  await using own = await namespace();
  const proxy = { name: 'HTTPS_PROXY', value: 'http://proxy:3128' };
  const spread = { maxSkew: 1, topologyKey: 'topology.kubernetes.io/zone', whenUnsatisfiable: 'ScheduleAnyway' };
  const others = { ...spread, topologyKey: 'host', labelSelector: { matchLabels: { app: 'other' } } };
  const driver = {
    provider: 'example',
    image: 'example-driver:1.0.0',
    env: [proxy],
    resources: { limits: { memory: '64Mi' } },
    volumeMounts: [{ name: 'ca', mountPath: '/etc/ca', readOnly: true }],
  };
  const values = {
    drivers: [driver],
    extraEnv: [proxy],
    volumes: [{ name: 'ca', configMap: { name: 'ca' } }],
    podAnnotations: { 'sidecar.istio.io/inject': 'false' },
    podLabels: { 'networking.gardener.cloud/to-dns': 'allowed' },
    topologySpreadConstraints: [spread, others],
    serviceAccount: { annotations: { 'eks.amazonaws.com/role-arn': 'arn:aws:iam::1:role/machinist' } },
  };

  const manifests = await template(
    ...Object.entries(values).map(([name, value]) => `--set-json=${name}=${JSON.stringify(value)}`),
  );

  const said = await apply(manifests.map((manifest) => moveTo(own.name, manifest)));
  expect(said.filter((line) => !line.endsWith('(server dry run)'))).toEqual([]);
  const [manager, sidecar] = containersOf(manifests);
  expect(manager?.env).toContainEqual(proxy);
  expect(sidecar).toMatchObject({ env: [proxy], resources: driver.resources });
  expect(sidecar?.volumeMounts).toContainEqual(driver.volumeMounts[0]);
  const { template: pod } = (
    manifests.find(({ kind }) => kind === 'Deployment') as unknown as { spec: { template: object } }
  ).spec;
  expect(pod).toMatchObject({
    metadata: { annotations: values.podAnnotations, labels: { app: 'machinist', ...values.podLabels } },
    spec: { topologySpreadConstraints: [{ ...spread, labelSelector: { matchLabels: { app: 'machinist' } } }, others] },
  });
  expect(manifests.find(({ kind }) => kind === 'ServiceAccount')?.metadata).toMatchObject(values.serviceAccount);
});

describe('the notes of an installation', () => {
  const DRIVER = 'drivers[0].provider=example,drivers[0].image=r/example-driver:1';
  const IMAGE = 'image.repository=registry.example.com/machinist';

  test.each([
    { sets: IMAGE, warns: ['No driver is configured'] },
    { sets: `${IMAGE},layout=split`, warns: ['--driver=PROVIDER=ADDRESS in args'] },
    { sets: `${IMAGE},layout=split,args[0]=--driver=a=unix:///a`, warns: [] },
    { sets: DRIVER, warns: ['image.repository is "machinist", which names no registry'] },
    { sets: '', warns: ['No driver is configured', 'set image.repository'] },
    { sets: `${IMAGE},${DRIVER}`, warns: [] },
    { sets: `${IMAGE},args[0]=--driver=a=unix:///a`, warns: [] },
    { sets: `${IMAGE},layout=split,machineControllerArgs[0]=--driver=a=unix:///a`, warns: [] },
    // What the chart sets itself.
    { sets: `${IMAGE},layout=split,machineControllerArgs={--driver=a=unix:///a,--port=10259}`, warns: [] },
    { sets: `${IMAGE},layout=beside-provider`, warns: [] },
    { sets: `${IMAGE},${DRIVER},layout=cells`, warns: [] },
  ])('with "$sets" warn of $warns', async ({ sets, warns }) => {
    const printed = await runHelm('install', 'machinist', CHART, '--dry-run=client', `--set=${sets}`);
    const notes = printed.slice(printed.indexOf('NOTES:'));

    const isOfCells = sets.includes('layout=cells');
    expect(notes).toContain(isOfCells ? 'Its replicas share the namespaces' : 'One of its replicas is the leader');
    expect(notes.split('WARNING:')).toHaveLength(1 + warns.length);
    for (const text of warns) expect(notes.replaceAll('\n', ' ')).toContain(text);
  });
});

test('the chart brings scraping, alerts and dashboard for who has the operator of Prometheus', async () => {
  const rendered = await template(
    '--set=serviceMonitor.enabled=true,prometheusRule.enabled=true,dashboard.enabled=true,layout=split',
  );

  const { spec } = rendered.find(({ kind }) => kind === 'ServiceMonitor') as unknown as {
    spec: { endpoints: { port: string; relabelings: unknown }[]; selector: { matchLabels: Record<string, string> } };
  };
  const service = rendered.find(({ kind }) => kind === 'Service') as unknown as {
    metadata: { labels: Record<string, string> };
    spec: { ports: { name: string }[] };
  };
  expect(spec.endpoints.map(({ port }) => port)).toEqual(service.spec.ports.map(({ name }) => name));
  expect(service.metadata.labels).toMatchObject(spec.selector.matchLabels);
  // The job would be the name of the Service, which is the same for each release.
  const ownJob = [{ targetLabel: 'job', replacement: 'machinist/machinist' }];
  expect(spec.endpoints.map(({ relabelings }) => relabelings)).toEqual([ownJob, ownJob]);
  const rule = rendered.find(({ kind }) => kind === 'PrometheusRule');
  expect(rule?.['spec']).toEqual(parse(readFileSync(join(ROOT, 'deploy/monitoring/alerts.yaml'), 'utf8')));
  const dashboard = rendered.find(({ metadata }) => metadata.name === 'machinist-dashboard') as unknown as {
    data: Record<string, string>;
  };
  expect(dashboard.data['machinist.json']).toBe(readFileSync(join(ROOT, 'deploy/monitoring/dashboard.json'), 'utf8'));
});

test.each([
  { layout: 'one-process', programs: 1 },
  { layout: 'split', programs: 2 },
])(
  'the chart has each program of layout $layout serve the status page, if that is enabled',
  async ({ layout, programs }) => {
    const withFlag = async (...sets: string[]): Promise<number> =>
      containersOf(await template(`--set=${[`layout=${layout}`, ...sets].join(',')}`)).filter(({ args = [] }) =>
        args.includes('--status-page'),
      ).length;

    expect(await withFlag()).toBe(0);
    expect(await withFlag('statusPage.enabled=true')).toBe(programs);
  },
);

test.each([
  {
    values: 'cells.selector=team in (a),cells.kubeconfigSecret=k,cells.tokenSecret=t,cells.shards=4,replicas=3',
    want: { selector: 'team in (a)', kubeconfigSecret: 'k', tokenSecret: 't', shards: 4 },
  },
  { values: 'cells.kubeconfigSecret=', want: { kubeconfigSecret: '', tokenSecret: '', shards: 16 } },
  { values: 'cells.namespaces={a,b}', want: { selector: '', names: ['a', 'b'] } },
  {
    values: 'cells.kubeconfigSecret=,cells.targetKubeconfig=/etc/target/kubeconfig',
    want: { kubeconfigSecret: '', hasOneTarget: true },
  },
  {
    values: 'cells.kubeconfigSecret=,cells.targetKubeconfig=inClusterConfig',
    want: { kubeconfigSecret: '', hasOneTarget: true },
    ofTarget: ['machinist-target', 'machinist-target-tokens'],
  },
])('the chart passes the values of cells on: $values', async ({ values, want, ofTarget = [] }) => {
  const manifests = await template(`--set=layout=cells,${values}`);

  const [{ args = [] }] = containersOf(manifests) as [Container];
  const { config } = await parseFlags('machinist run', expanded(args).slice(1));
  expect(config.cells).toMatchObject(want);
  expect(JSON.stringify(manifests)).toContain(JSON.stringify({ name: 'NODE_OPTIONS', value: CELLS_FLAGS }));
  // Those of target clusters are for other clusters, unless the only one is this.
  const roles = manifests.filter(({ kind }) => /^(?:Cluster)?Role$/.test(kind)).map(({ metadata }) => metadata.name);
  const role = want.names === undefined ? 'machinist-cells' : 'machinist-cell';
  expect(roles.toSorted()).toEqual([role, 'machinist-cells-leases', 'machinist-control-identity', ...ofTarget]);
});

test('layout cells has the port for autoscalers, by the chart and by kustomize, and the manager takes its flags', async () => {
  const patch = readFileSync(join(ROOT, 'deploy/autoscaler/machinist-port.patch'), 'utf8');
  const plain = await kustomize(['deploy/layouts/cells'], [], patch);
  const port = parseManifests(readFileSync(join(ROOT, 'deploy/autoscaler/service.yaml'), 'utf8'));
  const manifests = await template('--set=layout=cells,autoscaler.enabled=true');

  expect(byName(manifests)).toEqual(byName([...plain, ...port]));
  const [{ args = [] }] = containersOf(manifests) as [Container];
  const { config } = await parseFlags('machinist run', expanded(args).slice(1));
  expect(config.autoscaler).toMatchObject({ listen: { kind: 'tcp', port: 8086 } });
  expect(config.cells).toBeDefined();
});

test('helm finds nothing wrong with the chart', async () => {
  expect(await runHelm('lint', '--strict', CHART)).toContain('1 chart(s) linted, 0 chart(s) failed');
});

test.each([
  { wrong: 'layout=two', says: "at '/layout': value must be one of" },
  { wrong: 'replica=3', says: "additional properties 'replica' not allowed" },
  { wrong: 'args[0]=-v4', says: "at '/args/0'" },
  { wrong: 'drivers[0].provider=sim', says: "at '/drivers/0': missing property 'image'" },
  {
    wrong: 'layout=beside-provider,drivers[0].provider=sim,drivers[0].image=x',
    says: 'drivers: layout beside-provider calls no driver',
  },
  { wrong: 'machineControllerArgs[0]=--v=4', says: 'machineControllerArgs: only layout split' },
  {
    wrong: 'layout=two-namespaces,machinesNamespace=machinist',
    says: 'machinesNamespace: layout two-namespaces keeps the Machines in another namespace',
  },
  {
    wrong: 'layout=cells,autoscaler.enabled=true,cells.kubeconfigSecret=',
    says: 'autoscaler: needs the Nodes of target clusters',
  },
  {
    wrong: 'layout=cells,autoscaler.enabled=true,cells.namespaces={a}',
    says: 'autoscaler: is not available with cells.namespaces',
  },
  { wrong: 'layout=split,args[0]=--port=10258', says: 'args: --port=10258 is not the port of the probes and Services' },
  {
    wrong: 'layout=split,machineControllerArgs[0]=--port=10258',
    says: 'machineControllerArgs: --port=10258 is not the port of the probes and Services',
  },
  { wrong: 'args[0]=--port=9000', says: 'args: --port=9000 is not the port of the probes and Services' },
  { wrong: 'podLabels.app=mine', says: "at '/podLabels/app'" },
  { wrong: 'layout=cells,statusPage.enabled=true', says: 'statusPage: is not available in layout cells' },
  { wrong: 'layout=cells,cells.kubeconfigSecret=,cells.tokenSecret=t', says: 'cells.tokenSecret: has no effect' },
  {
    wrong: 'layout=cells,cells.targetKubeconfig=inClusterConfig',
    says: 'cells.targetKubeconfig: is one target cluster for all namespaces, cells.kubeconfigSecret one for each',
  },
  {
    wrong: 'layout=cells,cells.kubeconfigSecret=,cells.targetKubeconfig=inClusterConfig,cells.namespaces={a}',
    says: 'cells.targetKubeconfig: is not supported with cells.namespaces',
  },
  { wrong: 'layout=cells,cells.kubeconfigSecret=,cells.targetKubeconfig=none', says: "at '/cells/targetKubeconfig'" },
  {
    wrong: 'layout=cells,autoscaler.enabled=true,cells.kubeconfigSecret=,cells.targetKubeconfig=inClusterConfig',
    says: 'autoscaler: is not available with cells.targetKubeconfig',
  },
  { wrong: 'layout=cells,cells.selector=', says: "at '/cells/selector'" },
  { wrong: 'priorityClass.name=', says: 'priorityClass.name: is needed to create one' },
  { wrong: 'drivers[0].provider=a=b,drivers[0].image=x', says: "at '/drivers/0/provider'" },
])('the chart refuses $wrong, and says which value is wrong', async ({ wrong, says }) => {
  await expect(template(`--set=${wrong}`)).rejects.toThrow(says);
});

test('a release of the chart can be installed, upgraded, uninstalled and installed again, and its machines stay', async () => {
  await using site = await Site.open({ installed: false });
  const helmTo = (...args: string[]): Promise<string> =>
    runHelm(`--kubeconfig=${site.plane.connection.kubeconfig}`, '--namespace=machinist', ...args);
  const install = ['install', 'machinist', CHART, '--create-namespace', '--set=rbac.simDriver=true'];
  const path = '/apis/machine.sapcloud.io/v1alpha1/namespaces/machinist/machines';
  const machines = async (): Promise<readonly Machine[]> =>
    (await site.api.send<{ items: Machine[] }>('GET', path)).items;
  const running = (): Promise<readonly string[]> =>
    eventually(
      async () => {
        const found = await machines();
        expect(found.map(({ status }) => status?.currentStatus?.phase)).toEqual(['Running', 'Running']);
        return found.map(({ metadata }) => metadata.uid);
      },
      { timeoutMs: 120_000, intervalMs: 200 },
    );
  const stored = async () => {
    const answer = await site.api.request('/apis/apps/v1/namespaces/machinist/deployments/machine-controller-manager');
    return answer.status === 200 ? (answer.body as { spec: { replicas: number } }).spec.replicas : answer.status;
  };
  const rolesOf = async (): Promise<readonly string[]> => {
    const { items } = await site.api.send<{ items: Manifest[] }>(
      'GET',
      '/apis/rbac.authorization.k8s.io/v1/clusterroles',
    );
    return items.map(({ metadata }) => metadata.name).filter((name) => name.startsWith('machinist-'));
  };

  await helmTo(...install);
  const installed = [await stored(), (await rolesOf()).length];
  await using cloud = await SimulatedCloud.start({ site, latencyMs: QUICK });
  const manage = { kubeconfig: site.kubeconfig, namespace: 'machinist', driver: cloud.address };
  await applyManifests(site.api, parseManifests(readFileSync(join(ROOT, 'deploy/examples/sim.yaml'), 'utf8')));
  let made: readonly string[];
  {
    await using _manager = await InProcessManager.start(manage);
    made = await running();
    await helmTo('upgrade', 'machinist', CHART, '--set=rbac.simDriver=true,replicas=3');
  }
  const upgraded = await stored();
  await helmTo('uninstall', 'machinist');
  const uninstalled = [await stored(), (await rolesOf()).length];
  const kept = await machines();
  await helmTo(...install);
  await using _manager = await InProcessManager.start(manage);

  expect([installed, upgraded, uninstalled]).toEqual([[2, 3], 3, [404, 0]]);
  expect(kept.map(({ metadata: { uid, deletionTimestamp } }) => [uid, deletionTimestamp])).toEqual(
    made.map((uid) => [uid, undefined]),
  );
  expect(await running()).toEqual(made);
  expect(cloud.created.map(({ zone }) => zone)).toEqual(['eu-1a', 'eu-1a']);
}, 300_000);

/** What of a container is looked at. */
interface Container {
  readonly name: string;
  readonly image: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env?: readonly unknown[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly livenessProbe: { readonly httpGet: { readonly port: string } };
  readonly readinessProbe: { readonly httpGet: { readonly port: string } };
  readonly securityContext: object;
  readonly volumeMounts?: readonly unknown[];
}

function containersOf(manifests: readonly Manifest[]): Container[] {
  const [deployment, ...others] = manifests.filter(({ kind }) => kind === 'Deployment');
  expect(others).toEqual([]);
  return (deployment as unknown as { spec: { template: { spec: { containers: Container[] } } } }).spec.template.spec
    .containers;
}

/** Asks the API server what it would do with all of them; a line for each. Throws with its words when it refuses one. */
async function apply(manifests: readonly Manifest[]): Promise<string[]> {
  const kubectl = promisify(execFile)((await resolveProgram('kubectl')).path, [
    `--kubeconfig=${connect().kubeconfig}`,
    'apply',
    '--dry-run=server',
    '--validate=strict',
    '-f',
    '-',
  ]);
  feed(kubectl.child, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: manifests }));
  return (await kubectl).stdout.trim().split('\n');
}
