import { describe, expect, test } from '@jest/globals';

import { node } from '../../../../test/builders.ts';
import type { InfrastructureReport } from '../api/infrastructure.ts';
import type { ClusterAPIMachine } from '../api/machine.ts';
import {
  availableInMs,
  deprecatedConditions,
  clusterAPIMachineConditions,
  clusterAPIPhaseOf,
  plain,
  type MachineFacts,
} from './conditions.ts';
import type { External } from './externals.ts';
import type { ObservedInfrastructure, ObservedNode } from './observed.ts';

const NOW_MS = Date.parse('2026-01-01T00:10:00Z');

const machine = (spec: object = {}, status: object = {}, metadata: object = {}): ClusterAPIMachine => ({
  metadata: { name: 'm', namespace: 'ns', uid: 'u', resourceVersion: '1', creationTimestamp: '', ...metadata },
  spec: {
    clusterName: 'c',
    bootstrap: { dataSecretName: 'given' },
    infrastructureRef: { apiGroup: 'g', kind: 'SimMachine', name: 'i' },
    ...spec,
  },
  status: { ...status },
});

const infrastructure = (report: Partial<InfrastructureReport> = {}): ObservedInfrastructure => ({
  kind: 'found',
  external: {} as External,
  report: {
    provisioned: true,
    providerID: 'x://1',
    addresses: [],
    failureDomain: undefined,
    wantedFailureDomain: undefined,
    ready: undefined,
    failure: undefined,
    interruptible: false,
    ...report,
  },
});

const nodeWith = (statuses: Readonly<Record<string, string>>): ObservedNode => ({
  kind: 'found',
  node: node((n) => {
    n.status = { ...n.status, conditions: Object.entries(statuses).map(([type, status]) => ({ type, status })) };
  }),
});
const HEALTHY = { Ready: 'True', MemoryPressure: 'False', DiskPressure: 'False', PIDPressure: 'False' };
const PROVISIONED = { initialization: { infrastructureProvisioned: true, bootstrapDataSecretCreated: true } };

const facts = (change: Partial<MachineFacts> = {}): MachineFacts => ({
  machine: machine({}, PROVISIONED),
  infrastructure: infrastructure(),
  bootstrap: { kind: 'none' },
  node: nodeWith(HEALTHY),
  dataSecret: undefined,
  upToDate: undefined,
  deleting: undefined,
  problems: [],
  ...change,
});

const said = (change: Partial<MachineFacts>, type: string): string => {
  const { status, reason } = clusterAPIMachineConditions(facts(change), NOW_MS).find((one) => one.type === type) ?? {};
  return `${status} ${reason}`;
};

test.each<{ type: string; change: Partial<MachineFacts>; field: string }>([
  { type: 'BootstrapConfigReady', change: { bootstrap: { kind: 'absent' } }, field: 'spec.bootstrap.configRef' },
  { type: 'InfrastructureReady', change: { infrastructure: { kind: 'absent' } }, field: 'spec.infrastructureRef' },
])('$type names the field $field of what does not exist', ({ type, change, field }) => {
  const all = clusterAPIMachineConditions(facts({ machine: machine(), ...change }), NOW_MS);

  expect(all.find((one) => one.type === type)?.message).toContain(`does not exist: create it, or correct ${field}`);
});

