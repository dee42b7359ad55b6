import { revisionHistoryLimitOf } from '../../apis/machine/v1alpha1/defaults.ts';
import { next, stop } from '../../work/reconcile/result.ts';
import { cleanUpSets } from './cleanup.ts';
import { endBegunUpdates } from './in-place-update.ts';
import { orderHoldOf, type OrderDeps } from './update-order.ts';
import type { DeploymentStep } from './pass.ts';
import { resizeSets } from './resize.ts';
import { isToBegin } from './rollout-begin.ts';
import { endWith, type RolloutDeps } from './rollout.ts';
import { isScalingEvent, replaceNamed, scale, scalingFactsOf } from './scaling.ts';

/** Spreads a changed number of replicas over the sets. While it is paused, or waits for its turn, nothing else happens to them. */
export const scaleSets = (deps: RolloutDeps & OrderDeps): DeploymentStep => ({
  name: 'scale',
  async run(pass) {
    const { world, signal } = pass;
    const { spec } = world.deployment;
    const hold = orderHoldOf(deps, world);
    const isHeld = spec.paused === true || hold !== undefined;
    const facts = { ...scalingFactsOf(world), isPaused: isHeld };
    if (isHeld || isScalingEvent(facts)) {
      const hasScaled = await resizeSets(deps, world, scale(facts), signal);
      if (isHeld) {
        pass.waitsFor = hold?.message;
        await cleanUpSets(deps, world.oldSets.map(world.owned), revisionHistoryLimitOf(world.deployment), signal);
        if (hasScaled || spec.strategy?.type !== 'InPlaceUpdate') return stop;
        return endWith(pass, await endBegunUpdates({ deps, world, signal }, !isToBegin(world)));
      }
      // What the overshoot safety does not let grow must not keep the rest from shrinking.
      if (hasScaled || !world.isFrozen) return stop;
    }
    return (await resizeSets(deps, world, replaceNamed(facts), signal)) ? stop : next;
  },
});
