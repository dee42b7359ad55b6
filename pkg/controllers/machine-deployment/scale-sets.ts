import { revisionHistoryLimitOf } from '../../apis/machine/v1alpha1/defaults.ts';
import { next, stop } from '../../work/reconcile/result.ts';
import { cleanUpSets } from './sets/cleanup.ts';
import { endBegunUpdates } from './in-place/in-place-update.ts';
import { orderHoldOf, type OrderDeps } from './rollout/update-order.ts';
import type { DeploymentStep } from './pass.ts';
import { resizeSets } from './scaling/resize.ts';
import { isToBegin } from './rollout/rollout-begin.ts';
import { endWith, type RolloutDeps } from './rollout/rollout.ts';
import { isScalingEvent, replaceNamed, scale, scalingFactsOf } from './scaling/scaling.ts';

/** Spreads a changed number of replicas over the sets. While it is paused, or waits for its turn, nothing else happens to them. */
export const scaleSets = (deps: RolloutDeps & OrderDeps): DeploymentStep => ({
  name: 'scale',
  async run(pass) {
    const { observed, signal } = pass;
    const { spec } = observed.deployment;
    const hold = orderHoldOf(deps, observed);
    const isHeld = spec.paused === true || hold !== undefined;
    const facts = { ...scalingFactsOf(observed), isPaused: isHeld };
    if (isHeld || isScalingEvent(facts)) {
      const hasScaled = await resizeSets(deps, observed, scale(facts), signal);
      if (isHeld) {
        pass.waitsFor = hold?.message;
        await cleanUpSets(
          deps,
          observed.oldSets.map(observed.owned),
          revisionHistoryLimitOf(observed.deployment),
          signal,
        );
        if (hasScaled || spec.strategy?.type !== 'InPlaceUpdate') return stop;
        return endWith(pass, await endBegunUpdates({ deps, observed, signal }, !isToBegin(observed)));
      }
      // What the overshoot safety does not let grow must not keep the rest from shrinking.
      if (hasScaled || !observed.isFrozen) return stop;
    }
    return (await resizeSets(deps, observed, replaceNamed(facts), signal)) ? stop : next;
  },
});
