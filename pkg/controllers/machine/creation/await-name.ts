import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { keyOf } from '../../../apis/meta.ts';
import { fromTimestamp, MINUTE_MS } from '../../../base/clock/clock.ts';
import { CONTROL } from '../../../kube/gate/gate.ts';
import { next, requeue, type StepResult, waitFor } from '../../../work/reconcile/result.ts';
import { hasBegun, judgeName, type Held } from '../../machine-facts/name-verdict.ts';
import { type MachineCopy, setFailure, setOperation, wasNeverRequested } from '../../machine-facts/status.ts';
import { NO_VM_REQUESTED } from '../../machine-facts/status-texts.ts';
import { noVMWasRequested } from '../calls/no-vm-requested.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineContext, MachineStep } from '../context.ts';

/** A name that is taken is looked at again so often, apart from when one of its Machines goes. */
const RECHECK_MS = MINUTE_MS;
/** By so much the clocks of API server and process may differ. */
const SKEW_MS = MINUTE_MS;

type Deps = Pick<Collaborators, 'clock' | 'trust' | 'activities' | 'namesakes'>;

/**
 * Holds a Machine whose creation has not begun while another namespace has one of its name, where both would become Nodes of one target: see
 * judgeName. One that has begun is never held. Nothing of the status but the last operation may tell of it: a condition would be a sign of a Node.
 */
export const awaitName = (deps: Deps): MachineStep => ({
  name: 'await-name',

  async run(ctx) {
    const { machine, observed, nodes, signal } = ctx;
    if (deps.namesakes === undefined || nodes === undefined) return next;
    if (hasBegun(observed) || deps.activities.get(observed.metadata.uid, 'create') !== undefined) return next;
    const found = await deps.namesakes(observed.metadata.name, signal);
    const verdict = judgeName(
      observed,
      found.filter(({ metadata }) => metadata.uid !== observed.metadata.uid),
    );
    if (verdict !== 'free') {
      hold(deps, ctx, verdict);
      return requeue(RECHECK_MS, 'its name to be free');
    }
    if (observed.status?.lastOperation?.errorCode !== 'NameTaken' || wasNeverRequested(observed)) return next;
    return begin(deps, machine);
  },
});

/**
 * Records that a creation has begun before a driver hears of it, where a namesake would otherwise hold it should this process end before the
 * answer is recorded.
 */
export const beginNamed = (deps: Pick<Collaborators, 'clock' | 'activities' | 'namesakes'>): MachineStep => ({
  name: 'begin-named',

  run({ machine, observed, nodes }) {
    if (deps.namesakes === undefined || nodes === undefined) return next;
    if (hasBegun(observed) || deps.activities.get(observed.metadata.uid, 'create') !== undefined) return next;
    return begin(deps, machine);
  },
});

/** For others who look: from now on it has begun. */
function begin({ clock }: Pick<Deps, 'clock'>, machine: MachineCopy): StepResult {
  const description = 'Creating machine on cloud provider';
  setOperation(machine, { type: 'Create', state: 'Processing', description }, clock.now());
  return waitFor('the start of the creation to be recorded');
}

function hold(deps: Deps, ctx: MachineContext, { heldBy, why }: Held): void {
  const { machine, observed, pass, log } = ctx;
  const text = textOf(why);
  // That no provider was asked must be certain: a deletion without its driver follows from it.
  const isSure = wasNeverRequested(observed) || (noVMWasRequested(deps.activities, observed) && isNew(deps, observed));
  const told = { type: 'Create', errorCode: 'NameTaken' } as const;
  if (isSure) {
    setFailure(machine, { ...told, state: 'Failed', description: `${NO_VM_REQUESTED}${text}` }, deps.clock.now());
  } else setOperation(machine, { ...told, state: 'Processing', description: text }, deps.clock.now());
  if (machine.status.lastOperation?.description === observed.status?.lastOperation?.description) return;
  pass.event('NameTaken', text);
  pass.afterWrite(() => log.warn({ other: keyOf(heldBy), why }, 'waiting for the name of a machine'));
}

/** Whether it was made while this process decides, so that no other one has asked for its VM. */
function isNew({ clock, trust }: Deps, { metadata }: Machine): boolean {
  const ageMs = clock.now() - (fromTimestamp(metadata.creationTimestamp) ?? 0);
  return ageMs + SKEW_MS < trust.trustedForMs([CONTROL]);
}

/** A namespace is not told the names of others; the log names it. */
function textOf(why: Held['why']): string {
  const reason = {
    'has-begun': 'which has it already',
    'is-older': 'which is older',
    'is-as-old': 'which is not clearly older or younger, so this one does not begin',
  }[why];
  return `The name is also that of a Machine in another namespace, ${reason}; both would be one Node of the target cluster. Delete this Machine, or have the other one deleted.`;
}
