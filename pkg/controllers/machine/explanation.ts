import { phaseOf } from '../../apis/machine/v1alpha1/defaults.ts';
import { NODE_LABEL } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachinePhase } from '../../apis/machine/v1alpha1/phases.ts';

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

export type Explanation = Pick<MachineExplanation, 'reason' | 'message' | 'waitingFor' | 'nextStep'>;

export function explanation(
  reason: string,
  message: string,
  waitingFor: string | undefined,
  nextStep: string,
): Explanation {
  return { reason, message, waitingFor, nextStep };
}

/** When and by whom a machine is explained. `outage`: what its owners say of a cluster that does not answer, so that nothing is done. */
export interface Asked {
  readonly nowMs: number;
  readonly outage: string | undefined;
}

/** What the steps of one concern say of a machine: they explain it, add to what the facts after it say (`rest`), or leave it to them. */
export type Fact = (machine: Machine, rest: () => Explanation, asked: Asked) => Explanation;

export function fact(of: (machine: Machine) => Explanation | undefined): Fact {
  return (machine, rest) => of(machine) ?? rest();
}

export function inPhase(phase: MachinePhase | '', of: (machine: Machine) => Explanation): Fact {
  return fact((machine) => (phaseOf(machine) === phase ? of(machine) : undefined));
}

export function isFailure({ status }: Machine): boolean {
  return status?.lastOperation?.state === 'Failed';
}

export function descriptionOf({ status }: Machine): string {
  return status?.lastOperation?.description ?? '';
}

export function nodeTextOf({ metadata }: Machine): string {
  const { [NODE_LABEL]: name = '' } = metadata.labels ?? {};
  return name === '' ? 'its Node' : `Node ${name}`;
}