// promise: cluster-api/contracts-providers/secret-given-datasecretprovided
test.each<{ what: string; change: Partial<MachineFacts>; type: string; want: string }>([
  { what: 'all is well', change: {}, type: 'Ready', want: 'True Ready' },
  { what: 'all is well', change: {}, type: 'Available', want: 'True Available' },
  { what: 'all is well', change: {}, type: 'Deleting', want: 'False NotDeleting' },
  {
    what: 'a pass of a deletion has failed',
    change: {
      machine: machine(
        {},
        { conditions: [{ type: 'Deleting', status: 'True', reason: 'DrainingNode', message: '' }] },
        { deletionTimestamp: 'now' },
      ),
      problems: ['p'],
    },
    type: 'Deleting',
    want: 'True DrainingNode',
  },
  {
    what: 'the first pass of a deletion has failed',
    change: { machine: machine({}, {}, { deletionTimestamp: 'now' }), problems: ['p'] },
    type: 'Deleting',
    want: 'True InternalError',
  },
  { what: 'a Secret is given', change: {}, type: 'BootstrapConfigReady', want: 'True DataSecretProvided' },
  {
    what: 'there is no Secret of that name',
    change: { dataSecret: { reason: 'DataSecretMissing', message: 'm' } },
    type: 'BootstrapConfigReady',
    want: 'False DataSecretMissing',
  },
  {
    what: 'a Reading kind for the first time',
    change: { infrastructure: { kind: 'reading' } },
    type: 'InfrastructureReady',
    want: 'Unknown InternalError',
  },
  {
    what: 'a Reading kind again',
    change: {
      machine: machine(
        {},
        { ...PROVISIONED, conditions: [{ type: 'InfrastructureReady', status: 'True', reason: 'Ready', message: '' }] },
      ),
      infrastructure: { kind: 'reading' },
    },
    type: 'InfrastructureReady',
    want: 'True Ready',
  },
  {
    what: 'no bootstrap is named',
    change: { machine: machine({ bootstrap: {} }) },
    type: 'BootstrapConfigReady',
    want: 'False NotNamed',
  },
  {
    what: 'the config is missing',
    change: { machine: machine(), bootstrap: { kind: 'absent' } },
    type: 'BootstrapConfigReady',
    want: 'False ObjectDoesNotExist',
  },
  {
    what: 'no infrastructure is named',
    change: { infrastructure: { kind: 'none' } },
    type: 'InfrastructureReady',
    want: 'False NotNamed',
  },
  {
    what: 'it is not there yet',
    change: { machine: machine(), infrastructure: { kind: 'absent' } },
    type: 'InfrastructureReady',
    want: 'False ObjectDoesNotExist',
  },
  {
    what: 'it was there',
    change: { infrastructure: { kind: 'absent' } },
    type: 'InfrastructureReady',
    want: 'False ObjectDeleted',
  },
  {
    what: 'nobody can tell',
    change: { infrastructure: { kind: 'unknown', problem: 'p' } },
    type: 'InfrastructureReady',
    want: 'Unknown InternalError',
  },
  {
    what: 'nobody can tell',
    change: { infrastructure: { kind: 'unknown', problem: 'p' } },
    type: 'Ready',
    want: 'Unknown ReadyUnknown',
  },
  {
    what: 'it is another’s',
    change: { infrastructure: { kind: 'foreign', problem: 'p' } },
    type: 'Ready',
    want: 'False NotReady',
  },
  {
    what: 'it says why',
    change: {
      infrastructure: infrastructure({ ready: { type: 'Ready', status: 'False', reason: 'Foo', message: '' } }),
    },
    type: 'InfrastructureReady',
    want: 'False Foo',
  },
  {
    what: 'it gives no reason for being Ready',
    change: {
      infrastructure: infrastructure({
        ready: { type: 'Ready', status: 'True', reason: 'NoReasonReported', message: '' },
      }),
    },
    type: 'InfrastructureReady',
    want: 'True Ready',
  },
  { what: 'there is no id', change: { node: { kind: 'none' } }, type: 'NodeReady', want: 'Unknown InspectionFailed' },
  {
    what: 'there is no Node',
    change: { node: { kind: 'absent' } },
    type: 'NodeReady',
    want: 'Unknown InspectionFailed',
  },
  {
    what: 'there is no Node and it goes',
    change: { node: { kind: 'absent' }, machine: machine({}, {}, { deletionTimestamp: '2026-01-01T00:00:00Z' }) },
    type: 'NodeReady',
    want: 'Unknown NodeDoesNotExist',
  },
  {
    what: 'it was never made and goes',
    change: {
      infrastructure: { kind: 'absent' },
      machine: machine({}, {}, { deletionTimestamp: '2026-01-01T00:00:00Z' }),
    },
    type: 'InfrastructureReady',
    want: 'False ObjectDoesNotExist',
  },
  { what: 'the Node is gone', change: { node: { kind: 'gone' } }, type: 'NodeReady', want: 'False NodeDeleted' },
  {
    what: 'the Node is not Ready',
    change: { node: nodeWith({ ...HEALTHY, Ready: 'False' }) },
    type: 'NodeHealthy',
    want: 'False NodeNotHealthy',
  },
  {
    what: 'memory is short',
    change: { node: nodeWith({ ...HEALTHY, MemoryPressure: 'True' }) },
    type: 'NodeHealthy',
    want: 'False NodeNotHealthy',
  },
  {
    what: 'memory is short',
    change: { node: nodeWith({ ...HEALTHY, MemoryPressure: 'True' }) },
    type: 'NodeReady',
    want: 'True NodeReady',
  },
  {
    what: 'its kubelet is not ready',
    change: { node: nodeWith({ ...HEALTHY, Ready: 'False' }) },
    type: 'NodeReady',
    want: 'False NodeNotReady',
  },
  {
    what: 'nobody hears of its kubelet',
    change: { node: nodeWith({ ...HEALTHY, Ready: 'Unknown' }) },
    type: 'NodeReady',
    want: 'Unknown NodeReadyUnknown',
  },
  {
    what: 'pressure is not reported',
    change: { node: nodeWith({ Ready: 'True' }) },
    type: 'NodeHealthy',
    want: 'Unknown NodeHealthyUnknown',
  },
  { what: 'there is a problem', change: { problems: ['p'] }, type: 'Ready', want: 'False NotReady' },
  {
    what: 'a gate is not reported',
    change: { machine: machine({ readinessGates: [{ conditionType: 'G' }] }, PROVISIONED) },
    type: 'Ready',
    want: 'Unknown ReadyUnknown',
  },
  {
    what: 'a negative gate is True',
    change: {
      machine: machine(
        { readinessGates: [{ conditionType: 'G', polarity: 'Negative' }] },
        { ...PROVISIONED, conditions: [{ type: 'G', status: 'True', reason: 'r', message: '' }] },
      ),
    },
    type: 'Ready',
    want: 'False NotReady',
  },
  {
    what: 'a health check failed',
    change: {
      machine: machine(
        {},
        { ...PROVISIONED, conditions: [{ type: 'HealthCheckSucceeded', status: 'False', reason: 'r', message: '' }] },
      ),
    },
    type: 'Ready',
    want: 'False NotReady',
  },
  {
    what: 'it goes',
    change: {
      machine: machine({}, PROVISIONED, { deletionTimestamp: '2026-01-01T00:00:00Z' }),
      deleting: { reason: 'DrainingNode', message: 'm' },
    },
    type: 'Deleting',
    want: 'True DrainingNode',
  },
])('when $what, $type is $want', ({ change, type, want }) => {
  expect(said(change, type)).toBe(want);
});

