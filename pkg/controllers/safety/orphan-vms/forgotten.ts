import { providerIDOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { ListedMachine } from '../../../driver/driver.ts';
import { BoundedMap } from '../../../kube/events/bounded-map.ts';
import { classIndex } from '../../../operator/indexes/class-index.ts';
import type { Collaborators } from './collaborators.ts';
import { forgotMachines } from './events.ts';

type Deps = Pick<Collaborators, 'classes' | 'recorder' | 'log'>;

/** So many names and provider ids are remembered; of more Machines than that the VMs are too many to be deleted unasked anyway. */
const CAPACITY = 65_536;

/**
 * Machines that existed before the control cluster was set back to an earlier state, which does not have them. Nobody wanted them gone:
 * their VMs are held until somebody says otherwise, or makes the Machines again.
 */
export class ForgottenMachines {
  readonly #deps: Deps;
  /** Names of Machines and provider ids of their VMs: one whose creation was under way has a name only. */
  readonly #identities = new BoundedMap<string, true>(CAPACITY);

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Remembers them, and tells each class of those whose VMs exist, before the orphan loop, whose evidence begins anew, finds these. */
  add(machines: readonly Machine[]): void {
    for (const identity of machines.flatMap(identitiesOf)) this.#identities.set(identity, true);
    this.#report(machines.filter(hasVM));
  }

  has({ machineName, providerID }: ListedMachine): boolean {
    return this.#identities.get(providerID) === true || this.#identities.get(machineName) === true;
  }

  /** These Machines exist: somebody made them again, and what becomes of them now is meant. */
  exist(machines: readonly Machine[]): void {
    if (this.#identities.size === 0) return;
    for (const identity of machines.flatMap(identitiesOf)) this.#identities.delete(identity);
  }

  #report(machines: readonly Machine[]): void {
    const { classes, recorder, log } = this.#deps;
    for (const [key, ofClass] of Map.groupBy(machines, (machine) => classIndex(machine)[0] ?? '')) {
      const names = ofClass.map(({ metadata }) => metadata.name).toSorted();
      log.warn({ class: key, machines: names.length }, 'control cluster lost machines whose VMs exist');
      const machineClass = classes.get(key);
      if (machineClass !== undefined) recorder.event(forgotMachines(machineClass, names));
    }
  }
}

function identitiesOf(machine: Machine): string[] {
  const { name } = machine.metadata;
  return hasVM(machine) ? [name, providerIDOf(machine)] : [name];
}

function hasVM({ spec }: Machine): boolean {
  return ((spec as Machine['spec'] | undefined)?.providerID ?? '') !== '';
}
