import { describe, expect, test } from '@jest/globals';

import { CLUSTER_API_FLAGS } from '../../worlds/cluster-api/controllers/flags.ts';
import { IRONCORE_FLAGS } from '../../worlds/ironcore/controllers/flags.ts';
import { WORLD_FLAGS } from '../../worlds/index.ts';
import { type Config, configFrom as readConfig } from './config.ts';
import { OWN_CONTROLLERS } from './controllers.ts';
import { controllersIn } from './flag-section.ts';
import type { Program } from './flag.ts';
import { flagsWith } from './flags.ts';
import type { TypedFlags } from './value-reader.ts';

const configFrom = (program: Program, flags: TypedFlags): Config => readConfig(program, flags, WORLD_FLAGS);

/** The controllers that run only where they are named, and what may be typed for several of them. */
const OF_OTHERS = WORLD_FLAGS.flatMap(controllersIn);
const ALL_OF_OTHERS = WORLD_FLAGS.flatMap(({ allOf = {} }) => Object.keys(allOf));

const typed = (flags: Record<string, string | string[]>): Map<string, string[]> =>
  new Map(Object.entries(flags).map(([name, value]) => [name, Array.isArray(value) ? value : [value]]));

test('what Nodes follow of Machines of Cluster API are regular expressions', () => {
  const of = (pattern: string) =>
    configFrom('machinist run', typed({ 'additional-sync-machine-labels': pattern })).of(CLUSTER_API_FLAGS).synced;

  expect(of('^example.com/,team')).toEqual({ labels: [/^example.com\//u, /team/u], annotations: [] });
  expect(() => of('(')).toThrow('--additional-sync-machine-labels: ( is no regular expression: ');
});

test('fields that runtimes of IronCore are told of are read by name', () => {
  const config = configFrom(
    'machinist run',
    typed({ 'machine-downward-api-label': ["root-machine-uid=metadata.labels['a.b/c']", 'of=metadata.namespace'] }),
  );

  expect([...config.of(IRONCORE_FLAGS).downwardAPI.machineLabels]).toEqual([
    ['root-machine-uid', { field: 'labels', key: 'a.b/c' }],
    ['of', { field: 'namespace', key: '' }],
  ]);
});

test('MachinePools of IronCore have the provider IDs that are given them', () => {
  const flags = typed({ 'ironcore-pool': 'p=unix:///p,q=unix:///q', 'ironcore-pool-provider-id': 'q=sim://q' });

  expect(configFrom('machinist run', flags).of(IRONCORE_FLAGS).pools).toEqual([
    { pool: 'p', address: 'unix:///p' },
    { pool: 'q', address: 'unix:///q', providerID: 'sim://q' },
  ]);
});

describe('flags', () => {
  test("the defaults are the original's", () => {
    const config = configFrom('machinist run', new Map());

    expect(config.machine.creationTimeoutMs).toBe(20 * 60_000);
    expect(config.machine.healthTimeoutMs).toBe(10 * 60_000);
    expect(config.machine.drainTimeoutMs).toBe(2 * 60 * 60_000);
    expect(config.machine.concurrency).toBe(50);
    expect(config.sets.concurrency).toBe(10);
    expect(config.server).toEqual({ address: '0.0.0.0', port: 10258, statusPage: false, profiling: false });
    expect(config.leader).toEqual({
      enabled: true,
      leaseDurationMs: 15_000,
      renewDeadlineMs: 10_000,
      retryPeriodMs: 2_000,
      namespace: 'default',
    });
    expect(config.machine.nodeConditions).toEqual([
      'KernelDeadlock',
      'ReadonlyFilesystem',
      'DiskPressure',
      'NetworkUnavailable',
    ]);
    expect([...config.controllers]).toEqual([
      'machine-deployment',
      'machine-set',
      'safety.overshoot',
      'machine',
      'machine-class',
      'secret',
      'role-binding',
      'safety.orphan-vms',
      'safety.unmanaged-nodes',
    ]);
  });

  test.each([
    { given: {}, want: 'default' },
    { given: { namespace: 'machines' }, want: 'machines' },
    { given: { namespace: 'machines', 'leader-elect-resource-namespace': 'machinist' }, want: 'machinist' },
  ])('Leases of $given are in namespace $want', ({ given, want }) => {
    expect(configFrom('machinist run', typed(given)).leader.namespace).toBe(want);
  });

  test('runs what serves kinds of others only where it is named, also beside all others', () => {
    const { controllers } = configFrom(
      'machinist run',
      typed({ controllers: `*,${OF_OTHERS.join()}`, 'ironcore-pool': 'p=unix:///p' }),
    );

    expect([...controllers]).toEqual([...OWN_CONTROLLERS, ...OF_OTHERS]);
    expect(configFrom('machinist run', typed({})).controllers.has('mirantis')).toBe(false);
  });

  test.each([
    { names: 'ironcore', kubeconfig: 'k' },
    { names: 'ironcore.scheduler', kubeconfig: 'k' },
    { names: 'ironcore,ironcore.scheduler', kubeconfig: 'k' },
  ])('$names alone needs no target cluster, and finds its own where the target would be', ({ names, kubeconfig }) => {
    const config = configFrom('machinist run', typed({ controllers: names, 'target-kubeconfig': kubeconfig }));

    expect([...config.leases]).toEqual(['ironcore-scheduler']);
    expect(config.clusters).toMatchObject({ controlKubeconfig: kubeconfig, targetKubeconfig: 'none' });
    const both = configFrom('machinist run', typed({ controllers: `*,${names}`, 'target-kubeconfig': kubeconfig }));
    expect(both.clusters).toMatchObject({ controlKubeconfig: '', targetKubeconfig: kubeconfig });
  });

  test.each([
    { names: 'ironcore.pools', leases: ['ironcore-pools'] },
    { names: 'ironcore.scheduler', leases: ['ironcore-scheduler', 'ironcore-pools'] },
    { names: '*', leases: ['machine-controller-manager', 'machine-controller', 'ironcore-pools'] },
  ])('with --ironcore-pool pools are served beside --controllers=$names', ({ names, leases }) => {
    const config = configFrom('machinist run', typed({ controllers: names, 'ironcore-pool': 'p=unix:///p' }));

    expect([...config.leases]).toEqual(leases);
    expect(config.of(IRONCORE_FLAGS).pools).toEqual([{ pool: 'p', address: 'unix:///p' }]);
  });

  test.each([
    {
      program: 'machine-controller-manager',
      port: 10258,
      workers: 10,
      controllers: ['machine-deployment', 'machine-set', 'safety.overshoot'],
    },
    {
      program: 'machine-controller',
      port: 10259,
      workers: 50,
      controllers: [
        'machine',
        'machine-class',
        'secret',
        'role-binding',
        'safety.orphan-vms',
        'safety.unmanaged-nodes',
      ],
    },
  ] as const)('$program keeps its own port, workers and controllers', ({ program, port, workers, controllers }) => {
    const config = configFrom(program, new Map());

    expect(config.server.port).toBe(port);
    expect(program === 'machine-controller' ? config.machine.concurrency : config.sets.concurrency).toBe(workers);
    expect([...config.controllers]).toEqual(controllers);
  });

  test.each([
    { flag: 'port', value: '0', says: /--port: "0" is not valid: expected a whole number from 1 to 65535/ },
    { flag: 'port', value: 'https', says: /--port: "https"/ },
    { flag: 'address', value: 'localhost', says: /--address: "localhost" is not valid: expected an IP address/ },
    { flag: 'machine-drain-timeout', value: '10', says: /--machine-drain-timeout: "10".*a duration with a unit/ },
    { flag: 'machine-drain-timeout', value: '-1h', says: /--machine-drain-timeout: "-1h".*not negative/ },
    { flag: 'leader-elect', value: 'yes', says: /--leader-elect: "yes" is not valid: expected true or false/ },
    { flag: 'leader-elect-resource-lock', value: 'endpoints', says: /one of leases/ },
    { flag: 'machine-concurrent-syncs', value: '0', says: /a whole number of at least 1/ },
    { flag: 'controllers', value: 'machine,pods', says: /--controllers: "pods" is not valid/ },
    {
      flag: 'controllers',
      value: 'machine-set',
      says: /^--controllers: "machine-set" is not valid without machine-deployment: .*--leader-elect=false/,
    },
    { flag: 'controllers', value: 'safety.overshoot', says: /without machine-deployment and machine-set:/ },
    { flag: 'controllers', value: 'machine-deployment,machine-set,machine', says: /without machine-class and secret:/ },
    { flag: 'driver', value: 'local=/run/x.sock', says: /--driver: "local=\/run\/x.sock".*unix:\/\// },
    { flag: 'controllers', value: 'ironcore.pools', says: /"ironcore\.pools" requires --ironcore-pool/ },
    { flag: 'ironcore-pool', value: 'p=/run/x.sock', says: /--ironcore-pool: "p=\/run\/x.sock".*unix:\/\// },
    { flag: 'ironcore-pool', value: 'p=unix:///1,p=unix:///2', says: /pool "p" is listed twice/ },
    {
      flag: 'ironcore-pool-provider-id',
      value: 'p=x',
      says: /--ironcore-pool-provider-id: "p=x".*pool of --ironcore-pool/,
    },
    {
      flag: 'machine-downward-api-label',
      value: 'a=spec.power',
      says: /--machine-downward-api-label: "a=spec\.power".*metadata\.labels\['KEY'\]/,
    },
    {
      flag: 'nic-downward-api-label',
      value: '-a=metadata.name',
      says: /"-a=metadata\.name" is not valid: expected <name>=<field>/,
    },
    {
      flag: 'volume-downward-api-label',
      value: 'machinepool-uid=metadata.uid',
      says: /name "machinepool-uid" is reserved/,
    },
    { flag: 'network-downward-api-label', value: 'a=metadata.uid,a=metadata.name', says: /name "a" is listed twice/ },
    { flag: 'driver-qps', value: '5', says: /--driver-qps: "5" is not valid: expected <provider>=<number>/ },
    { flag: 'driver-qps', value: 'a=0', says: /--driver-qps: "a=0" is not valid: .* greater than 0/ },
    { flag: 'driver-qps', value: 'a=inf', says: /--driver-qps: "a=inf" is not valid/ },
    { flag: 'driver-qps', value: 'a=5', says: /--driver-qps: provider "a" has no driver; add it to --driver/ },
    { flag: 'driver', value: 'a=unix:///1,a=unix:///2', says: /provider "a" is listed twice/ },
    { flag: 'target-kubeconfig', value: 'none', says: /--control-kubeconfig is required/ },
    {
      flag: 'machine-safety-grace',
      value: '999999999h',
      says: /"999999999h" is not valid: expected a duration of less than 2562047h/,
    },
    {
      flag: 'controllers',
      value: '*,machine',
      says: new RegExp(
        `"\\*,machine" is not valid: "\\*" can be combined only with ${[...OF_OTHERS, ...ALL_OF_OTHERS].join(', ')}$`,
      ),
    },
    {
      flag: 'controllers',
      value: 'mirantis',
      says: /"mirantis" is not valid without machine-deployment and machine-set:/,
    },
    {
      flag: 'leader-elect-lease-duration',
      value: '5s',
      says: /^--leader-elect-lease-duration=5s must be longer than --leader-elect-renew-deadline=10s \(default\),/,
    },
    {
      flag: 'leader-elect-retry-period',
      value: '15s',
      says: /^--leader-elect-renew-deadline=10s \(default\) must be longer than 1\.2 times --leader-elect-retry-period=15s,/,
    },
    {
      flag: 'machine-safety-apiserver-statuscheck-period',
      value: '10s',
      says: /statuscheck-period=10s must not be shorter than .*statuscheck-timeout=30s \(default\)$/,
    },
    { flag: 'leader-elect-retry-period', value: '0s', says: /"0s".*of at least 1ns/ },
    { flag: 'machine-safety-overshooting-period', value: '-1s', says: /"-1s".*not negative/ },
    { flag: 'kube-api-qps', value: '-1', says: /a number of at least 0/ },
    { flag: 'zone-unhealthy-threshold', value: 'nan', says: /a number from 0 to 1/ },
    { flag: 'kube-api-content-type', value: 'a/b/c', says: /a media type/ },
    { flag: 'namespace', value: '', says: /^--namespace: "" is not the name of a namespace$/ },
    { flag: 'namespace', value: '$(POD_NAMESPACE)', says: /--namespace: "\$\(POD_NAMESPACE\)" is not the name/ },
    { flag: 'leader-elect-resource-namespace', value: 'a,b', says: /--leader-elect-resource-namespace: "a,b" is not/ },
    { flag: 'machine-safety-orphan-vms-grace', value: '0s', says: /"0s".*of at least 1s/ },
  ])('refuses --$flag=$value, naming the flag, the value and what is allowed', ({ flag, value, says }) => {
    expect(() => configFrom('machinist run', typed({ [flag]: value }))).toThrow(says);
  });

  test.each([
    { flag: 'port', value: '0x2813', as: { server: { port: 10259 } } },
    { flag: 'concurrent-syncs', value: '1_0', as: { sets: { concurrency: 10 } } },
    { flag: 'v', value: '-1', as: { verbosity: -1 } },
    { flag: 'kube-api-qps', value: '1e2', as: { api: { qps: 100 } } },
    { flag: 'kube-api-qps', value: 'inf', as: { api: { qps: 0 } } },
    { flag: 'kube-api-qps', value: 'NaN', as: { api: { qps: 0 } } },
    { flag: 'kube-api-burst', value: '0', as: { api: { burst: 0 } } },
    { flag: 'kube-api-content-type', value: 'json', as: {} },
    { flag: 'kube-api-content-type', value: 'application/json; charset=utf-8', as: {} },
    { flag: 'log-flush-frequency', value: '-5s', as: {} },
    { flag: 'leader-elect-retry-period', value: '1ns', as: { leader: { retryPeriodMs: 0.000_001 } } },
    { flag: 'safety-up', value: '0', as: { safety: { up: 0, down: 0 } } },
    { flag: 'safety-down', value: '3', as: { safety: { up: 2, down: 2 } } },
    { flag: 'machine-safety-overshooting-period', value: '300ms', as: { safety: { overshootingPeriodMs: 300 } } },
    { flag: 'machine-safety-overshooting-period', value: '0', as: { safety: { overshootingPeriodMs: 100 } } },
    { flag: 'machine-safety-orphan-vms-period', value: '50ms', as: { safety: { orphanVMsPeriodMs: 1_000 } } },
    {
      flag: 'machine-safety-apiserver-statuscheck-timeout',
      value: '0',
      as: { safety: { statusCheckTimeoutMs: 1_000 } },
    },
    { flag: 'machine-drain-timeout', value: '0s', as: { machine: { drainTimeoutMs: 0 } } },
    {
      flag: 'machine-health-timeout',
      value: '2562047h47m',
      as: { machine: { healthTimeoutMs: 153_722_867 * 60_000 } },
    },
    { flag: 'machine-max-evict-retries', value: '0', as: { machine: { maxEvictRetries: 0 } } },
  ])('accepts --$flag=$value, as the original does', ({ flag, value, as }) => {
    const program =
      flag.startsWith('machine-') && 'machine' in as ? 'machine-controller' : 'machine-controller-manager';

    expect(configFrom(program, typed({ [flag]: value }))).toMatchObject(as);
  });

  test('accepts periods of zero for both status checks', () => {
    const zero = typed({
      'machine-safety-apiserver-statuscheck-period': '0s',
      'machine-safety-apiserver-statuscheck-timeout': '0s',
    });

    expect(configFrom('machine-controller', zero).safety).toMatchObject({
      statusCheckPeriodMs: 1_000,
      statusCheckTimeoutMs: 1_000,
    });
  });

  test('does not look at the flags of leader election without it', () => {
    const impossible = {
      'leader-elect-lease-duration': '-1s',
      'leader-elect-renew-deadline': '0s',
      'leader-elect-retry-period': '15s',
      'leader-elect-resource-lock': 'endpoints',
      'leader-elect-resource-namespace': '-',
    };

    expect(configFrom('machinist run', typed({ ...impossible, 'leader-elect': 'false' })).leader.enabled).toBe(false);
    expect(() => configFrom('machinist run', typed(impossible))).toThrow(/--leader-elect-lease-duration: "-1s"/);
  });

  test.each([
    { controllers: 'machine-deployment,machine-set' },
    { controllers: 'machine,machine-class,secret' },
    { controllers: 'machine,machine-class,secret,safety.orphan-vms' },
    { controllers: 'machine-set', 'leader-elect': 'false' },
    { controllers: 'machine-deployment,machine-set,mirantis' },
  ])('takes controllers that share no Lease with another process: $controllers', (flags) => {
    expect([...configFrom('machinist run', typed(flags)).controllers]).toEqual(flags.controllers.split(','));
  });

  test('drivers may be named in one flag or in several', () => {
    const config = configFrom('machinist run', typed({ driver: ['a=unix:///a.sock', 'b=dns:///b:443'] }));

    expect(config.drivers).toEqual([
      { provider: 'a', address: 'unix:///a.sock', qps: 0 },
      { provider: 'b', address: 'dns:///b:443', qps: 0 },
    ]);
  });

  test('knows the rate of each provider', () => {
    const driver = ['a=unix:///a.sock', 'b=unix:///b.sock'];
    const config = configFrom('machinist run', typed({ driver, 'driver-qps': ['b=0.5'] }));

    expect(config.drivers.map(({ qps }) => qps)).toEqual([0, 0.5]);
    expect(() => configFrom('machinist run', typed({ driver, 'driver-qps': ['a=1', 'a=2'] }))).toThrow(
      '--driver-qps: provider "a" is listed twice; give each provider one rate',
    );
  });

  test('a wait of 0 for exhausted resources means the default', () => {
    expect(
      configFrom('machinist run', typed({ 'resource-exhausted-retry': '0' })).machine.resourceExhaustedRetryMs,
    ).toBe(600_000);
  });

  test('no flag is declared twice', () => {
    const flags = flagsWith(WORLD_FLAGS);

    expect(new Set(flags.map((flag) => flag.name)).size).toBe(flags.length);
  });
});
