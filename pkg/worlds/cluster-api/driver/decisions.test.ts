import { describe, expect, test } from '@jest/globals';

import { DELETION_HOOK } from '../api/keys.ts';
import { readBootstrap } from '../api/bootstrap.ts';
import { readInfrastructure } from '../api/infrastructure.ts';
import type { ClusterAPIMachine, ClusterAPIMachineStatus } from '../api/machine.ts';
import type { KubeObject, ObjectMeta } from '../../../apis/meta.ts';
import { deletionText, unprovisioned } from './failure.ts';
import { kindBy, kindOfDefinition } from './kinds.ts';
import { marked } from './marks.ts';
import { expectedNodeName } from './node-name.ts';
import { obstacleIn, type Piece } from './pieces.ts';
import { nextRemoval, PARTS, type Part } from './removal.ts';

const marks = { cluster: 'c-1', className: 'small', machineName: 'm-1', machineUID: 'u-1' };
const base: ObjectMeta = { name: 'm-1', namespace: 'shoot', uid: 'o', resourceVersion: '1', creationTimestamp: '' };

function piece(part: Part, change: Partial<ObjectMeta> = {}): Piece {
  const object = { metadata: { ...base, ...marked(marks), ...change } } as KubeObject;
  return { part, what: `${part} m-1`, object };
}

const going = { deletionTimestamp: '2026-01-01T00:00:00Z' };
const foreign = { labels: {} };
const owned = { ownerReferences: [{ apiVersion: 'cluster.x-k8s.io/v1beta2', kind: 'Machine', name: 'm-1', uid: 'x' }] };
const ofCluster = { ownerReferences: [{ ...owned.ownerReferences[0], kind: 'Cluster' }] as never };

describe('a creation', () => {
  test.each([
    { there: [], obstacle: undefined },
    { there: [piece('secret'), piece('infrastructure')], obstacle: undefined },
    { there: [piece('infrastructure', ofCluster)], obstacle: undefined },
    { there: [piece('machine'), piece('infrastructure', owned)], obstacle: undefined },
    { there: [piece('secret', foreign)], obstacle: { kind: 'foreign', what: 'secret m-1' } },
    { there: [piece('machine', foreign)], obstacle: { kind: 'foreign', what: 'machine m-1' } },
    { there: [piece('machine', going)], obstacle: { kind: 'going', what: 'machine m-1' } },
    { there: [piece('machine'), piece('bootstrap', going)], obstacle: { kind: 'going', what: 'bootstrap m-1' } },
    // Its Machine is gone, and the garbage collector takes it along.
    { there: [piece('secret', owned)], obstacle: { kind: 'going', what: 'secret m-1' } },
    // What is in the way stays in the way, whatever else goes.
    {
      there: [piece('machine', going), piece('infrastructure', foreign)],
      obstacle: { kind: 'foreign', what: 'infrastructure m-1' },
    },
  ])('finds $obstacle', ({ there, obstacle }) => {
    expect(obstacleIn(there, marks)).toEqual(obstacle);
  });
});

describe('a deletion', () => {
  test('takes one thing after the other, each when the one before it is gone', () => {
    let left = PARTS.map((part) => piece(part)).toReversed();
    const order: string[] = [];
    for (;;) {
      const next = nextRemoval(left);
      if (next.kind === 'done') break;
      order.push(`${next.kind} ${next.piece.part}`);
      left =
        next.kind === 'delete'
          ? left.map((one) => (one === next.piece ? piece(one.part, going) : one))
          : left.filter((one) => one !== next.piece);
    }

    // Whatever says which VM it is of goes last.
    const parts = ['secret', 'machine', 'infrastructure', 'bootstrap'];
    expect(order).toEqual(parts.flatMap((part) => [`delete ${part}`, `wait ${part}`]));
  });

  const held = { annotations: { ...marked(marks).annotations, [DELETION_HOOK]: '' } };

  test.each([
    { what: 'before it is deleted', change: held },
    { what: 'that somebody else deletes', change: { ...held, ...going } },
  ])('takes our hook from a Machine $what', ({ change }) => {
    const machine = piece('machine', change);

    expect(nextRemoval([piece('infrastructure'), machine])).toEqual({ kind: 'release', piece: machine });
  });

  test('takes everything of two kinds', () => {
    const two = [piece('infrastructure', { uid: 'a' }), piece('infrastructure', { uid: 'b' })];

    expect(nextRemoval(two)).toEqual({ kind: 'delete', piece: two[0] });
    expect(nextRemoval(two.slice(1))).toEqual({ kind: 'delete', piece: two[1] });
  });

  test.each([
    {
      conditions: [{ type: 'Deleting', reason: 'WaitingForX', message: 'x is held' }],
      words: ': WaitingForX: x is held',
    },
    {
      conditions: [
        { type: 'Deleting', reason: 'WaitingForX', message: 'as it was' },
        { type: 'Paused', reason: 'Paused', message: 'Cluster spec.paused is set to true' },
      ],
      words: ': Paused: Cluster spec.paused is set to true',
    },
    // As it was before the deletion was asked for.
    { is: 'False', conditions: [{ type: 'Deleting', reason: 'NotDeleting', message: '' }], words: '' },
    { conditions: [], words: '' },
    {
      is: 'False',
      conditions: [{ type: 'Ready', reason: 'NotReady', message: 'Cluster c does not exist' }],
      words: ': NotReady: Cluster c does not exist',
    },
  ])('says what the Machine waits for: $words', ({ is = 'True', conditions, words }) => {
    const status = { conditions: conditions.map((one) => ({ ...one, status: is as 'True' | 'False' })) };

    expect(deletionText({ metadata: base, status })).toBe(words);
  });
});

