import { Registry } from 'prom-client';

import type { Machine } from '../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachineSet } from '../pkg/apis/machine/v1alpha1/machine-set.ts';
import type { MachineSetDeps } from '../pkg/controllers/machine-set/deps.ts';
import { machineSetMetrics } from '../pkg/controllers/machine-set/metrics.ts';
import { Expectations } from '../pkg/reconcile/expectations.ts';
import { MemoryDeps } from './memory-deps.ts';

/** What the MachineSet controller is made of, in memory. */
export class MemorySetDeps extends MemoryDeps implements MachineSetDeps {
  readonly expectations = new Expectations({ clock: this.clock });
  readonly safetyRecorder = this.recorder;
  readonly metrics = machineSetMetrics(new Registry(), () => []);
  readonly nodeConditions: readonly string[] = [];
  #suffixes = 0;

  constructor(sets: readonly MachineSet[], machines: readonly Machine[]) {
    super({ sets, machines });
  }

  readonly newSuffix = (): string => `new-${++this.#suffixes}`;
}
