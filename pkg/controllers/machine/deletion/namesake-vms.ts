import { providerIDOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { DELETION_POLICY_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { isBeingDeleted, keyOf } from '../../../apis/meta.ts';
import { DriverError, type DriverCode } from '../../../driver/error.ts';
import { isClearlyOlder } from '../../machine-facts/clearly-older.ts';
import { deletionStageOf, hasReached } from '../../machine-facts/deletion-stage.ts';
import { hooksOf } from '../../machine-facts/hooks.ts';
import { hasBegun } from '../../machine-facts/name-verdict.ts';
import { isSameVM } from '../../../apis/machine/v1alpha1/same-vm.ts';
import type { Collaborators } from '../collaborators.ts';
import type { ResolvedClass } from '../context.ts';

type Deps = Pick<Collaborators, 'namesakes'>;

/**
 * Machines of the same name in other namespaces with the same target cluster whose creation has begun, read live, if nothing is recorded of the VM
 * of this one: a driver that knows VMs by their names may take one of theirs for it. Throws ApiError.
 */
export async function begunNamesakes(
  { namesakes }: Deps,
  { metadata, spec }: Machine,
  signal: AbortSignal,
): Promise<readonly Machine[]> {
  if (namesakes === undefined || providerIDOf({ spec }) !== '') return [];
  const all = await namesakes(metadata.name, signal);
  return all.filter((one) => one.metadata.uid !== metadata.uid && hasBegun(one));
}

/** Nobody can say whether the VM that a driver would delete is that of a namesake, or whether there is one: this deletion waits. */
export class VMInDoubtError extends DriverError {
  constructor(why: string, code: DriverCode = 'Aborted', lastKnownState?: string) {
    super(code, why, lastKnownState === undefined ? {} : { lastKnownState });
  }
}

/** What a user can do who cannot wait; the other Machine may have lost its manager. */
const WAY_OUT = `With annotation ${DELETION_POLICY_ANNOTATION}=forced, this Machine is removed without that, and a VM of its own may remain while the other Machine exists`;

/** Answers that do not say which VM is that of which machine. */
const UNDECIDED: readonly DriverCode[] = ['OutOfRange', 'Unimplemented'];

/**
 * Where namespaces share a target cluster: whether the driver, which may know VMs by their names only, takes that of a namesake for the one of
 * this machine, of which it was told nothing. `observed` has what is recorded. Throws ApiError, DriverError, and VMInDoubtError while that cannot
 * be told.
 *
 * | the driver answers with | namesakes                                                | the VM is |
 * |-------------------------|----------------------------------------------------------|-----------|
 * | what is recorded        | those that have it too are copies: clearly younger       | its own   |
 * | what is recorded        | one that has it too is not clearly younger               | another's |
 * | the VM of one of them   | any                                                      | another's |
 * | another one             | each has recorded its own, or lets this one go first     | its own   |
 * | another one             | one has recorded none, whatever its label `node` says    | unknown   |
 * | anything else           | each lets this one go first                              | its own   |
 * | anything else           | any others                                               | unknown   |
 */
export async function isVMOfNamesake(
  deps: Deps,
  driver: ResolvedClass['driver'],
  request: { readonly machine: Machine } & Parameters<ResolvedClass['driver']['getStatus']>[0],
  observed: Machine,
  signal: AbortSignal,
): Promise<boolean> {
  const others = await begunNamesakes(deps, request.machine, signal);
  if (others.length === 0) return false;
  const vm = await driver.getStatus(request, signal).catch((err: unknown) => {
    if (DriverError.hasCode(err, 'NotFound')) return undefined;
    if (err instanceof DriverError && err.code === 'Uninitialized') return err.result ?? {};
    if (!DriverError.hasCode(err, ...UNDECIDED)) throw err;
    if (others.every((one) => goesAfter(one, observed))) return undefined;
    throw undecided(err);
  });
  if (vm === undefined) return false;
  const { providerID = '' } = vm;
  const owners = others.filter((one) => isSameVM(providerIDOf(one), providerID) === true);
  if (isSameVM(providerIDOf(observed), providerID) === true && owners.length > 0)
    return !owners.every(({ metadata }) => isClearlyOlder(observed.metadata, metadata));
  if (owners.length > 0) return true;
  const possible = providerID === '' ? others : others.filter((one) => providerIDOf(one) === '');
  if (possible.every((one) => goesAfter(one, observed))) return false;
  throw new VMInDoubtError(
    `the VM that the driver returns (${providerID === '' ? 'without provider ID' : providerID}) may be that of a Machine of the same name in another namespace, which has recorded no VM; waiting until that Machine records its VM or is deleted. ${WAY_OUT}`,
  );
}

/**
 * Whether nothing of a namesake is left that a driver could delete too early: only its VM is to be deleted, too. Else two that wait for each
 * other would do so for ever; by their keys, of several exactly one goes first.
 */
function goesAfter(namesake: Machine, machine: Machine): boolean {
  const isDue = isBeingDeleted(namesake) && hasReached(deletionStageOf(namesake), 'delete-vm');
  return isDue && hooksOf(namesake, 'termination').length === 0 && keyOf(machine) < keyOf(namesake);
}

function undecided({ code, detail }: DriverError): VMInDoubtError {
  return new VMInDoubtError(
    `a Machine in another namespace has the same name, and the driver cannot distinguish their VMs (${code}: ${detail}); waiting until that Machine is deleted. ${WAY_OUT}`,
  );
}
