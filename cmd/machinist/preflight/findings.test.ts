import { describe, expect, test } from '@jest/globals';

import type { MachineClass } from '../../../pkg/apis/machine/v1alpha1/machine-class.ts';
import type { KubeObject } from '../../../pkg/apis/meta.ts';
import type { Lease } from '../../../pkg/apis/wire.ts';
import { type Permission, permissionsOf } from '../../../pkg/operator/preflight/permissions.ts';
import { WORLDS } from '../../../pkg/worlds/served.ts';
import {
  classFindings,
  clockFinding,
  clusterFinding,
  contextFindings,
  driverFinding,
  preflightExitCode,
  fieldFindings,
  foreignKindFinding,
  foreignKindsOf,
  type Finding,
  type QueryResult,
  kindFindings,
  leaseFinding,
  namespaceFindings,
  otherManagerFindings,
  permissionFindings,
  runtimeFinding,
  skewMsOf,
} from './findings.ts';
import { renderFindings, renderJSON } from './render.ts';
import { configFrom } from '../../../pkg/operator/config/config.ts';
import { WORLD_FLAGS } from '../../../pkg/worlds/index.ts';

const error = { error: 'connection refused' };
const NOW = Date.parse('2026-01-01T00:00:00Z');

const lease = (holderIdentity: string, agoMs: number): QueryResult<Lease> => ({
  value: {
    metadata: { name: 'machine-controller' },
    spec: { holderIdentity, leaseDurationSeconds: 15, renewTime: new Date(NOW - agoMs).toISOString() },
  } as Lease,
});
const permission = (file: string, lost?: string): Permission => ({
  cluster: 'control',
  attributes: { verb: 'patch', group: '', resource: 'secrets', namespace: 'x' },
  file: `deploy/rbac/${file}.yaml`,
  lost,
});
const classOf = (provider: string | undefined, secret: string): QueryResult<readonly MachineClass[]> => ({
  value: [
    {
      metadata: { name: 'c', namespace: 'x' },
      providerSpec: {},
      secretRef: { name: secret, namespace: 'x' },
      ...(provider === undefined ? {} : { provider }),
    } as MachineClass,
  ],
});
const served = (plurals: readonly string[], versions = ['v1alpha1'], ending = '') => ({
  value: {
    verbs: new Map(plurals.map((plural) => [plural, plural === ending ? ['get', 'delete'] : ['get', 'create']])),
    versions,
  },
});
const POLICIES = 'nodelabelpolicies';
const FRONT_END = ['machines', 'clusters', 'machinepools'];
const ofFrontEnd = (found: Parameters<typeof foreignKindFinding>[1]): readonly Finding[] =>
  foreignKindsOf(new Set(['mirantis'])).map((kind) => foreignKindFinding(kind, found));
const POOL = { pool: 'p', address: 'unix:///r' };
const VERSION = { name: 'sim', version: '1', connection: 0 };
const ofIronCore = (found: Parameters<typeof foreignKindFinding>[1]): readonly Finding[] =>
  foreignKindsOf(new Set(['ironcore.scheduler'])).map((kind) => foreignKindFinding(kind, found));
const ofClusterAPI = (found: Parameters<typeof foreignKindFinding>[1]): readonly Finding[] =>
  foreignKindsOf(new Set(['cluster-api'])).map((kind) => foreignKindFinding(kind, found));
const ALL = ['machines', 'machines/status', 'machinesets', 'machinedeployments', 'machineclasses', POLICIES];
const namespaceOf = (deletionTimestamp?: string): KubeObject =>
  ({ metadata: { name: 'x', ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }) } }) as KubeObject;