test.each<{ known: readonly string[]; isOver: boolean; want: string }>([
  { known: ['NodeReady', 'NodeHealthy'], isOver: false, want: 'True Fine of the time before' },
  { known: ['NodeReady', 'NodeHealthy'], isOver: true, want: 'Unknown ConnectionDown no answer' },
  { known: ['NodeReady'], isOver: false, want: 'Unknown ConnectionDown no answer' },
])('of a Node out of reach, with $known known before and the grace over: $isOver, $want is told', (row) => {
  const conditions = row.known.map((type) => ({
    type,
    status: 'True',
    reason: 'Fine',
    message: 'of the time before',
    lastTransitionTime: '2026-01-01T00:00:00Z',
  }));
  const outOfReach = { kind: 'unreachable', why: 'no answer', isOver: row.isOver, isLost: false } as const;

  const it = machine({}, { ...PROVISIONED, conditions });
  const after = clusterAPIMachineConditions(facts({ machine: it, node: outOfReach }), NOW_MS);

  for (const type of ['NodeReady', 'NodeHealthy']) {
    const { status, reason, message } = after.find((one) => one.type === type) ?? {};
    expect(`${status} ${reason} ${message}`).toBe(row.want);
  }
});

test('a condition moves when its status does, and those of others stay', () => {
  const since = '2026-01-01T00:00:00Z';
  const conditions = [
    { type: 'Ready', status: 'True', reason: 'Ready', message: '', lastTransitionTime: since },
    { type: 'Mine', status: 'Unknown', reason: 'x', message: 'y', lastTransitionTime: since },
    { type: 'InfrastructureReady', status: 'False', reason: 'r', message: '', lastTransitionTime: since },
  ];

  const after = clusterAPIMachineConditions(facts({ machine: machine({}, { ...PROVISIONED, conditions }) }), NOW_MS);

  const find = (type: string) => after.find((one) => one.type === type);
  expect(find('Ready')?.lastTransitionTime).toBe(since);
  expect(find('Mine')).toEqual(conditions[1]);
  expect(find('InfrastructureReady')?.lastTransitionTime).toBe('2026-01-01T00:10:00Z');
});

