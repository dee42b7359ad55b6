import { expect } from '@jest/globals';

import { NODE_LABEL } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import { isBeingDeleted } from '../../pkg/apis/meta.ts';
import { eventually } from '../expect/eventually.ts';
import type { Installation } from './installation.ts';

const JOIN_MS = 90_000;

/**
 * Waits until exactly these machines, or that many, exist, all Running and of this class if one is named, each with one VM and a Ready Node of its own, and nothing
 * else is there. Resolves with them, by name in order.
 */
export async function running(
  installation: Installation,
  wanted: readonly string[] | number,
  className?: string,
): Promise<readonly Machine[]> {
  return await eventually(
    async () => {
      const [machines, nodes] = await Promise.all([installation.machines(), installation.nodes()]);
      const names = machines.map(({ metadata }) => metadata.name).toSorted();
      if (typeof wanted === 'number') expect(names).toHaveLength(wanted);
      else expect(names).toEqual(wanted.toSorted());
      expect(phasesOf(machines)).toEqual(names.map((name) => `${name} Running`));
      const others = machines.filter(({ spec }) => className !== undefined && spec.class?.name !== className);
      expect(others.map(({ metadata }) => metadata.name)).toEqual([]);
      const ready = nodes.filter(({ status }) =>
        status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True'),
      );
      expect(ready.map(({ metadata }) => metadata.name).toSorted()).toEqual(
        machines.map(({ metadata }) => metadata.labels?.[NODE_LABEL] ?? '').toSorted(),
      );
      expect(nodes).toHaveLength(ready.length);
      expect(installation.vms.names).toEqual(names);
      return machines;
    },
    { timeoutMs: JOIN_MS, intervalMs: 200, describe: `${String(wanted)} machine(s) to run` },
  );
}

/** Whether a machine counts: nobody has asked for its deletion. */
export function isKept(machine: Machine): boolean {
  return !isBeingDeleted(machine);
}

function phasesOf(machines: readonly Machine[]): readonly string[] {
  return machines
    .map((one) => `${one.metadata.name} ${isKept(one) ? one.status?.currentStatus?.phase : 'is being deleted'}`)
    .toSorted();
}
