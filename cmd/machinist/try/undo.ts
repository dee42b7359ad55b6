import { rmSync } from 'node:fs';

import type { KubeObject } from '../../../pkg/apis/meta.ts';
import { isConflict } from '../../../pkg/kube/client/errors.ts';
import { nodes } from '../../../pkg/kube/client/resource.ts';
import type { CommandCluster } from '../command-cluster.ts';
import { CommandError } from '../command-error.ts';
import type { PrintLine } from '../terminal.ts';
import { confirm } from './confirm.ts';
import { hasAny, look } from './look.ts';
import { TriedManager } from './manager.ts';
import { DEFINITIONS, isMarked, MARK_SELECTOR, NAMESPACE } from './objects.ts';
import { undoOf } from './plan.ts';
import { showingMachines } from './progress.ts';
import { namesOfNodes, rememberNodes } from './node-names.ts';
import { MANAGED, removeDefinition, removeEvents, removeManaged, removeNamespace, removeNodes } from './removal.ts';
import type { Site } from './site.ts';
import type { TryOptions } from './try.ts';

/** Removes what the command has created in a cluster, and nothing else. Throws CommandError. */
export async function undo(site: Site, options: TryOptions, out: PrintLine, signal: AbortSignal): Promise<void> {
  const { cluster, directory } = site;
  const found = await look(cluster);
  requireOurs(found.namespace);
  const { namespace } = found;
  const { removed, kept } = undoOf(found);
  const marked = (await cluster.reader.list(nodes, { labelSelector: MARK_SELECTOR })).items;
  if (namespace === undefined && removed.length === 0 && marked.length === 0) {
    rmSync(directory, { recursive: true, force: true });
    return out('There is nothing to remove.');
  }
  const names = removed.map(({ metadata }) => metadata.name);
  const what = [
    ...(namespace === undefined ? [] : [`Namespace ${NAMESPACE} with all machines; their VMs and Nodes first`]),
    ...(namespace === undefined && marked.length > 0 ? [`${marked.length} Nodes`] : []),
    ...(names.length === 0 ? [] : [`CustomResourceDefinitions ${names.join(', ')}`]),
  ];
  await confirm(site, options, ['Remove from the cluster:', ...what], out, signal);
  for (const [name, why] of kept) out(`Keeping CustomResourceDefinition ${name}: ${why}.`);

  await removeMachines(site, out, signal);
  await removeDefinitions(cluster, names, out, signal);
  rmSync(directory, { recursive: true, force: true });
  out('Nothing of machinist try is left in the cluster.');
}

/** Throws CommandError for a namespace of somebody else, whether it is being deleted or not. */
function requireOurs(namespace: KubeObject | undefined): void {
  if (namespace !== undefined && !isMarked(namespace))
    throw new CommandError(`machinist try has not created namespace ${NAMESPACE}: nothing is removed`);
}

/** The machines with their VMs and Nodes, and the namespace. */
async function removeMachines(site: Site, out: PrintLine, signal: AbortSignal): Promise<void> {
  const { cluster, directory, env } = site;
  // Somebody else may have created it while it was asked.
  const { namespace, definitions } = await look(cluster);
  requireOurs(namespace);
  const names = await namesOfNodes(cluster, namespace);
  if (namespace !== undefined) {
    await rememberNodes(cluster, names);
    if (definitions.length === DEFINITIONS.length && (await hasAny(cluster, MANAGED))) {
      // A namespace that is being deleted takes no Lease; and nobody else can lead in it.
      const isElected = namespace.metadata.deletionTimestamp === undefined;
      await using manager = await TriedManager.start({ env, directory, isElected });
      await showingMachines(cluster, out, () => Promise.race([removeManaged(cluster, out, signal), manager.failed]));
    }
  }
  const removed = await removeNodes(cluster, names, signal);
  if (removed.length > 0) out('Removed the Nodes.');
  if (await removeNamespace(cluster, signal)) out(`Removed namespace ${NAMESPACE}.`);
  await removeEvents(cluster, names, removed, signal);
}

/** Those that still may go: each is looked at again at the last moment. */
async function removeDefinitions(
  cluster: CommandCluster,
  names: readonly string[],
  out: PrintLine,
  signal: AbortSignal,
): Promise<void> {
  for (const name of names) {
    const { removed, kept } = undoOf(await look(cluster));
    const definition = removed.find(({ metadata }) => metadata.name === name);
    const why = kept.get(name);
    if (why !== undefined) out(`Keeping CustomResourceDefinition ${name}: ${why}.`);
    if (definition === undefined) continue;
    await removeDefinition(cluster, definition, signal).catch((err: unknown) => {
      throw isConflict(err)
        ? new CommandError(`CustomResourceDefinition ${name} was changed meanwhile; run machinist try --undo again`)
        : err;
    });
    out(`Removed CustomResourceDefinition ${name}.`);
  }
}
