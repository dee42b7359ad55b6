import type { BuiltMachine } from '../builders.ts';
import { machine, machineDeployment, machineSet } from '../builders.ts';
import type { ObjectMeta } from '../../pkg/apis/meta.ts';
import type { TreeObjects } from '../../pkg/fleet/tree.ts';
import type { WorkInProgress } from '../../pkg/health/work-in-progress.ts';

/** What is built here is seen at this time. */
export const NOW_MS = Date.parse('2026-01-01T12:00:00Z');
const THEN = '2026-01-01T09:00:00Z';
const MINUTES_AGO = (minutes: number): string => `${new Date(NOW_MS - minutes * 60_000).toISOString().slice(0, 19)}Z`;

type Change = (one: BuiltMachine) => void;

/** What may be the matter with a machine, a few of each in some deployments. */
const TROUBLES: readonly Change[] = [
  (one) => {
    one.metadata.deletionTimestamp = MINUTES_AGO(14);
    one.metadata.finalizers = ['machine.sapcloud.io/machine-controller-manager'];
    one.status.currentStatus = { phase: 'Terminating', lastUpdateTime: MINUTES_AGO(14) };
    one.status.lastOperation = {
      type: 'Delete',
      state: 'Processing',
      errorCode: 'DrainBlocked',
      description: `Waiting for 2 pods: shop/cart-0, shop/cart-1 (PodDisruptionBudget cart currently allows no eviction). Remaining pods are deleted at ${MINUTES_AGO(-106)}. Initiate node drain`,
      lastUpdateTime: MINUTES_AGO(14),
    };
  },
  (one) => {
    delete one.spec.providerID;
    one.status.currentStatus = { phase: 'CrashLoopBackOff', lastUpdateTime: MINUTES_AGO(3) };
    one.status.lastOperation = {
      type: 'Create',
      state: 'Failed',
      errorCode: 'ResourceExhausted',
      description: 'Cloud provider message - no capacity for flavor m5.large in zone eu-1b',
      lastUpdateTime: MINUTES_AGO(3),
    };
  },
  (one) => {
    one.status.currentStatus = { phase: 'Unknown', lastUpdateTime: MINUTES_AGO(6) };
    one.status.conditions = [{ type: 'Ready', status: 'Unknown', reason: 'NodeStatusUnknown' }];
    one.status.lastOperation = {
      type: 'HealthCheck',
      state: 'Processing',
      description: `Machine ${one.metadata.name} is unhealthy - changing MachineState to Unknown. Node conditions: [{Type:Ready Status:Unknown}]`,
      lastUpdateTime: MINUTES_AGO(6),
    };
  },
  (one) => {
    one.status.currentStatus = { phase: 'Pending', lastUpdateTime: MINUTES_AGO(1) };
    one.status.conditions = [];
  },
];

function owned(name: string, namespace: string, owner?: { kind: string; name: string }): Partial<ObjectMeta> {
  const reference = { apiVersion: 'machine.sapcloud.io/v1alpha1', controller: true };
  return {
    name,
    namespace,
    uid: `uid-${name}`,
    creationTimestamp: THEN,
    ...(owner && { ownerReferences: [{ ...reference, ...owner, uid: `uid-${owner.name}` }] }),
  };
}

/** `pools` MachineDeployments with so many machines each, of which a few are in trouble. */
export function fleetOf(pools: number, size: number, namespace = 'shoot--prod'): TreeObjects {
  const deployments = [];
  const sets = [];
  const machines = [];
  for (let pool = 0; pool < pools; pool++) {
    const name = `worker-${String.fromCharCode(97 + (pool % 26))}${pool >= 26 ? Math.floor(pool / 26) : ''}`;
    const set = `${name}-7d9f8`;
    const isRolling = pool % 5 === 1;
    deployments.push(
      machineDeployment((one) => {
        Object.assign(one.metadata, owned(name, namespace), { generation: 1 });
        one.metadata.annotations['deployment.kubernetes.io/revision'] = String(3 + pool);
        one.spec.replicas = size;
        const updatedReplicas = isRolling ? Math.floor(size / 3) : size;
        one.status = {
          observedGeneration: 1,
          replicas: size,
          updatedReplicas,
          readyReplicas: size - 2,
          availableReplicas: size,
        };
      }),
    );
    sets.push(
      machineSet((one) => {
        Object.assign(one.metadata, owned(set, namespace, { kind: 'MachineDeployment', name }));
        one.metadata.annotations['deployment.kubernetes.io/revision'] = String(3 + pool);
        one.spec.replicas = size;
        one.status = { readyReplicas: size };
      }),
    );
    for (let i = 0; i < size; i++) {
      const own = `${set}-${i.toString(36).padStart(5, 'x')}`;
      machines.push(
        machine((one) => {
          Object.assign(one.metadata, owned(own, namespace, { kind: 'MachineSet', name: set }));
          one.metadata.labels['node'] = `ip-10-${pool}-${Math.floor(i / 250)}-${i % 250}.eu-1.internal`;
          one.spec.providerID = `aws:///eu-1/i-0${(pool * size + i).toString(16).padStart(16, '0')}`;
          if (i < TROUBLES.length && pool % 3 === 0) TROUBLES[i]?.(one);
        }),
      );
    }
  }
  return { deployments, sets, machines };
}

/** What a leader does about the machines of `fleetOf`. */
export function workOf({ machines }: TreeObjects): WorkInProgress {
  const draining = machines.filter(({ metadata }) => metadata.deletionTimestamp !== undefined);
  const inPhase = (phase: string): (typeof machines)[number][] =>
    machines.filter(({ status }) => status?.currentStatus?.phase === phase);
  const creating = inPhase('CrashLoopBackOff');
  const keyOf = ({ metadata }: (typeof machines)[number]): string => `${metadata.namespace ?? ''}/${metadata.name}`;
  return {
    activities: draining.map((one) => ({
      machine: keyOf(one),
      activity: 'drain',
      since: MINUTES_AGO(14),
      isQueued: false,
    })),
    retries: creating.map((one, i) => ({
      machine: keyOf(one),
      call: 'create',
      code: 'ResourceExhausted',
      message: 'no capacity for flavor m5.large in zone eu-1b',
      failures: 2 + i,
      since: MINUTES_AGO(3),
      nextAttempt: MINUTES_AGO(-1),
    })),
    exhausted: [],
    drains: draining.map((one, i) => ({
      machine: keyOf(one),
      purpose: 'deletion',
      since: MINUTES_AGO(14),
      remainingPods: 2,
      message: 'Waiting for 2 pods: shop/cart-0, shop/cart-1 (PodDisruptionBudget cart currently allows no eviction).',
      isBlocked: i % 2 === 0,
      podsDeletedAt: MINUTES_AGO(-106),
      failures: 0,
    })),
    deadlines: [
      ...inPhase('Pending').map(
        (one) => ({ machine: keyOf(one), timeout: 'creation', failsAt: MINUTES_AGO(-11) }) as const,
      ),
      ...inPhase('Unknown').map(
        (one) => ({ machine: keyOf(one), timeout: 'health', failsAt: MINUTES_AGO(-7) }) as const,
      ),
    ],
  };
}
