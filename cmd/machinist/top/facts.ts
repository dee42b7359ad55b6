import type { Machine } from '../../../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../../pkg/apis/machine/v1alpha1/machine-set.ts';
import type { KubeObject } from '../../../pkg/apis/meta.ts';
import type { Event } from '../../../pkg/apis/wire.ts';
import type { WorkInProgress } from '../../../pkg/health/work-in-progress.ts';
import type { ManagerLeases } from '../manager-leases.ts';
import type { ProcessAnswer } from '../status/findings.ts';

/** Something that cannot be read at the moment. */
export interface SourceTrouble {
  /** `API server`, `machines`, `events`, `pods of the manager`, … */
  readonly what: string;
  readonly sinceMs: number;
  /** In the words of the server, or of the network. */
  readonly message: string;
  /** It is a matter of permissions, and everything else is shown. */
  readonly isRefused: boolean;
}

/** All that is known at a time. Lists are replaced, never changed. */
export interface TopFacts extends ManagerLeases {
  readonly nowMs: number;
  /** The cluster, as the kubeconfig or its address names it. */
  readonly cluster: string;
  /** Undefined for all of them. */
  readonly namespace: string | undefined;
  readonly deployments: readonly MachineDeployment[];
  readonly sets: readonly MachineSet[];
  readonly machines: readonly Machine[];
  /** The latest ones, oldest first. */
  readonly events: readonly Event[];
  /** That in question, if the manager has cells and it may be read; without its spec. */
  readonly cell?: KubeObject | undefined;
  /** The namespace of the manager is looked at, which is no cell. */
  readonly isOfManager?: boolean;
  /** What processes of the manager say of themselves; undefined until they were asked. */
  readonly answers: readonly ProcessAnswer[] | undefined;
  /** What they do; of those that answered. */
  readonly work: readonly WorkInProgress[];
  readonly troubles: readonly SourceTrouble[];
  /** False until the first lists have arrived, or were refused. */
  readonly isComplete: boolean;
}
