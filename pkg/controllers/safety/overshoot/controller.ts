import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { MachineDeployment } from '../../../apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../../../apis/machine/v1alpha1/machine-set.ts';
import { API_VERSION } from '../../../apis/machine/v1alpha1/group.ts';
import { controllerOf, isBeingDeleted, keyOf } from '../../../apis/meta.ts';
import type { KubeObject } from '../../../apis/meta.ts';
import type { Lister } from '../../../cache/lister.ts';
import type { Clock } from '../../../clock/clock.ts';
import type { ObjectEvents } from '../../../events/event-sink.ts';
import type { Writer } from '../../../kube/client.ts';
import type { Logger } from '../../../log/logger.ts';
import { requeue, type StepResult } from '../../../reconcile/result.ts';
import { CONTROLLER_INDEX } from '../../machine-set/controller-index.ts';
import { CREATION_LIMIT_REACHED } from '../../machine-set/creation-brake.ts';
import type { CreationBrake } from '../../machine-set/creation-brake.ts';
import type { OwnerlessVMs } from '../ownerless-vms.ts';
import { frozeSet, unfrozeReleasedSet, unfrozeSmallSet } from './events.ts';
import { machinesIn, ownerlessBySet } from './headcount.ts';
import { limitsOf, type Margins } from './limits.ts';
import {
  freezeDeployment,
  freezeMessageOf,
  freezeSet,
  isUnfreezeRequested,
  marksOfDeployment,
  marksOfSet,
  requestUnfreeze,
  unfreezeDeployment,
  unfreezeSet,
} from './marks.ts';
import type { FreezeCause } from './marks.ts';
import { verdictOnDeployment, verdictOnSet } from './verdict.ts';

/** The condition is there and stays as it is. */
const LABEL_AGAIN = { reason: CREATION_LIMIT_REACHED, message: '' } as const;

/** What the overshoot safety is made of. */
export interface OvershootParts {
  /** With the index CONTROLLER_INDEX. */
  readonly machines: Lister<Machine>;
  /** With the index CONTROLLER_INDEX. */
  readonly machineSets: Lister<MachineSet>;
  readonly machineDeployments: Lister<MachineDeployment>;
  readonly ownerless: Pick<OwnerlessVMs, 'list'>;
  readonly brake: Pick<CreationBrake, 'forget'>;
  readonly writer: Writer;
  readonly recorder: ObjectEvents<MachineSet>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly margins: Margins;
  /** `--machine-safety-overshooting-period`. */
  readonly periodMs: number;
}

/**
 * Holds back MachineSets that have too many Machines, or VMs that no Machine has. Each run looks at all of them:
 *
 * 1. every set is frozen or unfrozen by its number (verdict.ts);
 * 2. every MachineDeployment is frozen while one of its sets is;
 * 3. a MachineDeployment with the unfreeze annotation is unfrozen, and its sets get the annotation;
 * 4. a set with the annotation is unfrozen, and not frozen again for one period.
 *
 * What fails for one object fails for it alone, and the run is repeated.
 */
export class OvershootController {
  readonly #parts: OvershootParts;
  /** Sets that a user released, by UID: until when (monotonic) they are left alone. */
  readonly #releasedUntilMs = new Map<string, number>();

  constructor(parts: OvershootParts) {
    this.#parts = parts;
  }

