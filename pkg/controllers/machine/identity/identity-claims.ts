import type { VirtualMachine } from '../../../driver/driver.ts';
import type { NodeAccess } from '../../machine-facts/node-access.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../../apis/wire.ts';
import { DriverError } from '../../../driver/error.ts';
import { keyOf } from '../../../apis/meta.ts';
import { Identities } from '../../../operator/identities.ts';
import { otherOwnerOf, type MachineIndex } from '../../machine-facts/node-owner.ts';
import type { Launched } from '../context.ts';

export type VMIdentity = Pick<VirtualMachine, 'providerID' | 'nodeName'>;
type CachedNodes = Pick<NodeAccess, 'get' | 'ofVM'>;

/** An identity that another Machine has: which part of it, and whose it is. */
export interface Rival {
  readonly part: 'providerID' | 'nodeName';
  /** Of another namespace with that, for the log only: no namespace is told of others. */
  readonly name: string;
}

/**
 * The other Machine that has this identity, by its own record or by what the Node of that provider id or name shows; undefined
 * when nobody else has it. An identity is that of one Machine. A Node name that is another Machine's name is that one's, also before it
 * has recorded anything: no driver gives a machine the name of another.
 */
export function rivalFor(
  { providerID, nodeName }: VMIdentity,
  machine: Machine,
  machines: MachineIndex,
  nodes: CachedNodes | undefined,
): Rival | undefined {
  const nameOf = (one: Machine | undefined): string | undefined =>
    one?.metadata.namespace === machine.metadata.namespace ? one?.metadata.name : one && keyOf(one);
  const other = (found: readonly Machine[]): string | undefined =>
    nameOf(found.find(({ metadata }) => metadata.uid !== machine.metadata.uid));
  const shownOn = (found: readonly Node[]): string | undefined =>
    nameOf(found.map((node) => otherOwnerOf(node, machine, machines)).find((one) => one !== undefined));
  // What its namesakes in other namespaces have is what they have recorded.
  const named = (found: readonly Machine[]): readonly Machine[] =>
    nodeName === machine.metadata.name
      ? found.filter(({ metadata }) => metadata.namespace === machine.metadata.namespace)
      : found;

  const hasVM = other(machines.byIndex('providerID', providerID)) ?? shownOn(nodes?.ofVM(providerID) ?? []);
  if (providerID !== '' && hasVM !== undefined) return { part: 'providerID', name: hasVM };
  if (nodes === undefined || nodeName === '') return undefined;
  const node = nodes.get(nodeName);
  const hasNode =
    other(machines.byIndex('node', nodeName)) ??
    shownOn(node === undefined ? [] : [node]) ??
    other(named(machines.byIndex('name', nodeName)));
  return hasNode === undefined ? undefined : { part: 'nodeName', name: hasNode };
}

/** The Machine other than this one that has its provider id too; undefined when its record is its own. */
export function sharedWith(
  machine: Machine,
  machines: MachineIndex,
  nodes: CachedNodes | undefined,
): string | undefined {
  const { providerID = '' } = machine.spec ?? {};
  const rival = rivalFor({ providerID, nodeName: '' }, machine, machines, nodes);
  return rival?.name;
}

/**
 * Identities that this process is about to record, or has recorded: two passes that run at the same time see nothing of each
 * other in the cache.
 */
export class IdentityClaims {
  readonly #machines: MachineIndex;
  /** Those of all machines of the process whose Nodes are in the same target. */
  readonly #holders: Identities;
  readonly #held = new Map<string, Set<string>>();
  /** Machines for which a driver has answered with what is another's. */
  readonly #doubted = new Set<string>();

  constructor({
    machines,
    identities,
  }: {
    readonly machines: MachineIndex;
    readonly identities?: Identities | undefined;
  }) {
    this.#machines = machines;
    this.#holders = identities ?? new Identities();
  }

  /** Who else has the VM or the Node name; when nobody has, they are this machine's from now on. */
  takenBy(
    { machine, nodes }: { readonly machine: Machine; readonly nodes: CachedNodes | undefined },
    { providerID, nodeName }: VMIdentity,
  ): Rival | undefined {
    if (providerID === '') return undefined;
    const identity = { providerID, nodeName: nodes === undefined ? '' : nodeName };
    return rivalFor(identity, machine, this.#machines, nodes) ?? this.take(identity, machine);
  }

  /** A driver has answered for this Machine with what is another's. */
  doubt({ metadata: { uid } }: Machine): void {
    this.#doubted.add(uid);
  }

  /** Whether it ever did. */
  isDoubted({ metadata: { uid } }: Machine): boolean {
    return this.#doubted.has(uid);
  }

  /** Takes an identity for a Machine, whole or not at all; who has it, if somebody does. */
  take({ providerID, nodeName }: VMIdentity, { metadata: { uid, name, namespace = '' } }: Machine): Rival | undefined {
    const parts = [
      { part: 'providerID', key: `vm ${providerID}` },
      ...(nodeName === '' ? [] : [{ part: 'nodeName', key: `node ${nodeName}` } as const]),
    ] as const;
    for (const { part, key } of parts) {
      const holder = this.#holders.get(key);
      if (holder === undefined || holder.uid === uid) continue;
      return { part, name: holder.namespace === namespace ? holder.name : keyOf({ metadata: holder }) };
    }
    const held = this.#held.get(uid) ?? new Set();
    for (const { key } of parts) {
      this.#holders.set(key, { uid, name, namespace });
      held.add(key);
    }
    this.#held.set(uid, held);
    return undefined;
  }

  forget(uid: string): void {
    for (const key of this.#held.get(uid) ?? []) this.#holders.delete(key);
    this.#held.delete(uid);
    this.#doubted.delete(uid);
  }
}

/** By the name of a Rival, for a text that its namespace is told. */
export function describeRival(name: string): string {
  return name.includes('/') ? 'a Machine in another namespace' : `Machine ${name}`;
}

/** A refused answer as a failure of the driver, or an id that somebody has written as what it is: why, and what to do about it. */
export function identityConflictError({ how, providerID, nodeName }: Launched, { part, name }: Rival): DriverError {
  const whose = describeRival(name);
  if (how === 'known' && part === 'providerID') {
    const text = `VM ${providerID} (spec.providerID) belongs to ${whose}: correct the field, or remove it to create a new VM`;
    return new DriverError('NotFound', text);
  }
  const what = part === 'providerID' ? `VM ${providerID}` : `Node name ${nodeName}`;
  const theirs = part === 'providerID' ? 'which is the VM of' : 'which is the Node name of';
  const text = `driver returned ${what}, ${theirs} ${whose}; the result is not recorded, and the driver is called again. Fix the driver, or delete the Machine that does not own the VM`;
  return new DriverError('Internal', text, { unanswered: how === 'created' });
}