test.each([
  { seconds: undefined, want: 'True Available', inMs: undefined },
  { seconds: 600, want: 'True Available', inMs: undefined },
  { seconds: 700, want: 'False WaitingForMinReadySeconds', inMs: 100_000 },
])('ready for 600 s with minReadySeconds $seconds: $want', ({ seconds, want, inMs }) => {
  const before = {
    type: 'Ready',
    status: 'True',
    reason: 'Ready',
    message: '',
    lastTransitionTime: '2026-01-01T00:00:00Z',
  };
  const it = machine({ minReadySeconds: seconds }, { ...PROVISIONED, conditions: [before] });

  const conditions = clusterAPIMachineConditions(facts({ machine: it }), NOW_MS);

  const { status, reason } = conditions.find(({ type }) => type === 'Available') ?? {};
  expect(`${status} ${reason}`).toBe(want);
  expect(availableInMs({ ...it, status: { ...it.status, conditions } }, NOW_MS)).toBe(inMs);
});

test('for the older contract nothing is empty, and what is no news keeps its time', () => {
  const before = [{ type: 'A', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' } as const];
  const news = [plain('A', 'True', 'Fine', 'x'), plain('B', 'False', 'Bad'), plain('C', 'Unknown', 'Odd', 'why')];

  expect(deprecatedConditions(before, news, NOW_MS)).toEqual([
    before[0],
    { type: 'B', status: 'False', severity: 'Info', reason: 'Bad', lastTransitionTime: '2026-01-01T00:10:00Z' },
    { type: 'C', status: 'Unknown', reason: 'Odd', message: 'why', lastTransitionTime: '2026-01-01T00:10:00Z' },
  ]);
});

describe('the phase', () => {
  const nodeRef = { name: 'n' };
  test.each([
    { spec: {}, status: {}, metadata: {}, want: 'Pending' },
    { spec: {}, status: { initialization: { bootstrapDataSecretCreated: true } }, metadata: {}, want: 'Provisioning' },
    { spec: { providerID: '' }, status: PROVISIONED, metadata: {}, want: 'Provisioning' },
    { spec: { providerID: 'x://1' }, status: PROVISIONED, metadata: {}, want: 'Provisioned' },
    { spec: { providerID: 'x://1' }, status: { ...PROVISIONED, nodeRef }, metadata: {}, want: 'Running' },
    { spec: { providerID: 'x://1' }, status: { nodeRef }, metadata: {}, want: 'Provisioned' },
    { spec: {}, status: { ...PROVISIONED, nodeRef }, metadata: { deletionTimestamp: 'now' }, want: 'Deleting' },
  ])('with $spec, $status, $metadata is $want', ({ spec, status, metadata, want }) => {
    expect(clusterAPIPhaseOf(machine(spec, status, metadata))).toBe(want);
  });
});

test('conditions say which generation they are about; those of others are left as they are', () => {
  const theirs = {
    type: 'Theirs',
    status: 'True',
    reason: 'Own',
    message: '',
    lastTransitionTime: '2026-01-01T00:00:00Z',
  };
  const it = machine({}, { ...PROVISIONED, conditions: [theirs] }, { generation: 7 });

  const conditions = clusterAPIMachineConditions(facts({ machine: it }), NOW_MS);

  expect(conditions.filter(({ type }) => type === 'Theirs')).toEqual([theirs]);
  expect(new Set(conditions.flatMap(({ observedGeneration }) => observedGeneration ?? []))).toEqual(new Set([7]));
  expect(conditions.filter(({ observedGeneration }) => observedGeneration === undefined)).toHaveLength(1);
});
