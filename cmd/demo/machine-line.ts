import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import { explain } from '../../pkg/controllers/machine/explain/explain.ts';

/** A Machine in one line. It must not change by itself as time passes, so it is explained as of no particular moment. */
export function machineLineOf(machine: Machine): string {
  const { phase, message } = explain(machine, 0);
  return `${(phase === '' ? 'New' : phase).padEnd(16)} ${message}`;
}
