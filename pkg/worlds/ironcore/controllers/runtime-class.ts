import type { IronCoreMachineClass } from '../api/machine-class.ts';
import { quantityAsNumber } from '../../../apis/quantity.ts';
import type { RuntimeClass } from '../runtime/runtime.ts';

/**
 * The class of a runtime that a MachineClass is made of: that of its name, if the capabilities are equal or the runtime says nothing about
 * them; else the only one with equal capabilities. Undefined: there is none, or nobody knows which.
 */
export function runtimeClassFor(
  { metadata, capabilities }: IronCoreMachineClass,
  classes: readonly RuntimeClass[],
): RuntimeClass | undefined {
  const named = classes.find(({ name }) => name === metadata.name);
  const says = named === undefined ? 0 : Object.keys(named.resources).length;
  if (named !== undefined && (says === 0 || hasEqual(named, capabilities))) return named;
  const [only, ...others] = classes.filter((one) => hasEqual(one, capabilities));
  return others.length === 0 ? only : undefined;
}

/** Quantities that are not whole are rounded up, as runtimes are told whole ones. */
function hasEqual({ resources }: RuntimeClass, capabilities: IronCoreMachineClass['capabilities'] = {}): boolean {
  const wanted = Object.entries(capabilities);
  return (
    wanted.length > 0 &&
    wanted.length === Object.keys(resources).length &&
    wanted.every(([name, quantity]) => {
      const number = quantityAsNumber(quantity);
      return number !== undefined && resources[name] === BigInt(Math.ceil(number));
    })
  );
}
