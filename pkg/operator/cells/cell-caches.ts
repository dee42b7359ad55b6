import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { KubeObject } from '../../apis/meta.ts';
import type { Logger } from '../../base/log/logger.ts';
import type { HeldWork } from '../../health/held-work.ts';
import type { Informer } from '../../kube/cache/lister.ts';
import type { Outages } from '../../kube/gate/outages.ts';
import type { CachingProcess } from '../cached/kind.ts';
import type { Caches } from '../caches.ts';
import type { ClusterCaches } from '../cluster-caches.ts';
import type { Config } from '../config/config.ts';
import type { Operator } from '../operator.ts';
import type { OperatorMetrics } from '../metrics.ts';

/** What a cell has of its own when it begins to read the control cluster. */
export interface ReadingCell {
  readonly config: Config;
  readonly caching: CachingProcess;
  readonly log: Logger;
  readonly metrics: OperatorMetrics;
  readonly held: HeldWork;
}

/** What a cell reads of the control cluster, and how it finds out that this lives. */
export interface CellControl {
  /** Of all clusters of the cell. */
  readonly outages: Outages;
  readonly caches: Caches;
  /** Changes of Machines in all namespaces, where cells have one target. */
  readonly everywhere?: Pick<Informer<Machine>, 'onChange'> | undefined;
  /** See Operator. */
  readonly openCache: Operator['openCache'];
  readonly ofControl: ClusterCaches;
  /** Caches that are of the cell alone. */
  readonly own?: {
    /** Resolves when they are filled. Throws CannotStartError, and the signal's reason. */
    start(signal: AbortSignal): Promise<void>;
    stop(): Promise<void>;
  };
}

/** The caches of the control cluster that cells read. */
export interface CellCaches {
  /** For a cell that begins. */
  open(cell: ReadingCell): CellControl;
  /** The cell has ended. */
  forget(namespace: string): void;
  /** Calls `changed` with the namespace of each Secret of one of these names that changes from now on. */
  onSecret(names: readonly string[], changed: (namespace: string) => void): void;
  /** Metadata of the Secrets of a namespace, as far as they are known. */
  secretsIn(namespace: string): Pick<Informer<KubeObject>, 'get'>;
  /** How many Machines a namespace has, as far as that is known. */
  machinesIn(namespace: string): number;
  /** The Machines of ours in a namespace, as far as they are known. */
  ownMachinesIn(namespace: string): readonly Machine[];
  /** Namespaces that have any, also those that are not selected, as far as that is known. */
  withMachines(): readonly string[];
}
