import { providerIDOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { Node } from '../../../apis/wire.ts';
import { machinesOfNode } from '../../../operator/indexes/machines-of-node.ts';
import { isReady } from '../../machine-facts/node-health.ts';
import { isSameVM } from '../../../apis/machine/v1alpha1/same-vm.ts';
import { forcedRemovalsOf } from '../../vms/forced-removals.ts';
import type { DeletedMachine } from '../deleted-machines.ts';
import type { Collaborators } from './collaborators.ts';
import { Evidence, type Snapshot } from './evidence.ts';
import type { Survey } from './survey.ts';

type Deps = Pick<Collaborators, 'machines' | 'targets' | 'gone' | 'log' | 'graceMs' | 'isDryRun'>;

/**
 * Nodes of Machines that were let go by force. They go with their VM; where the process that deleted that has ended before, or somebody
 * else deleted it, the note on the class still names it: two looks in a row that do not show the VM say that it is gone, and its Node too,
 * unless that is ready: what a list says twice is one source, and a provider that comes back may well list nothing.
 */
export class LeftoverNodes {
  readonly #deps: Deps;
  readonly #missing: Evidence;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#missing = new Evidence(deps.graceMs);
  }

  /** VMs that were missing once, and are waited for to be so again. */
  get size(): number {
    return this.#missing.size;
  }

  /** Drops what was first seen before `atMs`, when we could not trust what we saw. */
  dropBefore(atMs: number): void {
    this.#missing.dropBefore(atMs);
  }

  /** Takes a look into account; `unseen` are the classes at which it could not look. */
  examine(survey: Survey, sight: Snapshot, unseen: ReadonlySet<string>): void {
    const { gone, isDryRun } = this.#deps;
    if (isDryRun) return;
    const present = presentIn(survey);
    const waiting = new Set<string>();
    for (const { key, machineClass } of survey.lists) {
      for (const { machine, nodeName, providerID } of forcedRemovalsOf(machineClass)) {
        if (machine === undefined || providerID === undefined) continue;
        if (present.has(providerID) || gone.has(providerID)) continue;
        const left = { name: machine, nodeName: nodeName ?? machine, providerID };
        if (this.#missing.see(providerID, key, sight) === undefined || this.#works(left)) waiting.add(providerID);
        else gone.addLate(left);
      }
    }
    this.#missing.keep(waiting, unseen);
  }

  /** Whether a Node of it is ready. */
  #works(left: DeletedMachine): boolean {
    const { log } = this.#deps;
    const ready = leftoverNodesOf(left, this.#deps).find(isReady);
    if (ready === undefined) return false;
    const fields = { node: ready.metadata.name, providerID: left.providerID };
    log.warn(fields, 'kept a node that is ready although the provider does not list its VM');
    return true;
  }
}

/** Provider ids of VMs that are listed, or that a Machine has. */
export function presentIn({ lists, machines }: Survey): ReadonlySet<string> {
  const listed = lists.flatMap(({ vms, foreign }) => [...vms, ...foreign]).map(({ providerID }) => providerID);
  return new Set([...listed, ...machines.map(providerIDOf)]);
}

/** The Nodes that no Machine has and that may be what is left of a machine. */
export function leftoverNodesOf(
  { name, nodeName, providerID }: DeletedMachine,
  { machines, targets }: Pick<Collaborators, 'machines' | 'targets'>,
): readonly Node[] {
  return targets
    .all()
    .flatMap(({ nodes }) => [
      ...nodes.byIndex('providerID', providerID),
      ...nodes.byIndex('machineName', name),
      nodes.get(nodeName),
    ])
    .filter((node) => node !== undefined)
    .filter((node) => isSameVM(node.spec?.providerID, providerID) !== false)
    .filter((node) => machinesOfNode(machines, node).length === 0);
}
