import { setFreeze } from '../replicas/freeze-marks.ts';
import { CREATION_LIMIT_REACHED, describeStop, isSpent } from '../replicas/creation-brake.ts';
import { deploymentOfSet } from './creation-room.ts';
import { reachedCreationLimit } from '../replicas/events.ts';
import { next } from '../../work/reconcile/result.ts';
import type { MachineSetDeps } from './deps.ts';
import type { SetStep } from './pass.ts';

type BrakeDeps = Pick<
  MachineSetDeps,
  'brake' | 'machineSets' | 'machineDeployments' | 'writer' | 'recorder' | 'clock' | 'log'
>;

/**
 * Freezes a set without a MachineDeployment that has created more within a minute than anybody can want, and puts back a label that
 * somebody took away; a MachineDeployment is frozen by its own controller. Until its annotation releases it, it creates nothing.
 */
export const brake = (deps: BrakeDeps): SetStep => ({
  name: 'brake',
  async run({ key, object, signal }) {
    // Only its latest version can be frozen.
    const set = deps.machineSets.get(key) ?? object;
    const { isStopped, isLabelled } = setFreeze.marksOf(set);
    if (isStopped) {
      if (isLabelled) return next;
      await setFreeze.label(deps.writer, set, signal);
      deps.log.warn({ key }, 'restored the freeze label of a machine set that created too many machines');
      return next;
    }
    const spending = deps.brake.spending(set.metadata.uid);
    if (!isSpent(spending) || deploymentOfSet(deps, set) !== undefined) return next;
    const message = describeStop(`MachineSet ${set.metadata.name}`, spending);
    await setFreeze.freeze(deps.writer, set, { reason: CREATION_LIMIT_REACHED, message }, deps.clock.now(), signal);
    deps.recorder.event(reachedCreationLimit(set));
    deps.log.warn({ key, ...spending }, 'froze a machine set that created too many machines');
    return next;
  },
});
