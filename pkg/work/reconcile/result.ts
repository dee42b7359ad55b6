export type StepResult =
  | { readonly kind: 'next' }
  | { readonly kind: 'stop'; readonly waitingFor?: string }
  | { readonly kind: 'requeue'; readonly afterMs: number; readonly waitingFor: string };

export const next: StepResult = Object.freeze({ kind: 'next' });
/** The pass is over; the next event starts another. */
export const stop: StepResult = Object.freeze({ kind: 'stop' });

/** The pass is over; an event that will come (own write seen, activity finished, Node joined) starts another. */
export function waitFor(what: string): StepResult {
  return { kind: 'stop', waitingFor: what };
}

/** The pass is over; run again after `afterMs` at the latest. */
export function requeue(afterMs: number, waitingFor: string): StepResult {
  return { kind: 'requeue', afterMs: Math.max(0, afterMs), waitingFor };
}

export interface Step<C> {
  readonly name: string;
  run(context: C): StepResult | Promise<StepResult>;
}

/** Runs steps in order until one does not say `next`; `began` is told of each of them. */
export async function runSteps<C>(
  steps: readonly Step<C>[],
  context: C,
  began: () => void = () => undefined,
): Promise<StepResult> {
  for (const step of steps) {
    began();
    const result = await step.run(context);
    if (result.kind !== 'next') return result;
  }
  return stop;
}
