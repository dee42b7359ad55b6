import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../../apis/machine/v1alpha1/machine-set.ts';
import type { Informer } from '../../../cache/lister.ts';
import type { Queue } from '../../../workqueue/queue.ts';
import { isUnfreezeRequested } from './marks.ts';

/** The one key of the loop. */
export const OVERSHOOT_KEY = 'overshooting';

/** Machines come and go by hundreds: they are counted together. */
const GATHER_MS = 100;

/** What tells the overshoot safety that numbers have changed. */
export interface WakeParts {
  readonly machines: Informer<Machine>;
  readonly machineSets: Informer<MachineSet>;
  readonly machineDeployments: Informer<MachineDeployment>;
  readonly queue: Queue;
}

/** Runs the loop now, when a Machine comes or goes, when sizes change, and when somebody asks for an unfreeze. */
export function wakeOvershoot({ machines, machineSets, machineDeployments, queue }: WakeParts): void {
  queue.add(OVERSHOOT_KEY);
  machines.onChange((old, current) => {
    if (old === undefined || current === undefined) queue.addAfter(OVERSHOOT_KEY, GATHER_MS);
  });
  const onChange = (old: Owner | undefined, current: Owner | undefined): void => {
    if (old === undefined || current === undefined || isNews(old, current)) queue.add(OVERSHOOT_KEY);
  };
  machineSets.onChange(onChange);
  machineDeployments.onChange(onChange);
}

type Owner = Pick<MachineSet, 'metadata'>;

function isNews(old: Owner, current: Owner): boolean {
  const isNewWish = isUnfreezeRequested(current) && !isUnfreezeRequested(old);
  return old.metadata.generation !== current.metadata.generation || isNewWish;
}
