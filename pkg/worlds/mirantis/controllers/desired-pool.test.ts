import { describe, expect, test } from '@jest/globals';

import { machine } from '../../../../test/builders.ts';
import { clusterMachine, machinePool } from '../../../../test/cluster-machine.ts';
import type { MachineDeployment } from '../../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachinePool } from '../api/pool.ts';
import { readPool, type PoolValue } from './pool-value.ts';
import {
  claimOn,
  deploymentChange,
  deploymentFor,
  memberChange,
  memberFor,
  movedLabels,
  replicasPlan,
} from './desired-pool.ts';

/** Of a pool without a Cluster. */
const NOTHING = { updateOrder: undefined, isHeld: undefined };
const AT = 'spec.machineSpec.providerSpec.value';
const REPLICAS = 'machine.sapcloud.io/front-end-replicas';
const POLICY = 'machine.sapcloud.io/deletion-policy';

function valueOf(pool: MachinePool): PoolValue {
  const { value, problems } = readPool(pool);
  if (value === undefined) throw new Error(problems.join());
  return value;
}

function deployed(pool: MachinePool = machinePool(), change: object = {}): MachineDeployment {
  const wanted = deploymentFor(pool, valueOf(pool), 'mcc-1');
  const metadata = { ...wanted.metadata, uid: 'uid-of-it', resourceVersion: '1', creationTimestamp: '', ...change };
  return { ...wanted, metadata };
}

describe('a pool', () => {
  test.each<{ change: Parameters<typeof machinePool>; says: string }>([
    { change: [{}, { replicas: undefined }], says: 'spec.replicas: must be a whole number from 0' },
    { change: [{}, { replicas: '3' }], says: 'spec.replicas' },
    { change: [{}, { replicas: -1 }], says: 'spec.replicas' },
    { change: [{}, { replicas: 1e9 }], says: 'spec.replicas' },
    { change: [{ flavor: 7 }], says: `${AT}.flavor: must be the name of a flavor` },
    { change: [{ maintenance: true }], says: `${AT}.maintenance: can be set for single Machines of the pool only` },
    { change: [{ delete: true }], says: `${AT}.delete: can be set for single Machines of the pool only` },
    { change: [{}, { machineSpec: undefined }], says: `${AT}.image` },
    { change: [{}, { machineSpec: 'text' }], says: `${AT}.image` },
    { change: [{}, { machineSpec: { providerSpec: { value: [] } } }], says: `${AT}: must be an object` },
  ])('is wrong: $says', ({ change, says }) => {
    const { problems = [] } = readPool(machinePool(...change));

    expect(problems.filter((problem) => problem.startsWith(says))).not.toEqual([]);
  });

  test.each([{ spec: undefined }, { spec: 'text' }, { spec: null }])('without a spec is told so: $spec', ({ spec }) => {
    expect(readPool({ spec } as unknown as MachinePool).problems).toContainEqual(
      expect.stringMatching(/^spec(\.replicas)?: must be/),
    );
  });
});

