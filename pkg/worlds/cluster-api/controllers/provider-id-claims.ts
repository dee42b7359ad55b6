import type { ClusterAPIMachine } from '../api/machine.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import { conditionOf } from '../../../work/reconcile/conditions.ts';
import type { ObservedInfrastructure, ObservedNode } from './observed.ts';

/** A Machine that names a provider ID, and its infrastructure. */
export interface ProviderIDClaim {
  readonly machine: ClusterAPIMachine;
  readonly infrastructure: ObservedInfrastructure;
}

/**
 * What the infrastructure of a Machine says for it. reports: its own object is there, and has the provider ID. silent: it is there, and has not.
 * gone: there is none of its own, or it goes. unknown: that cannot be told yet.
 */
type Backing = 'reports' | 'silent' | 'gone' | 'unknown';

/**
 * Whether the Node with the provider ID of a Machine may be that of another Machine with this ID; undefined: it may not. A Machine takes no Node
 * along, nor destroys what it may run on, that may be another's:
 *
 * | infrastructure of the Machine | another Machine with the ID                     | it is                                       |
 * |-------------------------------|-------------------------------------------------|---------------------------------------------|
 * | is gone, or does not report   | has infrastructure that reports it              | unknown: the Node is let alone              |
 * | is gone, or does not report   | has infrastructure of which nothing is known yet | undecided                                   |
 * | is gone                       | has the Node, and this one has none             | unknown: nothing that it could take along   |
 * | is there, or nothing is known | has the Node, and this one has none             | undecided: the Node may run on its VM       |
 * | is there, or nothing is known | has as much, and both have the Node, or neither | undecided, unless both are being deleted    |
 *
 * The last: when the Node of two joins, both are woken at once, and each would take it, and write over what the other has put there.
 */
export function contestedNode(own: ProviderIDClaim, rivals: readonly ProviderIDClaim[]): ObservedNode | undefined {
  const backing = backingOf(own);
  if (backing === 'gone' || backing === 'silent') {
    const [reporting] = rivals.filter((rival) => backingOf(rival) === 'reports');
    if (reporting !== undefined) return { kind: 'unknown', problem: contestOf(own, reporting) };
    const [unread] = rivals.filter((rival) => backingOf(rival) === 'unknown');
    if (unread !== undefined) return { kind: 'undecided', problem: contestOf(own, unread) };
  }
  const equal = rivals.find((rival) => isEqual(own, rival));
  if (backing !== 'gone' && backing !== 'silent' && equal !== undefined) {
    return { kind: 'undecided', problem: contestOf(own, equal) };
  }
  const holder = rivals.find(({ machine }) => machine.status?.nodeRef !== undefined);
  if (holder === undefined || own.machine.status?.nodeRef !== undefined) return undefined;
  return { kind: backing === 'gone' ? 'unknown' : 'undecided', problem: contestOf(own, holder) };
}

/** Whether another Machine may own the VM, and have its Node, as much as this one. When both go, what is on the Node is drained by either. */
function isEqual(own: ProviderIDClaim, rival: ProviderIDClaim): boolean {
  const hasAsMuch = own.machine.status?.nodeRef?.name === rival.machine.status?.nodeRef?.name;
  const mayOwn = [backingOf(own), 'reports'].includes(backingOf(rival));
  return hasAsMuch && mayOwn && !(isBeingDeleted(own.machine) && isBeingDeleted(rival.machine));
}

/** What is known of two Machines with one provider ID, and how to find out whose VM it is. To delete the wrong one destroys it. */
export function contestOf(own: ProviderIDClaim, rival: ProviderIDClaim): string {
  const [a, b] = [own, rival].map(nameOf);
  const { providerID } = own.machine.spec ?? {};
  const start = `Machines ${a} and ${b} have the same provider ID ${providerID}`;
  const said = conditionOf(own.machine.status?.conditions, 'NodeReady')?.message;
  const isReading = [own, rival].some(({ infrastructure }) => infrastructure.kind === 'reading');
  // A manager that has just begun to watch a kind knows nothing new: it would tell of both again whenever it starts.
  if (isReading && said?.startsWith(start) === true) return said;
  const node = (own.machine.status?.nodeRef ?? rival.machine.status?.nodeRef)?.name;
  const [where, which] = node === undefined ? ['', 'its Node'] : [` (Node ${node})`, `Node ${node}`];
  return (
    `${start}${where}: ${[own, rival].map(standOf).join('; ')}. ` +
    'Delete neither until two sources confirm that the VM belongs to the other: the provider, which knows for which object it created the VM, and ' +
    `status.nodeInfo.systemUUID of ${which}, which is that of the VM`
  );
}

function nameOf({ machine: { metadata } }: ProviderIDClaim): string {
  return `${metadata.namespace}/${metadata.name}`;
}

function standOf(claim: ProviderIDClaim): string {
  const { machine, infrastructure } = claim;
  const { kind, name } = machine.spec?.infrastructureRef ?? { kind: 'infrastructure', name: '' };
  const what = `${kind} ${name}`.trim();
  const says: Record<Backing, string> = {
    reports: `reports it`,
    silent: `has not reported it`,
    gone: infrastructure.kind === 'foreign' ? "is another's" : infrastructure.kind === 'found' ? 'goes' : 'is gone',
    unknown: 'cannot be read yet',
  };
  return `${what} of ${nameOf(claim)} ${says[backingOf(claim)]}`;
}

function backingOf({ machine: { spec, status }, infrastructure }: ProviderIDClaim): Backing {
  if (infrastructure.kind === 'reading' || infrastructure.kind === 'unknown') return 'unknown';
  if (infrastructure.kind !== 'found' || isBeingDeleted(infrastructure.external.object)) return 'gone';
  const isKnown = status?.initialization?.infrastructureProvisioned === true;
  const reported = infrastructure.report.providerID ?? (isKnown ? spec?.providerID : undefined);
  return reported === spec?.providerID ? 'reports' : 'silent';
}
