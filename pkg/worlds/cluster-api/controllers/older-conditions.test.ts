import { expect, test } from '@jest/globals';

import { node } from '../../../../test/builders.ts';
import type { ClusterAPIMachine, DeprecatedCondition } from '../api/machine.ts';
import type { MachineFacts } from './conditions.ts';
import { older, olderConditions } from './older-conditions.ts';
import type { ObservedNode } from './observed.ts';

const REFERENCE = { apiGroup: 'g', kind: 'Sim', name: 'i' };
const READY = { type: 'Ready', status: 'True', reason: 'Up', message: '' } as const;

const machine = (spec: object = {}, status: object = {}, metadata: object = {}): ClusterAPIMachine => ({
  metadata: { name: 'm', namespace: 'ns', uid: 'u', resourceVersion: '1', creationTimestamp: '', ...metadata },
  spec: { providerID: 'sim://1', infrastructureRef: REFERENCE, ...spec },
  status,
});
const CONFIG = { bootstrap: { configRef: REFERENCE } };
const seen = (ready?: object, metadata: object = {}): never =>
  ({ kind: 'found', external: { object: { metadata } }, report: { ready } }) as never;
const nodeWith = (conditions: Readonly<Record<string, string>>): ObservedNode => ({
  kind: 'found',
  node: node((n) => {
    n.status = { ...n.status, conditions: Object.entries(conditions).map(([type, status]) => ({ type, status })) };
  }),
});
const GOING = { deletionTimestamp: 'now' };

/** Its conditions, `status reason severity` by type. */
function saidOf(
  change: Partial<MachineFacts>,
  before: readonly DeprecatedCondition[] = [],
): Readonly<Record<string, string>> {
  const facts: MachineFacts = {
    machine: machine(),
    infrastructure: seen(READY),
    bootstrap: { kind: 'none' },
    node: nodeWith({ Ready: 'True' }),
    dataSecret: undefined,
    upToDate: undefined,
    deleting: undefined,
    problems: [],
    ...change,
  };
  const said = olderConditions(facts, [], before);
  return Object.fromEntries(
    said.map(({ type, status, reason, severity = '' }) => [type, `${status} ${reason} ${severity}`.trim()]),
  );
}

