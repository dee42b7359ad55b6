import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { keyOf } from '../../../apis/meta.ts';
import { MINUTE_MS } from '../../../base/clock/clock.ts';
import { next, requeue } from '../../../work/reconcile/result.ts';
import { hasBegun, judgeName, type NameHeld } from '../../machine-facts/name-verdict.ts';
import { setFailure, setOperation, wasNeverRequested } from '../../machine-facts/status.ts';
import { NO_VM_REQUESTED } from '../../machine-facts/status-texts.ts';
import { noVMWasRequested } from '../calls/no-vm-requested.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineContext, MachineStep } from '../context.ts';
import { beginToAsk, wasMadeMeanwhile } from './beginning.ts';

/** A name that is taken is looked at again so often, apart from when one of its Machines goes. */
const RECHECK_MS = MINUTE_MS;

type Deps = Pick<Collaborators, 'clock' | 'trust' | 'activities' | 'namesakes'>;

/**
 * Holds a Machine whose creation has not begun while another namespace has one of its name, where both would become Nodes of one target: see
 * judgeName. One that has begun is never held. Nothing of the status but the last operation may tell of it: a condition would be a sign of a Node.
 */
export const awaitName = (deps: Deps): MachineStep => ({
  name: 'await-name',

  async run(ctx) {
    const { machine, observed, nodes, signal } = ctx;
    if (deps.namesakes === undefined || nodes === undefined || mayHaveBegun(deps, observed)) return next;
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
    return beginToAsk(deps, machine);
  },
});

/**
 * Records that a creation has begun before a driver hears of it, where a namesake would otherwise hold it should this process end before the
 * answer is recorded.
 */
export const beginNamed = (deps: Pick<Collaborators, 'clock' | 'activities' | 'namesakes'>): MachineStep => ({
  name: 'begin-named',

  run({ machine, observed, nodes }) {
    if (deps.namesakes === undefined || nodes === undefined || mayHaveBegun(deps, observed)) return next;
    return beginToAsk(deps, machine);
  },
});

/** Whether a driver may have been asked for its VM, as far as the Machine or this process knows. */
function mayHaveBegun({ activities }: Pick<Deps, 'activities'>, observed: Machine): boolean {
  return hasBegun(observed) || activities.get(observed.metadata.uid, 'create') !== undefined;
}

function hold(deps: Deps, ctx: MachineContext, { heldBy, why }: NameHeld): void {
  const { machine, observed, pass, log } = ctx;
  const text = textOf(why);
  // That no provider was asked must be certain: a deletion without its driver follows from it.
  const isSure =
    wasNeverRequested(observed) || (noVMWasRequested(deps.activities, observed) && wasMadeMeanwhile(deps, observed));
  const told = { type: 'Create', errorCode: 'NameTaken' } as const;
  if (isSure) {
    setFailure(machine, { ...told, state: 'Failed', description: `${NO_VM_REQUESTED}${text}` }, deps.clock.now());
  } else setOperation(machine, { ...told, state: 'Processing', description: text }, deps.clock.now());
  if (machine.status.lastOperation?.description === observed.status?.lastOperation?.description) return;
  pass.event('NameTaken', text);
  pass.afterWrite(() => log.warn({ other: keyOf(heldBy), why }, 'waiting for the name of a machine'));
}

/** A namespace is not told the names of others; the log names it. */
function textOf(why: NameHeld['why']): string {
  const reason = {
    'has-begun': 'which has it already',
    'is-older': 'which is older',
    'is-as-old': 'which is not clearly older or younger, so this one does not begin',
  }[why];
  return `The name is also that of a Machine in another namespace, ${reason}; both would be one Node of the target cluster. Delete this Machine, or have the other one deleted.`;
}
