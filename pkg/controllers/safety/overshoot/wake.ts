import { isDeepStrictEqual } from 'node:util';

import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../../../apis/machine/v1alpha1/machine-set.ts';
import { controllerOf } from '../../../apis/meta.ts';
import type { Informer } from '../../../kube/cache/lister.ts';
import type { Caches } from '../../../operator/caches.ts';
import type { Queue } from '../../../work/workqueue/queue.ts';
import { isUnfreezeRequested, deploymentFreeze, setFreeze, type FreezeMarks } from '../../replicas/freeze-marks.ts';

const OVERSHOOT_KEY = 'overshooting';

/** Machines come and go by hundreds: they are counted together. */
const GATHER_MS = 100;

/**
 * Runs the loop now, when a Machine comes, goes or counts for another set (an adopted one is seen before it has its owner), when
 * sizes or the owner of a set change, and when a mark comes or goes. `released` is told, by UID, of each object for which the
 * annotation asks that releases it: while it does, and when it no longer does.
 */
export function wakeOvershoot(
  { machines, machineSets, machineDeployments }: Pick<Caches, 'machines' | 'machineSets' | 'machineDeployments'>,
  queue: Queue,
  released: (uid: string) => void,
): void {
  const gather = (): void => queue.addAfter(OVERSHOOT_KEY, GATHER_MS);
  queue.add(OVERSHOOT_KEY);
  machines.onChange((old, current) => {
    if (old === undefined || current === undefined || countsElsewhere(old, current)) gather();
  });
  const wakeFor = <T extends Owner>(informer: Informer<T>, marksOf: (object: T) => FreezeMarks): void => {
    informer.onChange((old, current) => {
      for (const one of [old, current]) if (one !== undefined && isUnfreezeRequested(one)) released(one.metadata.uid);
      if (old === undefined || current === undefined || isNews(old, current)) queue.add(OVERSHOOT_KEY);
      // Two writes make a mark; a run between them would only meet a conflict.
      else if (!isDeepStrictEqual(marksOf(old), marksOf(current))) gather();
    });
  };
  wakeFor(machineSets, setFreeze.marksOf);
  wakeFor(machineDeployments, deploymentFreeze.marksOf);
}

type Owner = Pick<MachineSet, 'metadata'>;

function countsElsewhere(old: Machine, current: Machine): boolean {
  return isElsewhere(old, current) || !isDeepStrictEqual(old.metadata.labels, current.metadata.labels);
}

function isNews(old: Owner, current: Owner): boolean {
  return old.metadata.generation !== current.metadata.generation || isElsewhere(old, current);
}

/** Whether somebody else controls it now. */
function isElsewhere(old: Owner, current: Owner): boolean {
  return controllerOf(old)?.uid !== controllerOf(current)?.uid;
}