  /** One run over all sets and deployments. Throws the first failure after everything was tried. */
  async reconcile(signal: AbortSignal): Promise<StepResult> {
    const { machineSets, machineDeployments, ownerless, periodMs } = this.#parts;
    const failures: unknown[] = [];
    const attempt = async (run: () => Promise<void>): Promise<void> => {
      signal.throwIfAborted();
      const [outcome] = await Promise.allSettled([run()]);
      if (outcome.status === 'rejected') failures.push(outcome.reason);
    };
    this.#forgetReleased();
    const names = machineSets.list().map(({ metadata }) => metadata.name);
    const extra = ownerlessBySet(names, ownerless.list());
    for (const set of machineSets.list()) {
      await attempt(() => this.#judgeSet(set, extra.get(set.metadata.name) ?? 0, signal));
    }
    for (const deployment of machineDeployments.list()) {
      await attempt(() => this.#judgeDeployment(deployment, signal));
    }
    for (const deployment of machineDeployments.list().filter(isUnfreezeRequested)) {
      await attempt(() => this.#releaseDeployment(deployment, signal));
    }
    for (const set of machineSets.list().filter(isUnfreezeRequested)) {
      await attempt(() => this.#releaseSet(set, signal));
    }
    if (failures.length > 0) throw failures[0];
    return requeue(periodMs, 'the next count');
  }

  async #judgeSet(set: MachineSet, ownerless: number, signal: AbortSignal): Promise<void> {
    const { writer, machines, margins, recorder, clock, log } = this.#parts;
    const { uid, name } = set.metadata;
    if (isBeingDeleted(set)) return;
    const count = machinesIn(set, machines.byIndex(CONTROLLER_INDEX, uid)) + ownerless;
    const limits = limitsOf(set, this.#deploymentOf(set), margins);
    const marks = marksOfSet(set);
    const verdict = verdictOnSet(count, limits, marks, this.#releasedUntilMs.has(uid));
    if (verdict === 'leave') return;
    const fields = { key: keyOf(set), machines: count - ownerless, ownerless, ...limits };
    if (verdict === 'unfreeze') {
      await unfreezeSet(writer, set, signal);
      recorder.event(unfrozeSmallSet(set));
      log.info(fields, 'unfroze a machine set');
      return;
    }
    const without = ownerless === 0 ? '' : `, ${ownerless} of them VMs without a Machine`;
    if (marks.isStopped === true)
      return this.#labelAgain(freezeSet(writer, set, LABEL_AGAIN, clock.now(), signal), set);
    const message = `The number of machines backing MachineSet: ${name} is ${count} >= ${limits.high} which is the Max-ScaleUp-Limit${without}; released at ${limits.low}`;
    await freezeSet(writer, set, { reason: 'OverShootingReplicaCount', message }, clock.now(), signal);
    if (!marks.isLabelled) recorder.event(frozeSet(set));
    log.warn(fields, 'froze a machine set that has too many machines');
  }

  async #judgeDeployment(deployment: MachineDeployment, signal: AbortSignal): Promise<void> {
    const { writer, clock, log } = this.#parts;
    const sets = this.#setsOf(deployment);
    const verdict = verdictOnDeployment(sets.map(marksOfSet), marksOfDeployment(deployment));
    if (verdict === 'leave' || (verdict === 'freeze' && isBeingDeleted(deployment))) return;
    if (verdict === 'unfreeze') {
      await unfreezeDeployment(writer, deployment, signal);
      log.info({ key: keyOf(deployment) }, 'unfroze a machine deployment');
      return;
    }
    if (marksOfDeployment(deployment).isStopped === true) {
      return this.#labelAgain(freezeDeployment(writer, deployment, LABEL_AGAIN, clock.now(), signal), deployment);
    }
    const frozen = sets.find((set) => marksOfSet(set).isLabelled || marksOfSet(set).hasCondition);
    const why = frozen === undefined ? undefined : freezeMessageOf(frozen);
    const cause: FreezeCause =
      why === undefined
        ? {
            reason: 'MachineDeploymentStateSync',
            message: `MachineSet ${frozen?.metadata.name ?? ''} of this MachineDeployment is frozen`,
          }
        : { reason: 'OverShootingReplicaCount', message: why };
    await freezeDeployment(writer, deployment, cause, clock.now(), signal);
    log.warn({ key: keyOf(deployment) }, 'froze the machine deployment of a frozen set');
  }

  /** The label alone holds back, and somebody took it away. */
  async #labelAgain(written: Promise<void>, object: KubeObject): Promise<void> {
    await written;
    this.#parts.log.warn({ key: keyOf(object) }, 'restored the freeze label of what created too much');
  }

  async #releaseDeployment(deployment: MachineDeployment, signal: AbortSignal): Promise<void> {
    const { writer, log } = this.#parts;
    const sets = this.#setsOf(deployment);
    // The sets first: the annotation of the deployment is the only trace of the wish.
    for (const set of sets) if (!isUnfreezeRequested(set)) await requestUnfreeze(writer, set, signal);
    this.#parts.brake.forget(deployment.metadata.uid);
    await unfreezeDeployment(writer, deployment, signal);
    log.info({ key: keyOf(deployment) }, 'unfroze a machine deployment because its annotation asks for it');
  }

  async #releaseSet(set: MachineSet, signal: AbortSignal): Promise<void> {
    const { writer, recorder, clock, log, periodMs } = this.#parts;
    const { isLabelled, hasCondition } = marksOfSet(set);
    this.#parts.brake.forget(set.metadata.uid);
    await unfreezeSet(writer, set, signal);
    this.#releasedUntilMs.set(set.metadata.uid, clock.monotonicMs() + periodMs);
    if (!isLabelled && !hasCondition) return;
    recorder.event(unfrozeReleasedSet(set));
    log.info({ key: keyOf(set) }, 'unfroze a machine set because its annotation asks for it');
  }

  #forgetReleased(): void {
    const nowMs = this.#parts.clock.monotonicMs();
    for (const [uid, untilMs] of this.#releasedUntilMs) if (untilMs <= nowMs) this.#releasedUntilMs.delete(uid);
  }

  #deploymentOf(set: MachineSet): MachineDeployment | undefined {
    const owner = controllerOf(set);
    if (owner?.kind !== 'MachineDeployment' || owner.apiVersion !== API_VERSION) return undefined;
    const key = keyOf({ metadata: { namespace: set.metadata.namespace ?? '', name: owner.name } });
    const deployment = this.#parts.machineDeployments.get(key);
    return deployment?.metadata.uid === owner.uid ? deployment : undefined;
  }

  #setsOf({ metadata }: MachineDeployment): readonly MachineSet[] {
    return this.#parts.machineSets.byIndex(CONTROLLER_INDEX, metadata.uid);
  }
}
