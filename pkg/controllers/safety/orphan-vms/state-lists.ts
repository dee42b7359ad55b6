import { MADE_FOR_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import type { MachineClass } from '../../../apis/machine/v1alpha1/machine-class.ts';
import { keyOf } from '../../../apis/meta.ts';
import { CLASS_INDEX } from '../../../operator/indexes/class-index.ts';
import type { Collaborators } from './collaborators.ts';
import { isListed, listClass } from './survey.ts';

type Deps = Pick<Collaborators, 'classes' | 'machines' | 'drivers' | 'secrets' | 'vmStates' | 'clock' | 'log'>;

/** As often as people look at the state of a VM which they have just switched off. */
const PERIOD_MS = 60_000;

/**
 * Between the searches for VMs, lists those of classes that a front end has made: its objects show the state of each VM in the provider's
 * words, which would be up to a whole search old otherwise, and missing for as long of a new one. Nothing is decided by it.
 */
export class StateLists {
  readonly #deps: Deps;
  #dueMs = -Infinity;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Everything was looked at. */
  seen(): void {
    this.#dueMs = this.#deps.clock.monotonicMs() + PERIOD_MS;
  }

  /** Looks when it is time; resolves with the time until the next look. */
  async list(signal: AbortSignal): Promise<number> {
    const { clock } = this.#deps;
    const waitMs = this.#dueMs - clock.monotonicMs();
    if (waitMs > 0) return waitMs;
    await Promise.all(this.#watched().map(async (machineClass) => await this.#list(machineClass, signal)));
    this.seen();
    return PERIOD_MS;
  }

  #watched(): readonly MachineClass[] {
    const { classes, machines } = this.#deps;
    return classes
      .list()
      .filter(
        (one) =>
          one.metadata.labels?.[MADE_FOR_LABEL] !== undefined && machines.byIndex(CLASS_INDEX, keyOf(one)).length > 0,
      );
  }

  async #list(machineClass: MachineClass, signal: AbortSignal): Promise<void> {
    const { vmStates, log } = this.#deps;
    try {
      const listed = await listClass(this.#deps, machineClass, signal);
      if (listed !== undefined && isListed(listed)) vmStates.saw(listed.vms, false);
    } catch (err) {
      signal.throwIfAborted();
      // The search for VMs tells of it.
      log.debug({ class: keyOf(machineClass), err }, 'could not list the VMs of a class for their states');
    }
  }
}
