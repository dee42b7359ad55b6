import { API_VERSION } from '../../../apis/machine/v1alpha1/group.ts';
import {
  DELETION_POLICY_ANNOTATION,
  FRONT_END_FINALIZER,
  FRONT_END_REPLICAS_ANNOTATION,
  MACHINE_FINALIZER,
  MADE_FOR_LABEL,
  UPDATE_ORDER_ANNOTATION,
} from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../../apis/machine/v1alpha1/machine-deployment.ts';
import { controllerOf, type OwnerReference } from '../../../apis/meta.ts';
import {
  CLUSTER_GROUP,
  MIRANTIS_CLUSTER_NAME_LABEL,
  CLUSTER_VERSION,
  MIRANTIS_CONTROL_PLANE_LABEL,
  MIRANTIS_POOL_LABEL,
  type ClusterMachine,
} from '../api/machine.ts';
import { KAAS_GROUP, KAAS_VERSION, type MachinePool } from '../api/pool.ts';
import type { New } from '../../../kube/client/client.ts';
import { isEmptyChange, replacing } from '../../../kube/client/merge-change.ts';
import type { MergePatch } from '../../../kube/client/patch.ts';
import { pauseChange } from './desired-cluster.ts';
import type { PoolValue } from './pool-value.ts';
import { copiedLabelsOf, MADE_FOR } from './desired-machine.ts';

/** Old MachineSets that are kept, and with them their classes. */
const KEPT_REVISIONS = 3;
/** What single Machines of a pool say for themselves. */
const PER_MACHINE = ['maintenance', 'delete'] as const;

export function ownerReferenceOf({ metadata: { name, uid } }: MachinePool): OwnerReference {
  return { apiVersion: `${KAAS_GROUP}/${KAAS_VERSION}`, kind: 'MachinePool', name, uid, controller: true };
}

/** Whose a MachineDeployment is that has the name of a pool: `free` is one that was made for a pool which let it go. */
export function claimOn(pool: MachinePool, deployment: MachineDeployment): 'ours' | 'free' | 'foreign' {
  const controller = controllerOf(deployment);
  if (controller !== undefined) return controller.uid === pool.metadata.uid ? 'ours' : 'foreign';
  const { labels } = deployment.metadata;
  const selected = deployment.spec.selector?.matchLabels?.[MIRANTIS_POOL_LABEL];
  return labels?.[MADE_FOR_LABEL] === MADE_FOR && selected === pool.metadata.name ? 'free' : 'foreign';
}

/** The MachineDeployment of a pool. It carries the finalizer from the first moment. */
export function deploymentFor(pool: MachinePool, value: PoolValue, className: string): New<MachineDeployment> {
  const { name, namespace = '' } = pool.metadata;
  const { replicas, machine } = value;
  return {
    apiVersion: API_VERSION,
    kind: 'MachineDeployment',
    metadata: {
      name,
      namespace,
      labels: { [MADE_FOR_LABEL]: MADE_FOR },
      annotations: { ...policyOf(value), [FRONT_END_REPLICAS_ANNOTATION]: String(replicas) },
      finalizers: [MACHINE_FINALIZER],
      ownerReferences: [ownerReferenceOf(pool)],
    },
    spec: {
      replicas,
      selector: { matchLabels: { [MIRANTIS_POOL_LABEL]: name } },
      // A new Machine first: servers that work are not given up for a template of which none comes up.
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
      revisionHistoryLimit: KEPT_REVISIONS,
      template: {
        metadata: { labels: { ...copiedLabelsOf(pool), [MIRANTIS_POOL_LABEL]: name } },
        spec: {
          class: { kind: 'MachineClass', name: className },
          nodeTemplate: { metadata: { labels: { ...machine.nodeLabels } } },
        },
      },
    },
  };
}

/** Labels of a pool that say where its Machines belong, and are not what they were when its MachineDeployment was made. */
export function movedLabels(pool: MachinePool, { spec }: MachineDeployment): readonly string[] {
  const { labels: was = {} } = spec.template.metadata ?? {};
  const now = pool.metadata.labels ?? {};
  return [MIRANTIS_CLUSTER_NAME_LABEL, MIRANTIS_CONTROL_PLANE_LABEL].filter((key) => was[key] !== now[key]);
}

/** What a MachineDeployment has not from its pool alone. */
export interface FromElsewhere {
  readonly className: string;
  /** Undefined: it is left as it is. */
  readonly updateOrder: string | undefined;
  /** Whether its rollouts are held; undefined: nobody knows, it is left as it is. */
  readonly isHeld: boolean | undefined;
}

