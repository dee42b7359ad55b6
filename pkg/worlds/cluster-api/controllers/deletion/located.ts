import { next } from '../../../../work/reconcile/result.ts';
import type { ClusterAPIMachineStep } from '../machine-pass.ts';
import { DRAINING, OF_INFRASTRUCTURE, lastDeletingCondition, waits, waitsForFacts } from './waits.ts';

/** Nothing is begun while it cannot be told what there is: a drain that is left out cannot be made up for. */
export const located: ClusterAPIMachineStep = {
  name: 'located',
  run(pass) {
    const { infrastructureRef, bootstrap = {} } = pass.machine.spec;
    for (const [seen, reference] of [
      [pass.infrastructure, infrastructureRef],
      [pass.bootstrap, bootstrap.configRef],
    ] as const) {
      if (seen.kind !== 'unknown' && seen.kind !== 'reading') continue;
      const what = `${reference?.kind} ${reference?.name}`;
      if (seen.kind === 'unknown') {
        return waitsForFacts(pass, OF_INFRASTRUCTURE, `Unknown whether ${what} exists: ${seen.problem}`);
      }
      // A manager that has just begun to watch a kind knows nothing new: what was said last stands. At the beginning of a deletion that is
      // nothing, and a reason of what comes after the drain would stay until the drain begins.
      const said = lastDeletingCondition(pass);
      const reading = `Unknown whether ${what} exists: reading it`;
      return waits(pass, said?.reason ?? DRAINING, said?.message ?? reading);
    }
    return next;
  },
};