// promise: cluster-api/contracts-providers/providers-older-contract-find
test.each<{ what: string; change?: Partial<MachineFacts>; type: string; want: string | undefined }>([
  { what: 'its Node reports no more than Ready', type: 'NodeHealthy', want: 'True' },
  {
    what: 'memory of its Node is short',
    change: { node: nodeWith({ Ready: 'True', MemoryPressure: 'True' }) },
    type: 'NodeHealthy',
    want: 'False NodeConditionsFailed Warning',
  },
  {
    what: 'nobody hears of Ready alone',
    change: { node: nodeWith({ Ready: 'Unknown', MemoryPressure: 'False' }) },
    type: 'NodeHealthy',
    want: 'True',
  },
  {
    what: 'its Node is dead',
    change: {
      node: nodeWith({ Ready: 'Unknown', MemoryPressure: 'Unknown', DiskPressure: 'Unknown', PIDPressure: 'Unknown' }),
    },
    type: 'NodeHealthy',
    want: 'Unknown NodeConditionsFailed',
  },
  {
    what: 'its Node is gone',
    change: { node: { kind: 'gone' } },
    type: 'NodeHealthy',
    want: 'False NodeNotFound Error',
  },
  {
    what: 'its Node has not joined',
    change: { node: { kind: 'absent' } },
    type: 'NodeHealthy',
    want: 'False NodeProvisioning Warning',
  },
  {
    what: 'it has no provider ID',
    change: { machine: machine({ providerID: '' }) },
    type: 'NodeHealthy',
    want: 'False WaitingForNodeRef',
  },
  {
    what: 'its infrastructure goes',
    change: { infrastructure: seen(READY, GOING) },
    type: 'NodeHealthy',
    want: 'False Deleting',
  },
  {
    what: 'its cluster is out of reach',
    change: { node: { kind: 'unreachable', why: 'w', isOver: true, isLost: true } },
    type: 'NodeHealthy',
    want: undefined,
  },
  { what: 'its infrastructure reports Ready', type: 'InfrastructureReady', want: 'True Up' },
  {
    what: 'its infrastructure reports Ready without a reason',
    change: { infrastructure: seen({ ...READY, reason: 'NoReasonReported' }) },
    type: 'InfrastructureReady',
    want: 'True',
  },
  {
    what: 'its infrastructure reports nothing',
    change: { infrastructure: seen() },
    type: 'InfrastructureReady',
    want: 'False WaitingForInfrastructure',
  },
  {
    what: 'it was provisioned',
    change: { infrastructure: seen(), machine: machine({}, { initialization: { infrastructureProvisioned: true } }) },
    type: 'InfrastructureReady',
    want: 'True',
  },
  {
    what: 'its infrastructure has gone with it',
    change: { infrastructure: { kind: 'absent' }, machine: machine({}, {}, GOING) },
    type: 'InfrastructureReady',
    want: 'False Deleted',
  },
  { what: 'no bootstrap object is named', type: 'BootstrapReady', want: undefined },
  {
    what: 'its data Secret is named',
    change: {
      machine: machine({ bootstrap: { configRef: REFERENCE, dataSecretName: 's' } }),
      bootstrap: seen({ ...READY, status: 'False' }),
    },
    type: 'BootstrapReady',
    want: 'True',
  },
  {
    what: 'its bootstrap object reports nothing',
    change: { machine: machine(CONFIG), bootstrap: seen() },
    type: 'BootstrapReady',
    want: 'False WaitingForDataSecret',
  },
  { what: 'all is well', type: 'Ready', want: 'True' },
  {
    what: 'its Node is ill, as infrastructure and bootstrap do not know',
    change: { node: nodeWith({ Ready: 'False' }) },
    type: 'Ready',
    want: 'True',
  },
  {
    what: 'its infrastructure is not ready',
    change: { infrastructure: seen({ ...READY, status: 'False', reason: 'NoHost' }) },
    type: 'Ready',
    want: 'False NoHost',
  },
])('when $what, the older $type is $want', ({ change = {}, type, want }) => {
  expect(saidOf(change)[type]).toBe(want);
});

test('the older Ready counts what is done while the machine is made', () => {
  const facts: MachineFacts = {
    machine: machine({ providerID: '', ...CONFIG }),
    infrastructure: seen(),
    bootstrap: seen(READY),
    node: { kind: 'none' },
    dataSecret: undefined,
    upToDate: undefined,
    deleting: undefined,
    problems: [],
  };
  const ready = olderConditions(facts, [], []).find(({ type }) => type === 'Ready');

  expect(ready).toMatchObject({ status: 'False', reason: 'WaitingForInfrastructure', message: '1 of 2 completed' });
});

test('the older Ready heeds what others have said, and what a deletion has noted; the worst has the word', () => {
  const unhealthy = {
    type: 'HealthCheckSucceeded',
    status: 'False',
    severity: 'Warning',
    reason: 'UnhealthyNode',
  } as const;
  const facts = { infrastructure: seen({ ...READY, status: 'False', reason: 'NoHost' }) };
  const draining = older('DrainingSucceeded', 'False', 'Draining');

  expect(saidOf(facts, [unhealthy])['Ready']).toBe('False UnhealthyNode Warning');
  const noted = olderConditions(
    {
      machine: machine({}, {}, GOING),
      infrastructure: seen(READY),
      bootstrap: { kind: 'none' },
      node: nodeWith({ Ready: 'True' }),
      dataSecret: undefined,
      upToDate: undefined,
      deleting: undefined,
      problems: [],
    },
    [draining],
    [],
  );
  expect(noted.find(({ type }) => type === 'Ready')).toMatchObject({ status: 'False', reason: 'Draining' });
});