/** What has to change of a MachineDeployment so that it is as its pool asks for; undefined: nothing. */
export function deploymentChange(
  deployment: MachineDeployment,
  value: PoolValue,
  { className, updateOrder, isHeld }: FromElsewhere,
): MergePatch<MachineDeployment> | undefined {
  const { metadata, spec } = deployment;
  const pause = isHeld === undefined ? { annotations: {}, spec: {} } : pauseChange(deployment, isHeld);
  const isOrdered = updateOrder === undefined || metadata.annotations?.[UPDATE_ORDER_ANNOTATION] === updateOrder;
  const scaleTo = replicasPlan(deployment, value.replicas).scaleTo;
  const annotations = {
    ...replacing(picked(metadata.annotations, [DELETION_POLICY_ANNOTATION]), policyOf(value)),
    ...(scaleTo !== undefined && { [FRONT_END_REPLICAS_ANNOTATION]: String(scaleTo) }),
    ...(!isOrdered && { [UPDATE_ORDER_ANNOTATION]: updateOrder }),
    ...pause.annotations,
  };
  const labels = replacing(spec.template.spec?.nodeTemplate?.metadata?.labels ?? {}, { ...value.machine.nodeLabels });
  const isOfClass = spec.template.spec?.class?.name === className;
  const machine = {
    ...(!isOfClass && { class: { name: className } }),
    ...(!isEmptyChange(labels) && { nodeTemplate: { metadata: { labels } } }),
  };
  const changed = {
    ...(scaleTo !== undefined && scaleTo !== spec.replicas && { replicas: scaleTo }),
    ...(!isEmptyChange(machine) && { template: { spec: machine } }),
    ...pause.spec,
  };
  if (isEmptyChange(annotations) && isEmptyChange(changed)) return undefined;
  return {
    ...(!isEmptyChange(annotations) && { metadata: { annotations } }),
    ...(!isEmptyChange(changed) && { spec: changed }),
  };
}

/** Who was changed since both were equal; nothing when they still are. */
export interface ReplicasPlan {
  /** The pool was: the MachineDeployment follows. */
  readonly scaleTo?: number;
  /** The MachineDeployment was, by an autoscaler or a person: the pool follows. */
  readonly report?: number;
}

/** What becomes of the number of replicas, which may be changed on both sides. Where both were, the pool counts. */
export function replicasPlan({ metadata, spec }: MachineDeployment, asked: number): ReplicasPlan {
  const known = metadata.annotations?.[FRONT_END_REPLICAS_ANNOTATION];
  if (known !== String(asked)) return { scaleTo: asked };
  const replicas = spec.replicas ?? 0;
  return replicas === asked ? {} : { report: replicas };
}

/** The Machine of their API that shows one of ours of a pool. */
export function memberFor(pool: MachinePool, ours: Machine): New<ClusterMachine> {
  const { name, namespace = '', uid } = ours.metadata;
  return {
    apiVersion: `${CLUSTER_GROUP}/${CLUSTER_VERSION}`,
    kind: 'Machine',
    metadata: {
      name,
      namespace,
      labels: memberLabels(pool),
      finalizers: [FRONT_END_FINALIZER],
      ownerReferences: [{ apiVersion: API_VERSION, kind: 'Machine', name, uid, controller: true }],
    },
    spec: { providerSpec: { value: valueOfMember(pool, undefined) } },
  };
}

/** What has to change of such a Machine so that it says what its pool says; undefined: nothing. */
export function memberChange(pool: MachinePool, member: ClusterMachine): MergePatch<ClusterMachine> | undefined {
  const before = member.spec?.providerSpec?.value;
  const value = replacing(before, valueOfMember(pool, before));
  const labels = Object.fromEntries(
    Object.entries(memberLabels(pool)).filter(([key, text]) => member.metadata.labels?.[key] !== text),
  );
  if (isEmptyChange(value) && isEmptyChange(labels)) return undefined;
  return {
    ...(!isEmptyChange(labels) && { metadata: { labels } }),
    ...(!isEmptyChange(value) && { spec: { providerSpec: { value: value } } }),
  };
}

function memberLabels({ metadata: { name, labels } }: MachinePool): Record<string, string> {
  return { ...labels, [MIRANTIS_POOL_LABEL]: name };
}

function valueOfMember(
  pool: MachinePool,
  before: Readonly<Record<string, unknown>> | undefined,
): Readonly<Record<string, unknown>> {
  const members = pool.spec?.machineSpec?.providerSpec?.value ?? {};
  const isOwn = ([name]: readonly [string, unknown]): boolean => PER_MACHINE.some((one) => one === name);
  const own = typeof before === 'object' && before !== null ? Object.entries(before).filter(isOwn) : [];
  return Object.fromEntries([...Object.entries(members).filter((member) => !isOwn(member)), ...own]);
}

function policyOf({ machine: { deletionPolicy } }: PoolValue): Record<string, string> {
  return deletionPolicy === undefined ? {} : { [DELETION_POLICY_ANNOTATION]: deletionPolicy };
}

function picked(from: Readonly<Record<string, string>> | undefined, keys: readonly string[]): Record<string, string> {
  return Object.fromEntries(Object.entries(from ?? {}).filter(([key]) => keys.includes(key)));
}
