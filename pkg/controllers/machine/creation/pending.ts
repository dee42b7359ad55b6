import { classNameOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { LastOperation, NodeAddress } from '../../../apis/machine/v1alpha1/machine.ts';
import { quantityAsNumber } from '../../../apis/quantity.ts';
import { fromTimestamp } from '../../../base/clock/clock.ts';
import { next } from '../../../work/reconcile/result.ts';
import { CREATING } from '../../machine-facts/original-texts.ts';
import { beginPhase, isBeingCreated, isUnderWay, setOperation, type MachineCopy } from '../../machine-facts/status.ts';
import type { Collaborators } from '../collaborators.ts';
import type { Launched, MachineContext, MachineStep } from '../context.ts';

type Deps = Pick<Collaborators, 'unanswered' | 'clock' | 'activities' | 'metrics'>;

/**
 * Confirms the VM: Pending, until its Node is healthy; without target cluster Available, for good. Addresses are recorded where there is no
 * Node that shows them, or where one is external; resources of the VM as far as the driver tells them.
 */
export const pending = (deps: Deps): MachineStep => ({
  name: 'pending',

  run(ctx) {
    const { machine, nodes, launched, pass } = ctx;
    if (launched === undefined) return next;
    if (launched.lastKnownState !== undefined) machine.status.lastKnownState = launched.lastKnownState;
    if (nodes === undefined || launched.addresses.some(isExternal)) {
      machine.status.addresses = addressesOf(machine.status.addresses ?? [], launched);
    }
    const capacity = shownCapacity(launched.capacity);
    if (capacity !== undefined) machine.status.vmCapacity = capacity;
    if (isBeingCreated(machine)) {
      beginPhase(machine, nodes === undefined ? 'Available' : 'Pending', deps.clock.now());
      const operation =
        nodes === undefined
          ? ({ state: 'Successful', description: 'Created machine on cloud provider' } as const)
          : ({ state: 'Processing', description: CREATING } as const);
      setOperation(machine, { type: 'Create', ...operation }, deps.clock.now());
      report(deps, ctx, launched);
    }
    // The result is kept until it is recorded, or a lost write would cost another call.
    pass.afterWrite(() => {
      deps.activities.forget(machine.metadata.uid, 'create');
      deps.activities.forget(machine.metadata.uid, 'initialize');
    });
    return next;
  },
});

function report(deps: Deps, { machine, observed, pass, log, resolved }: MachineContext, launched: Launched): void {
  const { uid, creationTimestamp } = machine.metadata;
  const { lastOperation } = observed.status ?? {};
  const nowMs = deps.clock.now();
  const tookMs = nowMs - (fromTimestamp(creationTimestamp) ?? nowMs);
  // One that took longer was begun by us, too, and so was one whose creation has stopped halfway, or was held up.
  const isNew = launched.how === 'created' || isUnderWay(lastOperation) || hasStopped(lastOperation);
  const isUnseen = !isNew && launched.isUnseen === true;
  if (isNew) pass.event('VMCreated', `VM ${launched.providerID} was created.`);
  else if (isUnseen) pass.event('VMNotFound', unseenText(machine, launched));
  else pass.event('VMAdopted', `VM ${launched.providerID} already existed and was adopted.`);
  pass.afterWrite(() => {
    const { providerID } = launched;
    deps.unanswered.forget(uid);
    if (isUnseen) log.warn({ providerID }, 'the driver does not find the recorded VM');
    else log.info({ providerID, ms: tookMs }, isNew ? 'created a VM' : 'adopted a VM');
    if (isNew) deps.metrics.created(machine, resolved?.machineClass, tookMs);
  });
}

/** A Machine that was created again may have another UID than its VM is marked with, or the ID of no VM. */
function unseenText({ metadata, spec }: MachineCopy, { providerID }: Launched): string {
  return (
    `The driver does not find VM ${providerID} (spec.providerID) for this Machine. Unless the driver finds it, it is not deleted with the Machine. ` +
    `Check that the field is correct, and that the tags of the VM have the UID of this Machine (${metadata.uid}), its namespace and its cluster; ` +
    `then MachineClass ${classNameOf({ spec })} and its Secret.`
  );
}

/** Whether a driver has begun with a VM, and said that it did not come to an end. */
function hasStopped(operation: LastOperation | undefined): boolean {
  return operation?.type === 'Create' && operation.state === 'Failed' && operation.errorCode === 'Aborted';
}

/** More than any Node has. */
const MOST_RESOURCES = 20;
const LONGEST_NAME = 100;
const LONGEST_QUANTITY = 30;

/** What can be stored of what a driver told: what is no quantity must not keep the status from being written. */
function shownCapacity(capacity: Launched['capacity'] = {}): Record<string, string> | undefined {
  const isShown = ([name, amount]: [string, string]): boolean =>
    name.length <= LONGEST_NAME && amount.length <= LONGEST_QUANTITY && (quantityAsNumber(amount) ?? -1) >= 0;
  const shown = Object.entries(capacity)
    .filter(isShown)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .slice(0, MOST_RESOURCES);
  return shown.length === 0 ? undefined : Object.fromEntries(shown);
}

/** One that a Node need not know: its kubelet sees the addresses of its host. */
function isExternal({ type }: NodeAddress): boolean {
  return type === 'ExternalIP';
}

/** Everything that the driver ever told, and the Node's name; each once, in a fixed order. */
function addressesOf(known: readonly NodeAddress[], { addresses, nodeName }: Launched): NodeAddress[] {
  const hostname = nodeName === '' ? [] : [{ type: 'Hostname', address: nodeName }];
  const byText = new Map([...known, ...addresses, ...hostname].map((one) => [`${one.type}/${one.address}`, one]));
  return [...byText].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, { type, address }]) => ({ type, address }));
}
