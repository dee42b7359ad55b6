import type { Freezes } from '../gate/freeze.ts';
import { CONTROL } from '../gate/gate.ts';

/** Calls `run` each time the control cluster turned out to have been set back, when all of it has been read anew and before work goes on. */
export function whenSetBack(freezes: Pick<Freezes, 'onChange'>, run: () => void): void {
  freezes.onChange(({ cluster, frozen, isSetBack }) => {
    if (cluster === CONTROL && !frozen && isSetBack) run();
  });
}
