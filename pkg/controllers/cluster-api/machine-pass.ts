import type { ClusterAPICluster } from '../../apis/cluster-api/cluster.ts';
import type { ClusterAPIMachine, ClusterAPIMachineStatus } from '../../apis/cluster-api/machine.ts';
import type { Lister } from '../../cache/lister.ts';
import type { KubeObject } from '../../apis/meta.ts';
import type { Clock } from '../../clock/clock.ts';
import type { Writer } from '../../kube/client.ts';
import type { Resource } from '../../apis/resource.ts';
import type { ActivityRegistry } from '../../activity/registry.ts';
import type { Drain, DrainOutcome } from '../../drain/drain.ts';
import type { KeptVolumes } from '../../drain/kept-volumes.ts';
import type { PodRules } from '../machines/pod-rules.ts';
import type { PassNotes } from '../../reconcile/object-pass/pass-notes.ts';
import type { StepResult } from '../../reconcile/result.ts';
import type { Target } from '../../targets/targets.ts';
import type { NodeCare } from './deletion/node-care.ts';
import type { ConditionValue } from './conditions.ts';
import type { DataSecrets, DataSecretTrouble } from './data-secrets.ts';
import type { Externals } from './externals.ts';
import type { SyncedKeys } from './node-patch.ts';
import type { NodeCluster } from './node-clusters.ts';
import type { OlderConditionValue } from './older-conditions.ts';
import type { ObservedBootstrap, ObservedInfrastructure, ObservedNode } from './observed.ts';

/** How the drain of a Node ended, and of which one: another may register under its name. overtaken: it was begun of a Node that has changed since. */
export interface EndedDrain {
  readonly nodeUID: string;
  /** Whether it took the kubelet for one that does not answer, and Pods for gone therefore. */
  readonly isNodeSilent: boolean;
  readonly outcome: DrainOutcome | { readonly kind: 'overtaken' };
}

/** Long work of Machines of Cluster API. */
export type MachineDrains = ActivityRegistry<{ drain: EndedDrain }>;

/** What the steps work with, each with its part of it. */
export interface StepDeps {
  /** Indexes: CLUSTER_API_MACHINE_INDEXES. */
  readonly machines: Lister<ClusterAPIMachine>;
  readonly externals: Externals;
  readonly dataSecrets: Pick<DataSecrets, 'troubleWith'>;
  readonly writer: Writer;
  /** `apiVersion` under which a kind of Cluster API is served now. */
  readonly servedAs: (resource: Resource<KubeObject>) => string;
  readonly drains: MachineDrains;
  readonly drain: Drain;
  readonly rules: Pick<PodRules, 'of'>;
  readonly keptVolumes: KeptVolumes;
  /** What Nodes follow of their Machines as the flags say. */
  readonly synced: SyncedKeys;
  readonly clock: Clock;
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

/** What a deletion waits for. */
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
  /** Where its Node is, or is to be. */
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
  /** What steps have thrown. */
  readonly failures: unknown[];
  /** Events to record, and when to run again although nothing wakes the pass. */
  readonly notes: PassNotes<PassEvent>;
}

/** The cluster of the Node, while what is known of it is of the present. */
export function targetOf({ nodeCluster }: Pick<MachinePass, 'nodeCluster'>): Target | undefined {
  return nodeCluster.kind === 'reached' ? nodeCluster.target : undefined;
}

/** One concern of a pass. */
export interface ClusterAPIMachineStep {
  readonly name: string;
  run(pass: MachinePass): StepResult | Promise<StepResult>;
}
