import { describe, expect, test } from '@jest/globals';

import { machine, node, type BuiltMachine } from '../../../../test/builders.ts';
import { clusterMachine } from '../../../../test/cluster-machine.ts';
import type { MachinePhase } from '../../../apis/machine/v1alpha1/phases.ts';
import type { ProviderState } from '../api/machine.ts';
import { shownUpgradeIndexes, providerStatusOf, providerStateOf, type ProviderFacts } from './provider-status.ts';

const SINCE = 'machine.sapcloud.io/maintenance-since';
const EMPTIED = 'machine.sapcloud.io/maintenance-node';

function known(change: Partial<ProviderFacts> = {}): ProviderFacts {
  return { machine: clusterMachine(), ours: undefined, node: undefined, problems: [], upgradeIndex: 1, ...change };
}

function inPhase(phase: MachinePhase | '', change: (m: BuiltMachine) => void = () => undefined): BuiltMachine {
  return machine((m) => {
    m.metadata.labels = {};
    m.status = { currentStatus: phase === '' ? {} : { phase }, lastOperation: {} };
    m.spec.providerID = 'openstack:///eu/s-1';
    change(m);
  });
}

const joined = (m: BuiltMachine): void =>
  void (m.status = { ...m.status, conditions: [{ type: 'Ready', status: 'False' }] });
const named = (m: BuiltMachine): void => void (m.metadata.labels = { node: 'n-1' });
const emptied = (m: BuiltMachine): void => void (m.metadata.annotations = { [SINCE]: 'x', [EMPTIED]: 'none' });

describe('the state in one word', () => {
  test.each<{ what: string; ours: BuiltMachine | undefined; before?: ProviderState; want: ProviderState }>([
    { what: 'no Machine yet', ours: undefined, want: 'Provision' },
    { what: 'no VM yet', ours: inPhase(''), want: 'Provision' },
    { what: 'the VM could not be made', ours: inPhase('CrashLoopBackOff'), want: 'Provision' },
    { what: 'neither address nor name', ours: inPhase('Pending'), want: 'Uninitialized' },
    { what: 'no Node', ours: inPhase('Pending', named), want: 'Pending' },
    { what: 'a Node that was never Ready', ours: inPhase('Pending', joined), want: 'Deploy' },
    { what: 'an update in place', ours: inPhase('InPlaceUpdating'), want: 'Deploy' },
    { what: 'a Node that is Ready', ours: inPhase('Running'), want: 'Ready' },
    { what: 'no target cluster', ours: inPhase('Available'), want: 'Ready' },
    { what: 'maintenance', ours: inPhase('Running', emptied), want: 'Maintenance' },
    { what: 'broken when it was Ready', ours: inPhase('Unknown'), before: 'Ready', want: 'Ready' },
    { what: 'failed before it was Ready', ours: inPhase('Failed'), before: 'Pending', want: 'Pending' },
    { what: 'deleted after its maintenance', ours: inPhase('Terminating'), before: 'Maintenance', want: 'Ready' },
  ])('$what: $want', ({ ours, before, want }) => {
    const of = clusterMachine();
    if (before !== undefined) of.status = { providerStatus: { status: before } };

    expect(providerStateOf({ machine: of, ours, node: undefined })).toBe(want);
  });
});

