import type { ClusterAPICluster } from '../api/cluster.ts';
import type { ClusterAPIMachine, ClusterAPIMachineStatus } from '../api/machine.ts';
import type { Lister } from '../../../kube/cache/lister.ts';
import type { KubeObject } from '../../../apis/meta.ts';
import type { Clock } from '../../../base/clock/clock.ts';
import type { Writer } from '../../../kube/client/client.ts';
import type { Resource } from '../../../apis/resource.ts';
import type { KeptVolumes } from '../../../drain/kept-volumes.ts';
import type { DrainAttempt, DrainSession } from '../../../drain/session.ts';
import type { PodRules } from '../../../controllers/machine-facts/pod-rules.ts';
import type { PassNotes } from '../../../work/reconcile/object-pass/pass-notes.ts';
import type { StepResult } from '../../../work/reconcile/result.ts';
import type { Target } from '../../../kube/targets/targets.ts';
import type { NodeCare } from './deletion/node-care.ts';
import type { ConditionValue } from './conditions.ts';
import type { DataSecrets, DataSecretTrouble } from './data-secrets.ts';
import type { Externals } from './externals.ts';
import type { SyncedKeys } from './node-patch.ts';
import type { NodeCluster, NodeClusters } from './node-clusters.ts';
import type { OlderConditionValue } from './older-conditions.ts';
import type { ObservedBootstrap, ObservedInfrastructure, ObservedNode } from './observed.ts';
import type { ObjectEvents } from '../../../kube/events/event-sink.ts';

/** What is reported of a drain: what follows the name of the Node, and an Event. */
export interface DrainReport {
  readonly text: string;
  readonly event?: DeletionWait['event'];
}

export interface NodeDrain extends DrainAttempt {
  /** Another Node may register under its name. */
  readonly nodeUID: string;
  /** Whether it was begun of a Node whose kubelet does not answer. */
  readonly isSilent: boolean;
  /** What was reported last, until there is other news: so that it is not reported again in each round. */
  report: DrainReport;
}

/** What the steps work with, each with its part of it. */
export interface StepDeps {
  /** Indexes: CLUSTER_API_MACHINE_INDEXES. */
  readonly machines: Lister<ClusterAPIMachine>;
  readonly externals: Externals;
  readonly dataSecrets: Pick<DataSecrets, 'troubleWith'>;
  readonly writer: Writer;
  /** `apiVersion` under which a kind of Cluster API is served now. */
  readonly servedAs: (resource: Resource<KubeObject>) => string;
  readonly drains: DrainSession<NodeDrain>;
  readonly rules: Pick<PodRules, 'of'>;
  readonly keptVolumes: KeptVolumes;
  /** What Nodes follow of their Machines as the flags say. */
  readonly synced: SyncedKeys;
  readonly clock: Clock;
}

/** What the controllers of both kinds are given beside that. */
export interface ControllerDeps<T extends KubeObject> extends Pick<
  StepDeps,
  'machines' | 'externals' | 'writer' | 'servedAs' | 'clock'
> {
  readonly clusters: Lister<ClusterAPICluster>;
  readonly nodeClusters: Pick<NodeClusters, 'use' | 'drop' | 'of' | 'isApart'>;
  readonly recorder: ObjectEvents<T>;
  readonly isServed: (object: T) => boolean;
}

/** A Machine with a spec and a status that may be changed. */
export type WorkingMachine = ClusterAPIMachine & {
  spec: NonNullable<ClusterAPIMachine['spec']>;
  status: ClusterAPIMachineStatus;
};

/** What happened, to be told when the pass has been written. */
export interface PassEvent {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

export interface DeletionWait {
  readonly reason: string;
  readonly message: string;
  /** It does not pass by itself, or not soon: an Event tells it, once for each reason, and once for each text of `why`, which the message has. */
  readonly event?: Pick<PassEvent, 'type' | 'reason'> & { readonly why?: string };
}

/** One pass over one Machine. Steps change the copy and note what they found; the controller writes it. */
export interface MachinePass {
  readonly observed: ClusterAPIMachine;
  readonly machine: WorkingMachine;
  readonly cluster: ClusterAPICluster;
  readonly key: string;
  readonly nodeCluster: NodeCluster;
  readonly signal: AbortSignal;
  infrastructure: ObservedInfrastructure;
  bootstrap: ObservedBootstrap;
  node: ObservedNode;
  /** What keeps the machine from starting with its bootstrap data. */
  dataSecret: DataSecretTrouble | undefined;
  /** Whether it is as its MachineDeployment wants it; undefined: nobody says so here. */
  upToDate: ConditionValue | undefined;
  /** Of a deletion. */
  care: NodeCare;
  /** What the steps of a deletion say in conditions of the older contract. */
  readonly older: OlderConditionValue[];
  deleting: DeletionWait | undefined;
  readonly problems: string[];
  readonly failures: unknown[];
  /** Events to record, and when to run again although nothing wakes the pass. */
  readonly notes: PassNotes<PassEvent>;
}

/** The cluster of the Node, while what is known of it is of the present. */
export function targetOf({ nodeCluster }: Pick<MachinePass, 'nodeCluster'>): Target | undefined {
  return nodeCluster.kind === 'reached' ? nodeCluster.target : undefined;
}

export interface ClusterAPIMachineStep {
  readonly name: string;
  run(pass: MachinePass): StepResult | Promise<StepResult>;
}
