import { stop } from '../../work/reconcile/result.ts';
import { inPlaceUpdate } from './in-place/in-place-update.ts';
import type { DeploymentStep } from './pass.ts';
import { resizeSets } from './scaling/resize.ts';
import { hasOldMachines } from './rollout/rollout-begin.ts';
import { endWith, recreate, rollingUpdate, type RolloutDeps } from './rollout/rollout.ts';
import { scale, scalingFactsOf } from './scaling/scaling.ts';
import type { Unsupported } from './status.ts';
import type { Observed } from './observed.ts';

/** Said of a MachineDeployment whose new template would have to reach Machines that never become Nodes. */
const NOTHING_IN_PLACE: Unsupported = {
  reason: 'StrategyNotSupported',
  message:
    'the new template is not rolled out: without a target cluster, Nodes cannot be updated in place; set spec.strategy.type to RollingUpdate or Recreate',
};

/** Moves the Machines to the present template, one step a pass. */
export const rollOut = (deps: RolloutDeps): DeploymentStep => ({
  name: 'rollout',
  async run(pass) {
    const { observed, signal } = pass;
    const strategy = strategyFor(observed, deps.targets.all().length > 0);
    if (strategy === undefined) {
      await resizeSets(deps, observed, scale(scalingFactsOf(observed)), signal);
      pass.unsupported = NOTHING_IN_PLACE;
      return stop;
    }
    const result = await strategy({ deps, observed, signal });
    pass.isRollout = true;
    return endWith(pass, result);
  },
});

/** Without a target cluster, and without Machines of another template, an update in place is a rollout like any other. */
function strategyFor(observed: Observed, hasTarget: boolean): typeof rollingUpdate | undefined {
  switch (observed.deployment.spec.strategy?.type) {
    case 'RollingUpdate':
      return rollingUpdate;
    case 'Recreate':
      return recreate;
    default:
      if (hasTarget) return inPlaceUpdate;
      return hasOldMachines(observed) ? undefined : rollingUpdate;
  }
}
