import { UPDATE_RESULT_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../../apis/machine/v1alpha1/machine-deployment.ts';
import { keyOf, refOf } from '../../../apis/meta.ts';
import { ignoreNotFound } from '../../../kube/client/errors.ts';
import { mergePatch, type Patch } from '../../../kube/client/patch.ts';
import { machines as machineResource } from '../../../kube/client/resource.ts';
import { couldNotMoveMachines } from '../events.ts';
import { Refusals } from '../../replicas/refusals.ts';
import type { MachineDeploymentDeps } from '../step.ts';

type Deps = Pick<MachineDeploymentDeps, 'writer' | 'recorder' | 'clock' | 'log' | 'random'>;

/**
 * Moves Machines from one set to another, and ends that once they are counted. One that may not be changed (a policy, a webhook, a rule of its kind)
 * stops neither the rollout nor scaling: it is told of, left alone for a while, and tried again. Any other error is thrown when all were tried.
 */
export class Moves {
  readonly #deps: Deps;
  readonly #unmoved: Refusals;
  readonly #labelled: Refusals;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#unmoved = new Refusals(deps);
    this.#labelled = new Refusals(deps);
  }

  /** Whether it may not be moved, and was tried a moment ago. */
  isLeftAlone({ metadata }: Machine): boolean {
    return !this.#unmoved.isDue(metadata.uid);
  }

  /** Returns whether any was moved. */
  async move(
    owner: MachineDeployment,
    machines: readonly Machine[],
    patchOf: (machine: Machine) => Patch,
    signal: AbortSignal,
  ): Promise<boolean> {
    // Its new set has not counted it, whatever the one before has.
    for (const { metadata } of machines) this.#labelled.delete(metadata.uid);
    return await this.#patchEach(owner, machines, { patchOf, refusals: this.#unmoved }, signal);
  }

  /** Whether its set has counted it, although its label may not be taken off. */
  isCounted({ metadata }: Machine): boolean {
    return this.#labelled.has(metadata.uid);
  }

  /** Takes the label off Machines that their sets have counted: from now on they may be deleted. Returns whether any had it. */
  async end(owner: MachineDeployment, moved: readonly Machine[], signal: AbortSignal): Promise<boolean> {
    const patchOf = (machine: Machine): Patch =>
      mergePatch(machine, { metadata: { labels: { [UPDATE_RESULT_LABEL]: null } } });
    return await this.#patchEach(owner, moved, { patchOf, refusals: this.#labelled }, signal);
  }

  /** After how many milliseconds the first that refused is tried again; undefined when none waits. */
  dueInMs(owner: string): number | undefined {
    const due = [this.#unmoved, this.#labelled].flatMap((refusals) => refusals.dueInMs(owner) ?? []);
    return due.length === 0 ? undefined : Math.min(...due);
  }

  async #patchEach(
    deployment: MachineDeployment,
    machines: readonly Machine[],
    { patchOf, refusals }: { readonly patchOf: (machine: Machine) => Patch; readonly refusals: Refusals },
    signal: AbortSignal,
  ): Promise<boolean> {
    const { writer, recorder, log } = this.#deps;
    const owner = keyOf(deployment);
    let changed = 0;
    const change = async (machine: Machine): Promise<void> => {
      const patched = writer.patch('change', machineResource, refOf(machine), patchOf(machine), { signal });
      // One that is gone, which a watch that stalls does not show, is no change: a pass after the other would ask for it.
      if ((await patched.catch(ignoreNotFound)) !== undefined) changed += 1;
    };
    const [idOf, nameOf] = [({ metadata }: Machine) => metadata.uid, ({ metadata }: Machine) => metadata.name];
    await refusals.changeEach(machines, { owner, idOf, nameOf, change }, (refused) => {
      const [first] = refused;
      if (first === undefined) return;
      const fields = { key: owner, machines: refused.length, machine: first.name, err: first.cause };
      log.warn(fields, 'could not update machines for a rollout');
      const newRefusals = refused.filter(({ isNew }) => isNew);
      if (newRefusals.length > 0) recorder.event(couldNotMoveMachines(deployment, newRefusals));
    });
    return changed > 0;
  }
}
