import { nodeNameOf, providerIDOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import {
  MACHINE_NAME_LABEL,
  MAINTENANCE_ANNOTATION,
  NODE_FINALIZER,
  NODE_LABEL,
  NOT_MANAGED_ANNOTATION,
} from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../../apis/wire.ts';
import type { Informer } from '../../../kube/cache/lister.ts';
import type { Target } from '../../../kube/targets/targets.ts';
import type { Queue } from '../../../work/workqueue/queue.ts';
import type { DeletedMachine } from '../deleted-machines.ts';
import { nodeKey } from './controller.ts';

/** Enqueues a Node when it appears, goes, is asked for maintenance, or changes whose it is, and when a Machine that may have it comes, goes, or learns of it. */
export function wakeUnmanagedNodes(
  machines: Pick<Informer<Machine>, 'onChange'>,
  targets: readonly Target[],
  queue: Queue,
): void {
  for (const target of targets) {
    target.nodes.onChange((old, current) => {
      if (old !== undefined && current !== undefined && concernOf(old) === concernOf(current)) return;
      const name = (current ?? old)?.metadata.name;
      if (name !== undefined) queue.add(nodeKey(target, name), 'low');
    });
  }
  machines.onChange((old, current) => {
    if (old !== undefined && current !== undefined && hasSameIdentity(old, current)) return;
    for (const target of targets) {
      for (const name of new Set([old, current].flatMap((machine) => nodeNamesOf(target, machine)))) {
        queue.add(nodeKey(target, name), 'low');
      }
    }
  });
}

/** Enqueues the Nodes that show a VM or a machine that is gone, or have the name of its Node. */
export function wakeNodesOf(
  targets: readonly Target[],
  queue: Queue,
  { providerID, name, nodeName }: DeletedMachine,
): void {
  for (const target of targets) {
    const shown = [...target.nodes.byIndex('providerID', providerID), ...target.nodes.byIndex('machineName', name)];
    for (const node of new Set([...shown.map(({ metadata }) => metadata.name), nodeName])) {
      queue.add(nodeKey(target, node));
    }
  }
}

function concernOf({ metadata, spec }: Node): string {
  const { uid, labels, annotations, finalizers = [] } = metadata;
  const isOurs = finalizers.includes(NODE_FINALIZER);
  return JSON.stringify([
    uid,
    labels?.[MACHINE_NAME_LABEL],
    annotations?.[NOT_MANAGED_ANNOTATION],
    annotations?.[MAINTENANCE_ANNOTATION],
    isOurs,
    spec?.providerID,
  ]);
}

function hasSameIdentity(one: Machine, other: Machine): boolean {
  return (
    one.metadata.uid === other.metadata.uid &&
    one.metadata.labels?.[NODE_LABEL] === other.metadata.labels?.[NODE_LABEL] &&
    one.spec.providerID === other.spec.providerID
  );
}

function nodeNamesOf({ nodes }: Target, machine: Machine | undefined): string[] {
  if (machine === undefined) return [];
  const label = nodeNameOf(machine);
  const providerID = providerIDOf(machine);
  const ofVM = providerID === '' ? [] : nodes.byIndex('providerID', providerID);
  const shown = nodes.byIndex('machineName', machine.metadata.name);
  return [...(label === '' ? [] : [label]), ...[...ofVM, ...shown].map(({ metadata }) => metadata.name)];
}
