import { keyOf, refOf } from '../../../apis/meta.ts';
import { classIndex } from '../../../indexes/class-index.ts';
import type { Writer } from '../../../kube/client.ts';
import { mergePatch } from '../../../kube/patch.ts';
import { machineClasses } from '../../../kube/resource.ts';
import type { Logger } from '../../../log/logger.ts';
import { forcedRemovalsOf, type ForcedRemoval } from '../../vms/forced-removals.ts';
import type { GoneMachines } from '../gone-machines.ts';
import { type LeftNodesDeps, nodesLeftBy, presentIn } from './left-nodes.ts';
import type { Survey } from './survey.ts';

/** What notes are taken away with. */
export interface SettledNotesDeps extends Pick<LeftNodesDeps, 'machines' | 'targets'> {
  readonly gone: Pick<GoneMachines, 'has'>;
  readonly writer: Pick<Writer, 'patch'>;
  readonly log: Pick<Logger, 'warn'>;
}

/**
 * Takes the notes of Machines that were let go by force from classes that are in use, when VM and Node are known to be gone: an object
 * bears 256 KiB of annotations, and one that is full would let nobody go any more. A class without Machines loses them with its
 * finalizer. What the API server refuses is for the next look.
 */
export async function dropSettledNotes(deps: SettledNotesDeps, survey: Survey, signal: AbortSignal): Promise<void> {
  const { gone, writer, log } = deps;
  const present = presentIn(survey);
  const used = new Set(survey.machines.flatMap(classIndex));
  const isSettled = ({ machine, nodeName, providerID }: ForcedRemoval): boolean => {
    if (machine === undefined || providerID === undefined) return false;
    if (present.has(providerID) || !gone.has(providerID)) return false;
    return nodesLeftBy({ name: machine, nodeName: nodeName ?? machine, providerID }, deps).length === 0;
  };
  for (const { machineClass } of survey.lists) {
    if (!used.has(keyOf(machineClass))) continue;
    const settled = forcedRemovalsOf(machineClass).filter(isSettled);
    if (settled.length === 0) continue;
    const annotations = Object.fromEntries(settled.map(({ key }) => [key, null]));
    const patch = mergePatch(machineClass, { metadata: { annotations } });
    try {
      await writer.patch('change', machineClasses, refOf(machineClass), patch, { signal });
    } catch (err) {
      signal.throwIfAborted();
      log.warn({ err, class: keyOf(machineClass) }, 'could not take notes of forced removals from a class');
    }
  }
}