const infrastructure = (status: object) => ({
  what: 'SimMachine m-1',
  report: readInfrastructure({ metadata: base, status } as KubeObject, 'v1beta1'),
});
const bootstrap = (status: object) => ({
  what: 'SimConfig m-1',
  report: readBootstrap({ metadata: base, status } as KubeObject, 'v1beta1'),
});
const ready = (reason: string, status = 'False') => ({
  conditions: [{ type: 'Ready', status, reason, message: 'told' }],
});

describe('a machine that is not provisioned yet', () => {
  test.each([
    {
      infra: { failureReason: 'InsufficientResources', failureMessage: 'told', ...ready('Foo') },
      says: 'ResourceExhausted SimMachine m-1 has failed: InsufficientResources: told',
    },
    {
      infra: { failureReason: 'InvalidConfiguration', failureMessage: 'told' },
      says: 'InvalidArgument SimMachine m-1 has failed: InvalidConfiguration: told',
    },
    {
      infra: { failureReason: 'CreateError', failureMessage: 'told' },
      says: 'Internal SimMachine m-1 has failed: CreateError: told',
    },
    { infra: { failureMessage: 'told' }, says: 'Internal SimMachine m-1 has failed: told' },
    { infra: ready('Foo'), says: 'Uninitialized SimMachine m-1 is not ready: Foo: told' },
    { infra: ready('Foo', 'Unknown'), says: 'Uninitialized SimMachine m-1 is not ready: Foo: told' },
    {
      infra: ready('InsufficientResources'),
      says: 'ResourceExhausted SimMachine m-1 is not ready: InsufficientResources: told',
    },
    {
      infra: ready('Foo', 'True'),
      boot: { failureReason: 'InvalidConfiguration', failureMessage: 'told' },
      says: 'InvalidArgument SimConfig m-1 has failed: InvalidConfiguration: told',
    },
    { infra: {}, boot: ready('Foo'), says: 'Uninitialized SimConfig m-1 is not ready: Foo: told' },
    {
      infra: {},
      machine: [{ type: 'InfrastructureReady', status: 'False', reason: 'NotReady', message: 'not provisioned' }],
      says: 'Uninitialized Machine m-1 is not provisioned yet: InfrastructureReady is False: NotReady: not provisioned',
    },
    {
      machine: [
        { type: 'InfrastructureReady', status: 'Unknown', reason: 'InternalError', message: 'no definition' },
        { type: 'Paused', status: 'True', reason: 'Paused', message: 'Cluster c is paused' },
      ],
      says: 'Aborted Machine m-1 is not provisioned yet: Paused is True: Paused: Cluster c is paused',
    },
    {
      machine: [{ type: 'InfrastructureReady', status: 'True', reason: 'Ready', message: '' }],
      says: 'Uninitialized Machine m-1 is not provisioned yet: its infrastructure has not reported a provider ID',
    },
    {
      says: 'Uninitialized Machine m-1 is not provisioned yet: waiting for the controller of Cluster API to reconcile it',
    },
    {
      ageMs: 60_001,
      says: 'Aborted Machine m-1 is not provisioned yet: no controller has reconciled it; check that Cluster API is running, or a manager with --controllers=*,cluster-api',
    },
    { ageMs: 60_001, infra: ready('Foo'), says: 'Uninitialized SimMachine m-1 is not ready: Foo: told' },
    {
      infra: { failureReason: 'CreateError', failureMessage: '404 {"kind":"Status"}' },
      machine: [{ type: 'BootstrapConfigReady', status: 'False', reason: 'DataSecretMissing', message: 'create it' }],
      says: 'InvalidArgument providerSpec.bootstrap.dataSecretName: create it',
    },
    {
      infra: ready('Foo'),
      machine: [{ type: 'BootstrapConfigReady', status: 'False', reason: 'DataSecretEmpty', message: 'fill it' }],
      givenSecret: 'another',
      says: 'InvalidArgument Machine m-1: fill it',
    },
    {
      infra: ready('Foo'),
      machine: [{ type: 'BootstrapConfigReady', status: 'True', reason: 'DataSecretProvided', message: '' }],
      says: 'Uninitialized SimMachine m-1 is not ready: Foo: told',
    },
  ])('is answered with $says', (row) => {
    const { infra, boot, machine: conditions = [], ageMs = 60_000, givenSecret = 'given', says } = row;
    const creationTimestamp = '2026-01-01T00:00:00Z';
    const machine = {
      metadata: { ...base, creationTimestamp },
      spec: { bootstrap: { dataSecretName: 'given' } },
      status: { conditions } as unknown as ClusterAPIMachineStatus,
    };
    const error = unprovisioned({
      machine,
      infrastructure: infra && infrastructure(infra),
      bootstrap: boot && bootstrap(boot),
      givenSecret,
      nowMs: Date.parse(creationTimestamp) + ageMs,
    });

    expect(`${error.code} ${error.detail}`).toContain(says);
    expect(error.terminal).toBe(false);
  });
});

