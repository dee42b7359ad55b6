import { providerIDOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { keyOf, refOf } from '../../../apis/meta.ts';
import { mergePatch } from '../../../kube/client/patch.ts';
import { machineClasses } from '../../../kube/client/resource.ts';
import { forcedRemovalsOf, type ForcedRemoval, mayBeLeftBy } from '../../vms/forced-removals.ts';
import type { Collaborators } from './collaborators.ts';
import type { LeftBehind } from './left-behind.ts';
import { leftoverNodesOf, presentIn } from './leftover-nodes.ts';
import type { Survey } from './survey.ts';

type Deps = Pick<Collaborators, 'machines' | 'targets' | 'gone' | 'writer' | 'log'> & {
  readonly leftBehind: Pick<LeftBehind, 'isClean'>;
};

/**
 * Takes the notes of Machines that were let go by force from their classes, when VM and Node are known to be gone, and the driver says that
 * nothing else is left: an object bears 256 KiB of annotations, and one that is full would let nobody go any more. Of a Machine whose VM
 * was never known none may be listed that could be its. What the API server refuses is for the next look.
 */
export async function dropSettledNotes(deps: Deps, survey: Survey, signal: AbortSignal): Promise<void> {
  const { gone, leftBehind, writer, log } = deps;
  const present = presentIn(survey);
  const owned = new Set(survey.machines.map(providerIDOf));
  const unowned = survey.lists.flatMap(({ vms }) => vms).filter((vm) => !owned.has(vm.providerID));
  const isSettled = (removal: ForcedRemoval): boolean => {
    const { machine, nodeName, providerID } = removal;
    if (machine === undefined || !leftBehind.isClean(removal)) return false;
    if (providerID === undefined) return !unowned.some((vm) => mayBeLeftBy(vm, removal));
    if (present.has(providerID) || !gone.has(providerID)) return false;
    return leftoverNodesOf({ name: machine, nodeName: nodeName ?? machine, providerID }, deps).length === 0;
  };
  for (const { machineClass } of survey.lists) {
    const settled = forcedRemovalsOf(machineClass).filter(isSettled);
    if (settled.length === 0) continue;
    const annotations = Object.fromEntries(settled.map(({ key }) => [key, null]));
    const patch = mergePatch(machineClass, { metadata: { annotations } });
    try {
      await writer.patch('change', machineClasses, refOf(machineClass), patch, { signal });
    } catch (err) {
      signal.throwIfAborted();
      log.warn({ err, class: keyOf(machineClass) }, 'could not remove records of forced removals from a class');
    }
  }
}
