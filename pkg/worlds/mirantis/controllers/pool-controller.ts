import { hasFinalizer, withFinalizer, ORPHAN_FINALIZER } from '../../../apis/finalizers.ts';
import { FRONT_END_FINALIZER } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../../apis/machine/v1alpha1/machine-deployment.ts';
import { classNameOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { isBeingDeleted, keyOf, refOf } from '../../../apis/meta.ts';
import type { MachinePool } from '../api/pool.ts';
import { CONTROLLER_INDEX } from '../../../operator/indexes/owner-index.ts';
import type { ObjectEvents } from '../../../kube/events/event-sink.ts';
import { ignoreAlreadyExists, ignoreNotFound } from '../../../kube/client/errors.ts';
import { mergePatchIfUnchanged, statusPatch } from '../../../kube/client/patch.ts';
import { machineDeployments } from '../../../kube/client/resource.ts';
import { clusterMachines, machinePools } from '../api/resources.ts';
import { Finalizer } from '../../../work/reconcile/finalizer.ts';
import type { FieldPath } from '../../../work/reconcile/object-pass/owned-fields.ts';
import { requeue, stop, waitFor, type StepResult } from '../../../work/reconcile/result.ts';
import { concernedTargets } from '../../../controllers/replicas/concerned-targets.ts';
import { readCluster } from './cluster-value.ts';
import { updateOrderFor } from './desired-cluster.ts';
import { reportableChanges } from './events.ts';
import type { FrontEndKind, FrontEndPass, FrontEndOutcome, FrontEndStatus } from './front-end-pass.ts';
import { runFrontEndPass, runLastPass } from './front-end-pass.ts';
import { isRequestRejected, isServed, checkAgain } from './front-end.ts';
import { poolStatusOf } from './pool-status.ts';
import { readPool, type PoolValue } from './pool-value.ts';
import {
  claimOn,
  deploymentChange,
  deploymentFor,
  memberChange,
  memberFor,
  movedLabels,
  ownerReferenceOf,
  replicasPlan,
  type FromElsewhere,
} from './desired-pool.ts';
import type { Problem } from './field-reader.ts';
import { changeOfStatus } from './reported-status.ts';
import { areOne } from './desired-machine.ts';
import type { MirantisCollaborators } from './collaborators.ts';

type Cached = 'machinePools' | 'clusterMachines' | 'machineDeployments' | 'machineSets' | 'machines';
type Shared = 'clusters' | 'madeClasses' | 'reader' | 'writer' | 'targets' | 'log';

interface Deps extends Pick<MirantisCollaborators, Cached | Shared> {
  readonly recorder: ObjectEvents<MachinePool>;
}

type Pass = FrontEndPass<MachinePool>;

const OWNED_FIELDS: readonly FieldPath[] = [
  ['metadata', 'finalizers'],
  ['spec', 'replicas'],
];

/**
 * Makes of each MachinePool a MachineDeployment of its name, and shows each of its Machines as one of their API.
 *
 *   MachinePool ─ finalizer ─▶ MachineClass (shared) ─▶ MachineDeployment ─▶ MachineSets ─▶ our Machines
 *        │                            replicas ◀─▶ replicas                                      │ owner
 *        └───────────── spec of each, but maintenance and delete ──────▶ cluster.k8s.io Machine ◀┘
 *
 * Each pass begins anew from what is there, so that any write may be the last one. Passes of pools and of Machines take turns.
 */
export class MirantisPoolController {
  readonly #deps: Deps;
  readonly #finalizer: Finalizer<MachinePool>;
  readonly #kind: FrontEndKind<MachinePool>;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#finalizer = new Finalizer(deps.writer, machinePools, FRONT_END_FINALIZER);
    const statusOf = this.#statusOf.bind(this);
    this.#kind = { ...deps, resource: machinePools, owned: OWNED_FIELDS, statusOf };
  }

  async reconcile(key: string, signal: AbortSignal): Promise<StepResult> {
    const pool = this.#deps.machinePools.get(key);
    if (pool === undefined) return stop;
    if (isBeingDeleted(pool)) return this.#finalizer.holds(pool) ? await this.#finish(pool, signal) : stop;
    if (!isServed(pool)) return stop;

    const result = await runFrontEndPass(this.#kind, pool, signal, (pass) => this.#sync(pass));
    await this.#deps.madeClasses.removeUnused(pool.metadata.namespace, signal);
    return result;
  }

  #oursOf(pool: MachinePool): MachineDeployment | undefined {
    const named = this.#deps.machineDeployments.get(keyOf(pool));
    return named !== undefined && claimOn(pool, named) === 'ours' ? named : undefined;
  }

  /** Makes the MachineDeployment, or has it follow, and its Machines be shown. */
  async #sync(pass: Pass): Promise<FrontEndOutcome> {
    const { observed, signal } = pass;
    const { value, problems } = readPool(observed);
    if (value === undefined) return { problems };
    const ours = this.#oursOf(observed);
    if (ours === undefined) return await this.#make(pass, value);
    const followed = await this.#update(pass, ours, value);
    const shown = await this.#showMembers(observed, ours, signal);
    const again = followed.again ?? (shown.length > 0 ? checkAgain('the API server to accept the update') : undefined);
    return { problems: [...(followed.problems ?? []), ...shown], ...(again && { again }) };
  }

  async #make({ observed: pool, object, signal }: Pass, value: PoolValue): Promise<FrontEndOutcome> {
    const { machineDeployments: known, madeClasses, writer, log } = this.#deps;
    const named = known.get(keyOf(pool));
    if (named !== undefined && claimOn(pool, named) === 'foreign') {
      const problem = `metadata.name: a MachineDeployment has this name and belongs to another owner; choose another name`;
      return { problems: [problem], again: checkAgain('the other MachineDeployment to be deleted') };
    }
    if (!this.#finalizer.holds(pool)) {
      object.metadata.finalizers = withFinalizer(pool, FRONT_END_FINALIZER);
      return { again: requeue(0, 'the cache to show the finalizer') };
    }
    if (named !== undefined) {
      const ownerReferences = [...(named.metadata.ownerReferences ?? []), ownerReferenceOf(pool)];
      const patch = mergePatchIfUnchanged(named, { metadata: { ownerReferences } });
      await writer.patch('change', machineDeployments, refOf(named), patch, { signal });
      log.info({ machineDeployment: keyOf(named) }, 'adopted machine deployment for a pool');
      return { again: requeue(0, 'the cache to show the adoption') };
    }
    const wanted = await madeClasses.usedBy(pool, value.machine.server, signal);
    if (wanted.value === undefined) return { problems: wanted.problems, again: checkAgain('settings of the Cluster') };
    const problems = await madeClasses.provide(wanted.value, signal);
    if (problems.length > 0) return { problems, again: checkAgain('the class to be deleted') };
    const ours = deploymentFor(pool, value, wanted.value.metadata.name);
    const made = await writer.create('create', machineDeployments, ours, { signal }).catch(ignoreAlreadyExists);
    if (made === undefined) return { again: checkAgain('the cache to show the MachineDeployment of its name') };
    log.info({ machineDeployment: keyOf(pool) }, 'created machine deployment for a pool');
    return {};
  }

  async #update(
    { observed: pool, object, signal }: Pass,
    ours: MachineDeployment,
    value: PoolValue,
  ): Promise<FrontEndOutcome> {
    const { madeClasses, writer } = this.#deps;
    if (isBeingDeleted(ours)) return {};
    const moved = movedLabels(pool, ours);
    if (moved.length > 0) {
      const problem = `metadata.labels: ${moved.join(', ')} cannot be changed; change it back, or create another pool`;
      return { problems: [problem] };
    }
    const { report } = replicasPlan(ours, value.replicas);
    if (report !== undefined) {
      object.spec = { ...object.spec, replicas: report };
      return { again: requeue(0, 'the cache to show its own replicas') };
    }
    const wanted = await madeClasses.usedBy(pool, value.machine.server, signal);
    const problems = wanted.problems ?? (await madeClasses.provide(wanted.value, signal));
    const className = wanted.value === undefined || problems.length > 0 ? undefined : wanted.value.metadata.name;
    const change = deploymentChange(ours, value, {
      className: className ?? classNameOf({ spec: ours.spec.template.spec ?? {} }),
      ...this.#fromCluster(pool),
    });
    if (change !== undefined) {
      const patch = mergePatchIfUnchanged(ours, change);
      const isLoss = (change.spec?.replicas ?? Infinity) < (ours.spec.replicas ?? 0);
      await writer.patch(isLoss ? 'destroy' : 'change', machineDeployments, refOf(ours), patch, { signal });
    }
    return { problems, ...(problems.length > 0 && { again: checkAgain('settings of the Cluster') }) };
  }

  /** What the Cluster of a pool says about its rollouts. Without a Cluster they go on, unless nobody knows whether there is one. */
  #fromCluster(pool: MachinePool): Pick<FromElsewhere, 'updateOrder' | 'isHeld'> {
    const { clusters } = this.#deps;
    const cluster = clusters.of(pool);
    if (cluster === undefined) return { updateOrder: undefined, isHeld: clusters.hasSynced ? false : undefined };
    const { value } = readCluster(cluster);
    const updateOrder = value && updateOrderFor(pool, cluster.metadata.name, value);
    return { updateOrder, isHeld: clusters.holdsRollouts(cluster) };
  }

  /** A Machine of their API for each of its Machines, which says what the pool says. The problems are what was refused. */
  async #showMembers(pool: MachinePool, ours: MachineDeployment, signal: AbortSignal): Promise<readonly Problem[]> {
    const problems: Problem[] = [];
    for (const machine of this.#machinesOf(ours)) {
      try {
        await this.#showMember(pool, machine, signal);
      } catch (err) {
        if (!isRequestRejected(err)) throw err;
        problems.push(`Machine ${machine.metadata.name}: refused by the API server: ${err.message}`);
      }
    }
    return problems;
  }

  async #showMember(pool: MachinePool, machine: Machine, signal: AbortSignal): Promise<void> {
    const { clusterMachines: known, writer } = this.#deps;
    const member = known.get(keyOf(machine));
    if (member === undefined) {
      if (isBeingDeleted(machine)) return;
      await writer.create('create', clusterMachines, memberFor(pool, machine), { signal }).catch(ignoreAlreadyExists);
      return;
    }
    if (!areOne(member, machine)) return;
    const change = memberChange(pool, member);
    if (change === undefined) return;
    await writer.patch('change', clusterMachines, refOf(member), mergePatchIfUnchanged(member, change), { signal });
  }

  #machinesOf(ours: MachineDeployment): readonly Machine[] {
    const { machineSets, machines } = this.#deps;
    const sets = machineSets.byIndex(CONTROLLER_INDEX, ours.metadata.uid);
    return sets.flatMap(({ metadata: { uid } }) => machines.byIndex(CONTROLLER_INDEX, uid));
  }

  /** DELETE of it is DELETE of its MachineDeployment, and so of its Machines; the finalizer goes when that is gone. */
  async #finish(pool: MachinePool, signal: AbortSignal): Promise<StepResult> {
    const { madeClasses, reader, writer, targets } = this.#deps;
    if (hasFinalizer(pool, ORPHAN_FINALIZER)) return waitFor('its MachineDeployment to be orphaned');
    const ours = this.#oursOf(pool);
    if (ours !== undefined) {
      return await runFrontEndPass(this.#kind, pool, signal, async () => {
        if (!isBeingDeleted(ours)) {
          const clusters = concernedTargets(targets, this.#machinesOf(ours));
          // One that is orphaned stays, also where the cache does not show it yet.
          const { uid, resourceVersion } = ours.metadata;
          await writer.delete(
            'destroy',
            machineDeployments,
            refOf(ours),
            { uid, resourceVersion },
            { signal, clusters },
          );
        }
        return { again: waitFor('its MachineDeployment to be gone') };
      });
    }
    const live = await reader.get(machineDeployments, refOf(pool), { signal }).catch(ignoreNotFound);
    if (live !== undefined && claimOn(pool, live) === 'ours') {
      return checkAgain('the cache to show its MachineDeployment');
    }
    await madeClasses.removeUnused(pool.metadata.namespace, signal);
    return await runLastPass(this.#kind, pool, signal, async () => {
      await this.#finalizer.remove(pool, signal);
      return stop;
    });
  }

  #statusOf(pool: MachinePool, problems: readonly Problem[]): FrontEndStatus | undefined {
    const after = poolStatusOf({ pool, deployment: this.#oursOf(pool), problems });
    const change = changeOfStatus(pool.status, after);
    if (change === undefined) return undefined;
    const wrong = new Set(problems.length > 0 ? ['LCM'] : []);
    return {
      patch: statusPatch(pool, change),
      events: reportableChanges(pool.status?.conditions, after.conditions, wrong),
    };
  }
}
