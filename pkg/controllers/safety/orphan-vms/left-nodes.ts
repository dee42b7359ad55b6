import { providerIDOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { forcedRemovalsOf } from '../../vms/forced-removals.ts';
import type { GoneMachines } from '../gone-machines.ts';
import { Evidence, type Look } from './evidence.ts';
import type { Survey } from './survey.ts';

/** What Nodes are judged with. */
export interface LeftNodesDeps {
  readonly gone: Pick<GoneMachines, 'has' | 'addLate'>;
  readonly graceMs: number;
  /** Nothing is to be removed. */
  readonly isDryRun: boolean;
}

/**
 * Nodes of Machines that were let go by force. They go with their VM; where the process that deleted that has ended before, or somebody
 * else deleted it, the note on the class still names it: two looks in a row that do not show the VM say that it is gone, and its Node too.
 */
export class LeftNodes {
  readonly #deps: LeftNodesDeps;
  readonly #missing: Evidence;

  constructor(deps: LeftNodesDeps) {
    this.#deps = deps;
    this.#missing = new Evidence(deps.graceMs);
  }

  /** VMs that were missing once, and are waited for to be so again. */
  get size(): number {
    return this.#missing.size;
  }

  /** Drops what was first seen before `atMs`, when we could not trust what we saw. */
  dropBefore(atMs: number): void {
    this.#missing.dropBefore(atMs);
  }

  /** Takes a look into account; `unseen` are the classes at which it could not look. */
  examine({ lists, machines }: Survey, sight: Look, unseen: ReadonlySet<string>): void {
    const { gone, isDryRun } = this.#deps;
    if (isDryRun) return;
    const listed = lists.flatMap(({ vms, foreign }) => [...vms, ...foreign]).map(({ providerID }) => providerID);
    const present = new Set([...listed, ...machines.map(providerIDOf)]);
    const waiting = new Set<string>();
    for (const { key, machineClass } of lists) {
      for (const { machine, nodeName, providerID } of forcedRemovalsOf(machineClass)) {
        if (machine === undefined || providerID === undefined) continue;
        if (present.has(providerID) || gone.has(providerID)) continue;
        if (this.#missing.see(providerID, key, sight) === undefined) waiting.add(providerID);
        else gone.addLate({ name: machine, nodeName: nodeName ?? machine, providerID });
      }
    }
    this.#missing.keep(waiting, unseen);
  }
}
