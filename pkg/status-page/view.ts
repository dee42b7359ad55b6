import type { Attention } from '../fleet/attention.ts';
import type { MachineWork } from '../fleet/machine-work.ts';
import type { ExhaustedClass, OpenDrain, WaitingRetry } from '../health/work-in-progress.ts';
import type { PendingAlert } from '../fleet/alerts.ts';
import type { DescribedExplanation } from '../fleet/describe/described-explanation.ts';

/*
 * What the page shows, as it is sent to the browser. Times are RFC 3339; keys are `NAMESPACE/NAME`. There is nothing in it of Secrets, of
 * provider specs or of kubeconfigs.
 */

export interface ProcessView {
  readonly identity: string;
  readonly program: string;
  readonly version: string;
  readonly namespace: string;
  /** Its caches are filled; before that the page shows only a part. */
  readonly hasSynced: boolean;
  /** It reads Machines at all. */
  readonly readsMachines: boolean;
}

/** A Lease, and what this process is to it. */
export interface LeaderView {
  readonly lease: string;
  readonly state: 'leading' | 'standing-by' | 'suspended' | 'ended' | 'always';
  readonly holder?: string;
  /** Since when this process leads. */
  readonly since?: string;
  readonly trouble?: string;
}

/** An API server that the process depends on. */
export interface ClusterView {
  readonly cluster: string;
  readonly state: 'reachable' | 'not-reached-yet' | 'failing' | 'outage';
  /** The last sign of life before an outage or a failing probe: what is shown of the cluster may be as old. */
  readonly since?: string;
  readonly text?: string;
}

export interface DriverView {
  readonly provider: string;
  readonly state: 'connected' | 'not-connected' | 'unknown';
  /** Calls in progress. */
  readonly running: number;
}

/** A check of /readyz. */
export interface CheckView {
  readonly name: string;
  readonly state: 'ok' | 'degraded' | 'failed';
  readonly detail?: string;
}

export interface SetView {
  readonly name: string;
  readonly revision?: string;
  readonly desired: number;
  readonly ready: number;
  readonly attention: Attention;
  readonly troubles: readonly string[];
}

export interface RolloutView {
  readonly state: 'unobserved' | 'late' | 'waiting' | 'done';
  readonly text: string;
  readonly updated: number;
  readonly available: number;
  readonly total: number;
}

/** A MachineDeployment, or a MachineSet without one. */
export interface FleetView {
  readonly key: string;
  readonly kind: 'MachineDeployment' | 'MachineSet';
  readonly namespace: string;
  readonly name: string;
  readonly desired: number;
  readonly ready: number;
  readonly revision?: string;
  readonly attention: Attention;
  readonly troubles: readonly { readonly text: string; readonly isProgress: boolean }[];
  readonly phases: Readonly<Record<string, number>>;
  readonly inTrouble: number;
  readonly sets: readonly SetView[];
  readonly rollout?: RolloutView;
  readonly created?: string;
}

export interface MachineView extends DescribedExplanation {
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  /** The MachineDeployment, else the MachineSet, that it belongs to, by key. */
  readonly fleet?: string;
  readonly set?: string;
  readonly phase: string;
  readonly attention: Attention;
  readonly created?: string;
  readonly node?: string;
  readonly providerID?: string;
  readonly work?: MachineWork;
}

export interface PhaseSample {
  readonly at: string;
  readonly phases: Readonly<Record<string, number>>;
}

/** What of the page is sent as a whole when anything of it changes. */
export interface Sections {
  readonly process: ProcessView;
  readonly leaders: readonly LeaderView[];
  readonly clusters: readonly ClusterView[];
  readonly drivers: readonly DriverView[];
  readonly checks: readonly CheckView[];
  readonly alerts: readonly PendingAlert[];
  readonly fleets: readonly FleetView[];
  readonly drains: readonly OpenDrain[];
  readonly retries: readonly WaitingRetry[];
  readonly exhausted: readonly ExhaustedClass[];
  readonly history: readonly PhaseSample[];
}

/** An Event of the stream: what has changed since the one before it. The first one has everything. */
export interface Changes {
  /** The time of the server. */
  readonly at: string;
  readonly sections: Partial<Sections>;
  /** Machines that are new or have changed. */
  readonly machines: readonly MachineView[];
  readonly gone: readonly string[];
}
