import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { Node, VolumeAttachment } from '../../apis/wire.ts';
import type { Informer } from '../cache/lister.ts';
import type { Cluster } from '../gate/gate.ts';
import type { Reader, Writer } from '../client/client.ts';

/** The cluster in which Machines become Nodes. */
export interface Target {
  readonly cluster: Cluster;
  readonly reader: Reader;
  readonly writer: Writer;
  /** Indexes: `providerID` (spec.providerID) and `machineName` (label node.gardener.cloud/machine-name). */
  readonly nodes: Informer<Node>;
  /** Indexes: `node` (spec.nodeName) and `persistentVolume` (its name). Read while volumes move. */
  readonly volumeAttachments: Informer<VolumeAttachment>;
}

/** Every access to Nodes, Pods and bootstrap tokens goes through here, so that several target clusters stay possible. */
export interface Targets {
  /** The target of this machine; undefined without one (`--target-kubeconfig=none`). */
  of(machine: Machine): Target | undefined;
  all(): readonly Target[];
}

/** Targets of a process whose Machines all become Nodes of the same cluster, or of none. */
export function singleTarget(target: Target | undefined): Targets {
  const all = Object.freeze(target === undefined ? [] : [target]);
  return { of: () => target, all: () => all };
}