describe('the provider status', () => {
  test('of a machine that works', () => {
    const ours = inPhase('Running', (m) => {
      m.metadata.labels = { node: 'n-1' };
      m.status = {
        ...m.status,
        conditions: [{ type: 'Ready', status: 'True' }],
        machineConditions: [{ type: 'VMState', status: 'True', reason: 'ACTIVE' }],
        lastOperation: { type: 'Create', state: 'Successful', description: 'joined' },
      };
    });
    const itsNode = node((n) => {
      n.status = {
        ...n.status,
        addresses: [
          { type: 'InternalIP', address: 'fd00::1' },
          { type: 'InternalIP', address: '10.10.10.169' },
        ],
        capacity: { cpu: '8', memory: '24611000Ki' },
      };
    });

    expect(providerStatusOf(known({ ours, node: itsNode }))).toEqual({
      apiVersion: 'openstackproviderconfig.k8s.io/v1alpha1',
      kind: 'OpenstackMachineProviderStatus',
      conditions: [
        { type: 'Kubelet', ready: true, message: "Kubelet's NodeReady condition is True" },
        { type: 'LCM', ready: true, message: 'Create Successful: joined' },
      ],
      providerInstanceState: { id: 's-1', ready: true, state: 'ACTIVE' },
      hardware: { cpu: 8, ram: 24 },
      privateIp: '10.10.10.169',
      maintenance: false,
      upgradeIndex: 1,
      status: 'Ready',
      delete: false,
      prepareDeletionPhase: undefined,
    });
  });

  test('names what is wrong, and keeps conditions of others', () => {
    const of = clusterMachine();
    const swarm = { type: 'Swarm', ready: true, message: 'of somebody else' };
    of.status = { providerStatus: { conditions: [swarm, { type: 'LCM', ready: true, message: 'old' }] } };

    const { conditions } = providerStatusOf(known({ machine: of, problems: ['one', 'two'] }));

    expect(conditions).toEqual([
      { type: 'Kubelet', ready: false, message: 'There is no Node yet' },
      { type: 'LCM', ready: false, message: 'one; two' },
      swarm,
    ]);
  });

  // promise: openstack/cloud/hardware-flavor-node
  test.each([
    {
      what: 'the VM, without a Node',
      vmCapacity: { cpu: '8', memory: '24576Mi' },
      node: undefined,
      want: { cpu: 8, ram: 24 },
    },
    {
      what: 'its Node',
      vmCapacity: { cpu: '8', memory: '24576Mi' },
      node: { cpu: '4', memory: '7Gi' },
      want: { cpu: 4, ram: 7 },
    },
    {
      what: 'the VM, with a Node that does not tell',
      vmCapacity: { cpu: '8', memory: '1Gi' },
      node: {},
      want: { cpu: 8, ram: 1 },
    },
    { what: 'nothing', vmCapacity: { cpu: '8' }, node: undefined, want: undefined },
  ])('shows the hardware of $what', ({ vmCapacity, node: capacity, want }) => {
    const ours = inPhase('Pending', (m) => {
      m.status = { ...m.status, vmCapacity };
    });
    const itsNode = node((n) => {
      n.status = { ...n.status, capacity: capacity ?? {} };
    });

    const { hardware } = providerStatusOf(known({ ours, ...(capacity && { node: itsNode }) }));

    expect(hardware).toEqual(want);
  });

  // promise: openstack/front-end/whatever-message
  test('says why a kubelet is not ready, and what failed', () => {
    const ours = inPhase('Unknown', (m) => {
      m.status = {
        ...m.status,
        conditions: [{ type: 'Ready', status: 'Unknown', message: 'stopped posting' }],
        lastOperation: { type: 'Create', state: 'Failed', description: 'no flavor', errorCode: 'ResourceExhausted' },
      };
    });

    expect(providerStatusOf(known({ ours })).conditions).toEqual([
      { type: 'Kubelet', ready: false, message: "Kubelet's NodeReady condition is Unknown: stopped posting" },
      { type: 'LCM', ready: false, message: 'Create Failed: no flavor (ResourceExhausted)' },
    ]);
  });

  test.each([
    { reason: 'started', isGoing: false, want: { delete: true, prepareDeletionPhase: 'started' } },
    { reason: 'blocked', isGoing: false, want: { delete: true, prepareDeletionPhase: 'started' } },
    { reason: 'failed', isGoing: false, want: { delete: true, prepareDeletionPhase: 'failed' } },
    { reason: 'aborting', isGoing: false, want: { delete: false, prepareDeletionPhase: 'aborting' } },
    { reason: 'completed', isGoing: true, want: { delete: true, prepareDeletionPhase: 'completed' } },
    { reason: undefined, isGoing: true, want: { delete: true, prepareDeletionPhase: undefined } },
    { reason: undefined, isGoing: false, want: { delete: false, prepareDeletionPhase: undefined } },
  ])('of a deletion: $reason, deleted: $isGoing', ({ reason, isGoing, want }) => {
    const ours = inPhase('Running', (m) => {
      if (isGoing) m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
      if (reason !== undefined)
        m.status = { ...m.status, machineConditions: [{ type: 'DeletionPrepared', status: 'False', reason }] };
    });

    expect(providerStatusOf(known({ ours }))).toMatchObject(want);
  });
});

test.each([
  {
    phase: 'started',
    message: 'The Node is drained.',
    says: 'started: The Node is drained. To keep the machine, set spec.providerSpec.value.delete to false.',
  },
  {
    phase: 'failed',
    message: 'pod a is protected',
    says: /^failed: pod a is protected\. To keep .* false\. To delete it without waiting for the drain, set spec.providerSpec.value.deletionPolicy of machines.cluster.k8s.io m-1 to unsafe or forced\.$/,
  },
  {
    phase: 'blocked',
    message: 'Waiting for 1 pod',
    says: /^started: Waiting for 1 pod\. To keep .* false\. To delete it without waiting for the drain, set .* to unsafe or forced\.$/,
  },
  { phase: 'failed', message: 'not uncordoned', isAsked: false, says: /^failed: not uncordoned$/ },
  { phase: 'aborting', message: 'It is given back.', says: /^aborting: It is given back\.$/ },
  { phase: 'started', message: '', says: 'started. To keep the machine, set spec.providerSpec.value.delete to false.' },
  { phase: 'started', message: 'on', isGoing: true, says: /^started: on$/ },
])(
  'a deletion that is $phase says what can be done about it: $says',
  ({ phase, message, isGoing, isAsked = true, says }) => {
    const ours = inPhase('Running', (m) => {
      const owner = { apiVersion: 'cluster.k8s.io/v1alpha1', kind: 'Machine', name: 'm-1', uid: 'u', controller: true };
      m.metadata.ownerReferences = [owner];
      if (isAsked) m.metadata.annotations = { 'machine.sapcloud.io/prepare-deletion': 'true' };
      if (isGoing === true) m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
      m.status = {
        ...m.status,
        machineConditions: [{ type: 'DeletionPrepared', status: 'False', reason: phase, message }],
      };
    });

    const { conditions = [] } = providerStatusOf(known({ ours }));

    expect(conditions.find(({ type }) => type === 'Deletion')?.message).toMatch(says);
  },
);

// promise: order-updates/machines-index-shown-places
// promise: openstack/front-end/places-upgrades-given-age
test.each([
  { what: 'by age', given: [undefined, undefined, undefined], want: [2, 1, 3] },
  { what: 'after the largest one that was given', given: [7, undefined, undefined], want: [7, 8, 9] },
  { what: 'as given', given: [3, 1, 2], want: [3, 1, 2] },
])('places in upgrades are shown $what', ({ given, want }) => {
  const created = ['2026-01-02T00:00:00Z', '2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z'];
  const all = given.map((upgradeIndex, i) =>
    clusterMachine({ upgradeIndex }, { name: `m-${i}`, creationTimestamp: created[i] }),
  );

  const shown = shownUpgradeIndexes(all);

  expect(all.map(({ metadata }) => shown.get(metadata.name))).toEqual(want);
});
