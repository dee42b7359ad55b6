import type { Target, Targets } from './targets.ts';

/** Targets of a process whose Machines all become Nodes of the same cluster, or of none. */
export function singleTarget(target: Target | undefined): Targets {
  const all = Object.freeze(target === undefined ? [] : [target]);
  return { of: () => target, all: () => all };
}