describe('the MachineDeployment of a pool', () => {
  test('has its Machines, and replaces them one by one, new ones first', () => {
    const pool = machinePool(
      { nodeLabels: [{ key: 'a', value: 'b' }], deletionPolicy: 'graceful' },
      { replicas: 3 },
      { labels: { ...machinePool().metadata.labels, 'cluster.sigs.k8s.io/control-plane': 'true', own: 'x' } },
    );

    expect(deploymentFor(pool, valueOf(pool), 'mcc-1')).toMatchObject({
      metadata: {
        name: 'pool-1',
        annotations: { [POLICY]: 'graceful', [REPLICAS]: '3' },
        ownerReferences: [{ apiVersion: 'kaas.mirantis.com/v1alpha1', kind: 'MachinePool', controller: true }],
      },
      spec: {
        replicas: 3,
        selector: { matchLabels: { 'kaas.mirantis.com/machinepool-name': 'pool-1' } },
        strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
        template: {
          metadata: {
            labels: {
              'cluster.sigs.k8s.io/cluster-name': 'cluster-1',
              'cluster.sigs.k8s.io/control-plane': 'true',
              'kaas.mirantis.com/machinepool-name': 'pool-1',
            },
          },
          spec: { class: { name: 'mcc-1' }, nodeTemplate: { metadata: { labels: { a: 'b' } } } },
        },
      },
    });
  });

  test('of a pool without a deletion policy has none: its Machines are drained, also in rollouts', () => {
    expect(deployed().metadata.annotations).toEqual({ [REPLICAS]: '2' });
  });

  test.each<{ what: string; pool: MachinePool; className?: string; change: unknown }>([
    { what: 'nothing', pool: machinePool(), change: undefined },
    {
      what: 'another class rolls',
      pool: machinePool(),
      className: 'mcc-2',
      change: { spec: { template: { spec: { class: { name: 'mcc-2' } } } } },
    },
    {
      what: 'labels and the policy do not',
      pool: machinePool({ nodeLabels: [{ key: 'a', value: 'b' }], deletionPolicy: 'unsafe' }),
      change: {
        metadata: { annotations: { [POLICY]: 'unsafe' } },
        spec: { template: { spec: { nodeTemplate: { metadata: { labels: { a: 'b' } } } } } },
      },
    },
    {
      what: 'replicas',
      pool: machinePool({}, { replicas: 5 }),
      change: { metadata: { annotations: { [REPLICAS]: '5' } }, spec: { replicas: 5 } },
    },
  ])('follows: $what', ({ pool, className = 'mcc-1', change }) => {
    expect(deploymentChange(deployed(), valueOf(pool), { className, ...NOTHING })).toEqual(change);
  });

  test('loses the policy that its pool has no more', () => {
    const before = deployed(machinePool({ deletionPolicy: 'forced' }));

    expect(deploymentChange(before, valueOf(machinePool()), { className: 'mcc-1', ...NOTHING })).toEqual({
      metadata: { annotations: { [POLICY]: null } },
    });
  });

  test.each([
    { what: 'nobody changed anything', known: '2', has: 2, asked: 2, plan: {} },
    { what: 'the pool was', known: '2', has: 2, asked: 3, plan: { scaleTo: 3 } },
    { what: 'an autoscaler has', known: '2', has: 4, asked: 2, plan: { report: 4 } },
    { what: 'both were', known: '2', has: 4, asked: 3, plan: { scaleTo: 3 } },
    { what: 'the pool was told, and not yet noted', known: '2', has: 4, asked: 4, plan: { scaleTo: 4 } },
    { what: 'it was adopted', known: undefined, has: 4, asked: 2, plan: { scaleTo: 2 } },
    { what: 'the note was spoilt', known: 'x', has: 2, asked: 2, plan: { scaleTo: 2 } },
  ])('has replicas that change on both sides: $what', ({ known, has, asked, plan }) => {
    const it = deployed(undefined, { annotations: known === undefined ? {} : { [REPLICAS]: known } });

    expect(replicasPlan({ ...it, spec: { ...it.spec, replicas: has } }, asked)).toEqual(plan);
  });

  test.each([
    { what: 'that was made for it', change: {}, claim: 'ours' },
    { what: 'of another owner', change: { ownerReferences: [{ uid: 'x', controller: true }] }, claim: 'foreign' },
    { what: 'that a former pool of the name has left', change: { ownerReferences: [] }, claim: 'free' },
    { what: 'of a user', change: { ownerReferences: [], labels: {} }, claim: 'foreign' },
  ])('is claimed: one $what is $claim', ({ change, claim }) => {
    expect(claimOn(machinePool(), deployed(undefined, change))).toBe(claim);
  });

  test('does not move to another Cluster', () => {
    const labels = { ...machinePool().metadata.labels, 'cluster.sigs.k8s.io/cluster-name': 'other' };

    expect(movedLabels(machinePool(), deployed())).toEqual([]);
    expect(movedLabels(machinePool({}, {}, { labels }), deployed())).toEqual(['cluster.sigs.k8s.io/cluster-name']);
  });
});

describe('a Machine that shows one of a pool', () => {
  test('has the labels and the value of the pool, and goes with ours', () => {
    const labels = { ...machinePool().metadata.labels, own: 'x' };
    const pool = machinePool({ upgradeIndex: 2, unknown: [1] }, {}, { labels });

    expect(memberFor(pool, machine())).toMatchObject({
      metadata: {
        labels: { ...labels, 'kaas.mirantis.com/machinepool-name': 'pool-1' },
        finalizers: ['machine.sapcloud.io/front-end'],
        ownerReferences: [{ kind: 'Machine', uid: machine().metadata.uid, controller: true }],
      },
      spec: pool.spec?.machineSpec,
    });
  });

  test.each([
    { what: 'a changed value', before: { flavor: 'kaas.large' }, change: { flavor: 'kaas.small' } },
    { what: 'a member that the pool does not have', before: { upgradeIndex: 1 }, change: { upgradeIndex: null } },
    { what: 'maintenance, which is its own', before: { maintenance: true }, change: undefined },
    { what: 'delete, which is its own', before: { delete: true }, change: undefined },
  ])('is put right: $what', ({ before, change }) => {
    const labels = { ...clusterMachine().metadata.labels, 'kaas.mirantis.com/machinepool-name': 'pool-1' };
    const want = change === undefined ? undefined : { spec: { providerSpec: { value: change } } };

    expect(memberChange(machinePool(), clusterMachine(before, { labels }))).toEqual(want);
  });

  test('is put right although its spec was spoilt, and its labels', () => {
    const { value } = machinePool().spec?.machineSpec?.providerSpec ?? {};
    const spoilt = { ...clusterMachine({}, { labels: {} }), spec: { providerSpec: { value: 'text' } } };

    expect(memberChange(machinePool(), spoilt as never)).toEqual({
      metadata: { labels: memberFor(machinePool(), machine()).metadata.labels },
      spec: { providerSpec: { value } },
    });
  });
});