describe('the Node of a machine', () => {
  const address = (type: 'Hostname' | 'InternalDNS' | 'InternalIP', one: string) => ({ type, address: one });

  test.each([
    { status: { nodeRef: { name: 'n' }, addresses: [address('Hostname', 'h')] }, name: 'n' },
    { status: { addresses: [address('InternalDNS', 'd'), address('Hostname', 'h')] }, name: 'h' },
    { status: { addresses: [address('InternalIP', '10.0.0.1'), address('InternalDNS', 'd')] }, name: 'd' },
    { status: { addresses: [address('InternalIP', '10.0.0.1')] }, name: 'm-1' },
    { status: undefined, name: 'm-1' },
  ])('is called $name', ({ status, name }) => {
    expect(expectedNodeName(status satisfies ClusterAPIMachine['status'], 'm-1')).toBe(name);
  });
});

describe('a kind of a provider', () => {
  const reference = { apiGroup: 'infrastructure.example.com', kind: 'SimMachine' };
  const definition = (labels: Record<string, string>): KubeObject => ({ metadata: { ...base, labels } });

  test.each([
    { labels: undefined, kind: 'missing', says: 'CustomResourceDefinition simmachines.infrastructure.example.com' },
    { labels: {}, kind: 'unclear', says: 'has no label cluster.x-k8s.io/v1beta2' },
  ])('that is $kind says what would help', ({ labels, kind, says }) => {
    const found = kindBy(labels && definition(labels), reference);

    expect(found).toMatchObject({ kind, problem: expect.stringContaining(says) });
  });

  test.each([
    { name: 'simmachines.infrastructure.cluster.x-k8s.io', isCloned: true },
    { name: 'metalhosts.metal.example.org', isCloned: true },
    { name: 'simmachinetemplates.infrastructure.cluster.x-k8s.io', isCloned: false },
    { name: 'machines.cluster.x-k8s.io', isCloned: false },
    { name: 'kubeadmcontrolplanes.controlplane.cluster.x-k8s.io', isCloned: false },
  ])('of definition $name may be of clones: $isCloned', ({ name, isCloned }) => {
    const { metadata } = definition({ 'cluster.x-k8s.io/v1beta2': 'v1' });
    const [plural] = name.split('.');

    expect(kindOfDefinition({ metadata: { ...metadata, name } })?.resource.plural).toBe(isCloned ? plural : undefined);
    expect(kindOfDefinition({ metadata: { ...metadata, name, labels: {} } })).toBeUndefined();
  });

  test('is read in the version that its definition names', () => {
    expect(kindBy(definition({ 'cluster.x-k8s.io/v1beta1': 'v1alpha7_v1' }), reference)).toEqual({
      kind: 'served',
      contract: 'v1beta1',
      resource: expect.objectContaining({
        group: 'infrastructure.example.com',
        version: 'v1',
        plural: 'simmachines',
        kind: 'SimMachine',
        namespaced: true,
      }),
    });
  });
});
