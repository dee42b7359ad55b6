import { hasFinalizer } from '../../apis/finalizers.ts';
import { ROLE_BINDING_FINALIZER, SECRET_FINALIZER } from '../../apis/machine/v1alpha1/labels.ts';
import { isBeingDeleted, type KubeObject } from '../../apis/meta.ts';
import type { Operator } from '../../operator/operator.ts';
import type { Caches } from '../../operator/caches.ts';
import type { Writer } from '../../kube/client/client.ts';
import {
  kindOf,
  machineClasses,
  machineDeployments,
  machines,
  machineSets,
  roleBindings,
} from '../../kube/client/resource.ts';
import type { Resource } from '../../apis/resource.ts';
import { MACHINES_ROLE_BINDING } from '../../operator/preflight/roles/machinist.ts';
import { Finalizer } from '../../work/reconcile/finalizer.ts';
import { requeue, stop, type StepResult, waitFor } from '../../work/reconcile/result.ts';

export type RoleBindingDeps = Pick<
  Caches,
  'roleBindings' | 'machines' | 'machineSets' | 'machineDeployments' | 'classes' | 'secrets'
> &
  Pick<Operator, 'reader' | 'log'> & {
    readonly writer: Writer;
    readonly namespace: string;
  };

/** The kinds whose objects only we can let go, owners first. */
const KINDS: readonly Resource<KubeObject>[] = [machineDeployments, machineSets, machines, machineClasses];
/** What a live list shows is soon shown by the caches too. */
const RECHECK_MS = 5_000;

/**
 * Keeps what lets us work in the namespace of the Machines while that is being deleted. Kubernetes deletes all that a namespace holds at
 * once: without its RoleBinding nobody could delete a VM, or remove a finalizer, any more.
 *
 * | the RoleBinding          | what is left in the namespace             | what happens                              |
 * |--------------------------|-------------------------------------------|-------------------------------------------|
 * | has not our finalizer    | whatever                                  | left alone: who installs it adds it        |
 * | is not being deleted     | whatever                                  | left alone                                |
 * | is being deleted         | an object of ours, or a Secret that we hold | kept, and with it our permissions         |
 * | is being deleted         | nothing: by the caches and by live lists  | our finalizer is removed                  |
 *
 * The one that lets this process remove finalizers is the last: it waits for all others that have our finalizer, also for those that are not
 * being deleted yet.
 */
export class RoleBindingController {
  readonly #deps: RoleBindingDeps;
  readonly #finalizer: Finalizer<KubeObject>;

  constructor(deps: RoleBindingDeps) {
    this.#deps = deps;
    this.#finalizer = new Finalizer(deps.writer, roleBindings, ROLE_BINDING_FINALIZER);
  }

  async reconcile(key: string, signal: AbortSignal): Promise<StepResult> {
    const binding = this.#deps.roleBindings.get(key);
    if (binding === undefined || !isBeingDeleted(binding)) return stop;
    if (!this.#finalizer.holds(binding)) return stop;

    const known = this.#left();
    if (known !== undefined) return waitFor(`the last ${known} to be removed`);
    const found = await this.#liveLeft(signal);
    if (found !== undefined) return requeue(RECHECK_MS, `the last ${found} to be removed`);

    const other = this.#otherHeld(binding);
    if (other !== undefined) return waitFor(`RoleBinding ${other} to be removed`);

    await this.#finalizer.remove(binding, signal);
    this.#deps.log.info({ key }, 'released role binding: its namespace is empty');
    return stop;
  }

  /** Name of a RoleBinding that could not be released any more without this one. */
  #otherHeld({ metadata }: KubeObject): string | undefined {
    if (metadata.name !== MACHINES_ROLE_BINDING) return undefined;
    const held = this.#deps.roleBindings
      .list()
      .filter((one) => one.metadata.name !== metadata.name && one.metadata.namespace === metadata.namespace)
      .find((one) => hasFinalizer(one, ROLE_BINDING_FINALIZER));
    return held?.metadata.name;
  }

  /** The kind of something that only we can let go, as far as the caches know. */
  #left(): string | undefined {
    const { machineDeployments: deployments, machineSets: sets, machines: all, classes, secrets } = this.#deps;
    const kept = [deployments, sets, all, classes].findIndex((cache) => cache.list().length > 0);
    const kind = KINDS[kept];
    if (kind !== undefined) return kindOf(kind);
    return secrets.list().some((secret) => hasFinalizer(secret, SECRET_FINALIZER))
      ? 'Secret of a MachineClass'
      : undefined;
  }

  /** The same, as the API server knows; that of Secrets, which nobody but us holds, the cache knows. */
  async #liveLeft(signal: AbortSignal): Promise<string | undefined> {
    const { reader, namespace } = this.#deps;
    for (const kind of KINDS) {
      const { items } = await reader.list(kind, { namespace, limit: 1, metadataOnly: true, signal });
      if (items.length > 0) return kindOf(kind);
    }
    return undefined;
  }
}
