import type { MachinePhase } from '../../../apis/machine/v1alpha1/phases.ts';

/** The next step of a machine that is as it should be. */
export const HEALTHY = 'Nothing: the machine is healthy.';

/** Where a machine stands, in words. Conditions, the command line and the console tell the same. */
export interface MachineExplanation {
  readonly phase: MachinePhase | '';
  /** One word, CamelCase; changes when something happened, not as time passes. */
  readonly reason: string;
  /** One sentence. Does not change as time passes either. */
  readonly message: string;
  /** What must happen before the machine moves on; undefined when nothing has to. */
  readonly waitingFor: string | undefined;
  /** For how long it has stood like this; undefined when that is not recorded. */
  readonly sinceMs: number | undefined;
  /** What comes then, or what to do. */
  readonly nextStep: string;
}

/** What is told of a machine, without phase and time. */
export type Explanation = Pick<MachineExplanation, 'reason' | 'message' | 'waitingFor' | 'nextStep'>;
