import type { MachineSet } from '../../apis/machine/v1alpha1/machine-set.ts';
import { controllerOf } from '../../apis/meta.ts';
import { messageOf } from '../../driver/errno.ts';
import { GateClosedError } from '../../kube/gate/gate.ts';
import { ApiError, isAlreadyExists, ignoreNotFound } from '../../kube/client/errors.ts';
import { machines } from '../../kube/client/resource.ts';
import { next } from '../../work/reconcile/result.ts';
import { claimedMachines } from './claim.ts';
import { brakedOwner } from './creation-room.ts';
import { createdMachine, failedToCreate } from '../replicas/events.ts';
import { machineName, newMachine } from './new-machine.ts';
import { presentSet } from './present-set.ts';
import type { Collaborators, SetStep } from './step.ts';
import { UNSEEN_CHECK_MS, unseenCreations } from './unseen-creations.ts';

const CREATIONS_AT_ONCE = 50;
/** A pass ends after so many, for everything else that the set needs; the next one goes on. */
const CREATIONS_A_PASS = 200;

type ScaleUpDeps = Pick<
  Collaborators,
  | 'machines'
  | 'machineDeployments'
  | 'reader'
  | 'writer'
  | 'expectations'
  | 'brake'
  | 'recorder'
  | 'metrics'
  | 'newSuffix'
>;

/**
 * Creates missing Machines. The replacement of a failed one is made as soon as the deletion of that has begun, and while it is seen going:
 * in a rollout there may be no room any more for it once that is gone.
 */
export const createMissing = (deps: ScaleUpDeps & Pick<Collaborators, 'plans' | 'machineSets'>): SetStep => ({
  name: 'create-missing',
  async run(pass) {
    const { object: set, notes, signal } = pass;
    if (pass.error !== undefined) return next;
    const missing = (): number => {
      const now = presentSet(deps, pass);
      return now === undefined ? 0 : deps.plans.of(now, claimedMachines(deps, now), pass).create;
    };
    let hasMore = pass.hasDeleted === true;
    const pending = await unseenCreations(deps, set, signal);
    if (pass.isShort === true || (hasMore && missing() > 0)) {
      try {
        await scaleUp(deps, { set, pending, signal, missing });
        hasMore = missing() > 0;
      } catch (err) {
        pass.error = err;
        // A closed gate, or the end of the process, is no failure of this set.
        if (!(err instanceof GateClosedError) && !signal.aborted) pass.failure = messageOf(err);
      }
    } else if (pending.length > 0) {
      // Nobody asks for them again, and until they are decided they take room from the other sets of the MachineDeployment.
      notes.alsoAfter(UNSEEN_CHECK_MS, 'unanswered creations');
    }
    if (hasMore) notes.alsoAfter(0, 'the rest of its machines');
    return next;
  },
});

/**
 * Creates what is missing in batches of 1, 2, 4, 8, … A failure in a batch ends the round, so that a broken template or a
 * full quota costs few requests; the error is thrown. Returns the number created.
 *
 * Every POST has a name that we chose and remembered before sending it. When an answer is lost the same name is asked for
 * again, so that no Machine is made twice: "already exists" is then the success.
 */
export async function scaleUp(
  deps: ScaleUpDeps,
  round: {
    readonly set: MachineSet;
    /** Names that were asked for earlier and whose fate is unknown: they are asked for again before new ones are chosen. */
    readonly pending: readonly string[];
    readonly signal: AbortSignal;
    /** How many Machines are missing at this moment; asked before every batch, so that falling replicas stop the rest. */
    readonly missing: () => number;
  },
): Promise<number> {
  const { set, signal, missing } = round;
  const pending = [...round.pending];
  let created = 0;
  for (let width = 1; created < CREATIONS_A_PASS; width = Math.min(2 * width, CREATIONS_AT_ONCE)) {
    const count = Math.min(width, missing(), CREATIONS_A_PASS - created);
    if (count <= 0) break;
    const names = Array.from({ length: count }, () => pending.shift() ?? freshName(deps, set));
    const results = await Promise.allSettled(names.map((name) => createOne(deps, set, name, signal)));
    created += results.filter(({ status }) => status === 'fulfilled').length;
    const failed = results.find((result) => result.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }
  return created;
}

/** Creates one Machine under `name`; throws what a retry has to repair. */
async function createOne(deps: ScaleUpDeps, set: MachineSet, name: string, signal: AbortSignal): Promise<void> {
  const owner = set.metadata.uid;
  const refused = deps.expectations.expect(owner, name);
  try {
    await deps.writer.create('create', machines, newMachine(set, name), { signal });
  } catch (err) {
    if (isAlreadyExists(err)) return takeExisting(deps, set, name, signal);
    if (wasRefused(err)) refused();
    if (!(err instanceof GateClosedError) && !signal.aborted) deps.recorder.event(failedToCreate(set, err));
    throw err;
  }
  deps.expectations.settled(owner, name);
  deps.brake.createdMachine(brakedOwner(deps, set));
  deps.recorder.event(createdMachine(set, name));
  deps.metrics.created.inc();
}

/** The name is taken: by our own POST whose answer we never got, or by a stranger; then another name is tried. */
async function takeExisting(deps: ScaleUpDeps, set: MachineSet, name: string, signal: AbortSignal): Promise<void> {
  const live = await deps.reader
    .get(machines, { namespace: set.metadata.namespace ?? '', name }, { signal })
    .catch(ignoreNotFound);
  deps.expectations.settled(set.metadata.uid, name);
  if (live !== undefined && controllerOf(live)?.uid !== set.metadata.uid) {
    return createOne(deps, set, freshName(deps, set), signal);
  }
  deps.brake.createdMachine(brakedOwner(deps, set));
  if (live === undefined) return; // made by us, and deleted by somebody meanwhile
  deps.machines.wrote(live);
  deps.recorder.event(createdMachine(set, name));
  deps.metrics.created.inc();
}

/** Whether the server surely did not, and will not, create anything by this POST. Everything else may have happened. */
function wasRefused(err: unknown): boolean {
  if (err instanceof GateClosedError) return true;
  return err instanceof ApiError && err.code >= 400 && err.code < 500;
}

function freshName({ newSuffix, machines: cache }: ScaleUpDeps, set: MachineSet): string {
  const namespace = set.metadata.namespace ?? '';
  for (;;) {
    const name = machineName(set, newSuffix());
    if (cache.get(`${namespace}/${name}`) === undefined) return name;
  }
}