describe('what preflight finds', () => {
  const rows: readonly {
    what: string;
    found: Finding | readonly Finding[];
    want: readonly string[];
    remedy?: RegExp;
  }[] = [
    {
      what: 'a cluster that answers',
      found: clusterFinding('control', 'https://a', { value: 'v1.34.0' }),
      want: ['ok'],
    },
    {
      what: 'one that does not',
      found: clusterFinding('target', 'https://a', error),
      want: ['fail'],
      remedy: /--target-kubeconfig/,
    },
    { what: 'clocks that agree', found: clockFinding(-4_000), want: ['ok'] },
    { what: 'clocks that do not', found: clockFinding(5_001), want: ['warn'], remedy: /NTP/ },
    { what: 'all kinds', found: kindFindings(served(ALL), true), want: ['ok'] },
    {
      what: 'a kind that is not served',
      found: kindFindings(served(ALL.filter((plural) => plural !== 'machinesets')), true),
      want: ['fail'],
      remedy: /crds\/machine\.sapcloud\.io_machinesets\.yaml/,
    },
    {
      what: 'another version',
      found: kindFindings(served(ALL, ['v1alpha1', 'v1']), true),
      want: ['warn', 'ok'],
      remedy: /version/,
    },
    {
      what: 'a kind that is being deleted',
      found: kindFindings(served(ALL, ['v1alpha1'], 'machines'), true),
      want: ['fail'],
      remedy: /save its objects/,
    },
    {
      what: 'a kind of policies that is not served',
      found: kindFindings(served(ALL.filter((plural) => plural !== POLICIES)), true),
      want: ['warn', 'ok'],
      remedy: /crds\/machine\.sapcloud\.io_nodelabelpolicies\.yaml/,
    },
    {
      what: 'the same where nobody looks at policies',
      found: kindFindings(served(ALL.filter((plural) => plural !== POLICIES)), false),
      want: ['ok'],
    },
    { what: 'a front end', found: ofFrontEnd(served(FRONT_END)), want: ['ok', 'ok', 'ok'] },
    {
      what: 'a front end without definitions',
      found: ofFrontEnd(served([])),
      want: ['fail', 'warn', 'warn'],
      remedy:
        /apply --server-side -f crds\/mirantis\/(cluster\.k8s\.io_(machines|clusters)|kaas\.mirantis\.com_machinepools)\.yaml/,
    },
    {
      what: 'a front end whose Machines are being deleted',
      found: ofFrontEnd(served(FRONT_END, ['v1alpha1'], 'machines')),
      want: ['fail', 'ok', 'ok'],
      remedy: /save its objects/,
    },
    {
      what: 'Cluster API without its kinds',
      found: ofClusterAPI(served([])),
      want: ['fail', 'fail'],
      remedy:
        /crds\/cluster-api\/cluster\.x-k8s\.io_(machines|clusters)\.yaml, or remove cluster-api from --controllers/,
    },
    {
      what: 'IronCore without its kinds',
      found: ofIronCore(served([])),
      want: ['fail', 'fail'],
      remedy:
        /crds\/ironcore\/compute\.ironcore\.dev_machine(s|pools)\.yaml, or remove ironcore\.scheduler from --controllers/,
    },
    { what: 'a front end that nobody tells', found: ofFrontEnd(error), want: ['fail', 'fail', 'fail'], remedy: /crds/ },
    { what: 'the namespace of the kubeconfig', found: contextFindings('x', 'x'), want: [] },
    { what: 'one that was asked for', found: contextFindings('x', 'machinist'), want: [] },
    { what: 'the default of a kubeconfig that names none', found: contextFindings('default', undefined), want: [] },
    {
      what: 'the default where the kubeconfig names another',
      found: contextFindings('default', 'machinist'),
      want: ['warn'],
      remedy: /^set --namespace=machinist here and for "machinist run"/,
    },
    { what: 'a namespace', found: namespaceFindings('x', { value: namespaceOf() }), want: ['ok'] },
    {
      what: 'one that there is not',
      found: namespaceFindings('x', { value: undefined }),
      want: ['fail'],
      remedy: /correct --namespace, or run: kubectl create namespace x/,
    },
    {
      what: 'one that is being deleted',
      found: namespaceFindings('x', { value: namespaceOf('2026-01-01T00:00:00Z') }),
      want: ['fail'],
      remedy: /save its objects/,
    },
    { what: 'one that may not be read', found: namespaceFindings('x', { value: 'refused' }), want: [] },
    { what: 'one that nobody tells', found: namespaceFindings('x', error), want: ['warn'], remedy: /get namespace x/ },
    { what: 'kinds that nobody tells', found: kindFindings(error, true), want: ['fail'], remedy: /crds/ },
    { what: 'all fields', found: fieldFindings({ value: [] }), want: ['ok'] },
    {
      what: 'a field that is dropped',
      found: fieldFindings({ value: [{ kind: 'Machine', plural: 'machines', path: 'a.b', lost: 'x' }] }),
      want: ['warn'],
      remedy: /crds\/machine\.sapcloud\.io_machines\.yaml/,
    },
    { what: 'fields that nobody tells', found: fieldFindings(error), want: ['warn'], remedy: /openapi/ },
    { what: 'all permissions', found: permissionFindings('control', 'me', { value: [] }), want: ['ok'] },
    {
      what: 'permissions that are missing, by file',
      found: permissionFindings('control', 'me', { value: [permission('control'), permission('target', 'drains')] }),
      want: ['fail', 'warn'],
      remedy: /kubectl apply -f deploy\/rbac\/(control|target)\.yaml/,
    },
    {
      what: 'somebody who may not impersonate',
      found: permissionFindings('control', 'me', error),
      want: ['fail'],
      remedy: /may impersonate me/,
    },
    {
      what: 'somebody who may not ask',
      found: permissionFindings('control', undefined, error),
      want: ['fail'],
      remedy: /basic-user/,
    },
    { what: 'a Lease that is not there yet', found: leaseFinding('l', { value: undefined }, NOW), want: ['ok'] },
    { what: 'a released Lease', found: leaseFinding('l', lease('', 99_000), NOW), want: ['ok'] },
    { what: 'a Lease that is held', found: leaseFinding('l', lease('me', 14_000), NOW), want: ['ok'] },
    {
      what: 'a Lease that ran out',
      found: leaseFinding('l', lease('me', 60_000), NOW),
      want: ['warn'],
      remedy: /holder/,
    },
    {
      what: 'a Lease that may not be read',
      found: leaseFinding('l', error, NOW),
      want: ['warn'],
      remedy: /permissions/,
    },
    {
      what: 'a driver',
      found: driverFinding('aws', 'unix:///d', {
        value: { contractVersion: 'v1', name: 'd', idempotentCreate: true, listScope: 'class', methods: new Set() },
      }),
      want: ['ok'],
    },
    {
      what: 'a runtime with places',
      found: runtimeFinding(POOL, {
        value: { version: VERSION, classes: [{ name: 's', resources: {}, quantity: 2 }] },
      }),
      want: ['ok'],
    },
    {
      what: 'a runtime without any',
      found: runtimeFinding(POOL, { value: { version: VERSION, classes: [] } }),
      want: ['warn'],
      remedy: /classes/,
    },
    { what: 'no runtime', found: runtimeFinding(POOL, error), want: ['fail'], remedy: /unix:\/\/\/r/ },
    { what: 'no driver', found: driverFinding('aws', 'unix:///d', error), want: ['fail'], remedy: /unix:\/\/\/d/ },
    {
      what: 'a class that has all it needs',
      found: classFindings(classOf('aws', 's'), new Map([['x/s', { value: true }]]), ['aws']),
      want: ['ok'],
    },
    {
      what: 'a class without its Secret',
      found: classFindings(classOf('aws', 's'), new Map([['x/s', { value: false }]]), ['aws']),
      want: ['fail'],
      remedy: /secretRef/,
    },
    {
      what: 'a class whose Secret may not be looked for',
      found: classFindings(classOf('aws', 's'), new Map([['x/s', error]]), []),
      want: ['warn'],
      remedy: /permissions/,
    },
    {
      what: 'a class of another provider',
      found: classFindings(classOf('gcp', ''), new Map(), ['aws']),
      want: ['fail'],
      remedy: /--driver=gcp/,
    },
    {
      what: 'a class without provider, of the only driver',
      found: classFindings(classOf(undefined, ''), new Map(), ['aws']),
      want: ['ok'],
    },
    {
      what: 'a class without provider, of one of two',
      found: classFindings(classOf(undefined, ''), new Map(), ['aws', 'gcp']),
      want: ['fail'],
      remedy: /--driver=PROVIDER/,
    },
    {
      what: 'a class where no driver was named',
      found: classFindings(classOf('gcp', ''), new Map(), []),
      want: ['ok'],
    },
    {
      what: 'classes that may not be listed',
      found: classFindings(error, new Map(), []),
      want: ['warn'],
      remedy: /permissions/,
    },
  ];
  test.each(rows)('of $what is $want, with a remedy', ({ found, want, remedy }) => {
    const findings: readonly Finding[] = Array.isArray(found) ? found : [found as Finding];

    expect(findings.map(({ status }) => status)).toEqual(want);
    const told = findings.flatMap((finding) => (finding.status === 'ok' ? [] : [finding.remedy]));
    expect(told).toEqual(told.map(() => expect.stringMatching(remedy ?? /^never$/)));
    expect(findings.filter(({ status }) => status === 'ok').map((finding) => finding.remedy)).not.toContain(
      expect.anything(),
    );
  });

  test.each([
    { what: 'the same second', serverMs: 10_000, sentMs: 10_200, receivedMs: 10_900, skew: 0 },
    { what: 'an answer under way', serverMs: 10_000, sentMs: 8_000, receivedMs: 12_000, skew: 0 },
    { what: 'a clock that is behind', serverMs: 20_000, sentMs: 10_000, receivedMs: 10_100, skew: 9_900 },
    { what: 'a clock that is ahead', serverMs: 10_000, sentMs: 20_000, receivedMs: 20_100, skew: -9_000 },
  ])('of $what is a skew of $skew ms', ({ skew, ...answer }) => {
    expect(skewMsOf(answer)).toBe(skew);
  });

  test.each([
    { statuses: [], code: 0 },
    { statuses: ['ok', 'warn'], code: 0 },
    { statuses: ['ok', 'fail', 'warn'], code: 1 },
  ] as const)('$statuses ends with $code', ({ statuses, code }) => {
    expect(preflightExitCode(statuses.map((status) => ({ check: 'kinds', status, detail: '' })))).toBe(code);
  });

  test('of permissions names every one', () => {
    const all = permissionsOf(
      {
        leases: new Set(['machine-controller-manager', 'machine-controller']),
        isElected: true,
        hasTarget: true,
        callsDrivers: true,
        isAutoscaled: true,
        hasCells: false,
        controllers: new Set(['mirantis', 'cluster-api']),
        of: configFrom('machinist run', new Map(), WORLD_FLAGS).of,
        namespace: 'x',
        leaseNamespace: 'x',
      },
      WORLDS,
    );

    const text = permissionFindings('control', 'me', { value: all })
      .map(({ detail }) => detail)
      .join('\n');

    expect(all.filter(({ attributes: { resource } }) => !text.includes(resource))).toEqual([]);
    expect(text).not.toContain('more');
  });

  test('a manager that leads in the namespace of the Machines, where the Leases of the process are elsewhere, fails', () => {
    const held = { metadata: { name: 'machine-controller' }, spec: { holderIdentity: 'pod-1' } } as unknown as Lease;

    expect(otherManagerFindings('machines', [held])).toMatchObject([
      {
        check: 'leases',
        status: 'fail',
        detail:
          'another manager is running in namespace machines: Lease machine-controller there is held by pod-1, and renewed',
      },
    ]);
    expect(otherManagerFindings('machines', [])).toEqual([]);
  });

  test('counts one class, and several', () => {
    const [machineClass] = (classOf('aws', '') as { value: readonly MachineClass[] }).value;
    const all = machineClass === undefined ? [] : [machineClass];

    expect(classFindings({ value: all }, new Map(), [])).toMatchObject([
      { detail: '1 class: all requirements are met' },
    ]);
    expect(classFindings({ value: [] }, new Map(), [])).toMatchObject([
      { detail: '0 classes: all requirements are met' },
    ]);
  });

  test('is a table with remedies, or JSON', () => {
    const findings: readonly Finding[] = [
      { check: 'cluster', status: 'ok', detail: 'answers' },
      { check: 'permissions', status: 'fail', detail: 'may not', remedy: 'apply' },
      { check: 'fields', status: 'warn', detail: 'lost', remedy: 'apply' },
    ];

    expect(renderFindings(findings)).toBe(
      [
        'OK    cluster      answers',
        'FAIL  permissions  may not',
        '                   → apply',
        'WARN  fields       lost',
        '                   → apply',
        '1 passed, 1 warning, 1 failed',
      ].join('\n'),
    );
    expect(JSON.parse(renderJSON(findings))).toEqual({ passed: 1, warnings: 1, failed: 1, findings });
  });
});

test('a kind that several controllers need is looked at once', () => {
  const kinds = foreignKindsOf(new Set(['ironcore.scheduler', 'ironcore.lifecycle', 'ironcore.pools', 'machine']));

  expect(kinds.map(({ resource }) => resource.plural)).toEqual(['machines', 'machinepools', 'machineclasses']);
});
